import type { MaybePromise } from '../../directory/store.ts';
import type { SequencedChange } from '../../domain/change.ts';
import type { Revision, Uuid } from '../../domain/id.ts';

/** The newest change of a realm. */
export interface RealmHead {
  readonly realm: Uuid;
  readonly seq: number;
  readonly revision: Revision;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** Where the feed learns how far realms are. */
export interface FeedStore {
  /**
   * The heads of realms behind `after` in the order of their identifiers, at most `limit`; with `only`, of these alone. A
   * realm that was removed still has one.
   */
  heads(after: Uuid | undefined, limit: number, only?: readonly Uuid[]): MaybePromise<readonly RealmHead[]>;
  /** The changes of a user and their links before a place in the order of the realm, the newest first, at most `limit`. */
  userChanges(
    user: { readonly realm: Uuid; readonly id: Uuid },
    before: number,
    limit: number,
  ): MaybePromise<readonly SequencedChange[]>;
}
