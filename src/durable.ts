import { closeSync, fsyncSync, openSync } from 'node:fs';

/**
 * Puts a file, or the names in a folder, on the disk. A new name is only sure to be there after a crash once its folder
 * was synced as well.
 */
export function syncPath(path: string): void {
  const opened = openSync(path, 'r');
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}
