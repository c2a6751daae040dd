import { z } from 'zod';
import { LIMITS } from './limits.ts';

/**
 * A password in a request (docs/wire.md#passwords). Every character is allowed except a lone surrogate, which has no
 * UTF-8. It is hashed after NFKC (`normalisedPassword`), so that two keyboards produce the same password. Its length is
 * checked after NFKC, and its size before NFKC as well: NFKC can make a text eleven times as long.
 */
export function password() {
  return z
    .string()
    .refine((value) => value.isWellFormed(), { error: 'must hold no lone surrogate', abort: true })
    .refine((value) => isOfSize(value) && isOfSize(normalisedPassword(value)), {
      error: `must have at most ${LIMITS.passwordBytesMax} bytes in UTF-8, before and after NFKC`,
      abort: true,
    })
    .refine((value) => [...normalisedPassword(value)].length >= LIMITS.passwordCharactersMin, {
      error: `must have at least ${LIMITS.passwordCharactersMin} characters after NFKC`,
    })
    .meta({ minLength: LIMITS.passwordCharactersMin, format: 'password' });
}

/** The form of a password that is hashed (`src/workers/hasher.ts`) and compared with hashes. */
export function normalisedPassword(value: string): string {
  return value.normalize('NFKC');
}

function isOfSize(value: string): boolean {
  return Buffer.byteLength(value) <= LIMITS.passwordBytesMax;
}

/** The cost of a new hash: argon2id with one lane. */
export interface PasswordCost {
  readonly memoryKib: number;
  readonly passes: number;
}

/**
 * The settings that the OWASP Password Storage Cheat Sheet lists as equally strong. With less memory than the last one,
 * no number of passes is enough.
 */
const PASSES_MIN: readonly PasswordCost[] = [
  { memoryKib: 47_104, passes: 1 },
  { memoryKib: 19_456, passes: 2 },
  { memoryKib: 12_288, passes: 3 },
  { memoryKib: 9_216, passes: 4 },
  { memoryKib: 7_168, passes: 5 },
];

/** Memory times passes of the costliest hash: about half a second of CPU time, of the two seconds that a hash may take. */
const KIB_HASHED_MAX = 524_288;

/** The rule that this cost breaks, to print after the names of the two settings; undefined if none. */
export function costRule({ memoryKib, passes }: PasswordCost): string | undefined {
  const needed = PASSES_MIN.find((row) => memoryKib >= row.memoryKib);
  if (!needed) return `must name at least ${PASSES_MIN.at(-1)?.memoryKib} KiB`;
  if (passes < needed.passes)
    return `must name at least ${needed.passes} passes with so little memory (OWASP)`;
  if (memoryKib * passes <= KIB_HASHED_MAX) return undefined;
  return (
    `must be at most ${KIB_HASHED_MAX} KiB, memory times passes: ` +
    `a hash that takes longer than ${LIMITS.hashMsMax} ms is given up`
  );
}

/** The highest cost of an imported hash, so that checking it cannot block the service. */
const ARGON2_MEMORY_KIB_MAX = 262_144;
const ARGON2_PASSES_MAX = 10;
const ARGON2_LANES_MAX = 8;
const BCRYPT_COST_MIN = 4;
const BCRYPT_COST_MAX = 14;

const ARGON2 =
  /^\$argon2(?:i|id)\$v=19\$m=([1-9]\d{0,5}),t=([1-9]\d?),p=([1-9])\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;
const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;

/** An imported password hash: argon2i or argon2id of version 19, or bcrypt, in PHC form. */
export function passwordHash() {
  return z.string().refine((value) => isArgon2(value) || isBcrypt(value), {
    error:
      `must be argon2i or argon2id (v=19, m at most ${ARGON2_MEMORY_KIB_MAX}, t at most ${ARGON2_PASSES_MAX}, ` +
      `p at most ${ARGON2_LANES_MAX}) or bcrypt (cost ${BCRYPT_COST_MIN} to ${BCRYPT_COST_MAX}) in PHC form`,
  });
}

function isArgon2(value: string): boolean {
  const parts = ARGON2.exec(value);
  if (!parts) return false;
  const [memory, passes, lanes] = parts.slice(1, 4).map(Number) as [number, number, number];
  return (
    lanes <= ARGON2_LANES_MAX &&
    passes <= ARGON2_PASSES_MAX &&
    // Argon2 needs eight blocks a lane (RFC 9106, 3.1).
    memory >= 8 * lanes &&
    memory <= ARGON2_MEMORY_KIB_MAX &&
    isBase64(parts[4] ?? '', { min: 8, max: 64 }) &&
    isBase64(parts[5] ?? '', { min: 12, max: 64 })
  );
}

/** Unpadded base64 of so many bytes in its canonical spelling. */
function isBase64(text: string, bytes: { readonly min: number; readonly max: number }): boolean {
  const decoded = Buffer.from(text, 'base64');
  if (decoded.length < bytes.min || decoded.length > bytes.max) return false;
  return decoded.toString('base64').replace(/=+$/, '') === text;
}

function isBcrypt(value: string): boolean {
  const cost = Number(BCRYPT.exec(value)?.[1]);
  return cost >= BCRYPT_COST_MIN && cost <= BCRYPT_COST_MAX;
}
