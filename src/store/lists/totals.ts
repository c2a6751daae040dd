import { LIMITS } from '../../domain/limits.ts';

/**
 * Totals that were counted lately, and those that are being counted. One is told for LIMITS.totalAgeMsMax from the
 * moment it was asked for, so what it leaves out was committed no longer ago than that.
 */
export interface TotalCache {
  /** What was counted for a question. */
  known(question: string): number | undefined;
  /** What is being counted for a question; resolves with undefined where there is nothing to count. */
  awaited(question: string): Promise<number | undefined> | undefined;
  /** Keeps what is being counted until it is too old. */
  keep(question: string, counting: Promise<number | undefined>): void;
}

interface CachedTotal {
  readonly since: number;
  readonly counting: Promise<number | undefined>;
  total: number | undefined;
}

export function openTotalCache(): TotalCache {
  const kept = new Map<string, CachedTotal>();

  function young(question: string): CachedTotal | undefined {
    const found = kept.get(question);
    if (!found || performance.now() - found.since <= LIMITS.totalAgeMsMax) return found;
    kept.delete(question);
    return undefined;
  }

  return {
    known: (question) => young(question)?.total,
    awaited: (question) => young(question)?.counting,
    keep(question, counting) {
      const entry: CachedTotal = { since: performance.now(), counting, total: undefined };
      // The oldest stands first.
      kept.delete(question);
      if (kept.size >= LIMITS.totalsCachedMax) kept.delete(kept.keys().next().value as string);
      kept.set(question, entry);
      counting.then(
        (total) => {
          entry.total = total;
        },
        () => {
          if (kept.get(question) === entry) kept.delete(question);
        },
      );
    },
  };
}
