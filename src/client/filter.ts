/**
 * A list filter, made by the functions below, which quote every value. `F` are the attributes that it uses.
 */
export interface Filter<F extends string = string> {
  readonly text: string;
  /** Only for the compiler, which checks the attributes against the list that the filter is passed to. */
  readonly fields?: readonly F[];
}

/** A single comparison, which `anyOf` accepts. */
export interface FilterTerm<F extends string = string> extends Filter<F> {
  readonly isTerm: true;
}

/** In single quotes a backslash escapes the next character (docs/filters.md). */
function quoted(value: string): string {
  return `'${value.replaceAll(/[\\']/g, '\\$&')}'`;
}

function term<F extends string>(operator: string, field: F, values: readonly string[]): FilterTerm<F> {
  return { text: `${operator}(${[field, ...values].join(',')})`, isTerm: true };
}

/** Compares an attribute with one value. */
const comparison =
  (operator: string) =>
  <F extends string>(field: F, value: string): FilterTerm<F> =>
    term(operator, field, [quoted(value)]);

/** Searches for a part of an attribute. Escapes `*` in the value, so that only the added ones are wildcards. */
const search =
  (before: '' | '*', after: '' | '*') =>
  <F extends string>(field: F, value: string): FilterTerm<F> =>
    term('ilike', field, [`'${before}${value.replaceAll(/[\\'*]/g, '\\$&')}${after}'`]);

/** The attribute equals this value; names and e-mail addresses are compared case-insensitively. */
export const eq = comparison('eq');

/** The attribute equals one of these values, at most 100. */
export function oneOf<F extends string>(field: F, values: readonly string[]): FilterTerm<F> {
  return term('in', field, values.map(quoted));
}

/** Case-insensitive. */
export const startsWith = search('', '*');

/** Case-insensitive. */
export const endsWith = search('*', '');

/** Case-insensitive. */
export const contains = search('*', '*');

/** Each word of this value begins a word of the attribute `text`, in any letter case. The value `*` matches every record. */
export function matches<F extends string>(field: F, value: string): FilterTerm<F> {
  return term('match', field, [value === '*' ? value : quoted(value).replaceAll('*', '\\*')]);
}

/** The attribute is less than this value: a timestamp in ISO 8601, or an ID. */
export const below = comparison('lt');
export const atMost = comparison('le');
export const above = comparison('gt');
export const atLeast = comparison('ge');

/** The attribute has no value. */
export function isNull<F extends string>(field: F): FilterTerm<F> {
  return term('is_null', field, []);
}

/** At least one of these terms matches; at most 4 terms. */
export function anyOf<F extends string>(...terms: readonly FilterTerm<F>[]): Filter<F> {
  return { text: `(${terms.map(({ text }) => text).join('|')})` };
}

/** All of these filters match. */
export function allOf<F extends string>(...filters: readonly Filter<F>[]): Filter<F> {
  return { text: filters.map(({ text }) => text).join(':') };
}

/** A hand-written filter. Its values are not quoted. */
export function rawFilter(text: string): Filter<never> {
  return { text };
}
