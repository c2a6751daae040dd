import type { Clock } from '../model/id.ts';
import type { OutputStream } from '../ops/process/standard_streams.ts';

const EVERY_MS = 5_000;

/** Returns a function that prints the number of records that a long command has finished, every 5 seconds. */
export function openProgress(
  clock: Pick<Clock, 'monotonic'>,
  stream: OutputStream,
): (records: number) => void {
  let shownAt = clock.monotonic();
  return (records) => {
    if (clock.monotonic() - shownAt < EVERY_MS) return;
    shownAt = clock.monotonic();
    stream.write(`${records} records\n`);
  };
}
