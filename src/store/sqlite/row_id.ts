import type { Uuid } from '../../domain/id.ts';

/**
 * The preferred row ID of a record (column `slot`). It finds the row in the table's own tree, without a search in an
 * index of texts. It consists of the timestamp and twelve random bits of the UUID, so that new records are stored next
 * to each other. Where two UUIDs give the same row ID, the later record gets another one, and is found by the index of
 * its key.
 */
export function rowIdOf(id: Uuid): number {
  const milliseconds = (digits(id, 0, 8) % 2 ** 25) * 2 ** 16 + digits(id, 9, 13);
  return milliseconds * 2 ** 12 + digits(id, 20, 23);
}

/** The number in a range of at most eight lower-case hexadecimal digits. */
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

/** Restricts a select by the key to the preferred row ID. Parameters: the key, then the row ID. */
export function atRowId(select: string): string {
  return `${select} and slot = ?`;
}
