import { ancestry, keyColumns, type Resource, shownMembers } from '../model/resource.ts';
import { type CollectionName, DESCRIPTIONS } from '../model/resources.ts';
import { writableMembers } from '../model/writable_members.ts';

/** A member of a response or request, and the object inside `data` that contains it. */
export interface WireMember {
  readonly name: string;
  readonly within?: 'meta' | 'relationships' | undefined;
  /** Its value where a response omits it; default: null. */
  readonly omitted?: boolean | undefined;
}

/**
 * What this library needs to know about a resource at run time. Plain data that the build writes into the package, so that a
 * page that loads the library does not load the validation of records.
 */
export type WireFormat = ReturnType<typeof wireFormatOf>;

export function wireFormatOf(resource: Resource) {
  return {
    type: resource.type,
    /** The path segments of the collections, from the realms down to its own. */
    collections: ancestry(resource).map(({ collection }) => collection),
    /** The names of the parts of a record's key, in order. */
    keyNames: keyColumns(resource),
    parentType: resource.parent?.type,
    /** Its name in the `include` of a request for its parent record. */
    includedAs: resource.includedAs,
    members: shownMembers(resource).map(
      ({ name, annotation: { within, omittedIf } }): WireMember => ({ name, within, omitted: omittedIf }),
    ),
    /** Writable members that are not directly in `data`. */
    placed: writableMembers(resource, 'create').flatMap(({ name, within }): readonly WireMember[] =>
      within === 'data' ? [] : [{ name, within }],
    ),
    /** Whether its records can be found by value, with POST `…/search`. */
    isFindable: resource.reverseLookup !== undefined,
  };
}

export const WIRE_FORMATS = Object.freeze(
  Object.fromEntries(Object.entries(DESCRIPTIONS).map(([name, resource]) => [name, wireFormatOf(resource)])),
) as Readonly<Record<CollectionName, WireFormat>>;
