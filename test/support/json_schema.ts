/**
 * The part of JSON Schema 2020-12 that our OpenAPI document uses, written without the library that makes the document.
 * A keyword it does not know is a mistake of the schema, never passed over.
 */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
export type JsonObject = { readonly [name: string]: Json };

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: Json;
  readonly enum?: readonly Json[];
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
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

type Rule = (expected: never, value: Json, at: string, judge: SchemaValidator) => readonly string[];

/** Answers what is wrong with a value, each with its place; nothing where it fits. */
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
  email: (text) => /^[^@\s]+@[^@\s]+$/.test(text),
  'date-time': (text) =>
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text) && !Number.isNaN(Date.parse(text)),
  password: () => true,
};

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const said = (isRight: boolean, at: string, rule: string): readonly string[] =>
  isRight ? [] : [`${at} ${rule}`];

const ofText = (test: (text: string) => boolean, rule: string, value: Json, at: string) =>
  typeof value === 'string' ? said(test(value), at, rule) : [];
const ofNumber = (test: (number: number) => boolean, rule: string, value: Json, at: string) =>
  typeof value === 'number' ? said(test(value), at, rule) : [];
const ofList = (test: (list: readonly Json[]) => boolean, rule: string, value: Json, at: string) =>
  Array.isArray(value) ? said(test(value), at, rule) : [];

const same = (left: Json, right: Json): boolean => JSON.stringify(left) === JSON.stringify(right);
const codePoints = (text: string): number => [...text].length;

/** One function a keyword. */
const RULES: Readonly<Record<string, Rule>> = {
  type: (types: string | readonly string[], value, at) =>
    said(
      [types].flat().some((type) => known(TYPES, type)(value)),
      at,
      `is no ${types}`,
    ),
  const: (constant: Json, value, at) => said(same(constant, value), at, `is not ${JSON.stringify(constant)}`),
  enum: (choices: readonly Json[], value, at) =>
    said(
      choices.some((choice) => same(choice, value)),
      at,
      `is none of ${JSON.stringify(choices)}`,
    ),
  anyOf: (choices: readonly Schema[], value, at, judge) => {
    const verdicts = choices.map((choice) => judge(choice, value, at));
    return verdicts.some(({ length }) => length === 0) ? [] : verdicts.flat();
  },
  properties: (properties: Readonly<Record<string, Schema>>, value, at, judge) =>
    isObject(value)
      ? Object.entries(properties).flatMap(([name, schema]) => {
          const member = value[name];
          return member === undefined ? [] : judge(schema, member, `${at}/${name}`);
        })
      : [],
  required: (names: readonly string[], value, at) =>
    isObject(value)
      ? names.flatMap((name) => said(Object.hasOwn(value, name), `${at}/${name}`, 'is missing'))
      : [],
  items: (schema: Schema, value, at, judge) =>
    Array.isArray(value) ? value.flatMap((item: Json, index) => judge(schema, item, `${at}/${index}`)) : [],
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
  format: (format: string, value, at) => ofText(known(FORMATS, format), `is no ${format}`, value, at),
};

const NOTES: ReadonlySet<string> = new Set([
  'default',
  'description',
  'examples',
  'additionalProperties',
  'x-authrealm-reads',
  'x-authrealm-shown-once',
  'x-authrealm-ends',
]);

function known<T>(table: Readonly<Record<string, T>>, name: string): T {
  const found = table[name];
  if (found === undefined) throw new Error(`the schema says ${name}, which this reader does not know`);
  return found;
}

/** Members that a closed object does not list. */
function strangers(
  { additionalProperties, properties = {} }: Schema,
  value: Json,
  at: string,
): readonly string[] {
  if (additionalProperties !== false || !isObject(value)) return [];
  return Object.keys(value).flatMap((name) =>
    said(Object.hasOwn(properties, name), `${at}/${name}`, 'is not documented'),
  );
}

/** A judge whose references lead into this document. */
export function openSchemaValidator(document: JsonObject): SchemaValidator {
  const judge: SchemaValidator = (schema, value, at = '') => {
    if (schema.$ref !== undefined) return judge(resolveReference<Schema>(document, schema.$ref), value, at);
    const broken = Object.entries(schema).flatMap(([keyword, expected]) =>
      NOTES.has(keyword) ? [] : known(RULES, keyword)(expected as never, value, at, judge),
    );
    return [...broken, ...strangers(schema, value, at)];
  };
  return judge;
}

/** What a reference of a document leads to. Throws where it leads nowhere. */
export function resolveReference<T>(document: JsonObject, reference: string): T {
  let at: Json | undefined = document;
  for (const name of reference.replace(/^#\//, '').split('/')) {
    at = isObject(at) ? at[name.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined;
  }
  if (at === undefined) throw new Error(`${reference} leads nowhere`);
  return at as T;
}
