import type { Database } from 'bun:sqlite';
import { accessSync, constants, existsSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { Refusal } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import { openFeedStore } from '../audit/feed.ts';
import { openAuditLog } from '../audit/log.ts';
import { openLogStore } from '../audit/log_reading.ts';
import { openAuthStore } from '../auth/access.ts';
import type { EmbeddedEngine } from '../engine.ts';
import { openSealedStore } from '../idempotency/sealed.ts';
import { openLeaseStore } from '../leases.ts';
import { type MigrateMode, type Migration, migrationsIn, noSchema, type Program } from '../migrations.ts';
import { openWebhookStore } from '../webhooks/webhooks.ts';
import { connectSqlite, retryWhileBusy, sqliteFault } from './connection.ts';
import { assertNoOrphanedLog, trackDatabaseFiles } from './database_files.ts';
import { SQLITE } from './dialect.ts';
import { copyDatabaseFile, keepUpgradeCopy } from './file_copy.ts';
import { openSqliteLists } from './lists.ts';
import { assertSqliteSchema, migrateSqlite } from './migrate.ts';
import { openSqliteRecords } from './records.ts';
import { scrubSqlite } from './scrub.ts';
import { openSharedReadTransaction } from './shared_read_transaction.ts';
import { openSqliteTransactions } from './transactions.ts';
import { openSqliteWriter } from './writer.ts';

const MIGRATIONS_URL = new URL('./migrations/', import.meta.url);

/** The migrations of this release, in order. */
export function sqliteMigrations(): readonly Migration[] {
  return migrationsIn(MIGRATIONS_URL);
}

/**
 * Opens a SQLite database, made if absent, and brings its schema up as `mode` says. Throws Refusal where the schema
 * cannot be served; such a file is not changed.
 */
export async function openSqlite(path: string, mode: MigrateMode, program: Program): Promise<EmbeddedEngine> {
  const migrations = sqliteMigrations();
  const newest = migrations.at(-1)?.version ?? 0;
  if (path !== ':memory:') {
    assertNoOrphanedLog(path);
    if (existsSync(path)) assertWritable(path);
    else if (mode === 'off') throw noSchema();
  }
  return openPrepared(path, async (db) => {
    await retryWhileBusy(
      () => assertSqliteSchema(db, mode, newest, program.version),
      LIMITS.migrationWaitMsMax,
    );
    if (path !== ':memory:') await retryWhileBusy(() => enableWal(db), LIMITS.migrationWaitMsMax);
    await migrateSqlite(db, mode, migrations, program);
  });
}

/** The engine would open what it may only read, and fail at the first write. Throws the system's error instead. */
function assertWritable(path: string): void {
  accessSync(path, constants.R_OK | constants.W_OK);
  accessSync(dirname(realpathSync(path)), constants.W_OK | constants.X_OK);
}

/** Switches the file to a write-ahead log, which stays its way. Throws Refusal where the file system has no room for one. */
export function enableWal(db: Database): void {
  const answer = db.query<{ journal_mode: string }, []>('pragma journal_mode = wal').get();
  if (answer?.journal_mode === 'wal') return;
  throw new Refusal(
    `the database ${db.filename} cannot keep a write-ahead log (the engine stays with ${answer?.journal_mode}): put ` +
      'it on a local file system, a network one will not do',
  );
}

/** Opens a database that another process has already made and migrated. */
export function reopenSqlite(path: string): Promise<EmbeddedEngine> {
  return openPrepared(path, async () => undefined);
}

/**
 * Any first touch of the file, even preparing a statement, can meet the lock of another start: each step waits for it.
 */
async function openPrepared(
  path: string,
  makeReady: (db: Database) => Promise<void>,
): Promise<EmbeddedEngine> {
  const db = await retryWhileBusy(() => connectSqlite(path), LIMITS.migrationWaitMsMax);
  // Whoever waits here may wait for a restore, which puts another file in this place.
  const place = trackDatabaseFiles(path);
  try {
    await makeReady(db);
    const engine = await retryWhileBusy(() => engineOver(db), LIMITS.migrationWaitMsMax);
    place.assertInPlace();
    return engine;
  } catch (error) {
    db.close(false);
    throw error;
  }
}

function engineOver(db: Database): EmbeddedEngine {
  const sharedReads = openSharedReadTransaction(db);
  const place = trackDatabaseFiles(db.filename);
  const log = openAuditLog(SQLITE);
  const writer = openSqliteWriter(db, sharedReads, place, log);
  const transactions = openSqliteTransactions(db, sharedReads, writer);
  const records = openSqliteRecords(db, sharedReads, transactions);
  const access = openAuthStore(transactions);
  return {
    figures: () => ({ ...writer.figures(), lists: undefined }),
    // Lookups are proven with the access table, which every one of them needs and no one trusts for a second.
    records: {
      ...records,
      ready() {
        place.assertInPlace();
        return records.ready();
      },
    },
    access: {
      ...access,
      state(known) {
        place.assertInPlace();
        return access.state(known);
      },
    },
    sealed: openSealedStore(transactions, SQLITE),
    log: openLogStore(transactions, log, SQLITE),
    leases: openLeaseStore(transactions),
    scrub: (texts, how) =>
      scrubSqlite(db, sharedReads, texts, how).catch((error) => {
        throw sqliteFault(error);
      }),
    feed: openFeedStore(transactions, SQLITE),
    webhooks: openWebhookStore(transactions, SQLITE),
    embedded: {
      listDelegating: openSqliteLists(db, sharedReads).delegating,
      copyTo: (path) =>
        retryWhileBusy(() => {
          sharedReads.end();
          copyDatabaseFile(db, path);
        }),
    },
    close() {
      sharedReads.close();
      if (place.isMissing()) saveMovedDatabase(db);
      db.close(false);
    },
  };
}

/**
 * A database whose file was taken away lives until its last connection ends: what it holds is kept under another name.
 * Then its log is folded back, so that the file which now has its place does not find the log of another one.
 */
function saveMovedDatabase(db: Database): void {
  try {
    keepUpgradeCopy(db, `${db.filename}.rescued`, () => true);
    db.run('pragma wal_checkpoint(truncate)');
  } catch {
    // Its folder may be gone too. Whoever ends the process must not be stopped by that.
  }
}
