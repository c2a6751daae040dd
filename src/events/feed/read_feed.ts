import type { Store } from '../../directory/store.ts';
import type { SequencedChange } from '../../domain/change.ts';
import type { Uuid } from '../../domain/id.ts';
import type { FeedStore } from '../../store/audit/feed.ts';
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
      /** Only for an empty page that was read from the end: the cursor after the newest change. */
      readonly cursor?: string;
    }
  | { readonly kind: 'gone'; readonly oldest: string }
  | { readonly kind: 'absent' };

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

/**
 * Reads the changes of a realm before a position, at most `limit` and in the order of the realm; `end` reads the newest
 * ones. `hasMore`: whether there are older ones.
 */
export async function readFeedBefore(
  { store, feed }: { readonly store: Pick<Store, 'changes'>; readonly feed: FeedStore },
  realm: Uuid,
  position: 'end' | FeedCursor,
  limit: number,
): Promise<FeedPage> {
  const [head] = position === 'end' ? await feed.heads(undefined, 1, [realm]) : [];
  const end = position === 'end' ? head && ({ ...head, side: 'after' } as const) : position;
  if (end === undefined) return { kind: 'absent' };
  const last = end.side === 'after' ? end.seq : end.seq - 1;
  const from = Math.max(last - limit - 1, 0);
  const found = await store.changes(realm, from, end.seq - from);
  // If the oldest changes were removed, the rows extend past the position.
  const rows = found.filter(({ seq }) => seq <= end.seq);
  // Only the change of a cursor needs its revision compared.
  if (position !== 'end' && !matchesCursor(position, rows.at(-1))) return gonePage(store, realm);
  const before = rows.filter(({ seq }) => seq <= last);
  return { kind: 'page', changes: before.slice(-limit), hasMore: before.length > limit };
}

/** Like `readFeedBefore`, for one user and its links. An empty page if none of their changes is stored. */
export async function readUserFeedBefore(
  { store, feed }: { readonly store: Pick<Store, 'changes'>; readonly feed: FeedStore },
  user: { readonly realm: Uuid; readonly id: Uuid },
  position: 'end' | FeedCursor,
  limit: number,
): Promise<FeedPage> {
  const { realm } = user;
  if (position !== 'end') {
    const [at] = await store.changes(realm, position.seq - 1, 1);
    if (!matchesCursor(position, at)) return gonePage(store, realm);
  }
  const end = position === 'end' ? Number.MAX_SAFE_INTEGER : position.seq + Number(position.side === 'after');
  const rows = await feed.userChanges(user, end, limit + 1);
  if (rows.length === 0 && position === 'end') {
    const [head] = await feed.heads(undefined, 1, [realm]);
    return head
      ? { kind: 'page', changes: [], hasMore: false, cursor: feedCursor('after', head) }
      : { kind: 'absent' };
  }
  return { kind: 'page', changes: rows.slice(0, limit).toReversed(), hasMore: rows.length > limit };
}

async function gonePage(store: Pick<Store, 'changes'>, realm: Uuid): Promise<FeedPage> {
  const [oldest] = await store.changes(realm, 0, 1);
  return oldest ? { kind: 'gone', oldest: feedCursor('before', oldest) } : { kind: 'absent' };
}
