/**
 * A filter that was made by the functions below: they quote every value, so that none of its characters says anything
 * but itself. `F` are the attributes it speaks about.
 */
export interface Filter<F extends string = string> {
  readonly text: string;
  /** For the compiler alone: what a filter asks about is checked against the list it is given to. */
  readonly fields?: readonly F[];
}

/** A term, which may stand in `anyOf`. */
export interface Term<F extends string = string> extends Filter<F> {
  readonly isTerm: true;
}

/** In single quotes a backslash takes the next character as it is (docs/filters.md). */
function quoted(value: string): string {
  return `'${value.replaceAll(/[\\']/g, '\\$&')}'`;
}

function term<F extends string>(operator: string, field: F, values: readonly string[]): Term<F> {
  return { text: `${operator}(${[field, ...values].join(',')})`, isTerm: true };
}

/** A `*` of the value is itself; only ours are wildcards. */
function pattern<F extends string>(
  field: F,
  value: string,
  [before, after]: readonly [string, string],
): Term<F> {
  const escaped = value.replaceAll(/[\\'*]/g, '\\$&');
  return term('ilike', field, [`'${before}${escaped}${after}'`]);
}

/** The attribute is this value; names and e-mail addresses in any letter case. */
export function eq<F extends string>(field: F, value: string): Term<F> {
  return term('eq', field, [quoted(value)]);
}

/** The attribute is one of these values, at most 100. */
export function oneOf<F extends string>(field: F, values: readonly string[]): Term<F> {
  return term('in', field, values.map(quoted));
}

/** In any letter case. */
export function startsWith<F extends string>(field: F, value: string): Term<F> {
  return pattern(field, value, ['', '*']);
}

/** In any letter case. */
export function endsWith<F extends string>(field: F, value: string): Term<F> {
  return pattern(field, value, ['*', '']);
}

/** In any letter case. */
export function contains<F extends string>(field: F, value: string): Term<F> {
  return pattern(field, value, ['*', '*']);
}

/** The attribute lies below this value: an instant in ISO 8601, or an identifier. */
export function below<F extends string>(field: F, value: string): Term<F> {
  return term('lt', field, [quoted(value)]);
}

export function atMost<F extends string>(field: F, value: string): Term<F> {
  return term('le', field, [quoted(value)]);
}

export function above<F extends string>(field: F, value: string): Term<F> {
  return term('gt', field, [quoted(value)]);
}

export function atLeast<F extends string>(field: F, value: string): Term<F> {
  return term('ge', field, [quoted(value)]);
}

/** The attribute has no value. */
export function isNull<F extends string>(field: F): Term<F> {
  return term('is_null', field, []);
}

/** One of these terms holds, at most 4. */
export function anyOf<F extends string>(...terms: readonly Term<F>[]): Filter<F> {
  return { text: `(${terms.map(({ text }) => text).join('|')})` };
}

/** All of these hold. */
export function allOf<F extends string>(...filters: readonly Filter<F>[]): Filter<F> {
  return { text: filters.map(({ text }) => text).join(':') };
}

/** A filter that somebody wrote by hand. Its values are not quoted for you. */
export function written(text: string): Filter<never> {
  return { text };
}
