import { z } from 'zod';
import { LIMITS } from './limits.ts';
import { KIB_HASHED_MAX } from './password_hash.ts';

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
