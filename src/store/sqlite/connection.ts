import { Database, SQLiteError } from 'bun:sqlite';
import { closeSync, openSync } from 'node:fs';
import { Fault } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import { ConstraintViolation } from '../transaction_work.ts';
import type { SharedReadTransaction } from './shared_read_transaction.ts';

/** Reads go through the page cache of the system rather than through copies of our own. */
export const MAPPED_BYTES_MAX = 2 ** 31 - 65_536;

/**
 * Opens a database file, made with mode 0600 if it is not there. Nothing on the connection ever sleeps inside the
 * engine: a busy lock is an error at once, and waiting is done by the caller, off the event loop.
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
    return db;
  } catch (error) {
    db.close(false);
    throw error;
  }
}

/**
 * Makes an empty file of mode 0600 unless the file is there. It is only ever opened to create: closing a second
 * descriptor of a database drops the locks of its process.
 */
export function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/**
 * The rows of a text that is asked once. Where a statement is left, a connection that is closed does not let go of its file
 * before that is collected.
 */
export function queryOnce<T>(db: Database, text: string): T[] {
  const statement = db.prepare<T, []>(text);
  try {
    return statement.all();
  } finally {
    statement.finalize();
  }
}

const BUSY = 5;
const LOCKED = 6;

/** Whether the engine only says that somebody else is at it. */
export function isBusy(error: unknown): error is SQLiteError {
  return error instanceof SQLiteError && ((error.errno & 0xff) === BUSY || (error.errno & 0xff) === LOCKED);
}

/** Engine trouble becomes `unavailable`, its cause kept for the log; anything else is a bug and stays what it is. */
export function sqliteFault(error: unknown): unknown {
  const cause = error instanceof ConstraintViolation ? error.cause : error;
  return cause instanceof SQLiteError ? new Fault('unavailable', [], cause) : cause;
}

/** Rolls back what is open. An engine in trouble may refuse even that; then closing the connection does it. */
export function rollbackQuietly(db: Database): void {
  try {
    if (db.inTransaction) db.run('rollback');
  } catch {
    return;
  }
}

const PAUSE_MS_MIN = 1;
const PAUSE_MS_MAX = 3;
const YIELD_MS = 5;

/** One to three milliseconds: long enough to let the other side finish, short enough to be next. */
export function pauseForLock(): Promise<void> {
  return Bun.sleep(PAUSE_MS_MIN + Math.random() * (PAUSE_MS_MAX - PAUSE_MS_MIN));
}

/**
 * For whoever takes the lock again and again: longer than `pause`, so that each other process that waits for it looks
 * once while it is free.
 */
export function yieldLock(): Promise<void> {
  return Bun.sleep(YIELD_MS);
}

/** Runs `work` again while the database is busy, until the wait is over. */
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

/** A read answers at once unless the database is busy, which a log being recovered can cause. */
export function readRetrying<T>(sharedReads: SharedReadTransaction, work: () => T): T | Promise<T> {
  try {
    return sharedReads.read(work);
  } catch (error) {
    if (!isBusy(error)) throw sqliteFault(error);
    return retryWhileBusy(() => sharedReads.read(work)).catch((later) => {
      throw sqliteFault(later);
    });
  }
}
