import type { MaybePromise } from '../directory/store.ts';
import type { Revision, Uuid } from '../domain/id.ts';

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
}
