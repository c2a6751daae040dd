import { LIMITS } from '../domain/limits.ts';
import type { Buckets, Standing } from '../domain/token_buckets.ts';

/** Counts callers who are known by what they show, and who may come again at once. */
export interface Prepaid<Told> {
  /**
   * Counts one for whoever shows this; `keyOf` is asked for the bucket only where nothing is paid for. What is told is of
   * when it was paid for, and the same for all that was paid for at once.
   */
  take(shown: string, keyOf: () => string): Told;
}

/** What is paid for at once, at most. */
const LOT_MAX = 64;
/** The part of what is left in a bucket that may be paid for at once: one in so many. */
const PART = 64;
/** How long what is paid for holds: nobody saves up in lots what a bucket would not hold. */
const LOT_MS = 100;

interface Lot<Told> {
  readonly size: number;
  readonly boughtAt: number;
  left: number;
  readonly told: Told;
}

export interface Till<Told> {
  readonly buckets: Buckets;
  /** Of the checksums. */
  readonly seed: number;
  /** Of the clock of the buckets. */
  readonly now: () => number;
  readonly tell: (standing: Standing) => Told;
}

/**
 * Who soon comes again pays for twice as many as the last time, as long as his bucket has plenty. What came was paid for
 * just before, so that together the buckets let through no more than without this; only whoever shows the same from two
 * places may have paid in the wrong one. Of what is shown a checksum is kept, and the last one.
 */
export function openPrepaid<Told>({ buckets, seed, now, tell }: Till<Told>): Prepaid<Told> {
  const lots = new Map<number, Lot<Told>>();
  /** A busy caller comes again at once, and a checksum costs more than a comparison. */
  let last: { readonly shown: string; readonly sum: number; lot: Lot<Told> | undefined } | undefined;

  function seen(shown: string) {
    if (last?.shown === shown) return last;
    const sum = Bun.hash.xxHash32(shown, seed);
    last = { shown, sum, lot: lots.get(sum) };
    return last;
  }

  /** Lots that no longer hold stand first, and go: whoever shows something new each time leaves nothing behind. */
  function keep(sum: number, lot: Lot<Told>): void {
    lots.delete(sum);
    lots.set(sum, lot);
    for (const [oldest, { boughtAt }] of lots) {
      if (lots.size <= LIMITS.bucketsMax && lot.boughtAt - boughtAt < LOT_MS) return;
      lots.delete(oldest);
    }
  }

  /** Takes one, and as many more as may be paid for. */
  function buy(key: string, wanted: number, boughtAt: number): Lot<Told> {
    const plenty = Math.floor(buckets.look(key).remaining / PART);
    const size = Math.max(1, Math.min(wanted, plenty, LOT_MAX));
    return { size, boughtAt, left: size - 1, told: tell(buckets.take(key, size)) };
  }

  return {
    take(shown, keyOf) {
      const caller = seen(shown);
      const at = now();
      const known = caller.lot;
      const ageMs = known === undefined ? LOT_MS : at - known.boughtAt;
      if (known !== undefined && known.left > 0 && ageMs < LOT_MS) {
        known.left -= 1;
        return known.told;
      }
      const lot = buy(keyOf(), wantedAfter(known, ageMs), at);
      keep(caller.sum, lot);
      caller.lot = lot;
      return lot.told;
    },
  };
}

/** So many as are used up in time. */
function wantedAfter(last: Pick<Lot<unknown>, 'size'> | undefined, ageMs: number): number {
  if (last === undefined || ageMs >= LOT_MS) return 1;
  return ageMs < LOT_MS / 2 ? last.size * 2 : last.size;
}
