import type { Revision, Uuid } from '../id.ts';
import { type Key, membersOf, type Resource } from '../resource.ts';
import { RESOURCES } from '../resources.ts';
import type { Caller } from './audit_entry.ts';

export type ChangeVerb = 'created' | 'updated' | 'deleted' | 'erased';

export interface ChangeOrigin extends Caller {
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/**
 * The change that a write leaves in the same commit (docs/wire.md#changes): which record and members were written, by
 * whom, and when. It holds no personal value. The store gives it its sequence number in the realm.
 */
export interface Change extends ChangeOrigin {
  /** `<resource name>.<verb>`, for example `user-authentication-oidc-profile-info.created`. */
  readonly event: string;
  readonly realm: Uuid;
  /** The user above the record; the record itself when it is a user; undefined elsewhere. */
  readonly user: Uuid | undefined;
  readonly id: Uuid;
  readonly revision: Revision;
  /** Names of the changed members, at least one; empty for `created` and `deleted`. */
  readonly members: readonly string[];
}

/** A change with its sequence number in the realm: the order of `seq` is the order of commits. */
export interface SequencedChange extends Change {
  readonly seq: number;
}

/**
 * A log entry of a realm: a change with its record before and after, without secrets. The feed reports only the change.
 */
export interface ChangeEntry {
  readonly change: Change;
  /** The packed members that are not personal, and those that are. */
  readonly detail?: Uint8Array | undefined;
  readonly personal?: Uint8Array | undefined;
}

/**
 * A written record: its key, its revision and, for an update, the names of the written members. An update without them
 * only changes `updated_at`.
 */
interface WrittenRecord {
  readonly key: Key;
  readonly revision: Revision;
  readonly members?: readonly string[];
}

/** Changed by every update; named if nothing else changed. */
export const TOUCHED: readonly string[] = ['updated_at'];

/** The members that no change names. */
const HIDDEN: ReadonlySet<string> = new Set(
  RESOURCES.flatMap((resource) =>
    membersOf(resource).flatMap(({ name, annotation }) =>
      annotation.hidden ? [`${resource.name} ${name}`] : [],
    ),
  ),
);

export function changeOf(
  resource: Resource,
  verb: ChangeVerb,
  { key, revision, members = [] }: WrittenRecord,
  origin: ChangeOrigin,
): Change {
  const named: string[] = [];
  for (const name of members) if (!HIDDEN.has(`${resource.name} ${name}`)) named.push(name);
  const changed = named.length === 0 ? TOUCHED : named;
  // Users are directly below a realm.
  const isOfUser = (resource.foreignKey ?? resource.parent?.foreignKey) === 'user_id';
  return {
    event: `${resource.name}.${verb}`,
    realm: key[0],
    user: isOfUser ? key[1] : undefined,
    id: key.at(-1) as Uuid,
    revision,
    members: verb === 'updated' ? changed : [],
    ...origin,
  };
}
