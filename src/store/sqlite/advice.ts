import { SQLiteError } from 'bun:sqlite';
import { dirname } from 'node:path';
import { DatabaseFileMoved } from './database_files.ts';

/** What to say about trouble. */
export interface Advice {
  readonly why: string;
  /** What to do; undefined where nothing better is known than what the engine says. */
  readonly advice: string | undefined;
}

const BUSY = /^SQLITE_(BUSY|LOCKED)/;

/** What an operator does about trouble of a kind, told by the first code that fits. */
const ADVICE: readonly (readonly [codes: RegExp, advise: (path: string | undefined) => string])[] = [
  [/^SQLITE_READONLY_DBMOVED/, () => 'the file was moved or replaced while it was being opened: try again'],
  [/^(EACCES|EPERM|SQLITE_(READONLY|PERM|AUTH))/, permissions],
  [
    /^EROFS/,
    () => 'its file system is mounted read-only: mount it for writing, or put the database elsewhere',
  ],
  [
    /^(ENOENT|ENOTDIR)/,
    (path) => `there is no folder ${folderOf(path)}: make it, or name another path by --database`,
  ],
  [/^EISDIR/, () => 'that is a folder: name a file in it by --database'],
  [
    /^SQLITE_NOTADB/,
    () =>
      'the file is no SQLite database, or its beginning is damaged: name another path by --database, or restore a ' +
      'backup (docs/guides/backup-and-restore.md)',
  ],
  [
    /^SQLITE_(CORRUPT|FORMAT)/,
    () =>
      'the file is damaged: stop every process, keep a copy of it and of its -wal file, let authrealm doctor say how ' +
      'far it goes, and restore a backup (docs/guides/backup-and-restore.md)',
  ],
  [
    /^(ENOSPC|EDQUOT|SQLITE_FULL)/,
    () => 'the disk is full: make room and try again. What was committed is there',
  ],
  [
    /^(SQLITE_IOERR|EIO)/,
    () =>
      'the disk or its file system answered with an error: look into the system log, and use a local file system',
  ],
  [BUSY, () => 'try again'],
  [/^SQLITE_CANTOPEN/, permissions],
  [
    /^SQLITE_(ERROR|SCHEMA)/,
    () =>
      'its schema is not the one this program needs: start once with --migrate auto; where that is what failed, ' +
      'nothing was changed, and the release before serves it',
  ],
  [
    /^DATABASE_FILE_GONE/,
    () =>
      'put the file and its -wal back where they were, or stop every process before another takes their place',
  ],
];

function permissions(path: string | undefined): string {
  const file = path === undefined ? 'its file' : path;
  return (
    `user ${process.getuid?.() ?? 'of this process'} must be able to read and write ${file} and what lies beside it ` +
    `as -wal and -shm, and to make files in the folder ${folderOf(path)}: chown both to that user, modes 0600 and 0700`
  );
}

function folderOf(path: string | undefined): string {
  return path === undefined ? 'around it' : dirname(path);
}

/** What to say where others kept a database busy. */
export const BUSY_ADVICE: Advice = adviceFor('SQLITE_BUSY', '', undefined);

/**
 * What to say about trouble of the engine, or of its files where one could not even be opened: `path` is given then.
 * Undefined for what is no trouble of theirs.
 */
export function sqliteAdvice(error: unknown, path: string | undefined): Advice | undefined {
  if (error instanceof SQLiteError || error instanceof DatabaseFileMoved) {
    return adviceFor(error.code ?? '', error.message, path);
  }
  const isSystemError = error instanceof Error && 'syscall' in error && 'code' in error;
  return isSystemError && path !== undefined ? adviceFor(String(error.code), error.message, path) : undefined;
}

function adviceFor(code: string, message: string, path: string | undefined): Advice {
  const why = BUSY.test(code) ? 'another process kept it busy' : message;
  return { why, advice: ADVICE.find(([codes]) => codes.test(code))?.[1](path) };
}
