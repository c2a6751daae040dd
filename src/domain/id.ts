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

export const UUID_BYTES = 16;

/** The 16 bytes of an ID. */
export function uuidBytes(uuid: string): Uint8Array {
  // Slices take a quarter of the time of `replaceAll`.
  const [low, middle, high] = [uuid.slice(0, 8), uuid.slice(9, 13), uuid.slice(14, 18)];
  return Uint8Array.fromHex(low + middle + high + uuid.slice(19, 23) + uuid.slice(24));
}

/** An ID as an engine returns it. */
export type StoredId = Uint8Array | Uuid;

/** The text of an ID. */
export function uuidText(stored: StoredId): Uuid {
  if (typeof stored === 'string') return stored;
  const hex = stored.toHex();
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}` as Uuid;
}

/** Means "no realm" in a row that must name one. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000' as Uuid;

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
