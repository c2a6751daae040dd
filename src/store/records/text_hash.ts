/** CRC-32 of a text in UTF-8: the same number on every engine and release. Nothing is decided by it alone. */
export function textHash(text: string): number {
  return Bun.hash.crc32(text);
}
