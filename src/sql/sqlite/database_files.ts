import { existsSync, realpathSync, statSync } from 'node:fs';
import { Fault, Refusal } from '../../model/fault.ts';

export type DatabaseFiles = ReturnType<typeof trackDatabaseFiles>;

/**
 * Detects that the files of an open database were moved, removed or replaced. The engine keeps using its open files
 * then, and its commits would be lost with the process. The connection must have read before, so that all of them exist.
 */
export function trackDatabaseFiles(path: string) {
  if (path === '' || path === ':memory:')
    return { assertInPlace: () => undefined, isMissing: () => false, logBytes: () => 0 };
  const real = realpathSync(path);
  // The engine follows a symbolic link to the database, and creates its other files next to the target.
  const log = `${real}-wal`;
  const files = [path, log, `${real}-shm`].filter((file) => existsSync(file));
  const opened = files.map(inodeOf);
  const isMoved = (file: string, index: number): boolean => inodeOf(file) !== opened[index];
  return {
    /** Throws Fault `unavailable` while a file is not at its path. */
    assertInPlace(): void {
      if (files.some(isMoved)) throw new Fault('unavailable', [], new DatabaseFileMoved());
    },
    /** Whether the database file itself is not at its path. */
    isMissing: () => isMoved(path, 0),
    /** The bytes of the write-ahead log. */
    logBytes: () => fileSize(log),
  };
}

/** The bytes of a file; 0 where it does not exist, or in a folder that this user cannot enter. */
export function fileSize(path: string): number {
  return existsSync(path) ? statSync(path).size : 0;
}

/** Device and inode, which identify a file; undefined where it does not exist. */
export function inodeOf(file: string): string | undefined {
  try {
    const { dev, ino } = statSync(file);
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

export class DatabaseFileMoved extends Error {
  readonly code = 'DATABASE_FILE_GONE';

  constructor() {
    super('the database file was moved, removed or replaced while it was open');
  }
}

/**
 * Throws Refusal where a -wal or -shm file exists without a database, or with an empty one. A new database would share
 * it with processes that still have the moved database open, or the engine would remove commits of that database.
 */
export function assertNoOrphanedLog(path: string): void {
  // Checked before the database, because a first start of another process creates the database before them.
  const orphaned = [`${path}-wal`, `${path}-shm`].find((file) => existsSync(file));
  if (orphaned === undefined || fileSize(path) > 0) return;
  throw new Refusal(
    `${orphaned} belongs to a database that is no longer at ${path}: put that database back, or stop every process and ` +
      'move its -wal and -shm files away to create a new one',
  );
}
