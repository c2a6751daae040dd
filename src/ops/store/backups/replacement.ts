import { Database, SQLiteError } from 'bun:sqlite';
import { chmodSync, chownSync, existsSync, linkSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { attempt } from '../../../model/attempt.ts';
import { Refusal } from '../../../model/fault.ts';
import { syncPath } from '../../../sql/fsync.ts';
import { connectImmutable, isBusy, queryOnce } from '../../../sql/sqlite/connection.ts';
import { sqliteSchemaVersion } from '../../../sql/sqlite/migrate.ts';
import { selectErasures } from './erasures.ts';

const LOCK_WAIT_MS = 5_000;

/**
 * Locks a database against all other processes until the end of a block that is `using` the lock. It checkpoints and removes the
 * write-ahead log, and locks the file exclusively. Throws Refusal while another process has the database open, and where the file is
 * too damaged to be locked, because its use cannot be determined then.
 */
export function lockDatabase(path: string) {
  // With locks, the engine would remove a log that it cannot read.
  if (!hasSqliteHeader(path)) throw cannotLock(path);
  const db = new Database(path, { readwrite: true, strict: true });
  try {
    db.run(`pragma busy_timeout = ${LOCK_WAIT_MS}`);
    const hasSchema = sqliteSchemaVersion(db) !== undefined;
    lockExclusively(db, path);
    return {
      /** The erasures that the database has recorded. */
      erasures: hasSchema ? selectErasures(db) : [],
      [Symbol.dispose]: () => unlock(db),
    };
  } catch (error) {
    unlock(db);
    if (isBusy(error)) throw databaseInUse(path);
    throw error instanceof SQLiteError ? cannotLock(path) : error;
  }
}

function hasSqliteHeader(path: string): boolean {
  using db = connectImmutable(path);
  return attempt(() => queryOnce(db, 'pragma schema_version')) !== undefined;
}

/**
 * In WAL mode every open connection holds a shared lock on the file, and only the last one can leave that mode. Without
 * WAL, an exclusive transaction locks out all other processes.
 */
function lockExclusively(db: Database, path: string): void {
  db.run('pragma journal_mode = delete');
  db.run('begin exclusive');
  const [now] = queryOnce<{ journal_mode: string }>(db, 'pragma journal_mode');
  // Another process opened it in between.
  if (now?.journal_mode !== 'delete') throw databaseInUse(path);
}

function unlock(db: Database): void {
  if (db.inTransaction) db.run('rollback');
  db.close(false);
}

function databaseInUse(path: string): Refusal {
  return new Refusal(
    `${path} is in use: stop every process that has it open, then run the same command again; nothing was changed`,
  );
}

function cannotLock(path: string): Refusal {
  return new Refusal(
    `${path} is damaged and cannot be locked, so a process may still have it open: stop every process, move it and its ` +
      '-wal, -shm and -journal files away, and restore a backup without --replace',
  );
}

/**
 * Replaces a locked database by another file atomically, with the owner and mode of the old one: after a crash the path
 * holds either the old or the new database. The old one is kept at `keptPath`, or deleted if that is undefined.
 */
export function replaceDatabase(path: string, file: string, keptPath?: string): void {
  const { uid, gid, mode } = statSync(path);
  chownSync(file, uid, gid);
  chmodSync(file, mode & 0o777);
  syncPath(file);
  if (keptPath !== undefined) {
    linkSync(path, keptPath);
    syncPath(dirname(path));
  }
  assertNoCompanions(path);
  renameSync(file, path);
  syncPath(dirname(path));
}

/** Throws Refusal where a -wal, -shm or -journal file exists that the engine would apply to the new database. */
export function assertNoCompanions(path: string): void {
  const companion = ['-wal', '-shm', '-journal']
    .map((ending) => path + ending)
    .find((file) => existsSync(file));
  if (companion === undefined) return;
  throw new Refusal(
    `${companion} belongs to another database than the new one: put that database back, or move ${companion} away`,
  );
}
