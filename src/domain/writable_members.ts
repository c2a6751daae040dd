import type { z } from 'zod';
import { membersOf, type Resource } from './resource.ts';

/** The verbs that say something about a record. */
export type InputVerb = 'create' | 'update';

/** One thing that can be said about a record over HTTP. */
export interface WritableMember {
  readonly name: string;
  readonly schema: z.ZodType;
  /** The object that holds it. */
  readonly within: 'data' | 'relationships';
  /** It must be said, though its schema would do without. */
  readonly isRequired: boolean;
  /** It is made into members and never kept. */
  readonly isPassword: boolean;
}

/**
 * What a caller can say with a verb, in the order of the description. Whoever reads requests and whoever documents them
 * ask here, so that neither knows more than the other.
 */
export function writableMembers(resource: Resource, verb: InputVerb): readonly WritableMember[] {
  const members = membersOf(resource)
    .filter(
      ({ annotation: { writableBy } }) =>
        writableBy === undefined || (writableBy === 'creator' && verb === 'create'),
    )
    .map(
      ({ name, schema, annotation }): WritableMember => ({
        name,
        schema,
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
