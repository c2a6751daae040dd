import { z } from 'zod';
import { timestampSchema } from '../openapi/schemas.ts';
import { isoTimestamp } from '../pipeline/present.ts';

/** A schema, or a function that makes it on first use, and the function that makes its value. */
type Value<From> = readonly [schema: z.ZodType | (() => z.ZodType), valueOf: (from: From) => unknown];

/**
 * The description of a JSON value: a constant (null: an absent text); a schema with its function, or alone for the member of the same
 * name in camel case, where an absent one is null; or an object of these. Its schema in the OpenAPI document and its function come from it.
 */
export type Projection<From> = string | null | z.ZodType | Value<From> | ProjectedMembers<From>;

/** The description of a JSON object. */
export interface ProjectedMembers<From> {
  readonly [name: string]: Projection<From>;
}

/** An instant; null for an absent one. */
export function instant<From>(
  atOf: (from: From) => number | undefined,
  schema: z.ZodType = timestampSchema,
): Value<From> {
  const textOf = (at: number | undefined) => (at === undefined ? null : isoTimestamp(at));
  return [schema, (from) => textOf(atOf(from))];
}

/** The schema of an object with exactly these members. */
export function projectionSchema<From>(members: ProjectedMembers<From>): z.ZodObject {
  return z.strictObject(mapMembers(members, (_, projection) => schemaOf(projection)));
}

function schemaOf<From>(projection: Projection<From>): z.ZodType {
  if (projection === null) return z.string().nullable();
  if (typeof projection === 'string') return z.literal(projection);
  if (projection instanceof z.ZodType) return projection;
  if (!isValue(projection)) return projectionSchema(projection);
  const [schema] = projection;
  return typeof schema === 'function' ? schema() : schema;
}

/** Makes the function that makes the object. */
export function projector<From>(
  members: ProjectedMembers<From>,
): (from: From) => Readonly<Record<string, unknown>> {
  const values = Object.entries(mapMembers(members, readerOf));
  return (from) => {
    const made: Record<string, unknown> = {};
    for (const [name, value] of values) made[name] = value(from);
    return made;
  };
}

function readerOf<From>(name: string, projection: Projection<From>): (from: From) => unknown {
  if (projection === null || typeof projection === 'string') return () => projection;
  if (projection instanceof z.ZodType) {
    const member = name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
    return (from) => (from as Readonly<Record<string, unknown>>)[member] ?? null;
  }
  return isValue(projection) ? projection[1] : projector(projection);
}

function isValue<From>(projection: Value<From> | ProjectedMembers<From>): projection is Value<From> {
  return Array.isArray(projection);
}

function mapMembers<From, Mapped>(
  members: ProjectedMembers<From>,
  map: (name: string, member: Projection<From>) => Mapped,
): Record<string, Mapped> {
  return Object.fromEntries(Object.entries(members).map(([name, member]) => [name, map(name, member)]));
}
