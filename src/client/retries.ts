import type { AttemptOutcome, ServiceConnection } from './attempt.ts';
import { BOUNDS } from './bounds.ts';

/** Retryable statuses. 409: a request with the same idempotency key is still being processed. */
const RETRYABLE: ReadonlySet<number> = new Set([409, 429, 502, 503, 504]);
/** Those after which the service may have processed the request. */
const UNKNOWN_OUTCOME: ReadonlySet<number> = new Set([502, 503, 504]);

/** Whether the service may have processed the request without a usable response. */
export function mayHaveExecuted(outcome: AttemptOutcome): boolean {
  return outcome.kind === 'lost' || UNKNOWN_OUTCOME.has(outcome.status);
}

/**
 * Milliseconds to wait before the next attempt; undefined if there must be none. `done` is the number of attempts so far, and
 * `startedAt` the time of the first.
 */
export function retryDelay(
  outcome: AttemptOutcome,
  done: number,
  startedAt: number,
  { retries, totalTimeoutMs }: Pick<ServiceConnection, 'retries' | 'totalTimeoutMs'>,
): number | undefined {
  const mayRetry = outcome.kind === 'lost' || RETRYABLE.has(outcome.status);
  if (done > retries || !mayRetry) return undefined;
  const requested = outcome.kind === 'answered' ? retryAfterMs(outcome.headers) : undefined;
  const delay =
    requested === undefined
      ? backoffDelay(done)
      : Math.min(requested, BOUNDS.retryAfterMsMax) + Math.random() * BOUNDS.pauseMsMin;
  return performance.now() + delay - startedAt >= totalTimeoutMs ? undefined : delay;
}

/** Exponential backoff with jitter, so that clients that failed together do not retry together. */
export function backoffDelay(done: number): number {
  const delay = Math.min(BOUNDS.pauseMsMax, BOUNDS.pauseMsMin * 2 ** (done - 1));
  return delay / 2 + (Math.random() * delay) / 2;
}

/** Milliseconds of a Retry-After header in seconds, as the service sends it; undefined without one. */
export function retryAfterMs(headers: Headers): number | undefined {
  const seconds = headers.get('retry-after')?.trim() ?? '';
  return /^\d+$/.test(seconds) ? Number(seconds) * 1_000 : undefined;
}

/** Resolves after this time; rejects with the signal's reason as soon as it aborts. */
export function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const elapsed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  return abortable(signal, elapsed).finally(() => clearTimeout(timer));
}

/** Waits for shared work: the signal aborts only this wait. */
export function abortable<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
