import type { Revision, Uuid } from './id.ts';
import { ancestry, type Key, type Resource } from './resource.ts';

export type ChangeVerb = 'created' | 'updated' | 'deleted' | 'erased';

/**
 * What a committed write leaves behind, in the same commit (contract 8, row 44). It holds no personal value: which
 * record, which members were written, who asked, when. Its place in the realm's order is given by the store.
 */
export interface Change {
  /** `<resource name>.<verb>`, for example `user-authentication-oidc-profile-info.created`. */
  readonly event: string;
  readonly realm: Uuid;
  /** The user above the record; the record itself when it is a user; undefined elsewhere. */
  readonly user: Uuid | undefined;
  readonly id: Uuid;
  readonly revision: Revision;
  /** Names of the members that moved, at least one; empty for `created` and `deleted`, which name all of them. */
  readonly members: readonly string[];
  /** The client that asked, or the command line. */
  readonly actor: string;
  readonly requestId: string | undefined;
  /** The caller's IP address. */
  readonly address: string | undefined;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** A change with its place in the order of its realm: order of `seq` is order of commit. */
export interface SequencedChange extends Change {
  readonly seq: number;
}

export interface ChangeOrigin {
  readonly actor: string;
  readonly requestId: string | undefined;
  /** The caller's IP address. */
  readonly address: string | undefined;
  readonly at: number;
}

/**
 * What was written: which record, as of which revision, and of an update the names of the members that were written. An
 * update that says none is a touch.
 */
export interface WrittenRecord {
  readonly key: Key;
  readonly revision: Revision;
  readonly members?: readonly string[];
}

/** What every update moves; named where it is all that moved. */
const TOUCHED: readonly string[] = ['updated_at'];

/** The change that belongs to one written record. */
export function changeOf(
  resource: Resource,
  verb: ChangeVerb,
  { key, revision, members = [] }: WrittenRecord,
  origin: ChangeOrigin,
): Change {
  return {
    event: `${resource.name}.${verb}`,
    realm: key[0],
    user: key[userKeyIndex(resource)],
    id: key.at(-1) as Uuid,
    revision,
    members: verb === 'updated' ? changedMembers(members) : [],
    ...origin,
  };
}

function changedMembers(written: readonly string[]): readonly string[] {
  return written.length === 0 ? TOUCHED : written;
}

const userKeyIndexes = new Map<Resource, number>();

/** Where in the key the user stands; -1 where there is none. Looked for once per resource. */
export function userKeyIndex(resource: Resource): number {
  const known = userKeyIndexes.get(resource);
  if (known !== undefined) return known;
  const place = ancestry(resource).findIndex((ancestor) => ancestor.foreignKey === 'user_id');
  userKeyIndexes.set(resource, place);
  return place;
}
