import { parseUuid } from '../id.ts';
import { LIMITS } from '../limits.ts';
import { foldedKey, foldedPart } from '../text/folded_key.ts';
import { parseInstant } from '../text/instant.ts';
import { wordsOf } from '../text/words.ts';
import {
  type FilterOperator,
  type FilterValue,
  malformedFilter,
  type ParsedTerm,
  parseTerms,
  WILDCARD,
} from './grammar.ts';

/**
 * How the values of an attribute are compared, and by which operators (docs/wire.md#filters). Part of the description of
 * a resource.
 * - `folded`: by the folded key (docs/wire.md#folded-keys).
 * - `exact`: code point for code point.
 * - `instant`: as milliseconds since the epoch.
 * - `identifier`: as UUIDs in lower case.
 * - `flag`: as true or false.
 * - `words`: by the beginnings of the words of several members, which are indexed.
 */
export type Filterable =
  | { readonly compared: 'folded'; readonly operators: readonly Exclude<FilterOperator, 'match'>[] }
  | {
      readonly compared: 'exact' | 'instant' | 'identifier' | 'flag';
      readonly operators: readonly PlainOperator[];
    }
  | {
      readonly compared: 'words';
      readonly operators: readonly ['match'];
      readonly members: readonly string[];
    };

/** Patterns match folded keys only. */
type PlainOperator = Exclude<FilterOperator, 'like' | 'ilike' | 'match'>;

export type Filterables = Readonly<Record<string, Filterable>>;

type Compared = Exclude<Filterable['compared'], 'words'>;

/** A parameter of a statement: milliseconds for an instant, 0 or 1 for a flag, otherwise text. */
export type ComparableValue = string | number;

type RangeOperator = Extract<FilterOperator, 'gt' | 'ge' | 'lt' | 'le'>;

/** A condition on one member of a record, with parsed values. Plain data. */
export type FilterCondition =
  | {
      readonly kind: 'one_of';
      readonly member: string;
      readonly compared: Compared;
      /** At least one. */
      readonly values: readonly ComparableValue[];
    }
  | {
      readonly kind: 'range';
      readonly member: string;
      readonly compared: Compared;
      readonly operator: RangeOperator;
      readonly value: ComparableValue;
    }
  | {
      readonly kind: 'pattern';
      readonly member: string;
      readonly compared: 'folded';
      /** The position of `text` in the key: at its start, at its end, or anywhere. */
      readonly part: 'prefix' | 'suffix' | 'infix';
      /** Without wildcards: every `*` is literal. Never empty. */
      readonly text: string;
    }
  | {
      readonly kind: 'words';
      readonly member: string;
      /** Each begins a word of the record. None is empty. */
      readonly words: readonly string[];
    }
  | { readonly kind: 'absent'; readonly member: string };

/** An AND of groups; a group is an OR of its conditions, and never empty. */
export type ParsedFilter = readonly (readonly FilterCondition[])[];

/**
 * Parses a percent-decoded filter. Throws Fault `malformed_filter` with one field error, which names the position and the
 * rule, never a value.
 */
export function parseFilter(text: string, filterables: Filterables): ParsedFilter {
  const groups = parseTerms(text).map((terms) => terms.map((term) => conditionOf(term, text, filterables)));
  // A group with `match` of `*` is always true.
  return groups.filter((group) => !group.some((each) => each.kind === 'words' && each.words.length === 0));
}

/**
 * The values of each of these members, in their order, if the filter is an AND of exactly one `one_of` on each of them;
 * otherwise undefined.
 */
export function equalityValues(
  filter: ParsedFilter,
  members: readonly string[],
): readonly (readonly ComparableValue[])[] | undefined {
  if (filter.length !== members.length) return undefined;
  const found: (readonly ComparableValue[])[] = [];
  for (const member of members) {
    const group = filter.find(([first]) => first?.member === member);
    const condition = group?.length === 1 ? group[0] : undefined;
    if (condition?.kind !== 'one_of') return undefined;
    found.push(condition.values);
  }
  return found;
}

function conditionOf(term: ParsedTerm, text: string, filterables: Filterables): FilterCondition {
  const { operator, field } = term;
  const member = field.text;
  const filterable = Object.hasOwn(filterables, member) ? filterables[member] : undefined;
  if (!filterable) {
    const known = Object.keys(filterables).join(', ');
    throw malformedFilter(text, field.at, `the attribute must be one of ${known}`);
  }
  const operators: readonly FilterOperator[] = filterable.operators;
  if (!operators.includes(operator)) {
    throw malformedFilter(text, term.at, `the operator of ${member} must be one of ${operators.join(', ')}`);
  }
  const [value] = term.values;
  // Only is_null has no value.
  if (!value) return { kind: 'absent', member };
  if (operator === 'like' || operator === 'ilike') return patternOf(member, value, text);
  if (filterable.compared === 'words') {
    return { kind: 'words', member, words: wordsIn(value, text) };
  }
  const { compared } = filterable;
  if (operator === 'eq' || operator === 'in') {
    const values = term.values.map((each) => finish(each, compared, text));
    return { kind: 'one_of', member, compared, values };
  }
  const between = operator as RangeOperator;
  return { kind: 'range', member, compared, operator: between, value: finish(value, compared, text) };
}

