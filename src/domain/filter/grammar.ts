import { Fault } from '../fault.ts';
import { LIMITS } from '../limits.ts';
import { NEVER_STORED } from '../text/text.ts';

/** The operators of filters (docs/filters.md#operators). */
export const OPERATORS = ['eq', 'in', 'like', 'ilike', 'match', 'lt', 'le', 'gt', 'ge', 'is_null'] as const;

export type FilterOperator = (typeof OPERATORS)[number];

/** A value without its quotes and escapes. */
export interface FilterValue {
  /** The index of its first character in the filter, in UTF-16 units; of a quoted value, that of the quote. */
  readonly at: number;
  /** Never empty. */
  readonly text: string;
  /** The indexes in `text` of escaped `*`, which are no wildcards. */
  readonly literalStars: ReadonlySet<number>;
}

export interface ParsedTerm {
  /** The index of its first character in the filter, in UTF-16 units. */
  readonly at: number;
  readonly operator: FilterOperator;
  readonly field: FilterValue;
  /** As many as the operator has. */
  readonly values: readonly FilterValue[];
}

/** The state of the parser. Each function below continues where the last one ended; none goes back. */
interface FilterScanner {
  readonly text: string;
  at: number;
  terms: number;
}

const BY_NAME: ReadonlyMap<string, FilterOperator> = new Map(
  OPERATORS.map((operator) => [operator, operator]),
);
const NO_STARS: ReadonlySet<number> = new Set();

const SPACE = 0x20;
const DOUBLE_QUOTE = 0x22;
const SINGLE_QUOTE = 0x27;
const OPEN = 0x28;
const CLOSE = 0x29;
const STAR = 0x2a;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const BAR = 0x7c;

/**
 * Parses a percent-decoded filter: an AND of groups, each an OR of terms. Groups do not nest, and the time is linear in
 * the length. The grammar is in docs/filters.md#grammar. Throws Fault `malformed_filter`.
 */
export function parseTerms(text: string): readonly (readonly ParsedTerm[])[] {
  checkText(text);
  const cursor: FilterScanner = { text, at: 0, terms: 0 };
  const groups: (readonly ParsedTerm[])[] = [];
  do groups.push(readGroup(cursor));
  while (takes(cursor, COLON));
  if (cursor.at < text.length) throw malformedFilter(text, cursor.at, '":" or the end was expected');
  return groups;
}

/**
 * The fault of a filter: the rule and the position where it is broken, counted in characters from 1. A rule never holds
 * text of the caller.
 */
export function malformedFilter(text: string, at: number, rule: string): Fault {
  const character = [...text.slice(0, at)].length + 1;
  return new Fault('malformed_filter', [{ field: 'filter', rule: `at character ${character}: ${rule}` }]);
}

function checkText(text: string): void {
  if (!isWithin(text, LIMITS.filterBytesMax)) {
    const rule = `must have at most ${LIMITS.filterBytesMax} bytes`;
    throw new Fault('malformed_filter', [{ field: 'filter', rule }]);
  }
  const forbidden = text.search(NEVER_STORED);
  if (forbidden >= 0)
    throw malformedFilter(text, forbidden, 'no control character and no lone surrogate is allowed');
}

/** A UTF-16 unit has 1 to 3 bytes in UTF-8; bytes are counted only if that does not decide. */
function isWithin(text: string, bytes: number): boolean {
  return text.length * 3 <= bytes || (text.length <= bytes && Buffer.byteLength(text) <= bytes);
}

function readGroup(cursor: FilterScanner): readonly ParsedTerm[] {
  if (!takes(cursor, OPEN)) return [readTerm(cursor)];
  const terms: ParsedTerm[] = [];
  do {
    if (terms.length === LIMITS.filterAlternativesMax) {
      const rule = `a group takes at most ${LIMITS.filterAlternativesMax} alternatives`;
      throw malformedFilter(cursor.text, cursor.at, rule);
    }
    terms.push(readTerm(cursor));
  } while (takes(cursor, BAR));
  if (!takes(cursor, CLOSE)) throw malformedFilter(cursor.text, cursor.at, '"|" or ")" was expected');
  return terms;
}

function readTerm(cursor: FilterScanner): ParsedTerm {
  skipSpaces(cursor);
  const at = cursor.at;
  if (cursor.terms === LIMITS.filterTermsMax) {
    throw malformedFilter(cursor.text, at, `a filter takes at most ${LIMITS.filterTermsMax} terms`);
  }
  cursor.terms += 1;
  const operator = readOperator(cursor);
  if (!takes(cursor, OPEN)) throw malformedFilter(cursor.text, cursor.at, '"(" was expected');
  const field = readValue(cursor, 'an attribute');
  const values = readValues(cursor, operator);
  if (!takes(cursor, CLOSE)) throw unclosed(cursor);
  return { at, operator, field, values };
}

