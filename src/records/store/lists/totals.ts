import { LIMITS } from '../../../model/limits.ts';

interface CachedTotal {
  readonly since: number;
  readonly counting: Promise<number | undefined>;
}

/**
 * Totals that were counted recently or are being counted. A total is used for LIMITS.totalAgeMsMax from its request, so it
 * misses no commit that is older than that.
 */
export function openTotalCache() {
  const totals = new Map<string, CachedTotal>();
  return {
    /** The count of a list; resolves with undefined if there is no list. */
    get(key: string): Promise<number | undefined> | undefined {
      const found = totals.get(key);
      if (!found || performance.now() - found.since <= LIMITS.totalAgeMsMax) return found?.counting;
      totals.delete(key);
      return undefined;
    },
    /** Adds a running count, for LIMITS.totalAgeMsMax. One that fails is dropped. */
    add(key: string, counting: Promise<number | undefined>): void {
      const entry: CachedTotal = { since: performance.now(), counting };
      // A Map iterates in the order of insertion: the oldest is first.
      totals.delete(key);
      if (totals.size >= LIMITS.totalsCachedMax) totals.delete(totals.keys().next().value as string);
      totals.set(key, entry);
      counting.catch(() => {
        if (totals.get(key) === entry) totals.delete(key);
      });
    },
  };
}
