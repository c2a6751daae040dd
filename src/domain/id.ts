/**
 * An identifier in UUID form, always lower case. Version and variant bits are not judged: the family's
 * real identifiers include ones that break them (contract 3.1).
 */
export type Uuid = string & { readonly Uuid: unique symbol };

const LOWER = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Reads an identifier in any letter case. Answers undefined for everything that is not 8-4-4-4-12 hex. */
export function parseUuid(raw: string): Uuid | undefined {
  if (LOWER.test(raw)) return raw as Uuid;
  if (raw.length !== 36) return undefined;
  const lower = raw.toLowerCase();
  return LOWER.test(lower) ? (lower as Uuid) : undefined;
}

/** The identifier that stands for "no realm" where a row must name one. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000' as Uuid;

/** 64 random bits as 16 hex digits: minted by every write, stored with the record, the heart of its ETag. */
export type Revision = string & { readonly Revision: unique symbol };

/** Source of time, identifiers and random bytes. A parameter everywhere, so that a test can stop it. */
export interface Clock {
  /** Milliseconds since the epoch, UTC. */
  now(): number;
  /** Milliseconds of a clock that never goes back, for ages and waits. */
  monotonic(): number;
  /** A UUIDv7: time-ordered, so that new records land side by side in every index. */
  mintId(): Uuid;
  mintRevision(): Revision;
  /** Bytes fit for secrets. */
  randomBytes(count: number): Uint8Array;
}
