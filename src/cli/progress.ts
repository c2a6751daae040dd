import { Presets, SingleBar } from 'cli-progress';
import type { Ambient } from '../domain/id.ts';

/** What is shown while a command works through many records. */
export interface Progress {
  show(records: number, bytes: number): void;
  /** Makes room for a line on standard error. */
  clear(): void;
  stop(): void;
}

const PLAIN_EVERY_MS = 5_000;

/** A bar where the output is a terminal and the size of the work is known; elsewhere a plain line now and then. */
export function openProgress(totalBytes: number | undefined, ambient: Pick<Ambient, 'monotonic'>): Progress {
  const startedAt = ambient.monotonic();
  const rate = (records: number): number =>
    Math.round(records / Math.max(0.001, (ambient.monotonic() - startedAt) / 1_000));
  return process.stdout.isTTY && totalBytes !== undefined ? bar(totalBytes, rate) : plainLines(rate, ambient);
}

function bar(totalBytes: number, rate: (records: number) => number): Progress {
  const format = '{bar} {percentage}% | {records} records | {rate}/s | {eta_formatted} left';
  const single = new SingleBar(
    { format, stream: process.stdout, gracefulExit: false, clearOnComplete: false },
    Presets.shades_classic,
  );
  single.start(totalBytes, 0, { records: 0, rate: 0 });
  return {
    show: (records, bytes) => single.update(bytes, { records, rate: rate(records) }),
    clear: () => process.stdout.write('\r\x1b[K'),
    stop: () => single.stop(),
  };
}

function plainLines(rate: (records: number) => number, ambient: Pick<Ambient, 'monotonic'>): Progress {
  let toldAt = ambient.monotonic();
  return {
    show(records) {
      if (ambient.monotonic() - toldAt < PLAIN_EVERY_MS) return;
      toldAt = ambient.monotonic();
      console.log(`${records} records, ${rate(records)}/s`);
    },
    clear: () => undefined,
    stop: () => undefined,
  };
}
