import { Presets, SingleBar } from 'cli-progress';
import type { Clock } from '../domain/id.ts';
import type { OutputStream } from '../platform/standard_streams.ts';

/** Shows the progress of a long command. */
export interface ProgressDisplay {
  /** `done` counts in the unit of the total. */
  show(records: number, done: number): void;
  /** Clears the bar, so that another line can be printed. */
  clear(): void;
  stop(): void;
}

type Unit = 'records' | 'bytes';

const PLAIN_EVERY_MS = 5_000;

/** A progress bar if the stream is a terminal and the total is known, and not 0; else a plain line every 5 seconds. */
export function openProgress(
  total: number | undefined,
  clock: Pick<Clock, 'monotonic'>,
  stream: OutputStream,
  unit: Unit = 'records',
): ProgressDisplay {
  const startedAt = clock.monotonic();
  const rate = (records: number): number =>
    Math.round(records / Math.max(0.001, (clock.monotonic() - startedAt) / 1_000));
  return stream.isTTY && total ? bar({ total, unit }, rate, stream) : plainLines(unit, rate, clock, stream);
}

function bar(
  { total, unit }: { readonly total: number; readonly unit: Unit },
  rate: (done: number) => number,
  stream: OutputStream,
): ProgressDisplay {
  const format = `{bar} {percentage}% | {records} ${unit} | {rate}/s | {eta_formatted} left`;
  const single = new SingleBar(
    { format, stream, gracefulExit: false, clearOnComplete: false },
    Presets.shades_classic,
  );
  single.start(total, 0, { records: 0, rate: 0 });
  return {
    show: (records, done) => single.update(done, { records, rate: rate(records) }),
    clear: () => stream.write('\r\x1b[K'),
    stop: () => single.stop(),
  };
}

function plainLines(
  unit: Unit,
  rate: (records: number) => number,
  clock: Pick<Clock, 'monotonic'>,
  stream: OutputStream,
): ProgressDisplay {
  let shownAt = clock.monotonic();
  return {
    show(records) {
      if (clock.monotonic() - shownAt < PLAIN_EVERY_MS) return;
      shownAt = clock.monotonic();
      stream.write(`${records} ${unit}, ${rate(records)}/s\n`);
    },
    clear: () => undefined,
    stop: () => undefined,
  };
}
