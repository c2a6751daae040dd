import { LIMITS } from '../domain/limits.ts';
import type { Buckets, Standing } from '../domain/token_buckets.ts';

/** Counts by a key that is dear to find out, for callers who are known by something that is cheap to see. */
export interface Prepaid {
  /**
   * Counts one for whoever shows this; `keyOf` is asked for the bucket only where nothing is paid for. The standing is that
   * of when it was paid for.
   */
  take(shown: string, keyOf: () => string): Standing;
}

/** What is paid for at once, at most. */
const LOT_MAX = 16;
/** The part of what is left in a bucket that may be paid for at once: one in so many. */
const PART = 64;

interface Lot {
  size: number;
  left: number;
  standing: Standing;
}

/**
 * Who comes again pays for twice as many as the last time, as long as his bucket has plenty. What came was always paid for
 * before, so that together the buckets let through no more than without this; only whoever shows the same from two places
 * may have paid in the wrong one. What is shown is not kept, but a checksum of it.
 */
export function openPrepaid(buckets: Buckets, seed: number): Prepaid {
  const lots = new Map<number, Lot>();

  function keep(sum: number, lot: Lot): void {
    lots.set(sum, lot);
    if (lots.size <= LIMITS.bucketsMax) return;
    const [oldest] = lots.keys();
    if (oldest !== undefined) lots.delete(oldest);
  }

  /** Takes one, and as many more as may be paid for. */
  function buy(key: string, wanted: number): Lot {
    const plenty = Math.floor(buckets.look(key).remaining / PART);
    const size = Math.max(1, Math.min(wanted, plenty, LOT_MAX));
    return { size, left: size - 1, standing: buckets.take(key, size) };
  }

  return {
    take(shown, keyOf) {
      const sum = Bun.hash.xxHash32(shown, seed);
      const known = lots.get(sum);
      if (known !== undefined && known.left > 0) {
        known.left -= 1;
        return known.standing;
      }
      const lot = buy(keyOf(), (known?.size ?? 0) * 2);
      keep(sum, lot);
      return lot.standing;
    },
  };
}
