import { Fault } from '../domain/fault.ts';
import type { Ambient } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Store } from './store.ts';

/** So much later than it expired an answer is gone at the latest, as long as a service runs. */
const SWEEP_EVERY_MS = 3_600_000;

/**
 * Forgets answers that have expired: now, and every hour until it is stopped, so that they go where nobody writes as
 * well. No more of them to a commit than a removal takes along. It keeps no process alive.
 */
export function startSweeping(
  store: Pick<Store, 'forgetExpired'>,
  { now }: Pick<Ambient, 'now'>,
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
      while (!isStopped && (await store.forgetExpired(now())) >= LIMITS.cascadeRecordsMax);
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
