import { closeSync, fstatSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';

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
 * not mix: each call is one write. Behind a line that was cut short they begin a new one. Throws where not all of it was
 * written.
 */
export function appendLines(path: string, lines: readonly string[]): void {
  const file = openSync(path, 'a+', 0o600);
  try {
    const bytes = Buffer.from(`${isCut(file) ? '\n' : ''}${lines.map((line) => `${line}\n`).join('')}`);
    const written = writeSync(file, bytes);
    fsyncSync(file);
    if (written < bytes.length) throw Object.assign(new Error(`${path} is full`), { code: 'ENOSPC' });
  } finally {
    closeSync(file);
  }
}

/** Whether the last line of an open file has no end. */
function isCut(file: number): boolean {
  const { size } = fstatSync(file);
  const last = Buffer.alloc(1);
  return size > 0 && readSync(file, last, 0, 1, size - 1) === 1 && last[0] !== NEWLINE;
}

const NEWLINE = 0x0a;
