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
/** How long what is paid for holds: nobody saves up in lots what a bucket would not hold. */
const LOT_MS = 100;

interface Lot {
  readonly size: number;
  readonly boughtAt: number;
  left: number;
  readonly standing: Standing;
}

/**
 * Who soon comes again pays for twice as many as the last time, as long as his bucket has plenty. What came was paid for
 * just before, so that together the buckets let through no more than without this; only whoever shows the same from two
 * places may have paid in the wrong one. Of what is shown a checksum is kept, and the last one. `now`: of the clock of the buckets.
 */
export function openPrepaid(buckets: Buckets, seed: number, now: () => number): Prepaid {
  const lots = new Map<number, Lot>();
  let last = { shown: '', sum: Bun.hash.xxHash32('', seed) };

  /** A busy caller comes again at once, and a checksum costs more than a comparison. */
  function sumOf(shown: string): number {
    if (shown !== last.shown) last = { shown, sum: Bun.hash.xxHash32(shown, seed) };
    return last.sum;
  }

  /** Lots that no longer hold stand first, and go: whoever shows something new each time leaves nothing behind. */
  function keep(sum: number, lot: Lot): void {
    lots.delete(sum);
    lots.set(sum, lot);
    for (const [oldest, { boughtAt }] of lots) {
      if (lots.size <= LIMITS.bucketsMax && lot.boughtAt - boughtAt < LOT_MS) return;
      lots.delete(oldest);
    }
  }

  /** Takes one, and as many more as may be paid for. */
  function buy(key: string, wanted: number, boughtAt: number): Lot {
    const plenty = Math.floor(buckets.look(key).remaining / PART);
    const size = Math.max(1, Math.min(wanted, plenty, LOT_MAX));
    return { size, boughtAt, left: size - 1, standing: buckets.take(key, size) };
  }

  return {
    take(shown, keyOf) {
      const sum = sumOf(shown);
      const at = now();
      const known = lots.get(sum);
      const ageMs = known === undefined ? LOT_MS : at - known.boughtAt;
      if (known !== undefined && known.left > 0 && ageMs < LOT_MS) {
        known.left -= 1;
        return known.standing;
      }
      const lot = buy(keyOf(), wantedAfter(known, ageMs), at);
      keep(sum, lot);
      return lot.standing;
    },
  };
}

/** So many as are used up in time. */
function wantedAfter(last: Lot | undefined, ageMs: number): number {
  if (last === undefined || ageMs >= LOT_MS) return 1;
  return ageMs < LOT_MS / 2 ? last.size * 2 : last.size;
}
