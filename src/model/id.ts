/**
 * An ID in UUID form, always in lower case. Version and variant bits are not checked: real IDs include invalid ones
 * (docs/wire.md#ids).
 */
export type Uuid = string & { readonly Uuid: unique symbol };

const LOWER = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Parses an ID in any letter case. Returns undefined for everything that is not 8-4-4-4-12 hexadecimal digits. */
export function parseUuid(raw: string): Uuid | undefined {
  if (LOWER.test(raw)) return raw as Uuid;
  if (raw.length !== 36) return undefined;
  const lower = raw.toLowerCase();
  return LOWER.test(lower) ? (lower as Uuid) : undefined;
}

/** Means "no realm" in a row that must name one. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000' as Uuid;

export const UUID_BYTES = 16;

export function uuidBytes(uuid: Uuid): Uint8Array {
  return writeUuid(uuid, new Uint8Array(UUID_BYTES));
}

export function writeUuid(uuid: Uuid, into: Uint8Array): Uint8Array {
  for (let byte = 0; byte < UUID_BYTES; byte += 1) {
    const at = PLACES[byte] as number;
    const high = VALUES[uuid.charCodeAt(at)] as number;
    into[byte] = high * 16 + (VALUES[uuid.charCodeAt(at + 1)] as number);
  }
  return into;
}

/** An ID as an engine returns it. */
export type StoredId = Uint8Array | Uuid;

/** The text of an ID. Digit by digit, as in `writeUuid`, takes a third of the time of `toHex` and slices. */
export function uuidText(stored: StoredId): Uuid {
  if (typeof stored === 'string') return stored;
  // Another program lengthened or cut it. No two stored values have one text, so that the audit log finds the edit.
  if (stored.length !== UUID_BYTES) return stored.toHex() as Uuid;
  for (let byte = 0; byte < UUID_BYTES; byte += 1) {
    const at = PLACES[byte] as number;
    const value = stored[byte] as number;
    TEXT[at] = CODES[value >> 4] as number;
    TEXT[at + 1] = CODES[value & 15] as number;
  }
  return DECODER.decode(TEXT) as Uuid;
}

/** Where the two digits of each byte are in the text of an ID. */
const PLACES = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
const TEXT = new TextEncoder().encode(NIL_UUID);
const CODES = new TextEncoder().encode('0123456789abcdef');
const DECODER = new TextDecoder();
/** The value of each digit, by its code. */
const VALUES = new Uint8Array(128);
for (const [value, code] of CODES.entries()) VALUES[code] = value;

/** 64 random bits as 16 hexadecimal digits. Every write stores a new one with its record; the ETag is made of it. */
export type Revision = string & { readonly Revision: unique symbol };

/** Source of time, IDs and random bytes. Always a parameter, so that tests can replace it. */
export interface Clock {
  /** Milliseconds since the epoch, UTC. */
  now(): number;
  /** Milliseconds of a monotonic clock, for ages and waits. */
  monotonic(): number;
  /** A UUIDv7: time-ordered, so that new records are adjacent in every index. */
  mintId(): Uuid;
  mintRevision(): Revision;
  /** Cryptographically secure. */
  randomBytes(count: number): Uint8Array;
}
