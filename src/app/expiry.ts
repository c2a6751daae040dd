import { Fault } from '../model/fault.ts';
import type { Clock } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';

/** Expired records are deleted within this time, as long as a service runs. */
const SWEEP_EVERY_MS = 3_600_000;

/** Deletes records that expired before `now`, and returns how many. After fewer than `LIMITS.cascadeRecordsMax` none is left. */
export type DeleteExpired = (now: number) => Promise<number>;

/**
 * Deletes expired records now and every hour until it is stopped, so that they are deleted even without writes. Does not keep
 * the process alive.
 */
export function startExpiry(
  tasks: readonly DeleteExpired[],
  { now }: Pick<Clock, 'now'>,
  everyMs: number = SWEEP_EVERY_MS,
): { stop(): Promise<void> } {
  let isStopped = false;
  let sweeping = sweep();
  const timer = setInterval(() => {
    sweeping = sweeping.then(sweep);
  }, everyMs);
  timer.unref();

  async function sweep(): Promise<void> {
    try {
      for (const deleteExpired of tasks) {
        while (!isStopped && (await deleteExpired(now())) >= LIMITS.cascadeRecordsMax);
      }
    } catch (error) {
      // Failures of the database are logged with requests. The rest is deleted at the next sweep.
      if (!(error instanceof Fault)) throw error;
    }
  }

  return {
    async stop() {
      isStopped = true;
      clearInterval(timer);
      await sweeping;
    },
  };
}
