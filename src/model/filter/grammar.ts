import { Fault } from '../fault.ts';
import { LIMITS } from '../limits.ts';
import { NEVER_STORED } from '../text/text.ts';

/** The operators of filters (docs/filters.md#operators). */
export const OPERATORS = ['eq', 'in', 'like', 'ilike', 'match', 'lt', 'le', 'gt', 'ge', 'is_null'] as const;

export type FilterOperator = (typeof OPERATORS)[number];

/** A `*` that is not escaped, in a parsed value. No filter has this character. */
export const WILDCARD = '\0';

/** A value without its quotes and escapes. */
export interface FilterValue {
  /** The index of its first character in the filter, in UTF-16 units; of a quoted value, that of the quote. */
  readonly at: number;
  /** Never empty. */
  readonly text: string;
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

const SPACES = / */y;
/** Upper case and digits too, so that a misspelled operator is reported as one. */
const WORD = /\w+/y;
/** `:` and `|` do not end a value: the parenthesis ends the term, so URLs need no quotes. */
const BARE = /(?:[^(),'" ]| +(?=[^(),'" ]))+/y;
const QUOTED = /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/sy;
const ESCAPED_OR_STAR = /\\(.)|\*/gs;

/**
 * Parses a percent-decoded filter: an AND of groups, each an OR of terms. Groups do not nest, and the time is linear in
 * the length. The grammar is in docs/filters.md#grammar. Throws Fault `malformed_filter`.
 */
export function parseTerms(text: string): readonly (readonly ParsedTerm[])[] {
  checkText(text);
  const cursor: FilterScanner = { text, at: 0, terms: 0 };
  const groups: (readonly ParsedTerm[])[] = [];
  do groups.push(readGroup(cursor));
  while (takes(cursor, ':'));
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
  const most = LIMITS.filterBytesMax;
  // A UTF-16 unit has 1 to 3 bytes in UTF-8; bytes are counted only if that does not decide.
  if (text.length * 3 > most && (text.length > most || Buffer.byteLength(text) > most)) {
    const rule = `must have at most ${most} bytes`;
    throw new Fault('malformed_filter', [{ field: 'filter', rule }]);
  }
  const forbidden = text.search(NEVER_STORED);
  if (forbidden >= 0)
    throw malformedFilter(text, forbidden, 'no control character and no lone surrogate is allowed');
}

function readGroup(cursor: FilterScanner): readonly ParsedTerm[] {
  if (!takes(cursor, '(')) return [readTerm(cursor)];
  const terms: ParsedTerm[] = [];
  do {
    if (terms.length === LIMITS.filterAlternativesMax) {
      const rule = `a group takes at most ${LIMITS.filterAlternativesMax} alternatives`;
      throw malformedFilter(cursor.text, cursor.at, rule);
    }
    terms.push(readTerm(cursor));
  } while (takes(cursor, '|'));
  if (!takes(cursor, ')')) throw malformedFilter(cursor.text, cursor.at, '"|" or ")" was expected');
  return terms;
}

function readTerm(cursor: FilterScanner): ParsedTerm {
  next(cursor, SPACES);
  const { at } = cursor;
  if (cursor.terms === LIMITS.filterTermsMax) {
    throw malformedFilter(cursor.text, at, `a filter takes at most ${LIMITS.filterTermsMax} terms`);
  }
  cursor.terms += 1;
  const operator = readOperator(cursor);
  if (!takes(cursor, '(')) throw malformedFilter(cursor.text, cursor.at, '"(" was expected');
  const field = readValue(cursor, 'an attribute');
  const values = readValues(cursor, operator);
  if (!takes(cursor, ')')) throw unclosed(cursor);
  return { at, operator, field, values };
}

function readOperator(cursor: FilterScanner): FilterOperator {
  const { text, at } = cursor;
  const word = next(cursor, WORD);
  if (word === '') throw malformedFilter(text, at, 'an operator was expected');
  const operator = OPERATORS.find((each) => each === word);
  if (!operator) throw malformedFilter(text, at, `the operator must be one of ${OPERATORS.join(', ')}`);
  return operator;
}

function readValues(cursor: FilterScanner, operator: FilterOperator): readonly FilterValue[] {
  const values: FilterValue[] = [];
  const most = valuesMax(operator);
  while (takes(cursor, ',')) {
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
  next(cursor, SPACES);
  const { text, at } = cursor;
  const bare = next(cursor, BARE);
  if (bare !== '') return { at, text: bare.replaceAll('*', WILDCARD) };
  const quoted = next(cursor, QUOTED);
  if (quoted === '') {
    const isQuote = text[at] === "'" || text[at] === '"';
    throw malformedFilter(text, at, isQuote ? 'a quote is opened and not closed' : `${what} was expected`);
  }
  const inner = quoted.slice(1, -1);
  if (inner === '') throw malformedFilter(text, at, 'what is quoted must not be empty');
  return { at, text: inner.replace(ESCAPED_OR_STAR, (_, escaped?: string) => escaped ?? WILDCARD) };
}

function unclosed({ text, at }: FilterScanner): Fault {
  const rule = /[(),'"]/.test(text.charAt(at))
    ? 'a value that holds a parenthesis or a quote must be quoted'
    : '"," or ")" was expected';
  return malformedFilter(text, at, rule);
}

/** Skips spaces and this character, if it is the next one. */
function takes(cursor: FilterScanner, character: string): boolean {
  next(cursor, SPACES);
  if (cursor.text[cursor.at] !== character) return false;
  cursor.at += 1;
  return true;
}

/** Skips and returns what matches a sticky pattern here; an empty text for no match. */
function next(cursor: FilterScanner, pattern: RegExp): string {
  pattern.lastIndex = cursor.at;
  const [found = ''] = pattern.exec(cursor.text) ?? [];
  cursor.at += found.length;
  return found;
}
