import type { Outcome } from './attempt.ts';
import { BOUNDS } from './bounds.ts';

/** How long a request may go on. */
export interface Patience {
  readonly retries: number;
  /** Milliseconds, from the first attempt on. */
  readonly patienceMs: number;
}

/** Statuses that say: not now. 409 is a request with the same idempotency key that is being answered. */
const NOT_NOW: ReadonlySet<number> = new Set([409, 429, 502, 503, 504]);
/** Of those, the ones after which nobody knows whether the request was carried out. */
const DOUBTFUL: ReadonlySet<number> = new Set([502, 503, 504]);

/** A clock that never goes back, in milliseconds. */
export const clock = (): number => performance.now();

/** Whether the same request, sent again, may fare better. */
export function isWorthRepeating(outcome: Outcome): boolean {
  return outcome.kind === 'lost' || NOT_NOW.has(outcome.status);
}

/** Whether nobody knows if the request was carried out. */
export function isDoubtful(outcome: Outcome): boolean {
  return outcome.kind === 'lost' || DOUBTFUL.has(outcome.status);
}

/**
 * How many milliseconds to wait before the next attempt; undefined where there should be none. `done` counts the attempts
 * so far.
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

/** Twice as long each time, half of it by chance, so that those who failed together do not come back together. */
export function growing(done: number): number {
  const pause = Math.min(BOUNDS.pauseMsMax, BOUNDS.pauseMsMin * 2 ** (done - 1));
  return pause / 2 + (Math.random() * pause) / 2;
}

/**
 * Milliseconds that an answer asks to wait (RFC 9110, 10.2.3): seconds, or a date, which is held against the answer's own
 * Date, for two clocks need not agree. Undefined where it asks for nothing that can be read.
 */
function retryAfter(headers: Headers): number | undefined {
  const said = headers.get('retry-after')?.trim();
  if (said === undefined || said === '') return undefined;
  const wait = /^\d+$/.test(said)
    ? Number(said) * 1_000
    : Date.parse(said) - Date.parse(headers.get('date') ?? '');
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(wait, 0), BOUNDS.retryAfterMsMax);
}

/** Resolves after so many milliseconds; rejects with the signal's reason as soon as it says so. */
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
