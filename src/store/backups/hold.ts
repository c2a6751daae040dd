import { Database, SQLiteError } from 'bun:sqlite';
import { statSync } from 'node:fs';
import type { Erasure } from '../../domain/erasure.ts';
import { Refusal } from '../../domain/fault.ts';
import { isBusy, rowsOnce } from '../sqlite/connection.ts';
import { newestApplied } from '../sqlite/migrate.ts';
import { readErasures } from './erasures.ts';
import { headerOf } from './examination.ts';
import { type Holder, holdersOf } from './holders.ts';

/** A database that nobody else has open, and that nobody can open until it is let go. */
export interface Hold {
  /** Those it knows of; undefined where it cannot be read. */
  readonly erasures: readonly Erasure[] | undefined;
  release(): void;
}

const WAIT_MS = 5_000;

/**
 * Takes a database away from everybody: its log is folded back and goes with its index, and the file is locked whole. A
 * damaged one cannot be locked; there the list of open files has to do. Throws Refusal while anybody has it open.
 */
export function holdDatabase(path: string): Hold {
  // The engine would remove a log that it cannot make sense of.
  if (statSync(path).size > 0 && !headerOf(path)) return unlocked(path);
  const db = new Database(path, { readwrite: true, strict: true });
  try {
    db.run(`pragma busy_timeout = ${WAIT_MS}`);
    const hasSchema = newestApplied(db) !== undefined;
    lock(db, path);
    const erasures = hasSchema ? readErasures(db) : [];
    return { erasures, release: () => letGo(db) };
  } catch (error) {
    letGo(db);
    if (isBusy(error)) throw inUse(path, holdersOf(path) ?? []);
    if (!(error instanceof SQLiteError)) throw error;
    return unlocked(path);
  }
}

/** One that the engine cannot read. */
function unlocked(path: string): Hold {
  proveUnused(path);
  return { erasures: undefined, release: () => undefined };
}

/**
 * Where the file keeps a log, whoever has it open shares a lock on it for good, and it can be taken out of that mode by
 * nobody else. Without a log, an exclusive transaction keeps everybody out.
 */
function lock(db: Database, path: string): void {
  db.run('pragma journal_mode = delete');
  db.run('begin exclusive');
  const [now] = rowsOnce<{ journal_mode: string }>(db, 'pragma journal_mode');
  // Somebody came in between.
  if (now?.journal_mode !== 'delete') throw inUse(path, holdersOf(path) ?? []);
}

function letGo(db: Database): void {
  if (db.inTransaction) db.run('rollback');
  db.close(false);
}

/** Throws Refusal where anybody is seen to have the database open, and where that cannot be told. */
function proveUnused(path: string): void {
  const holders = holdersOf(path);
  if (holders === undefined) {
    throw new Refusal(
      `${path} is damaged, and this system does not tell who has it open: stop every process, move it and what lies ` +
        'beside it as -wal, -shm and -journal away, and restore without --replace',
    );
  }
  if (holders.length > 0) throw inUse(path, holders);
}

export function inUse(path: string, holders: readonly Holder[]): Refusal {
  const who = holders.map(({ pid, name }) => `${pid} (${name})`).join(', ');
  return new Refusal(
    `${path} is in use${who === '' ? '' : ` by process ${who}`}: stop every process that has it open, then run the ` +
      'same command again. Nothing was changed',
  );
}
