import type { z } from 'zod';
import { membersOf, type Resource } from '../resource.ts';

/** The verbs that say something about a record. */
export type InputVerb = 'create' | 'update';

/** One thing that can be said about a record over HTTP. */
export interface Sayable {
  readonly name: string;
  readonly schema: z.ZodType;
  /** The object that holds it. */
  readonly within: 'data' | 'relationships';
  /** It must be said, though its schema would do without. */
  readonly isAsked: boolean;
  /** It is made into members and never kept. */
  readonly isPassword: boolean;
}

/**
 * What a caller can say with a verb, in the order of the description. Whoever reads requests and whoever documents them
 * ask here, so that neither knows more than the other.
 */
export function sayableOf(resource: Resource, verb: InputVerb): readonly Sayable[] {
  const members = membersOf(resource)
    .filter(
      ({ placement: { saidBy } }) => saidBy === undefined || (saidBy === 'creator' && verb === 'create'),
    )
    .map(
      ({ name, schema, placement }): Sayable => ({
        name,
        schema,
        within: placement.within === 'relationships' ? 'relationships' : 'data',
        isAsked: placement.asked === true && verb === 'create',
        isPassword: false,
      }),
    );
  const passwords = Object.entries(resource.inputs ?? {}).map(
    ([name, { schema }]): Sayable => ({ name, schema, within: 'data', isAsked: false, isPassword: true }),
  );
  return [...members, ...passwords];
}
