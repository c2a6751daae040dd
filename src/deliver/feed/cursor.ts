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

/** Version 1: version and side (1 byte each), realm (16), sequence number (6), revision prefix (4); as base64url. */
const VERSION = 1;
const SIDES = ['after', 'before'] as const;
const REVISION_PREFIX_BYTES = 4;
const BYTES = 2 + 16 + 6 + REVISION_PREFIX_BYTES;

export function feedCursor(side: FeedCursor['side'], { realm, seq, revision }: CursorChange): string {
  const sequence = Buffer.alloc(6);
  sequence.writeUIntBE(seq, 0, 6);
  return Buffer.concat([
    Buffer.of(VERSION, SIDES.indexOf(side)),
    Buffer.from(realm.replaceAll('-', ''), 'hex'),
    sequence,
    Buffer.from(revision.slice(0, 2 * REVISION_PREFIX_BYTES), 'hex'),
  ]).toString('base64url');
}

/** Parses a cursor in canonical base64url. Undefined for any other text, or a cursor of another realm. */
export function parseFeedCursor(text: string, realm: Uuid): FeedCursor | undefined {
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length !== BYTES || bytes.toString('base64url') !== text) return undefined;
  const side = SIDES[bytes.readUInt8(1)];
  const seq = bytes.readUIntBE(18, 6);
  const isOfRealm =
    bytes.readUInt8(0) === VERSION && bytes.toString('hex', 2, 18) === realm.replaceAll('-', '');
  if (!isOfRealm || side === undefined || seq === 0) return undefined;
  return { side, realm, seq, revisionPrefix: bytes.toString('hex', 24) };
}

/** Whether this is the change of a cursor. */
export function matchesCursor(
  cursor: Pick<FeedCursor, 'seq' | 'revisionPrefix'>,
  change: Pick<CursorChange, 'seq' | 'revision'> | undefined,
): boolean {
  return change?.seq === cursor.seq && change.revision.startsWith(cursor.revisionPrefix);
}
