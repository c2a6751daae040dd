import { parseUuid } from '../id.ts';
import { foldedKey } from '../text/folding.ts';
import {
  type FilterOperator,
  type FilterValue,
  malformedFilter,
  type ParsedTerm,
  parseTerms,
} from './grammar.ts';

/**
 * How the values of an attribute are compared, and by which operators (contract 8, row 28). Part of the
 * description of a resource.
 * - `folded`: by the key of contract 8, row 16.
 * - `exact`: code point for code point.
 * - `instant`: as milliseconds since the epoch.
 * - `identifier`: as UUIDs in lower case.
 */
export type Filterable =
  | { readonly compared: 'folded'; readonly operators: readonly FilterOperator[] }
  | { readonly compared: 'exact' | 'instant' | 'identifier'; readonly operators: readonly PlainOperator[] };

/** A pattern is matched against folded keys only; no other value has parts. */
type PlainOperator = Exclude<FilterOperator, 'like' | 'ilike'>;

/** What a list can be narrowed by: attribute to how it is compared. */
export type Filterables = Readonly<Record<string, Filterable>>;

type Compared = Filterable['compared'];

/** Ready to become a parameter of a statement: milliseconds for an instant, else text. */
export type ComparableValue = string | number;

export interface Bound {
  readonly value: ComparableValue;
  readonly isInclusive: boolean;
}

/** What one member of a record must be, in finished values. Plain data. */
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
      /** One of the two is there. */
      readonly from?: Bound;
      readonly to?: Bound;
    }
  | {
      readonly kind: 'pattern';
      readonly member: string;
      readonly compared: 'folded';
      /** Where in the key `text` stands: at its start, at its end, or anywhere. */
      readonly part: 'prefix' | 'suffix' | 'infix';
      /** Without wildcards: every `*` in it is itself. Never empty. */
      readonly text: string;
    }
  | { readonly kind: 'absent'; readonly member: string };

/** All groups must hold; a group holds when any of its conditions does. A group is never empty. */
export type ParsedFilter = readonly (readonly FilterCondition[])[];

/**
 * Reads a filter that is percent-decoded already. Throws Fault `malformed_filter` with one complaint, which names
 * the place and the rule, never a value.
 */
export function parseFilter(text: string, filterables: Filterables): ParsedFilter {
  return parseTerms(text).map((terms) => terms.map((term) => conditionOf(term, text, filterables)));
}

/**
 * The values that a filter asks of each of these members, in their order; undefined unless it is an AND of
 * `one_of`, one on each of them and none on another.
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
  // Only is_null takes none.
  if (!value) return { kind: 'absent', member };
  if (operator === 'like' || operator === 'ilike') return patternOf(member, value, text);
  const { compared } = filterable;
  if (operator === 'eq' || operator === 'in') {
    const values = term.values.map((each) => finish(each, compared, text));
    return { kind: 'one_of', member, compared, values };
  }
  const bound = { value: finish(value, compared, text), isInclusive: operator === 'ge' || operator === 'le' };
  return operator === 'gt' || operator === 'ge'
    ? { kind: 'range', member, compared, from: bound }
    : { kind: 'range', member, compared, to: bound };
}

/** `x*`, `*x` and `*x*`; without a wildcard it is what `eq` would be. A wildcard anywhere else is refused. */
function patternOf(member: string, value: FilterValue, text: string): FilterCondition {
  const { text: pattern } = value;
  const last = pattern.length - 1;
  const isOpenBefore = isWildcard(value, 0);
  const isOpenAfter = isWildcard(value, last);
  const from = isOpenBefore ? 1 : 0;
  const to = isOpenAfter ? last : pattern.length;
  for (let at = pattern.indexOf('*', from); at >= 0 && at < to; at = pattern.indexOf('*', at + 1)) {
    if (isWildcard(value, at)) throw malformedFilter(text, value.at, WILDCARDS);
  }
  const fixed = finish({ ...value, text: pattern.slice(from, to) }, 'folded', text);
  if (!isOpenBefore && !isOpenAfter) return { kind: 'one_of', member, compared: 'folded', values: [fixed] };
  const part = !isOpenBefore ? 'prefix' : isOpenAfter ? 'infix' : 'suffix';
  return { kind: 'pattern', member, compared: 'folded', part, text: String(fixed) };
}

const WILDCARDS =
  'a wildcard may stand at the start and at the end only; in quotes, \\* is the character itself';

function isWildcard({ text, literalStars }: FilterValue, at: number): boolean {
  return text[at] === '*' && !literalStars.has(at);
}

interface Comparison {
  /** Answers undefined where this is no such value. */
  readonly finish: (text: string) => ComparableValue | undefined;
  readonly rule: string;
}

/** No text that is stored with a key is longer; normalising a long one can take long. */
const FOLDED_CHARACTERS_MAX = 320;
const FOLDED_UNITS_MAX = 2 * FOLDED_CHARACTERS_MAX;

const COMPARISONS: Readonly<Record<Compared, Comparison>> = {
  folded: {
    finish: (text) => (text.length > FOLDED_UNITS_MAX ? undefined : foldedKey(text) || undefined),
    rule: `a value with a visible character was expected, of at most ${FOLDED_CHARACTERS_MAX} characters`,
  },
  exact: { finish: (text) => text, rule: '' },
  instant: {
    finish: parseInstant,
    rule: 'an instant was expected: YYYY-MM-DD, or YYYY-MM-DDTHH:MM:SS.mmm with Z or an offset as +HH:MM',
  },
  identifier: { finish: parseUuid, rule: 'an identifier in UUID form was expected' },
};

/** What a value is compared as; undefined where it is none of that kind. */
export function comparableValue(text: string, compared: Compared): ComparableValue | undefined {
  return COMPARISONS[compared].finish(text);
}

function finish({ text: said, at }: FilterValue, compared: Compared, text: string): ComparableValue {
  const value = comparableValue(said, compared);
  if (value === undefined) throw malformedFilter(text, at, COMPARISONS[compared].rule);
  return value;
}

/** A date, or a date with a time in at most milliseconds (RFC 3339, 5.6). No leap seconds: none are stored. */
const INSTANT =
  /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2}:\d{2})(?:\.(\d{1,3}))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d)))?$/;

/** Milliseconds since the epoch; undefined for what is no instant. A date is its midnight in UTC. */
function parseInstant(text: string): number | undefined {
  const [whole, date, time = '00:00:00', fraction = '', sign, hours, minutes] = INSTANT.exec(text) ?? [];
  if (whole === undefined) return undefined;
  const spelled = `${date}T${time}.${fraction.padEnd(3, '0')}Z`;
  const local = Date.parse(spelled);
  // The 30th of February is read as the 2nd of March: what does not come back as it was given is no date.
  if (Number.isNaN(local) || new Date(local).toISOString() !== spelled) return undefined;
  if (sign === undefined) return local;
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000;
  return sign === '+' ? local - offset : local + offset;
}
