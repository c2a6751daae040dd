import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';

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

/**
 * Puts lines at the end of a file, made with mode 0600 if it is not there, and on the disk. Those of several processes do
 * not mix: each call is one write.
 */
export function appendLines(path: string, lines: readonly string[]): void {
  const file = openSync(path, 'a', 0o600);
  try {
    writeSync(file, lines.map((line) => `${line}\n`).join(''));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
