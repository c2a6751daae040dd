import { Fault } from '../domain/fault.ts';
import type { Clock } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';

/** So much later than it expired it is gone at the latest, as long as a service runs. */
const SWEEP_EVERY_MS = 3_600_000;

/** Removes some of what expired before an instant; answers how much. */
export type Forget = (now: number) => Promise<number>;

/**
 * Forgets what has expired: now, and every hour until it is stopped, so that it goes where nobody writes as well. No more
 * to a commit than a removal takes along. It keeps no process alive.
 */
export function startSweeping(
  forgets: readonly Forget[],
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
      for (const forget of forgets) {
        while (!isStopped && (await forget(now())) >= LIMITS.cascadeRecordsMax);
      }
    } catch (error) {
      // A database that is busy or in trouble says so to every request. What is left goes next time.
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
