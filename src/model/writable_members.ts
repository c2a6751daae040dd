import type { z } from 'zod';
import { membersOf, type Resource } from './resource.ts';

export type InputVerb = 'create' | 'update';

/** A member that callers can write over HTTP. */
export interface WritableMember {
  readonly name: string;
  readonly schema: z.ZodType;
  readonly within: 'data' | 'relationships';
  /** Required, although its schema is optional. */
  readonly isRequired: boolean;
  /** Only its hash is stored. */
  readonly isPassword: boolean;
}

/**
 * The members that a caller can write with a verb, in the order of the description. The readers of requests and the
 * OpenAPI document both use this list.
 */
export function writableMembers(resource: Resource, verb: InputVerb): readonly WritableMember[] {
  const members = membersOf(resource)
    .filter(
      ({ annotation: { writableBy } }) =>
        writableBy === undefined ||
        writableBy === 'offline' ||
        (writableBy === 'creator' && verb === 'create'),
    )
    .map(
      ({ name, schema, annotation }): WritableMember => ({
        name,
        schema: annotation.writableBy === 'offline' ? schema.optional() : schema,
        within: annotation.within === 'relationships' ? 'relationships' : 'data',
        isRequired: annotation.requiredOnCreate === true && verb === 'create',
        isPassword: false,
      }),
    );
  const passwords = Object.entries(resource.inputs ?? {}).map(
    ([name, { schema }]): WritableMember => ({
      name,
      schema,
      within: 'data',
      isRequired: false,
      isPassword: true,
    }),
  );
  return [...members, ...passwords];
}
