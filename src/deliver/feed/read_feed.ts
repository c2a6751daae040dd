import type { Uuid } from '../../model/id.ts';
import type { SequencedChange } from '../../model/log/change.ts';
import type { Resource } from '../../model/resource.ts';
import type { Store } from '../../model/store.ts';
import { type FeedCursor, feedCursor, matchesCursor } from './cursor.ts';

/** A position in the feed of a realm: its start, or a cursor. */
export type FeedPosition = 'oldest' | FeedCursor;

/**
 * The result of reading the feed.
 * - `page`: changes in the order of the realm, and whether there are more.
 * - `gone`: the change of the cursor was removed, or another change has its sequence number because the database was
 *   restored. `oldest`: the cursor before the oldest change.
 * - `absent`: the realm never existed.
 */
export type FeedPage =
  | {
      readonly kind: 'page';
      readonly changes: readonly SequencedChange[];
      readonly hasMore: boolean;
    }
  | { readonly kind: 'gone'; readonly oldest: string }
  | { readonly kind: 'absent' };

/** Whether events about this resource contain the state of their record. */
export type MayRead = (resource: Resource) => boolean;

/**
 * Writes changes as events (CloudEvents 1.0, JSON). A change holds no value of its record: if `mayRead` permits it, the
 * current state is added, or null for a deleted record.
 */
export type WriteEvents = (
  changes: readonly SequencedChange[],
  mayRead: MayRead,
) => Promise<readonly string[]>;

/** Reads the changes of a realm after a position, at most `limit`. */
export async function readFeed(
  store: Pick<Store, 'changes'>,
  realm: Uuid,
  position: FeedPosition,
  limit: number,
): Promise<FeedPage> {
  const isAfter = position !== 'oldest' && position.side === 'after';
  // Also reads the change of the cursor, to compare its revision, and one more for `hasMore`.
  const from = position === 'oldest' ? 0 : position.seq - 1;
  const rows = await store.changes(realm, from, limit + (isAfter ? 2 : 1));
  if (position !== 'oldest' && !matchesCursor(position, rows[0])) return gonePage(store, realm);
  if (rows.length === 0) return { kind: 'absent' };
  const found = isAfter ? rows.slice(1) : rows;
  return { kind: 'page', changes: found.slice(0, limit), hasMore: found.length > limit };
}

async function gonePage(store: Pick<Store, 'changes'>, realm: Uuid): Promise<FeedPage> {
  const [oldest] = await store.changes(realm, 0, 1);
  return oldest ? { kind: 'gone', oldest: feedCursor('before', oldest) } : { kind: 'absent' };
}
