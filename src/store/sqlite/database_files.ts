import { existsSync, realpathSync, statSync } from 'node:fs';
import { Fault, Refusal } from '../../domain/fault.ts';

/**
 * Whether the files of an open database are still the ones their names lead to. The engine goes on with files that
 * were moved, removed or replaced, and what it then commits ends with the process.
 */
export interface DatabaseFiles {
  /** Throws Fault `unavailable` once a file is not where it was opened. A file that comes back is good again. */
  assertInPlace(): void;
  /** Whether the database itself is not where it was opened. */
  isMissing(): boolean;
}

/** Remembers the files of a connection that has already read, and so has all of them open. */
export function trackDatabaseFiles(path: string): DatabaseFiles {
  if (path === '' || path === ':memory:') return { assertInPlace: () => undefined, isMissing: () => false };
  const real = realpathSync(path);
  // The engine follows a link to the database, and puts its own files beside the target.
  const files = [path, `${real}-wal`, `${real}-shm`].filter((file) => existsSync(file));
  const opened = files.map(inodeOf);
  const isMoved = (file: string, index: number): boolean => inodeOf(file) !== opened[index];
  return {
    assertInPlace() {
      if (files.some(isMoved)) throw new Fault('unavailable', [], new DatabaseFileMoved());
    },
    isMissing: () => isMoved(path, 0),
  };
}

/** What tells a file from every other one that is there; undefined where none can be reached. */
function inodeOf(file: string): string | undefined {
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
    super('its file was moved, removed or replaced while it was open');
  }
}

/**
 * Throws Refusal where the engine's files lie beside no database, or an empty one. A database made there would share
 * them with whoever still has the one that was moved away open, or have the engine remove commits of it.
 */
export function assertNoOrphanedLog(path: string): void {
  // These first: a first start by another process makes the database before them.
  const left = [`${path}-wal`, `${path}-shm`].find((file) => existsSync(file));
  if (left === undefined || (existsSync(path) && statSync(path).size > 0)) return;
  throw new Refusal(
    `${left} belongs to a database that is not at ${path} any more: put that one back, or stop every process and ` +
      'move -wal and -shm away to begin a new one',
  );
}
