import { setTimeout } from 'node:timers/promises';
import { Fault } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import type { MaybePromise } from '../../model/store.ts';

const PAUSE_MS = 1_000;

/** Whether a retry may succeed. After an unknown outcome, a retry finds records that were committed unchanged. */
export function isUnavailable(error: unknown): error is Fault {
  return error instanceof Fault && (error.code === 'unavailable' || error.code === 'unknown_outcome');
}

/**
 * Retries while the database is busy, up to LIMITS.importCommitAttemptsMax times: concurrent imports take turns. A database
 * that refuses connections at once has as many seconds to come back. After the signal there is one more attempt.
 */
export async function retryWhileUnavailable<T>(signal: AbortSignal, work: () => MaybePromise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      const isLast = attempt >= LIMITS.importCommitAttemptsMax || signal.aborted;
      if (!isUnavailable(error) || isLast) throw error;
    }
    // Ends early at the signal.
    await setTimeout(PAUSE_MS, undefined, { signal }).catch(() => undefined);
  }
}
