import { isVisible, keyColumns, lineage, membersOf, type Resource } from '../domain/resource.ts';
import { type CollectionName, DESCRIPTIONS } from '../domain/resources.ts';
import { sayableOf } from '../domain/text/visible_text.ts';

/** A member that a record shows or a caller says, and the object inside `data` that holds it. */
export interface WireMember {
  readonly name: string;
  readonly within?: 'meta' | 'relationships';
}

/**
 * What this library must know of a resource while it runs. Plain data: the build writes it out, so that a page that
 * loads the library does not load what validates records.
 */
export interface Wire {
  readonly type: string;
  /** The path segments of the collections, from the realms down to its own. */
  readonly collections: readonly string[];
  /** What each part of a record's key is called, in the order of the key. */
  readonly keyNames: readonly string[];
  /** The `type` of the records above. */
  readonly parentType: string | undefined;
  readonly members: readonly WireMember[];
  /** Members that callers say and that do not stand in `data` itself. */
  readonly placed: readonly WireMember[];
  /** Whether its records are found in their realm, by POST `…/search`. */
  readonly isFindable: boolean;
}

export function wireOf(resource: Resource): Wire {
  return {
    type: resource.type,
    collections: lineage(resource).map(({ collection }) => collection),
    keyNames: keyColumns(resource),
    parentType: resource.parent?.type,
    members: membersOf(resource)
      .filter(isVisible)
      .map(({ name, placement: { within } }) => (within === undefined ? { name } : { name, within })),
    placed: sayableOf(resource, 'create').flatMap(({ name, within }) =>
      within === 'data' ? [] : [{ name, within }],
    ),
    isFindable: resource.reverseLookup !== undefined,
  };
}

export const WIRES = Object.freeze(
  Object.fromEntries(Object.entries(DESCRIPTIONS).map(([name, resource]) => [name, wireOf(resource)])),
) as Readonly<Record<CollectionName, Wire>>;
