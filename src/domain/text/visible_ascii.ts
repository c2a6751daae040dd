import { LIMITS } from '../limits.ts';

const PATTERN = new RegExp(`^[\\x21-\\x7e]{1,${LIMITS.idempotencyKeyCharactersMax}}$`);

/** What an `Idempotency-Key` is made of; no ETag of the service is anything else. Every header can carry it as it is. */
export const VISIBLE_ASCII_RULE = `1 to ${LIMITS.idempotencyKeyCharactersMax} visible ASCII characters`;

export function isVisibleAscii(text: string): boolean {
  return PATTERN.test(text);
}
