import type { Store } from '../directory/store.ts';
import type { SequencedChange } from '../domain/change.ts';
import type { Uuid } from '../domain/id.ts';
import { type Cursor, cursorAt, isAt, readCursor } from './cursor.ts';

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
  | { readonly kind: 'page'; readonly told: readonly Told[]; readonly hasMore: boolean }
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

async function goneFrom(store: Pick<Store, 'changes'>, realm: Uuid): Promise<FeedPage> {
  const [oldest] = await store.changes(realm, 0, 1);
  return oldest ? { kind: 'gone', oldest: cursorAt('before', oldest) } : { kind: 'absent' };
}
