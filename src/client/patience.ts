import type { Outcome } from './attempt.ts';
import { BOUNDS } from './bounds.ts';

/** The limits of retries. */
export interface Patience {
  readonly retries: number;
  /** Milliseconds, counted from the first attempt. */
  readonly patienceMs: number;
}

/** Retryable statuses. 409: a request with the same idempotency key is still being processed. */
const NOT_NOW: ReadonlySet<number> = new Set([409, 429, 502, 503, 504]);
/** Those after which the service may have processed the request. */
const DOUBTFUL: ReadonlySet<number> = new Set([502, 503, 504]);

/** A monotonic clock in milliseconds. */
export const clock = (): number => performance.now();

/** Whether a retry may succeed. */
export function isWorthRepeating(outcome: Outcome): boolean {
  return outcome.kind === 'lost' || NOT_NOW.has(outcome.status);
}

/** Whether the service may have processed the request without a usable response. */
export function isDoubtful(outcome: Outcome): boolean {
  return outcome.kind === 'lost' || DOUBTFUL.has(outcome.status);
}

/**
 * Milliseconds to wait before the next attempt; undefined if there must be none. `done` is the number of attempts so far.
 */
export function pauseBefore(
  outcome: Outcome,
  done: number,
  startedAt: number,
  { retries, patienceMs }: Patience,
): number | undefined {
  if (done > retries || !isWorthRepeating(outcome)) return undefined;
  const asked = outcome.kind === 'answered' ? retryAfter(outcome.headers) : undefined;
  const pause = asked === undefined ? growing(done) : asked + Math.random() * BOUNDS.pauseMsMin;
  return clock() + pause - startedAt >= patienceMs ? undefined : pause;
}

/** Exponential backoff with jitter, so that clients that failed together do not retry together. */
export function growing(done: number): number {
  const pause = Math.min(BOUNDS.pauseMsMax, BOUNDS.pauseMsMin * 2 ** (done - 1));
  return pause / 2 + (Math.random() * pause) / 2;
}

/**
 * Milliseconds of a Retry-After header (RFC 9110, 10.2.3), given in seconds or as a date. A date is compared with the Date of
 * the response, because the clocks of client and server may differ. Undefined without a valid header.
 */
function retryAfter(headers: Headers): number | undefined {
  const said = headers.get('retry-after')?.trim();
  if (said === undefined || said === '') return undefined;
  const wait = /^\d+$/.test(said)
    ? Number(said) * 1_000
    : Date.parse(said) - Date.parse(headers.get('date') ?? '');
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(wait, 0), BOUNDS.retryAfterMsMax);
}

/** Resolves after this time; rejects with the signal's reason as soon as it aborts. */
export function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end);
      resolve();
    }, milliseconds);
    signal?.addEventListener('abort', end, { once: true });
  });
}
