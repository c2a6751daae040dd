/** CRC-32 of a text in UTF-8: the same number on every engine and release. Queries compare the text as well. */
export function textHash(text: string): number {
  return Bun.hash.crc32(text);
}
