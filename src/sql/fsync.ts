import { closeSync, fstatSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';

/**
 * Syncs a file or a directory to disk. A new file survives a crash only after its directory was synced as well.
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
 * Appends lines to a file and syncs it; a new file gets mode 0600. Each call is one write, so that lines of several processes
 * do not mix. After an incomplete last line they begin a new one. Throws if not all of it was written.
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

/** Whether the last line of an open file is incomplete. */
function isCut(file: number): boolean {
  const { size } = fstatSync(file);
  const last = Buffer.alloc(1);
  return size > 0 && readSync(file, last, 0, 1, size - 1) === 1 && last[0] !== NEWLINE;
}

const NEWLINE = 0x0a;
