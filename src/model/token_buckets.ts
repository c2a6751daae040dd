import { LIMITS } from './limits.ts';

/** A burst of `requests`, and as many again in `seconds`. */
export interface Rate {
  readonly requests: number;
  readonly seconds: number;
}

export const RATE_PATTERN = /^[1-9]\d{0,8}\/[1-9]\d{0,4}$/;

/** Returns undefined for a text that does not match RATE_PATTERN. */
export function parseRate(raw: string): Rate | undefined {
  if (!RATE_PATTERN.test(raw)) return undefined;
  const [requests, seconds] = raw.split('/');
  return { requests: Number(requests), seconds: Number(seconds) };
}

export function rateText({ requests, seconds }: Rate): string {
  return `${requests}/${seconds}`;
}

export interface BucketState {
  readonly isExhausted: boolean;
  readonly remaining: number;
  /** Time until the next token; 0 if the bucket is full. */
  readonly msToNext: number;
}

export type TokenBuckets = ReturnType<typeof openTokenBuckets>;

/** The share of one of several processes in a rate for all of them; at least one request. */
export function ratePerProcess({ requests, seconds }: Rate, processes: number): Rate {
  return { requests: Math.max(1, Math.floor(requests / processes)), seconds };
}

/** Tolerance for rounding errors. */
const EPSILON_MS = 1e-6;

/**
 * One bucket for each key, which refills without a timer: it is stored as the time at which it is full again. Above
 * LIMITS.rateBucketsMax the least recently used bucket is dropped, and is full when it is used again.
 */
export function openTokenBuckets({ requests, seconds }: Rate, now: () => number) {
  const fullAt = new Map<string, number>();
  let newest: string | undefined;
  const windowMs = seconds * 1000;
  const refillMs = windowMs / requests;

  const missing = (key: string, at: number) => Math.max(0, (fullAt.get(key) ?? 0) - at);

  function stateOf(missingMs: number, isExhausted: boolean): BucketState {
    const whole = (windowMs - missingMs + EPSILON_MS) / refillMs;
    const remaining = Math.max(0, Math.floor(whole));
    return {
      isExhausted,
      remaining,
      msToNext: remaining >= requests ? 0 : (remaining + 1 - whole) * refillMs,
    };
  }

  function setFullAt(key: string, at: number): void {
    if (key !== newest) fullAt.delete(key);
    newest = key;
    fullAt.set(key, at);
    if (fullAt.size > LIMITS.rateBucketsMax) fullAt.delete(fullAt.keys().next().value as string);
  }

  return {
    /** Takes a token. `isExhausted`: there was none. */
    take(key: string): BucketState {
      const at = now();
      const missingMs = missing(key, at);
      const after = missingMs + refillMs;
      if (after > windowMs + EPSILON_MS) return stateOf(missingMs, true);
      setFullAt(key, at + after);
      return stateOf(after, false);
    },
    /** Takes no token. */
    peek(key: string): BucketState {
      const missingMs = missing(key, now());
      return stateOf(missingMs, missingMs + refillMs > windowMs + EPSILON_MS);
    },
  };
}
