import { LIMITS } from '../limits.ts';

const PATTERN = new RegExp(`^[\\x21-\\x7e]{1,${LIMITS.idempotencyKeyCharactersMax}}$`);

/** The characters of an `Idempotency-Key` and of every ETag: any header can carry them unescaped. */
export const VISIBLE_ASCII_RULE = `1 to ${LIMITS.idempotencyKeyCharactersMax} visible ASCII characters`;

export function isVisibleAscii(text: string): boolean {
  return PATTERN.test(text);
}
