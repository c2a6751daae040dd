import type { Store } from '../../directory/store.ts';
import type { SequencedChange } from '../../domain/change.ts';
import type { Uuid } from '../../domain/id.ts';
import { type Cursor, cursorAt, isAt, readCursor } from './cursor.ts';
import type { FeedStore } from './port.ts';

/** Where somebody who reads the feed of a realm is: at its beginning, or at a cursor. */
export type Place = 'oldest' | Cursor;

/** A change and the cursor behind it. */
export interface Told {
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
      readonly told: readonly Told[];
      readonly hasMore: boolean;
      /** Where nothing was told, and nothing was named to begin at: the cursor behind the newest change. */
      readonly behind?: string;
    }
  | { readonly kind: 'gone'; readonly oldest: string }
  | { readonly kind: 'absent' };

/** Reads the place that a caller names; undefined for a text that is no cursor of this realm. */
export function placeOf(text: string | undefined, realm: Uuid): Place | undefined {
  return text === undefined ? 'oldest' : readCursor(text, realm);
}

/** Reads changes of a realm at a place, at most `limit`. */
export async function readFeed(
  store: Pick<Store, 'changes'>,
  realm: Uuid,
  place: Place,
  limit: number,
): Promise<FeedPage> {
  const isBehind = place !== 'oldest' && place.side === 'behind';
  // The change at the cursor is read along, to prove that it is the one it was; and one more tells whether there is more.
  const from = place === 'oldest' ? 0 : place.seq - 1;
  const rows = await store.changes(realm, from, limit + (isBehind ? 2 : 1));
  if (place !== 'oldest' && !isAt(place, rows[0])) return goneFrom(store, realm);
  if (rows.length === 0) return { kind: 'absent' };
  const behind = isBehind ? rows.slice(1) : rows;
  const told = behind.slice(0, limit).map((change) => ({ change, cursor: cursorAt('behind', change) }));
  return { kind: 'page', told, hasMore: behind.length > limit };
}

/**
 * Reads the changes of a realm that stand before a place, at most `limit` and in the order of the realm; `end` is before
 * nothing but what comes. `hasMore`: whether there are older ones.
 */
export async function readFeedBefore(
  { store, feed }: { readonly store: Pick<Store, 'changes'>; readonly feed: FeedStore },
  realm: Uuid,
  place: 'end' | Cursor,
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
  if (place !== 'end' && !isAt(place, rows.at(-1))) return goneFrom(store, realm);
  const before = rows.filter(({ seq }) => seq <= last);
  const told = before.slice(-limit).map((change) => ({ change, cursor: cursorAt('behind', change) }));
  return { kind: 'page', told, hasMore: before.length > told.length };
}

/**
 * The same of one user and their links alone. Where none of theirs is kept, a page without changes.
 */
export async function readUserFeedBefore(
  { store, feed }: { readonly store: Pick<Store, 'changes'>; readonly feed: FeedStore },
  user: { readonly realm: Uuid; readonly id: Uuid },
  place: 'end' | Cursor,
  limit: number,
): Promise<FeedPage> {
  const { realm } = user;
  if (place !== 'end') {
    const [at] = await store.changes(realm, place.seq - 1, 1);
    if (!isAt(place, at)) return goneFrom(store, realm);
  }
  const end = place === 'end' ? Number.MAX_SAFE_INTEGER : place.seq + Number(place.side === 'behind');
  const rows = await feed.changesOf(user, end, limit + 1);
  if (rows.length === 0 && place === 'end') {
    const [head] = await feed.heads(undefined, 1, [realm]);
    return head
      ? { kind: 'page', told: [], hasMore: false, behind: cursorAt('behind', head) }
      : { kind: 'absent' };
  }
  const told = rows
    .slice(0, limit)
    .map((change) => ({ change, cursor: cursorAt('behind', change) }))
    .toReversed();
  return { kind: 'page', told, hasMore: rows.length > limit };
}

async function goneFrom(store: Pick<Store, 'changes'>, realm: Uuid): Promise<FeedPage> {
  const [oldest] = await store.changes(realm, 0, 1);
  return oldest ? { kind: 'gone', oldest: cursorAt('before', oldest) } : { kind: 'absent' };
}
