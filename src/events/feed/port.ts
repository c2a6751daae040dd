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

/** Reads realm heads and changes for the feed. */
export interface FeedStore {
  /**
   * The heads of realms after `after` in the order of their IDs, at most `limit`; with `only`, of these realms. A deleted
   * realm still has one.
   */
  heads(after: Uuid | undefined, limit: number, only?: readonly Uuid[]): MaybePromise<readonly RealmHead[]>;
  /** The changes of a user and its links before a sequence number, newest first, at most `limit`. */
  userChanges(
    user: { readonly realm: Uuid; readonly id: Uuid },
    before: number,
    limit: number,
  ): MaybePromise<readonly SequencedChange[]>;
}
