import { Database } from 'bun:sqlite';
import { closeSync, linkSync, openSync, readSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { syncPath } from '../fsync.ts';
import { connectImmutable, createPrivateFile } from './connection.ts';

/**
 * Keeps a copy of the database if `isWanted` is true once it is written, at `path`, or at `path.2`, `path.3`, … where files exist. It
 * never replaces one, which may be the copy of another upgrade; one with the same bytes is enough. Returns the path of the copy.
 */
export function keepUpgradeCopy(db: Database, path: string, isWanted: () => boolean): string | undefined {
  const copy = `${path}.${crypto.randomUUID()}.partial`;
  try {
    writeCopy(db, copy);
    if (!isWanted()) return undefined;
    let name = path;
    for (let number = 2; !publish(copy, name) && !hasSameBytes(copy, name); number += 1)
      name = `${path}.${number}`;
    // The directory entry of a copy by another process may not be synced yet.
    syncPath(dirname(path));
    return name;
  } finally {
    rmSync(copy, { force: true });
  }
}

/** How long a copy waits for recovery of the write-ahead log. */
const RECOVERY_WAIT_MS = 5_000;

/** Copies a database file, which may be in use, as of one read transaction, which does not block writers. */
export function copyDatabaseFile(from: string, to: string): void {
  // Where no other process has the database open, a read-only connection would leave -wal and -shm files behind.
  using db = new Database(from, { readwrite: true });
  db.run(`pragma busy_timeout = ${RECOVERY_WAIT_MS}`);
  writeCopy(db, to);
}

/**
 * Writes a database again to a new file without free pages: row IDs are kept, and tables are in the order of the schema, each before its
 * indexes (docs/decisions/0006-sqlite-lookups.md). The source is read without locks, so no process may write to it.
 */
export function writeCompact(from: string, to: string): void {
  using db = connectImmutable(from);
  writeCopy(db, to);
}

/** Writes a copy of mode 0600 to a new file, without deleted data, and syncs it. */
function writeCopy(db: Database, path: string): void {
  createPrivateFile(path);
  db.run('vacuum into ?', [path]);
  syncPath(path);
}

/** Gives a temporary file its final name. Returns false where a file with that name exists. */
export function publish(copy: string, path: string): boolean {
  try {
    linkSync(copy, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
  syncPath(dirname(path));
  return true;
}

const COMPARED_BYTES = 1_048_576;

function hasSameBytes(left: string, right: string): boolean {
  const files = [openSync(left, 'r'), openSync(right, 'r')] as const;
  const [leftBytes, rightBytes] = [Buffer.alloc(COMPARED_BYTES), Buffer.alloc(COMPARED_BYTES)];
  try {
    for (;;) {
      const count = readSync(files[0], leftBytes);
      if (count !== readSync(files[1], rightBytes)) return false;
      if (!leftBytes.subarray(0, count).equals(rightBytes.subarray(0, count))) return false;
      if (count === 0) return true;
    }
  } finally {
    for (const file of files) closeSync(file);
  }
}
