import { closeSync, openSync, readSync } from 'node:fs';

const CHUNK_BYTES = 8_388_608;

/** The texts that stand in a file, in UTF-8. Not for a process that has the file open as a database. */
export function searchFile(path: string, texts: readonly string[]): readonly string[] {
  const left = new Map(texts.map((text) => [text, Buffer.from(text)]));
  const overlap = Math.max(0, ...[...left.values()].map(({ length }) => length - 1));
  const buffer = Buffer.alloc(CHUNK_BYTES + overlap);
  const file = openSync(path, 'r');
  const found: string[] = [];
  try {
    for (let start = 0; left.size > 0; start += CHUNK_BYTES) {
      const count = readSync(file, buffer, 0, buffer.length, start);
      const part = buffer.subarray(0, count);
      for (const [text, bytes] of left) {
        if (!part.includes(bytes)) continue;
        found.push(text);
        left.delete(text);
      }
      if (count < buffer.length) break;
    }
  } finally {
    closeSync(file);
  }
  return found;
}
