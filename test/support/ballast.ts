import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const BYTES_MAX = 64 << 20;
const BYTES_MIN = 4_096;

const ballastIn = (folder: string) => join(folder, 'ballast');

/** Fills the disk of a folder with one file. */
export function fillDisk(folder: string): void {
  for (let bytes = BYTES_MAX; bytes >= BYTES_MIN; bytes /= 2) {
    const piece = Buffer.alloc(bytes);
    try {
      for (;;) writeFileSync(ballastIn(folder), piece, { flag: 'a' });
    } catch {
      // Too much: half of it may fit.
    }
  }
}

/** Removes that file. */
export function freeDisk(folder: string): void {
  rmSync(ballastIn(folder), { force: true });
}