/** Parses `x*`, `*x` and `*x*`; without a wildcard it means `eq`. A wildcard anywhere else is rejected. */
function patternOf(member: string, { at, text: pattern }: FilterValue, text: string): FilterCondition {
  const isOpenBefore = pattern.startsWith(WILDCARD);
  const isOpenAfter = pattern.endsWith(WILDCARD);
  const fixed = pattern.slice(isOpenBefore ? 1 : 0, isOpenAfter ? -1 : undefined);
  if (fixed.includes(WILDCARD)) throw malformedFilter(text, at, WILDCARDS);
  const key = finish({ at, text: fixed }, 'folded', text);
  if (!isOpenBefore && !isOpenAfter) return { kind: 'one_of', member, compared: 'folded', values: [key] };
  const part = !isOpenBefore ? 'prefix' : isOpenAfter ? 'infix' : 'suffix';
  // A blank next to a wildcard is inside of the text.
  const inner = foldedPart(fixed);
  const start = isOpenBefore ? inner : inner.trimStart();
  return { kind: 'pattern', member, compared: 'folded', part, text: isOpenAfter ? start : start.trimEnd() };
}

/** The searched words; none for `*`. The first is the longest, which is likely to match the fewest records. */
function wordsIn(value: FilterValue, text: string): readonly string[] {
  if (value.text === WILDCARD) return [];
  if (value.text.includes(WILDCARD)) throw malformedFilter(text, value.at, WORD_WILDCARDS);
  const words = wordsOf(String(finish(value, 'folded', text)));
  if (words.length === 0) throw malformedFilter(text, value.at, 'a word was expected');
  if (words.length > LIMITS.filterWordsMax) {
    throw malformedFilter(text, value.at, `match takes at most ${LIMITS.filterWordsMax} words`);
  }
  return words.toSorted((one, other) => other.length - one.length);
}

const WORD_WILDCARDS =
  'each word matches every word that it begins, without a wildcard; in quotes, \\* is the character itself';

const WILDCARDS =
  'a wildcard may stand at the start and at the end only; in quotes, \\* is the character itself';

interface Comparison {
  /** Returns undefined for an invalid value. */
  readonly finish: (text: string) => ComparableValue | undefined;
  readonly rule: string;
}

/** No stored text with a key is longer; normalising a long text can take long. */
const FOLDED_CHARACTERS_MAX = 320;
const FOLDED_UNITS_MAX = 2 * FOLDED_CHARACTERS_MAX;

const COMPARISONS: Readonly<Record<Compared, Comparison>> = {
  folded: {
    finish: (text) => (text.length > FOLDED_UNITS_MAX ? undefined : foldedKey(text) || undefined),
    rule: `a value with a visible character was expected, of at most ${FOLDED_CHARACTERS_MAX} characters`,
  },
  exact: { finish: (text) => text, rule: '' },
  instant: {
    finish: instantValue,
    rule: 'an instant was expected: YYYY-MM-DD, or YYYY-MM-DDTHH:MM:SS.mmm with Z or an offset as +HH:MM',
  },
  identifier: { finish: parseUuid, rule: 'an identifier in UUID form was expected' },
  flag: {
    finish: (text) => (text === 'true' || text === 'false' ? Number(text === 'true') : undefined),
    rule: 'true or false was expected',
  },
};

/** The value to compare with; undefined for an invalid one. */
export function comparableValue(text: string, compared: Filterable['compared']): ComparableValue | undefined {
  return compared === 'words' ? undefined : COMPARISONS[compared].finish(text);
}

function finish(written: FilterValue, compared: Compared, text: string): ComparableValue {
  const value = comparableValue(written.text.replaceAll(WILDCARD, '*'), compared);
  if (value === undefined) throw malformedFilter(text, written.at, COMPARISONS[compared].rule);
  return value;
}

/** A date, which means its midnight in UTC, or an instant in at most milliseconds: none is stored more precisely. */
const FILTER_INSTANT = /^\d{4}-\d\d-\d\d(T[^.]*(?:\.\d{1,3})?(?:Z|[+-][\d:]+))?$/;

function instantValue(text: string): number | undefined {
  const [whole, time] = FILTER_INSTANT.exec(text) ?? [];
  if (whole === undefined) return undefined;
  return parseInstant(time === undefined ? `${whole}T00:00:00Z` : whole);
}
