import type { Revision, Uuid } from '../../model/id.ts';

/**
 * A position in the feed of a realm: after or before a change. It holds the revision of the change, so that it does not
 * match another history of the database.
 */
export interface FeedCursor {
  readonly side: 'after' | 'before';
  readonly realm: Uuid;
  readonly seq: number;
  /** The first digits of the revision of the change. */
  readonly revisionPrefix: string;
}

type CursorChange = { readonly realm: Uuid; readonly seq: number; readonly revision: Revision };

/** Version, side, realm, sequence number and revision prefix. */
const FORM = /^1 (after|before) ([0-9a-f-]{36}) ([1-9]\d{0,14}) ([0-9a-f]{8})$/;

export function feedCursor(side: FeedCursor['side'], { realm, seq, revision }: CursorChange): string {
  return Buffer.from(`1 ${side} ${realm} ${seq} ${revision.slice(0, 8)}`).toString('base64url');
}

/** Parses a cursor in canonical base64url. Undefined for any other text, or a cursor of another realm. */
export function parseFeedCursor(text: string, realm: Uuid): FeedCursor | undefined {
  const bytes = Buffer.from(text, 'base64url');
  const [, side, of, seq, revisionPrefix = ''] = FORM.exec(bytes.toString()) ?? [];
  if (of !== realm || bytes.toString('base64url') !== text) return undefined;
  return { side: side as FeedCursor['side'], realm, seq: Number(seq), revisionPrefix };
}

/** Whether this is the change of a cursor. */
export function matchesCursor(
  cursor: Pick<FeedCursor, 'seq' | 'revisionPrefix'>,
  change: Pick<CursorChange, 'seq' | 'revision'> | undefined,
): boolean {
  return change?.seq === cursor.seq && change.revision.startsWith(cursor.revisionPrefix);
}

/** A change in the order of a search: the time as of which it counts, its realm, and its sequence number there. */
export interface SearchPosition {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly realm: Uuid;
  readonly seq: number;
}

/** The form of the cursor of a search. */
export const SEARCH_CURSOR = /^(\d{1,15})_([0-9a-f-]{36})_([1-9]\d{0,14})$/;

export const searchCursor = ({ at, realm, seq }: SearchPosition) => `${at}_${realm}_${seq}`;

/** Undefined for a text of another form. */
export function parseSearchCursor(text: string): SearchPosition | undefined {
  const [, at, realm, seq] = SEARCH_CURSOR.exec(text) ?? [];
  return realm === undefined ? undefined : { at: Number(at), realm: realm as Uuid, seq: Number(seq) };
}
