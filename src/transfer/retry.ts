import type { MaybePromise } from '../directory/store.ts';
import { Fault } from '../domain/fault.ts';
import { LIMITS } from '../domain/limits.ts';

/** How long to wait before a commit is tried again. */
const PAUSE_MS = 1_000;

/** What was loaded without our hearing of it is found to be the same the next time. */
export function isUnavailable(error: unknown): error is Fault {
  return error instanceof Fault && (error.code === 'unavailable' || error.code === 'unknown_outcome');
}

/**
 * Asks a busy database again, up to LIMITS.importCommitAttemptsMax times: two imports at once take turns. One that is
 * away and says so at once has as many seconds to come back. The signal lets it be asked once more.
 */
export async function retryWhileUnavailable<T>(signal: AbortSignal, work: () => MaybePromise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      const isLast = attempt >= LIMITS.importCommitAttemptsMax || signal.aborted;
      if (!isUnavailable(error) || isLast) throw error;
    }
    await pause(PAUSE_MS, signal);
  }
}

/** The signal ends it. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const timer = setTimeout(resolve, ms);
  signal.addEventListener('abort', resolve);
  if (!signal.aborted) await promise;
  clearTimeout(timer);
  signal.removeEventListener('abort', resolve);
}
