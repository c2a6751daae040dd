import { LIMITS } from './limits.ts';

/** So many at once, and as many again in so many seconds. */
export interface Rate {
  readonly requests: number;
  readonly seconds: number;
}

/** What is left in a bucket. */
export interface Standing {
  readonly isSpent: boolean;
  readonly remaining: number;
  /** Until there is one more; 0 where the bucket is full. */
  readonly msToNext: number;
}

/** A bucket for every key. */
export interface Buckets {
  /** Takes one. `isSpent`: there was none. */
  take(key: string): Standing;
  /** Takes none. */
  look(key: string): Standing;
}

/** What one of several processes may let through of a rate that holds for all of them; never nothing. */
export function shareOf({ requests, seconds }: Rate, processes: number): Rate {
  return { requests: Math.max(1, Math.floor(requests / processes)), seconds };
}

/** What rounding may come to. */
const EPSILON_MS = 1e-6;

/**
 * Buckets that fill by themselves: of each, nothing is known but when it will be full again, so nothing runs for it. The
 * one that was longest not taken from is forgotten for one more than LIMITS.bucketsMax, and is full then.
 */
export function openBuckets({ requests, seconds }: Rate, now: () => number): Buckets {
  const fullAt = new Map<string, number>();
  let newest: string | undefined;
  const windowMs = seconds * 1000;
  const eachMs = windowMs / requests;

  const missing = (key: string, at: number) => Math.max(0, (fullAt.get(key) ?? 0) - at);

  function standing(missingMs: number, isSpent: boolean): Standing {
    const whole = (windowMs - missingMs + EPSILON_MS) / eachMs;
    const remaining = Math.max(0, Math.floor(whole));
    return { isSpent, remaining, msToNext: remaining >= requests ? 0 : (remaining + 1 - whole) * eachMs };
  }

  function keep(key: string, at: number): void {
    if (key !== newest) fullAt.delete(key);
    newest = key;
    fullAt.set(key, at);
    if (fullAt.size <= LIMITS.bucketsMax) return;
    const [oldest] = fullAt.keys();
    if (oldest !== undefined) fullAt.delete(oldest);
  }

  return {
    take(key) {
      const at = now();
      const missingMs = missing(key, at);
      const after = missingMs + eachMs;
      if (after > windowMs + EPSILON_MS) return standing(missingMs, true);
      keep(key, at + after);
      return standing(after, false);
    },
    look(key) {
      const missingMs = missing(key, now());
      return standing(missingMs, missingMs + eachMs > windowMs + EPSILON_MS);
    },
  };
}
