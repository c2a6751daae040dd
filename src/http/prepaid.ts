import { LIMITS } from '../domain/limits.ts';
import type { Buckets, Standing } from '../domain/token_buckets.ts';

/** Counts callers who are known by what they show, and who may come again at once. */
export interface Prepaid {
  /**
   * Counts one for whoever shows this; `keyOf` is asked for the bucket only where nothing is paid for. The standing is that
   * of when it was paid for.
   */
  take(shown: string, keyOf: () => string): Standing;
}

/** What is paid for at once, at most. */
const LOT_MAX = 64;
/** The part of what is left in a bucket that may be paid for at once: one in so many. */
const PART = 64;
/** How long what is paid for holds: nobody saves up in lots what a bucket would not hold. */
const LOT_MS = 100;

interface Lot {
  readonly key: string;
  readonly size: number;
  readonly boughtAt: number;
  left: number;
  readonly standing: Standing;
}

/** What a lot is kept by: of what is secret no more than a checksum. */
type Mark = string | number;

interface Till {
  readonly buckets: Buckets;
  readonly markOf: (shown: string) => Mark;
  /** Of the clock of the buckets. */
  readonly now: () => number;
}

/**
 * Who soon comes again pays for twice as many as the last time, as long as his bucket has plenty; what he does not use in time
 * he gets back. All that comes was paid for, at most LOT_MS before: at once the buckets let through what they would without
 * this, and what they refill in that time. Whoever shows the same from two places may have paid in the wrong one. Of what is
 * shown its mark is kept, and the last one.
 */
export function openPrepaid({ buckets, markOf, now }: Till): Prepaid {
  const lots = new Map<Mark, Lot>();
  let last: { readonly shown: string; readonly mark: Mark; lot: Lot | undefined } | undefined;

  /** A busy caller comes again at once, and to mark what is shown costs more than to compare it. */
  function seen(shown: string) {
    if (last?.shown === shown) return last;
    const mark = markOf(shown);
    last = { shown, mark, lot: lots.get(mark) };
    return last;
  }

  /** Lots that no longer hold stand first, and go: whoever shows something new each time leaves nothing behind. */
  function keep(mark: Mark, lot: Lot): void {
    lots.delete(mark);
    lots.set(mark, lot);
    for (const [oldest, old] of lots) {
      if (lots.size <= LIMITS.bucketsMax && lot.boughtAt - old.boughtAt < LOT_MS) return;
      end(old);
      lots.delete(oldest);
    }
  }

  function end(lot: Lot): void {
    if (lot.left > 0) buckets.giveBack(lot.key, lot.left);
    lot.left = 0;
  }

  /** Takes one, and as many more as may be paid for. */
  function buy(key: string, wanted: number, boughtAt: number): Lot {
    const plenty = Math.floor(buckets.look(key).remaining / PART);
    const size = Math.max(1, Math.min(wanted, plenty, LOT_MAX));
    return { key, size, boughtAt, left: size - 1, standing: buckets.take(key, size) };
  }

  return {
    take(shown, keyOf) {
      const caller = seen(shown);
      const at = now();
      const known = caller.lot;
      const ageMs = known === undefined ? LOT_MS : at - known.boughtAt;
      if (known !== undefined && known.left > 0 && ageMs < LOT_MS) {
        known.left -= 1;
        return known.standing;
      }
      if (known !== undefined) end(known);
      const lot = buy(keyOf(), wantedAfter(known, ageMs), at);
      keep(caller.mark, lot);
      caller.lot = lot;
      return lot.standing;
    },
  };
}

/** So many as are used up in time. */
function wantedAfter(last: Lot | undefined, ageMs: number): number {
  if (last === undefined || ageMs >= LOT_MS) return 1;
  return ageMs < LOT_MS / 2 ? last.size * 2 : last.size;
}
