import { LIMITS } from '../../domain/limits.ts';

/**
 * Totals that were counted recently or are being counted. A total is used for LIMITS.totalAgeMsMax from its request, so it
 * misses no commit that is older than that.
 */
export interface TotalCache {
  /** The counted total of a list. */
  known(key: string): number | undefined;
  /** The running count of a list; resolves with undefined if there is no list. */
  awaited(key: string): Promise<number | undefined> | undefined;
  /** Adds a running count, for LIMITS.totalAgeMsMax. */
  add(key: string, counting: Promise<number | undefined>): void;
}

interface CachedTotal {
  readonly since: number;
  readonly counting: Promise<number | undefined>;
  total: number | undefined;
}

export function openTotalCache(): TotalCache {
  const totals = new Map<string, CachedTotal>();

  function current(key: string): CachedTotal | undefined {
    const found = totals.get(key);
    if (!found || performance.now() - found.since <= LIMITS.totalAgeMsMax) return found;
    totals.delete(key);
    return undefined;
  }

  return {
    known: (key) => current(key)?.total,
    awaited: (key) => current(key)?.counting,
    add(key, counting) {
      const entry: CachedTotal = { since: performance.now(), counting, total: undefined };
      // A Map iterates in the order of insertion: the oldest is first.
      totals.delete(key);
      if (totals.size >= LIMITS.totalsCachedMax) totals.delete(totals.keys().next().value as string);
      totals.set(key, entry);
      counting.then(
        (total) => {
          entry.total = total;
        },
        () => {
          if (totals.get(key) === entry) totals.delete(key);
        },
      );
    },
  };
}
