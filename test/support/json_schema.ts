/**
 * The part of JSON Schema 2020-12 that the OpenAPI document uses, independent of the library that generates the document.
 * An unknown keyword throws.
 */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
export type JsonObject = { readonly [name: string]: Json };

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: Json;
  readonly enum?: readonly Json[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly default?: Json;
  readonly description?: string;
  readonly examples?: readonly Json[];
  readonly 'x-authrealm-reads'?: string;
  readonly 'x-authrealm-shown-once'?: boolean;
  readonly 'x-authrealm-ends'?: boolean;
}

type KeywordRule = (expected: never, value: Json, at: string, validate: SchemaValidator) => readonly string[];

/** Returns the errors of a value, each with its location. */
export type SchemaValidator = (schema: Schema, value: Json, at?: string) => readonly string[];

const TYPES: Readonly<Record<string, (value: Json) => boolean>> = {
  null: (value) => value === null,
  boolean: (value) => typeof value === 'boolean',
  integer: (value) => Number.isInteger(value),
  number: (value) => typeof value === 'number',
  string: (value) => typeof value === 'string',
  array: (value) => Array.isArray(value),
  object: isObject,
};

const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  uri: (text) => /^[a-z][a-z0-9+.-]*:\/\//i.test(text) && URL.canParse(text),
  uuid: (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text),
  'date-time': (text) =>
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text) && !Number.isNaN(Date.parse(text)),
  password: () => true,
};

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const errorUnless = (isRight: boolean, at: string, rule: string): readonly string[] =>
  isRight ? [] : [`${at} ${rule}`];

const ofText = (test: (text: string) => boolean, rule: string, value: Json, at: string) =>
  typeof value === 'string' ? errorUnless(test(value), at, rule) : [];
const ofNumber = (test: (number: number) => boolean, rule: string, value: Json, at: string) =>
  typeof value === 'number' ? errorUnless(test(value), at, rule) : [];
const ofList = (test: (list: readonly Json[]) => boolean, rule: string, value: Json, at: string) =>
  Array.isArray(value) ? errorUnless(test(value), at, rule) : [];

const same = (left: Json, right: Json): boolean => JSON.stringify(left) === JSON.stringify(right);
const codePoints = (text: string): number => [...text].length;

/** One function for each keyword. */
const RULES: Readonly<Record<string, KeywordRule>> = {
  type: (types: string | readonly string[], value, at) =>
    errorUnless(
      [types].flat().some((type) => known(TYPES, type)(value)),
      at,
      `is not ${types}`,
    ),
  const: (constant: Json, value, at) =>
    errorUnless(same(constant, value), at, `is not ${JSON.stringify(constant)}`),
  enum: (choices: readonly Json[], value, at) =>
    errorUnless(
      choices.some((choice) => same(choice, value)),
      at,
      `is not one of ${JSON.stringify(choices)}`,
    ),
  anyOf: (choices: readonly Schema[], value, at, validate) => {
    const errors = choices.map((choice) => validate(choice, value, at));
    return errors.some(({ length }) => length === 0) ? [] : errors.flat();
  },
  oneOf: (choices: readonly Schema[], value, at, validate) => {
    const errors = choices.map((choice) => validate(choice, value, at));
    const fitting = errors.filter(({ length }) => length === 0).length;
    return fitting === 1 ? [] : [`${at} fits ${fitting} schemas instead of one`, ...errors.flat()];
  },
  properties: (properties: Readonly<Record<string, Schema>>, value, at, validate) =>
    isObject(value)
      ? Object.entries(properties).flatMap(([name, schema]) => {
          const member = value[name];
          return member === undefined ? [] : validate(schema, member, `${at}/${name}`);
        })
      : [],
  required: (names: readonly string[], value, at) =>
    isObject(value)
      ? names.flatMap((name) => errorUnless(Object.hasOwn(value, name), `${at}/${name}`, 'is missing'))
      : [],
  items: (schema: Schema, value, at, validate) =>
    Array.isArray(value)
      ? value.flatMap((item: Json, index) => validate(schema, item, `${at}/${index}`))
      : [],
  minProperties: (min: number, value, at) =>
    isObject(value) ? errorUnless(Object.keys(value).length >= min, at, `has less than ${min} members`) : [],
  maxProperties: (max: number, value, at) =>
    isObject(value) ? errorUnless(Object.keys(value).length <= max, at, `has more than ${max} members`) : [],
  minItems: (min: number, value, at) =>
    ofList(({ length }) => length >= min, `has less than ${min} items`, value, at),
  maxItems: (max: number, value, at) =>
    ofList(({ length }) => length <= max, `has more than ${max} items`, value, at),
  minLength: (min: number, value, at) =>
    ofText((text) => codePoints(text) >= min, `is shorter than ${min}`, value, at),
  maxLength: (max: number, value, at) =>
    ofText((text) => codePoints(text) <= max, `is longer than ${max}`, value, at),
  minimum: (min: number, value, at) => ofNumber((number) => number >= min, `is below ${min}`, value, at),
  maximum: (max: number, value, at) => ofNumber((number) => number <= max, `is above ${max}`, value, at),
  pattern: (pattern: string, value, at) =>
    ofText((text) => new RegExp(pattern, 'u').test(text), `does not match ${pattern}`, value, at),
  format: (format: string, value, at) => ofText(known(FORMATS, format), `is not ${format}`, value, at),
};

const ANNOTATIONS: ReadonlySet<string> = new Set([
  'default',
  'description',
  'examples',
  'additionalProperties',
  'discriminator',
  'x-authrealm-extension',
  'x-authrealm-reads',
  'x-authrealm-shown-once',
  'x-authrealm-ends',
]);

function known<T>(table: Readonly<Record<string, T>>, name: string): T {
  const found = table[name];
  if (found === undefined) throw new Error(`unknown name in the schema: ${name}`);
  return found;
}

/** Members that `additionalProperties: false` does not allow. */
function undocumentedMembers(
  { additionalProperties, properties = {} }: Schema,
  value: Json,
  at: string,
): readonly string[] {
  if (additionalProperties !== false || !isObject(value)) return [];
  return Object.keys(value).flatMap((name) =>
    errorUnless(Object.hasOwn(properties, name), `${at}/${name}`, 'is not documented'),
  );
}

/** A validator that resolves references in this document. */
export function openSchemaValidator(document: JsonObject): SchemaValidator {
  const validate: SchemaValidator = (schema, value, at = '') => {
    if (schema.$ref !== undefined)
      return validate(resolveReference<Schema>(document, schema.$ref), value, at);
    const errors = Object.entries(schema).flatMap(([keyword, expected]) =>
      ANNOTATIONS.has(keyword) ? [] : known(RULES, keyword)(expected as never, value, at, validate),
    );
    return [...errors, ...undocumentedMembers(schema, value, at)];
  };
  return validate;
}

/** The target of a reference. Throws where there is none. */
export function resolveReference<T>(document: JsonObject, reference: string): T {
  let at: Json | undefined = document;
  for (const name of reference.replace(/^#\//, '').split('/')) {
    at = isObject(at) ? at[name.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined;
  }
  if (at === undefined) throw new Error(`${reference} has no target`);
  return at as T;
}
