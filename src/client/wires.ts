import { ancestry, keyColumns, type Resource, shownMembers } from '../domain/resource.ts';
import { type CollectionName, DESCRIPTIONS } from '../domain/resources.ts';
import { writableMembers } from '../domain/writable_members.ts';

/** A member of a response or request, and the object inside `data` that contains it. */
export interface WireMember {
  readonly name: string;
  readonly within?: 'meta' | 'relationships';
}

/**
 * What this library needs to know about a resource at run time. Plain data that the build writes into the package, so that a
 * page that loads the library does not load the validation of records.
 */
export interface WireFormat {
  readonly type: string;
  /** The path segments of the collections, from the realms down to its own. */
  readonly collections: readonly string[];
  /** The names of the parts of a record's key, in order. */
  readonly keyNames: readonly string[];
  /** The `type` of the parent resource. */
  readonly parentType: string | undefined;
  /** Its name in the `include` of a request for its parent record. */
  readonly includedAs: string | undefined;
  readonly members: readonly WireMember[];
  /** Writable members that are not directly in `data`. */
  readonly placed: readonly WireMember[];
  /** Whether its records can be found by value, with POST `…/search`. */
  readonly isFindable: boolean;
}

export function wireFormatOf(resource: Resource): WireFormat {
  return {
    type: resource.type,
    collections: ancestry(resource).map(({ collection }) => collection),
    keyNames: keyColumns(resource),
    parentType: resource.parent?.type,
    includedAs: resource.includedAs,
    members: shownMembers(resource).map(({ name, annotation: { within } }) =>
      within === undefined ? { name } : { name, within },
    ),
    placed: writableMembers(resource, 'create').flatMap(({ name, within }) =>
      within === 'data' ? [] : [{ name, within }],
    ),
    isFindable: resource.reverseLookup !== undefined,
  };
}

export const WIRE_FORMATS = Object.freeze(
  Object.fromEntries(Object.entries(DESCRIPTIONS).map(([name, resource]) => [name, wireFormatOf(resource)])),
) as Readonly<Record<CollectionName, WireFormat>>;
