import { LIMITS } from '../limits.ts';
import type { LookupKey, LookupRules } from '../resource.ts';
import { type ComparableValue, comparableValue } from './filter.ts';

/** What no plain value holds: what the grammar forbids, and every half of a pair of surrogates, for it to judge. */
const NEVER = '\\0-\\x1f\\x7f-\\x9f\\ud800-\\udfff';
/** Bare, in single quotes, in double quotes; nothing in it is escaped. */
const VALUE = `([^ "'(),${NEVER}]+|'[^'\\\\${NEVER}]+'|"[^"\\\\${NEVER}]+")`;
const TERM = `eq\\((\\w+),${VALUE}\\)`;
const PLAIN = new RegExp(`^${TERM}(?::${TERM})?$`);
/** In UTF-16 units, each of which takes 3 bytes of UTF-8 at most. */
const LENGTH_MAX = LIMITS.filterBytesMax / 3;

/**
 * Reads a filter that asks for one record in the plain spelling, which is that of nearly every caller: `eq` of one member
 * or of two. Undefined for any other text, whether it is right or wrong: that is for the grammar, which reads this one
 * alike, only slower.
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
      const said = unquoted(match[member === first ? 2 : 4] as string);
      const filterable = filterables[member];
      const value = filterable && comparableValue(said, filterable.compared);
      if (value === undefined) return undefined;
      values.push(value);
    }
    return { members, values };
  }
  return undefined;
}

function isSetOf(set: readonly string[], first: string, second: string | undefined): boolean {
  if (second === undefined) return set.length === 1 && set[0] === first;
  return set.length === 2 && first !== second && set.includes(first) && set.includes(second);
}

/** No bare value begins with a quote. */
function unquoted(value: string): string {
  const first = value.charCodeAt(0);
  return first === SINGLE_QUOTE || first === DOUBLE_QUOTE ? value.slice(1, -1) : value;
}

const DOUBLE_QUOTE = 0x22;
const SINGLE_QUOTE = 0x27;
