import { z } from 'zod';

/**
 * The description of a JSON object: a constant, the schema of a value with the function that makes it, or an object of these. Its
 * schema in the OpenAPI document and the function that makes it come from here.
 */
export type Projection<From> =
  | string
  | null
  | readonly [schema: z.ZodType, valueOf: (from: From) => unknown]
  | { readonly [name: string]: Projection<From> };

type Members<From> = Readonly<Record<string, Projection<From>>>;

function isValue<From>(
  projection: Exclude<Projection<From>, string | null>,
): projection is readonly [z.ZodType, (from: From) => unknown] {
  return Array.isArray(projection);
}

/** The schema of an object with exactly these members. */
export function projectionSchema<From>(members: Members<From>): z.ZodObject {
  return z.strictObject(mapValues(members, schemaOf));
}

function schemaOf<From>(projection: Projection<From>): z.ZodType {
  if (projection === null) return z.null();
  if (typeof projection === 'string') return z.literal(projection);
  return isValue(projection) ? projection[0] : projectionSchema(projection);
}

/** Makes the function that makes the object. */
export function projector<From>(members: Members<From>): (from: From) => Readonly<Record<string, unknown>> {
  const projectors = Object.entries(mapValues(members, projectorOf));
  return (from) => {
    const made: Record<string, unknown> = {};
    for (const [name, project] of projectors) made[name] = project(from);
    return made;
  };
}

function projectorOf<From>(projection: Projection<From>): (from: From) => unknown {
  if (projection === null || typeof projection === 'string') return () => projection;
  return isValue(projection) ? projection[1] : projector(projection);
}

function mapValues<Value, Mapped>(
  values: Readonly<Record<string, Value>>,
  map: (value: Value) => Mapped,
): Record<string, Mapped> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
}
