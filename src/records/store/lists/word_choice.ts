import type { ParsedFilter } from '../../../model/filter/filter.ts';
import type { Resource } from '../../../model/resource.ts';
import type { WordDialect } from '../../../sql/dialect.ts';
import { first, type Work } from '../../../sql/transaction_work.ts';

/** By which word the records of a filter are found. */
export interface ChosenWords {
  /** The first word of its condition is the one that the fewest records have. */
  readonly filter: ParsedFilter;
  /** The first word finds few records. */
  readonly isNarrow: boolean;
  /** Most records may have each word. */
  readonly isBroad: boolean;
}

/** Counts the index entries that begin with each word of a condition that all matches fulfil, if the engine does not choose itself. */
export function* chooseWords(
  resource: Resource,
  filter: ParsedFilter,
  { choice, source, values }: WordDialect,
): Work<ChosenWords> {
  const condition = filter.find(([first, ...others]) => first?.kind === 'words' && others.length === 0)?.[0];
  if (condition?.kind !== 'words' || !choice) return { filter, isNarrow: false, isBroad: false };
  const table = source(resource.table);
  const counts = new Map<string, number>();
  for (const word of condition.words) {
    const row = yield* first(choice.probe(table, word, NARROW_WORDS_MAX), ...values([word]));
    counts.set(word, Number(row?.n));
  }
  const order = [...counts].sort(([, one], [, other]) => one - other);
  const isBroad = order.every(([, count]) => count >= NARROW_WORDS_MAX);
  const chosen = { ...condition, words: order.map(([word]) => word) };
  return {
    filter: filter.map((group) => (group[0] === condition ? [chosen] : group)),
    isNarrow: !isBroad,
    isBroad,
  };
}

/** The records of so many index entries are found, checked and sorted in about 200 ms. */
const NARROW_WORDS_MAX = 20_000;
