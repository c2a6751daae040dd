import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const keyFileIn = (folder: string) => join(folder, 'master.key');

/** Writes a new master key into a folder. Returns the path of its file. */
export function writeKeyFile(folder: string): string {
  const key = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex');
  writeFileSync(keyFileIn(folder), key, { mode: 0o600 });
  return keyFileIn(folder);
}
