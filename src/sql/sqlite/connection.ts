import { constants, Database, SQLiteError } from 'bun:sqlite';
import { closeSync, openSync } from 'node:fs';
import { attempt } from '../../model/attempt.ts';
import { Fault } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import { ConstraintViolation } from '../transaction_work.ts';

/** Reads use the page cache of the system rather than the one of the connection. */
export const MAPPED_BYTES_MAX = 2 ** 31 - 65_536;

/**
 * Opens a database file, and creates it with mode 0600 if it does not exist. The connection never sleeps inside the
 * engine: a locked database is an immediate error, and the caller waits without blocking the event loop.
 */
export function connectSqlite(path: string): Database {
  if (path !== ':memory:') createPrivateFile(path);
  const db = new Database(path, { readwrite: true, create: true, strict: true });
  try {
    db.run('pragma busy_timeout = 0');
    db.run('pragma synchronous = full');
    db.run('pragma foreign_keys = on');
    db.run('pragma secure_delete = on');
    db.run(`pragma mmap_size = ${MAPPED_BYTES_MAX}`);
    db.run(`pragma journal_size_limit = ${LIMITS.writeAheadLogBytesMax}`);
    return db;
  } catch (error) {
    db.close(false);
    throw error;
  }
}

/** Opens a file that no process writes: without locks, and without its write-ahead log. */
export function connectImmutable(path: string): Database {
  const uri = `${Bun.pathToFileURL(path).href}?immutable=1`;
  return new Database(uri, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
}

/**
 * Creates an empty file of mode 0600 if it does not exist. It never opens an existing file: closing a second descriptor
 * of a database drops the locks of its process.
 */
export function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/**
 * Runs a query once and finalizes its statement. With a statement left open, a closed connection keeps its file open
 * until garbage collection.
 */
export function queryOnce<T>(db: Database, text: string): T[] {
  using statement = db.prepare<T, []>(text);
  return statement.all();
}

const BUSY = 5;
const LOCKED = 6;

/** Whether another connection holds a lock that the statement needs. */
export function isBusy(error: unknown): error is SQLiteError {
  return error instanceof SQLiteError && ((error.errno & 0xff) === BUSY || (error.errno & 0xff) === LOCKED);
}

const READONLY_ROLLBACK = 776;

/** Whether a read-only connection found a rollback journal: of a start that was killed, or that is rolling back. */
function needsRollback(error: unknown): boolean {
  if (error instanceof SQLiteError) return error.errno === READONLY_ROLLBACK;
  return error instanceof Error && needsRollback(error.cause);
}

/** Runs a check that opens the file read-only. If it finds a rollback journal, the engine rolls back and the check runs again. */
export async function repeatAfterRollback<T>(path: string, check: () => Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (error) {
    if (!needsRollback(error)) throw error;
  }
  using db = await retryWhileBusy(() => connectSqlite(path));
  await retryWhileBusy(() => queryOnce(db, 'select 1 from sqlite_schema limit 1'));
  return await check();
}

/**
 * Turns an error of the engine into Fault `unavailable`, with the error as its cause for the log. Other errors are
 * bugs.
 */
export function sqliteFault(error: unknown): unknown {
  const cause = error instanceof ConstraintViolation ? error.cause : error;
  return cause instanceof SQLiteError ? new Fault('unavailable', [], cause) : cause;
}

/** For `catch` of a promise. */
export function throwSqliteFault(error: unknown): never {
  throw sqliteFault(error);
}

/** Rolls back the open transaction. If the engine fails even then, closing the connection rolls back. */
export function rollbackQuietly(db: Database): void {
  attempt(() => db.inTransaction && db.run('rollback'));
}

const PAUSE_MS_MIN = 1;
const PAUSE_MS_MAX = 3;
const YIELD_MS = 5;

/** Waits one to three milliseconds: long enough for the other process to finish, short enough to be next. */
export function pauseForLock(): Promise<void> {
  return Bun.sleep(PAUSE_MS_MIN + Math.random() * (PAUSE_MS_MAX - PAUSE_MS_MIN));
}

/**
 * For work that takes the lock repeatedly. Longer than `pauseForLock`, so that each waiting process retries once while
 * the lock is free.
 */
export function yieldLock(): Promise<void> {
  return Bun.sleep(YIELD_MS);
}

/** Retries `work` while the database is locked, for at most `waitMs`. */
export async function retryWhileBusy<T>(work: () => T, waitMs: number = LIMITS.storeWaitMsMax): Promise<T> {
  const start = performance.now();
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() - start > waitMs) throw error;
    }
    await pauseForLock();
  }
}
