import { z } from 'zod';
import type { PasswordCost } from './password.ts';

/** A hash that this program made. */
export interface MadeHash {
  /** In PHC form, as `passwordHash()` reads it. */
  readonly hash: string;
  /** Made from the text after NFKC. How an imported hash was made is not known. */
  readonly isNormalised: true;
}

/** Memory times passes of the costliest hash: about half a second of CPU time, of the two seconds that a hash may take. */
const KIB_HASHED_MAX = 524_288;
/** A check needs this memory once. */
const ARGON2_MEMORY_KIB_MAX = 262_144;
const ARGON2_LANES_MAX = 8;
const BCRYPT_COST_MIN = 4;
const BCRYPT_COST_MAX = 12;

const ARGON2 =
  /^\$(argon2(?:i|id))\$v=19\$m=([1-9]\d{0,5}),t=([1-9]\d{0,4}),p=([1-9])\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;
const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;

/** An imported password hash: argon2i or argon2id of version 19, or bcrypt, in PHC form, that costs no more than a check may. */
export function passwordHash() {
  return z.string().refine(isCheckable, {
    error:
      `must be argon2i or argon2id (v=19, m at most ${ARGON2_MEMORY_KIB_MAX}, m times t at most ${KIB_HASHED_MAX}, ` +
      `p at most ${ARGON2_LANES_MAX}) or bcrypt (cost ${BCRYPT_COST_MIN} to ${BCRYPT_COST_MAX}) in PHC form`,
  });
}

/** Whether passwords may be checked with a hash: other ones count as none. */
export function isCheckable(hash: string): boolean {
  return isArgon2(hash) || isBcrypt(hash);
}

function isArgon2(value: string): boolean {
  const parts = ARGON2.exec(value);
  if (!parts) return false;
  const [memory, passes, lanes] = parts.slice(2, 5).map(Number) as [number, number, number];
  return (
    lanes <= ARGON2_LANES_MAX &&
    memory * passes <= KIB_HASHED_MAX &&
    // Argon2 needs eight blocks a lane (RFC 9106, 3.1).
    memory >= 8 * lanes &&
    memory <= ARGON2_MEMORY_KIB_MAX &&
    isBase64(parts[5] ?? '', { min: 8, max: 64 }) &&
    isBase64(parts[6] ?? '', { min: 12, max: 64 })
  );
}

/** Unpadded base64 of so many bytes in its canonical spelling. */
function isBase64(text: string, bytes: { readonly min: number; readonly max: number }): boolean {
  const decoded = Buffer.from(text, 'base64');
  if (decoded.length < bytes.min || decoded.length > bytes.max) return false;
  return decoded.toString('base64').replace(/=+$/, '') === text;
}

export function isBcrypt(value: string): boolean {
  const cost = Number(BCRYPT.exec(value)?.[1]);
  return cost >= BCRYPT_COST_MIN && cost <= BCRYPT_COST_MAX;
}

/** Whether a new hash with this cost would be better: the hash is not argon2id, or fills less memory in all its passes. */
export function isWeaker(hash: string, { memoryKib, passes }: PasswordCost): boolean {
  const [, algorithm, memory, ownPasses] = ARGON2.exec(hash) ?? [];
  return algorithm !== 'argon2id' || Number(memory) * Number(ownPasses) < memoryKib * passes;
}

/** A password to compare with a hash that `isCheckable` accepts. */
export interface CheckRequest {
  readonly hash: string;
  readonly password: string;
  /** The hash was made from the text after NFKC. */
  readonly isNormalised: boolean;
}

/** The result of comparing a password with a hash. */
export interface PasswordCheck {
  readonly isRight: boolean;
  /** Only the first 72 bytes of a longer password were compared: the program that made the hash read no more. */
  readonly isCut: boolean;
}

/** The beginning of a hash up to its salt: two hashes with the same one take the same time. */
export type HashKind = string;

/** A hash of a kind that no password has: to take the time of a check where there is nothing to compare with. */
export function decoyHash(kind: HashKind): string {
  return kind.startsWith('$2') ? kind + '.'.repeat(53) : `${kind}${'A'.repeat(22)}$${'A'.repeat(43)}`;
}

/** The kind of new hashes. */
export function newHashKind({ memoryKib, passes }: PasswordCost): HashKind {
  return `$argon2id$v=19$m=${memoryKib},t=${passes},p=1$`;
}
