import type { Revision, Uuid } from '../../domain/id.ts';

/**
 * A place in the feed of a realm: behind the change that stands there, or before it. It knows the change by its revision, so
 * that it fits no other history than the one it comes from.
 */
export interface FeedCursor {
  readonly side: 'behind' | 'before';
  readonly realm: Uuid;
  readonly seq: number;
  /** The beginning of the revision of the change, as hex. */
  readonly revisionPrefix: string;
}

type CursorChange = { readonly realm: Uuid; readonly seq: number; readonly revision: Revision };

/** Version 1: version and side (1 byte each), realm (16), place (6), beginning of the revision (4); as base64url. */
const VERSION = 1;
const SIDES = ['behind', 'before'] as const;
const REVISION_PREFIX_BYTES = 4;
const BYTES = 2 + 16 + 6 + REVISION_PREFIX_BYTES;

/** The cursor behind or before a change. */
export function feedCursor(side: FeedCursor['side'], { realm, seq, revision }: CursorChange): string {
  const place = Buffer.alloc(6);
  place.writeUIntBE(seq, 0, 6);
  return Buffer.concat([
    Buffer.of(VERSION, SIDES.indexOf(side)),
    Buffer.from(realm.replaceAll('-', ''), 'hex'),
    place,
    Buffer.from(revision.slice(0, 2 * REVISION_PREFIX_BYTES), 'hex'),
  ]).toString('base64url');
}

/** Reads a cursor in its one spelling. Undefined for what is none, or of another realm. */
export function parseFeedCursor(text: string, realm: Uuid): FeedCursor | undefined {
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length !== BYTES || bytes.toString('base64url') !== text) return undefined;
  const side = SIDES[bytes.readUInt8(1)];
  const seq = bytes.readUIntBE(18, 6);
  const isOurs = bytes.readUInt8(0) === VERSION && bytes.toString('hex', 2, 18) === realm.replaceAll('-', '');
  if (!isOurs || side === undefined || seq === 0) return undefined;
  return { side, realm, seq, revisionPrefix: bytes.toString('hex', 24) };
}

/** Whether this is the change that a cursor was made at. */
export function matchesCursor(
  cursor: Pick<FeedCursor, 'seq' | 'revisionPrefix'>,
  change: Pick<CursorChange, 'seq' | 'revision'> | undefined,
): boolean {
  return change?.seq === cursor.seq && change.revision.startsWith(cursor.revisionPrefix);
}
