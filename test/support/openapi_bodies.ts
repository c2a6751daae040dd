import { isObject, type Json, type JsonObject, resolveReference, type Schema } from './json_schema.ts';
import type { Operation } from './openapi_client.ts';

/** Members, invalid values and links of bodies, by their JSON Schemas. */

export interface BodyMember {
  readonly at: readonly string[];
  readonly schema: Schema;
  readonly isRequired: boolean;
}

/** Every member of a body, at any depth; of several forms, which a constant tells apart, those of `body`, if it is passed. */
export function bodyMembers(
  schema: Schema,
  above: readonly string[] = [],
  body?: Json,
): readonly BodyMember[] {
  const forms = (schema.anyOf ?? schema.oneOf)?.filter((form) => body === undefined || isForm(form, body));
  const choices = forms?.flatMap((choice) => bodyMembers(choice, above, body)) ?? [];
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, each]) => {
    const at = [...above, name];
    return [
      { at, schema: each, isRequired: schema.required?.includes(name) ?? false },
      ...bodyMembers(each, at, isObject(body) ? body[name] : undefined),
    ];
  });
  return [...choices, ...own];
}

function isForm({ properties = {} }: Schema, body: Json): boolean {
  return Object.entries(properties).every(
    ([name, each]) => each.const === undefined || (isObject(body) && body[name] === each.const),
  );
}

/** Values that a schema does not allow. */
export function invalidValues(schema: Schema): readonly Json[] {
  const { type, anyOf, format, minimum, maximum, maxLength } = schema;
  const types: readonly (string | readonly string[] | undefined)[] = anyOf
    ? anyOf.map((each) => each.type)
    : [type];
  const samples: Readonly<Record<string, Json>> = {
    null: null,
    boolean: true,
    string: 'none',
    array: [],
    object: {},
    integer: 1.5,
  };
  const others = Object.entries(samples).filter(([name]) => name === 'integer' || !types.includes(name));
  return [
    ...others.map(([, value]) => value),
    ...('enum' in schema || 'const' in schema ? ['none'] : []),
    ...(format === 'uri' || format === 'uuid' ? ['none'] : []),
    ...(type === 'string' ? [''] : []),
    ...(maxLength === undefined ? [] : ['x'.repeat(maxLength + 1)]),
    ...(minimum === undefined ? [] : [minimum - 1]),
    ...(maximum === undefined ? [] : [maximum + 1]),
  ];
}

/** A body with one member changed; without it where the value is undefined. */
export function withMember(body: Json, [name, ...below]: readonly string[], value: Json | undefined): Json {
  if (!isObject(body) || name === undefined) return body;
  const { [name]: member = null, ...others } = body;
  if (below.length > 0) return { ...body, [name]: withMember(member, below, value) };
  return value === undefined ? others : { ...others, [name]: value };
}

/** Every URL below a member `links`, at any depth. */
export function linksOf(value: Json, isLink = false): readonly string[] {
  if (typeof value === 'string') return isLink ? [value] : [];
  if (Array.isArray(value)) return value.flatMap((each: Json) => linksOf(each));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, each]) => linksOf(each, isLink || name === 'links'));
}

/** The body of a created record without the members that are shown only once. */
export function hideShownOnce(document: JsonObject, { responses }: Operation, body: Json): Json {
  const [answer] = Object.values(responses);
  const { $ref, ...own } = answer?.content?.['application/json']?.schema ?? {};
  return bodyMembers($ref === undefined ? own : resolveReference<Schema>(document, $ref))
    .filter(({ schema }) => schema['x-authrealm-shown-once'] === true)
    .reduce((left, { at }) => withMember(left, at, undefined), body);
}
