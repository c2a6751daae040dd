import type { Uuid } from '../../domain/id.ts';

/**
 * Where a record of this identifier would lie: a number that is found in the tree of the rows by itself, without a walk
 * through an index of texts. It is made of the identifier's time and twelve of its random bits, so that new records
 * land side by side. Two identifiers may name one slot; then the later record lies elsewhere, and its index finds it.
 */
export function rowIdOf(id: Uuid): number {
  const milliseconds = (digits(id, 0, 8) % 2 ** 25) * 2 ** 16 + digits(id, 9, 13);
  return milliseconds * 2 ** 12 + digits(id, 20, 23);
}

/** The number that some of an identifier's hexadecimal digits write: at most eight, in lower case. */
function digits(id: Uuid, start: number, end: number): number {
  let number = 0;
  for (let at = start; at < end; at += 1) {
    const code = id.charCodeAt(at);
    number = number * 16 + code - (code < LETTER_A ? DIGIT_0 : LETTER_A - 10);
  }
  return number;
}

const DIGIT_0 = 0x30;
const LETTER_A = 0x61;

/** A select by the key that looks where the record mostly lies. Parameters: the key, then slot. */
export function atRowId(select: string): string {
  return `${select} and slot = ?`;
}
