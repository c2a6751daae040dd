import type { Store } from '../../directory/store.ts';
import type { SequencedChange } from '../../domain/change.ts';
import type { Uuid } from '../../domain/id.ts';
import { type FeedCursor, feedCursor, matchesCursor, parseFeedCursor } from './cursor.ts';
import type { FeedStore } from './port.ts';

/** Where somebody who reads the feed of a realm is: at its beginning, or at a cursor. */
export type FeedPosition = 'oldest' | FeedCursor;

/** A change and the cursor behind it. */
export interface FeedEntry {
  readonly change: SequencedChange;
  readonly cursor: string;
}

/**
 * What is read at a place.
 * - `page`: the changes behind it, in the order of the realm, and whether there are more.
 * - `gone`: the change that the place is at is not kept any more, or another one has its place: the database was put back to
 *   an older state. `oldest` is before the oldest change there is.
 * - `absent`: there is no such realm, and there never was.
 */
export type FeedPage =
  | {
      readonly kind: 'page';
      readonly entries: readonly FeedEntry[];
      readonly hasMore: boolean;
      /** Where nothing is an empty page read from the end: the cursor after the newest change. */
      readonly cursor?: string;
    }
  | { readonly kind: 'gone'; readonly oldest: string }
  | { readonly kind: 'absent' };

/** Reads the place that a caller names; undefined for a text that is no cursor of this realm. */
export function parseFeedPosition(text: string | undefined, realm: Uuid): FeedPosition | undefined {
  return text === undefined ? 'oldest' : parseFeedCursor(text, realm);
}

/** Reads changes of a realm at a place, at most `limit`. */
export async function readFeed(
  store: Pick<Store, 'changes'>,
  realm: Uuid,
  place: FeedPosition,
  limit: number,
): Promise<FeedPage> {
  const isBehind = place !== 'oldest' && place.side === 'behind';
  // The change at the cursor is read along, to prove that it is the one it was; and one more tells whether there is more.
  const from = place === 'oldest' ? 0 : place.seq - 1;
  const rows = await store.changes(realm, from, limit + (isBehind ? 2 : 1));
  if (place !== 'oldest' && !matchesCursor(place, rows[0])) return gonePage(store, realm);
  if (rows.length === 0) return { kind: 'absent' };
  const behind = isBehind ? rows.slice(1) : rows;
  const entries = behind.slice(0, limit).map((change) => ({ change, cursor: feedCursor('behind', change) }));
  return { kind: 'page', entries, hasMore: behind.length > limit };
}

/**
 * Reads the changes of a realm that stand before a place, at most `limit` and in the order of the realm; `end` is before
 * nothing but what comes. `hasMore`: whether there are older ones.
 */
export async function readFeedBefore(
  { store, feed }: { readonly store: Pick<Store, 'changes'>; readonly feed: FeedStore },
  realm: Uuid,
  place: 'end' | FeedCursor,
  limit: number,
): Promise<FeedPage> {
  const [head] = place === 'end' ? await feed.heads(undefined, 1, [realm]) : [];
  const end = place === 'end' ? head && ({ ...head, side: 'behind' } as const) : place;
  if (end === undefined) return { kind: 'absent' };
  const last = end.side === 'behind' ? end.seq : end.seq - 1;
  const from = Math.max(last - limit - 1, 0);
  const found = await store.changes(realm, from, end.seq - from);
  // Where the oldest are not kept any more, it goes on behind the place.
  const rows = found.filter(({ seq }) => seq <= end.seq);
  // Of the newest it is known that it was there; the one at a cursor has to be the one it was.
  if (place !== 'end' && !matchesCursor(place, rows.at(-1))) return gonePage(store, realm);
  const before = rows.filter(({ seq }) => seq <= last);
  const entries = before.slice(-limit).map((change) => ({ change, cursor: feedCursor('behind', change) }));
  return { kind: 'page', entries, hasMore: before.length > entries.length };
}

/**
 * The same of one user and their links alone. Where none of theirs is kept, a page without changes.
 */
export async function readUserFeedBefore(
  { store, feed }: { readonly store: Pick<Store, 'changes'>; readonly feed: FeedStore },
  user: { readonly realm: Uuid; readonly id: Uuid },
  place: 'end' | FeedCursor,
  limit: number,
): Promise<FeedPage> {
  const { realm } = user;
  if (place !== 'end') {
    const [at] = await store.changes(realm, place.seq - 1, 1);
    if (!matchesCursor(place, at)) return gonePage(store, realm);
  }
  const end = place === 'end' ? Number.MAX_SAFE_INTEGER : place.seq + Number(place.side === 'behind');
  const rows = await feed.userChanges(user, end, limit + 1);
  if (rows.length === 0 && place === 'end') {
    const [head] = await feed.heads(undefined, 1, [realm]);
    return head
      ? { kind: 'page', entries: [], hasMore: false, cursor: feedCursor('behind', head) }
      : { kind: 'absent' };
  }
  const entries = rows
    .slice(0, limit)
    .map((change) => ({ change, cursor: feedCursor('behind', change) }))
    .toReversed();
  return { kind: 'page', entries, hasMore: rows.length > limit };
}

async function gonePage(store: Pick<Store, 'changes'>, realm: Uuid): Promise<FeedPage> {
  const [oldest] = await store.changes(realm, 0, 1);
  return oldest ? { kind: 'gone', oldest: feedCursor('before', oldest) } : { kind: 'absent' };
}
