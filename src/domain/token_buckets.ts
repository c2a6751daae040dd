import { LIMITS } from './limits.ts';

/** So many at once, and as many again in so many seconds. */
export interface Rate {
  readonly requests: number;
  readonly seconds: number;
}

/** What is left in a bucket. */
export interface BucketState {
  readonly isExhausted: boolean;
  readonly remaining: number;
  /** Until there is one more; 0 where the bucket is full. */
  readonly msToNext: number;
}

/** A bucket for every key. */
export interface TokenBuckets {
  /** Takes one. `isSpent`: there was none. */
  take(key: string): BucketState;
  /** Takes none. */
  peek(key: string): BucketState;
}

/** What one of several processes may let through of a rate that holds for all of them; never nothing. */
export function ratePerProcess({ requests, seconds }: Rate, processes: number): Rate {
  return { requests: Math.max(1, Math.floor(requests / processes)), seconds };
}

/** What rounding may come to. */
const EPSILON_MS = 1e-6;

/**
 * Buckets that fill by themselves: of each, nothing is known but when it will be full again, so nothing runs for it. The
 * one that was longest not taken from is forgotten for one more than LIMITS.rateBucketsMax, and is full then.
 */
export function openTokenBuckets({ requests, seconds }: Rate, now: () => number): TokenBuckets {
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
    if (fullAt.size <= LIMITS.rateBucketsMax) return;
    const [oldest] = fullAt.keys();
    if (oldest !== undefined) fullAt.delete(oldest);
  }

  return {
    take(key) {
      const at = now();
      const missingMs = missing(key, at);
      const after = missingMs + refillMs;
      if (after > windowMs + EPSILON_MS) return stateOf(missingMs, true);
      setFullAt(key, at + after);
      return stateOf(after, false);
    },
    peek(key) {
      const missingMs = missing(key, now());
      return stateOf(missingMs, missingMs + refillMs > windowMs + EPSILON_MS);
    },
  };
}
