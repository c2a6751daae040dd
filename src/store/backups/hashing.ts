import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';

/** The SHA-256 of a file, in hexadecimal digits. */
export async function hashFile(path: string): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha256');
  for await (const chunk of Bun.file(path).stream()) hasher.update(chunk);
  return hasher.digest('hex');
}

/** Copies a file to a new one of mode 0600 and puts it on the disk. Answers the SHA-256 of what was written. */
export async function copyHashing(
  from: string,
  to: string,
  onBytes: (count: number) => void,
): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha256');
  const file = openSync(to, 'wx', 0o600);
  try {
    for await (const chunk of Bun.file(from).stream()) {
      hasher.update(chunk);
      for (let at = 0; at < chunk.length; ) at += writeSync(file, chunk, at);
      onBytes(chunk.length);
    }
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  return hasher.digest('hex');
}
