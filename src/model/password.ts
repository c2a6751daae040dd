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

/** The form of a password that is hashed (`src/ops/workers/hasher.ts`) and compared with hashes. */
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
 * The costs that can be chosen, by name. None is weaker than the OWASP Password Storage Cheat Sheet asks for, and each hash can be
 * imported and checked (`isCheckable`).
 */
export const PASSWORD_COSTS: ReadonlyMap<string, PasswordCost> = new Map([
  ['low-memory', { memoryKib: 7_168, passes: 5 }],
  ['standard', { memoryKib: 19_456, passes: 2 }],
  ['high', { memoryKib: 65_536, passes: 3 }],
  ['highest', { memoryKib: 262_144, passes: 2 }],
]);
