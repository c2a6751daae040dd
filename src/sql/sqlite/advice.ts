import { SQLiteError } from 'bun:sqlite';
import { existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseFileMoved } from './database_files.ts';

/** The description of a database error and what to do about it. */
export interface Advice {
  readonly why: string;
  /** Undefined where the message of the engine is all that is known. */
  readonly advice: string | undefined;
}

const BUSY_CODES = /^SQLITE_(BUSY|LOCKED)/;

/** The advice for an error code; the first match applies. */
const ADVICE: readonly (readonly [codes: RegExp, advise: (path: string | undefined) => string])[] = [
  [/^SQLITE_READONLY_DBMOVED/, () => 'the file was moved or replaced while it was being opened: try again'],
  [
    /^SQLITE_READONLY_ROLLBACK/,
    () =>
      'a write of another process was interrupted: a start of the service, or any other command, rolls it back',
  ],
  [/^(EACCES|EPERM|SQLITE_(READONLY|PERM|AUTH))/, permissions],
  [
    /^EROFS/,
    () =>
      'its file system is mounted read-only: remount it for writing, or pass a path on another one with --database',
  ],
  [
    /^(ENOENT|ENOTDIR)/,
    (path) => `folder ${folderOf(path)} does not exist: create it, or pass another path with --database`,
  ],
  [/^EISDIR/, () => 'the path is a folder: pass a file in it with --database'],
  [
    /^SQLITE_NOTADB/,
    () =>
      'the file is not a SQLite database, or its header is damaged: pass another path with --database, or restore a ' +
      'backup with authrealm restore',
  ],
  [
    /^SQLITE_(CORRUPT|FORMAT)/,
    () =>
      'the file is damaged: stop every process, copy the file and its -wal file, run authrealm doctor to see the extent ' +
      'of the damage, and restore a backup with authrealm restore',
  ],
  [
    /^(ENOSPC|EDQUOT|SQLITE_FULL)/,
    () => 'the disk is full: free space and try again; committed writes are not lost',
  ],
  [
    /^(SQLITE_IOERR|EIO)/,
    () => 'the disk or its file system returned an error: check the system log, and use a local file system',
  ],
  [BUSY_CODES, () => 'try again'],
  [/^SQLITE_CANTOPEN/, permissions],
  [
    /^SQLITE_(ERROR|SCHEMA)/,
    () =>
      'the schema does not match this program: start once with --migrate auto; if that is what failed, nothing was ' +
      'changed, and the previous release can still serve the database',
  ],
  [
    /^DATABASE_FILE_GONE/,
    (path) =>
      path === undefined
        ? 'put the file and its -wal file back, or stop every process before you replace them'
        : 'try again',
  ],
];

function permissions(path: string | undefined): string {
  const user = `user ${process.getuid?.() ?? 'of this process'}`;
  if (path !== undefined && !existsSync(path)) {
    return `${user} may not create files in ${resolve(folderOf(path))}: change its owner or its mode, or pass another path with --database`;
  }
  const file = path === undefined ? 'its file' : path;
  return (
    `${user} must be able to read and write ${file} and its -wal and -shm files, ` +
    `and to create files in the folder ${folderOf(path)}: chown both to that user, with modes 0600 and 0700`
  );
}

function folderOf(path: string | undefined): string {
  return path === undefined ? 'that holds it' : dirname(path);
}

/** The advice for a database that other processes kept locked. */
export const BUSY_ADVICE: Advice = adviceFor('SQLITE_BUSY', '', undefined);

/**
 * The advice for an error of the engine, or of the file system where `path` is given because the database could not be
 * opened. Undefined for other errors.
 */
export function sqliteAdvice(error: unknown, path: string | undefined): Advice | undefined {
  if (error instanceof SQLiteError || error instanceof DatabaseFileMoved) {
    // SQLite reports a folder as a failing disk.
    if (path !== undefined && existsSync(path) && statSync(path).isDirectory())
      return adviceFor('EISDIR', 'it is no file', path);
    return adviceFor(error.code ?? '', error.message, path);
  }
  const isSystemError = error instanceof Error && 'syscall' in error && 'code' in error;
  return isSystemError && path !== undefined ? adviceFor(String(error.code), error.message, path) : undefined;
}

function adviceFor(code: string, message: string, path: string | undefined): Advice {
  const why = BUSY_CODES.test(code) ? 'another process held the lock' : message;
  return { why, advice: ADVICE.find(([codes]) => codes.test(code))?.[1](path) };
}
