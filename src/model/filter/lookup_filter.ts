import { LIMITS } from '../limits.ts';
import type { LookupKey, LookupRules } from '../resource.ts';
import { type ComparableValue, comparableValue } from './filter.ts';

/** Characters of no plain value: those that the grammar forbids, and all surrogates, which the grammar checks. */
const NEVER = '\\0-\\x1f\\x7f-\\x9f\\ud800-\\udfff';
/** Bare, or in single or double quotes, without escapes. */
const VALUE = `([^ "'(),${NEVER}]+|'[^'\\\\${NEVER}]+'|"[^"\\\\${NEVER}]+")`;
const TERM = `eq\\((\\w+),${VALUE}\\)`;
const PLAIN = new RegExp(`^${TERM}(?::${TERM})?$`);
/** In UTF-16 units, each of which has at most 3 bytes in UTF-8. */
const LENGTH_MAX = LIMITS.filterBytesMax / 3;

/**
 * Parses the common form of a reverse lookup, `eq` on one or two members, faster than the grammar. Returns undefined for
 * every other text, valid or not; the full parser then decides, and reads this form with the same result.
 */
export function parseLookupFilter(text: string, { filterables, by }: LookupRules): LookupKey | undefined {
  const match = text.length > LENGTH_MAX ? null : PLAIN.exec(text);
  if (match === null) return undefined;
  const first = match[1] as string;
  const second = match[3];
  for (const members of by) {
    if (!isSetOf(members, first, second)) continue;
    const values: ComparableValue[] = [];
    for (const member of members) {
      const written = unquoted(match[member === first ? 2 : 4] as string);
      const filterable = filterables[member];
      const value = filterable && comparableValue(written, filterable.compared);
      if (value === undefined) return undefined;
      values.push(value);
    }
    return { members, values };
  }
  return undefined;
}

/** The values by which a reverse lookup finds a record with these members; undefined if it compares one of them by words. */
export function lookupKeyOf(
  record: Readonly<Record<string, unknown>>,
  members: readonly string[],
  filterables: LookupRules['filterables'],
): LookupKey | undefined {
  const values: ComparableValue[] = [];
  for (const member of members) {
    const value = comparableValue(String(record[member]), filterables[member]?.compared ?? 'exact');
    if (value === undefined) return undefined;
    values.push(value);
  }
  return { members, values };
}

function isSetOf(set: readonly string[], first: string, second: string | undefined): boolean {
  if (second === undefined) return set.length === 1 && set[0] === first;
  return set.length === 2 && first !== second && set.includes(first) && set.includes(second);
}

/** A bare value never begins with a quote. */
function unquoted(value: string): string {
  const first = value.charCodeAt(0);
  return first === SINGLE_QUOTE || first === DOUBLE_QUOTE ? value.slice(1, -1) : value;
}

const DOUBLE_QUOTE = 0x22;
const SINGLE_QUOTE = 0x27;