function readOperator(cursor: FilterScanner): FilterOperator {
  const { text, at } = cursor;
  let end = at;
  while (isOfWord(text.charCodeAt(end))) end += 1;
  if (end === at) throw malformedFilter(text, at, 'an operator was expected');
  const operator = BY_NAME.get(text.slice(at, end));
  if (!operator) throw malformedFilter(text, at, `the operator must be one of ${OPERATORS.join(', ')}`);
  cursor.at = end;
  return operator;
}

/** Upper case and digits too, so that a misspelled operator is reported as one. */
function isOfWord(code: number): boolean {
  const lower = code | 0x20;
  return (lower >= 0x61 && lower <= 0x7a) || code === 0x5f || (code >= 0x30 && code <= 0x39);
}

function readValues(cursor: FilterScanner, operator: FilterOperator): readonly FilterValue[] {
  const values: FilterValue[] = [];
  const most = valuesMax(operator);
  while (takes(cursor, COMMA)) {
    if (values.length === most) throw malformedFilter(cursor.text, cursor.at - 1, tooMany(operator));
    values.push(readValue(cursor, 'a value'));
  }
  if (values.length === 0 && most > 0) throw malformedFilter(cursor.text, cursor.at, '"," was expected');
  return values;
}

function valuesMax(operator: FilterOperator): number {
  if (operator === 'is_null') return 0;
  return operator === 'in' ? LIMITS.filterValuesMax : 1;
}

function tooMany(operator: FilterOperator): string {
  if (operator === 'is_null') return 'is_null takes no value';
  if (operator === 'in') return `in takes at most ${LIMITS.filterValuesMax} values`;
  return `${operator} takes one value; one that holds a comma must be quoted`;
}

function readValue(cursor: FilterScanner, what: string): FilterValue {
  skipSpaces(cursor);
  const { text, at } = cursor;
  const first = text.charCodeAt(at);
  if (first === SINGLE_QUOTE || first === DOUBLE_QUOTE) return readQuoted(cursor, first);
  let end = at;
  while (end < text.length && !endsBare(text.charCodeAt(end))) end += 1;
  if (end === at) throw malformedFilter(text, at, `${what} was expected`);
  cursor.at = end;
  // The first character is no space, so the loop ends there.
  while (text.charCodeAt(end - 1) === SPACE) end -= 1;
  return { at, text: text.slice(at, end), literalStars: NO_STARS };
}

/** `:` and `|` do not end a value: the parenthesis ends the term, so URLs need no quotes. */
function endsBare(code: number): boolean {
  return code === CLOSE || code === COMMA || code === OPEN || code === SINGLE_QUOTE || code === DOUBLE_QUOTE;
}

function readQuoted(cursor: FilterScanner, quote: number): FilterValue {
  const { text, at: opening } = cursor;
  let literalStars: Set<number> | undefined;
  let value = '';
  let from = opening + 1;
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      value += text.slice(from, at);
      if (value === '') throw malformedFilter(text, opening, 'what is quoted must not be empty');
      cursor.at = at + 1;
      return { at: opening, text: value, literalStars: literalStars ?? NO_STARS };
    }
    if (code !== BACKSLASH) continue;
    value += text.slice(from, at);
    // The escaped character begins the next piece and is not examined.
    at += 1;
    from = at;
    if (text.charCodeAt(at) === STAR) {
      literalStars ??= new Set();
      literalStars.add(value.length);
    }
  }
  throw malformedFilter(text, opening, 'a quote is opened and not closed');
}

function unclosed({ text, at }: FilterScanner): Fault {
  const isDelimiter = at < text.length && endsBare(text.charCodeAt(at));
  const rule = isDelimiter
    ? 'a value that holds a parenthesis or a quote must be quoted'
    : '"," or ")" was expected';
  return malformedFilter(text, at, rule);
}

/** Skips spaces and this character, if it is the next one. */
function takes(cursor: FilterScanner, code: number): boolean {
  skipSpaces(cursor);
  if (cursor.text.charCodeAt(cursor.at) !== code) return false;
  cursor.at += 1;
  return true;
}

function skipSpaces(cursor: FilterScanner): void {
  while (cursor.text.charCodeAt(cursor.at) === SPACE) cursor.at += 1;
}
