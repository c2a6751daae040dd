/**
 * The preferred row ID of a record (column `slot`). It finds the row in the table's own tree, without a search in an
 * index of IDs. It consists of the timestamp and twelve random bits of the UUID, so that new records are stored next
 * to each other. Where two UUIDs give the same row ID, the later record gets another one, and is found by the index of
 * its key.
 */
export function rowIdOf(id: Uint8Array): number {
  let milliseconds = 0;
  for (let byte = 0; byte < 6; byte += 1) milliseconds = milliseconds * 256 + (id[byte] as number);
  return (milliseconds % 2 ** 41) * 2 ** 12 + ((id[8] as number) % 16) * 256 + (id[9] as number);
}

/** Restricts a select by the key to the preferred row ID. Parameters: the key, then the row ID. */
export function atRowId(select: string): string {
  return `${select} and slot = ?`;
}
