import type { Database } from 'bun:sqlite';
import { accessSync, constants, existsSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { openAuthStore } from '../../../access/store/access.ts';
import { openSealedStore } from '../../../access/store/sealed.ts';
import { openFeedStore } from '../../../deliver/store/feed.ts';
import { openWebhookStore } from '../../../deliver/store/webhooks.ts';
import { openAuditLog } from '../../../log/store/log.ts';
import { openLogStore } from '../../../log/store/reading.ts';
import { Fault, Refusal } from '../../../model/fault.ts';
import { LIMITS } from '../../../model/limits.ts';
import { SQLITE } from '../../../records/store/sqlite/dialect.ts';
import { openSqliteLists, openSqliteSearches } from '../../../records/store/sqlite/lists.ts';
import { openSqliteRecords } from '../../../records/store/sqlite/records.ts';
import { openBudgetStore } from '../../../sign_in/store/budgets.ts';
import { openCredentialStore } from '../../../sign_in/store/credentials.ts';
import { openLeaseStore } from '../../../sql/leases.ts';
import { type MigrateMode, type Migration, migrationsOf, type Program } from '../../../sql/migrations.ts';
import {
  connectSqlite,
  retryWhileBusy,
  throwSqliteFault,
  yieldLock,
} from '../../../sql/sqlite/connection.ts';
import {
  assertNoOrphanedLog,
  DatabaseFileMoved,
  fileSize,
  inodeOf,
  trackDatabaseFiles,
} from '../../../sql/sqlite/database_files.ts';
import { removeErasedBytes } from '../../../sql/sqlite/erased_bytes.ts';
import { keepUpgradeCopy } from '../../../sql/sqlite/file_copy.ts';
import { assertSqliteSchema, migrateSqlite } from '../../../sql/sqlite/migrate.ts';
import { openSharedReadTransaction } from '../../../sql/sqlite/shared_read_transaction.ts';
import { openSqliteReading } from '../../../sql/sqlite/transactions.ts';
import { openSqliteWriter } from '../../../sql/sqlite/writer.ts';
import type { Transactions } from '../../../sql/transactions.ts';
import type { Engine } from '../engine.ts';

/** The migrations of this release, in order. */
export function sqliteMigrations(): readonly Migration[] {
  return migrationsOf('sqlite');
}

/**
 * Opens a SQLite database, creates it if it does not exist, and migrates its schema as `mode` says. Throws Refusal
 * where the schema cannot be served, and does not change such a file.
 */
export async function openSqlite(path: string, mode: MigrateMode, program: Program): Promise<Engine> {
  const migrations = sqliteMigrations();
  const newest = migrations.at(-1)?.version ?? 0;
  if (path !== ':memory:') {
    assertNoOrphanedLog(path);
    // Before the connection, which creates the file.
    if (fileSize(path) === 0 && program.missingDatabase) throw program.missingDatabase;
    if (existsSync(path)) assertFileWritable(path);
  }
  return openPrepared(path, async (db) => {
    await retryWhileBusy(() => assertSqliteSchema(db, mode, newest, program), LIMITS.migrationWaitMsMax);
    if (path !== ':memory:') await retryWhileBusy(() => enableWal(db), LIMITS.migrationWaitMsMax);
    await migrateSqlite(db, mode, migrations, program);
  });
}

/** Throws the error of the system. The engine itself would open a read-only file, and fail at the first write. */
function assertFileWritable(path: string): void {
  accessSync(path, constants.R_OK | constants.W_OK);
  accessSync(dirname(realpathSync(path)), constants.W_OK | constants.X_OK);
}

/** Switches the file to WAL mode permanently. Throws Refusal where the file system does not support it. */
export function enableWal(db: Database): void {
  const answer = db.query<{ journal_mode: string }, []>('pragma journal_mode = wal').get();
  if (answer?.journal_mode === 'wal') return;
  throw new Refusal(
    `the database ${db.filename} cannot use a write-ahead log (its journal mode stays ${answer?.journal_mode}): move it ` +
      'to a local file system, because network file systems are not supported',
  );
}

/** Opens a database that another process has created and migrated. */
export function reopenSqlite(path: string): Promise<Engine> {
  return openPrepared(path, async () => undefined);
}

/** Each step retries while the file is locked: even preparing the first statement can conflict with another start. */
async function openPrepared(path: string, prepare: (db: Database) => Promise<void>): Promise<Engine> {
  // A restore may hold the lock, and replaces the file; recorded before the connection, which creates a missing file.
  const existing = inodeOf(path);
  const db = await retryWhileBusy(() => connectSqlite(path), LIMITS.migrationWaitMsMax);
  const opened = existing ?? inodeOf(path);
  try {
    await prepare(db);
    const engine = await retryWhileBusy(() => engineOver(db), LIMITS.migrationWaitMsMax);
    if (inodeOf(path) !== opened) throw new DatabaseFileMoved();
    return engine;
  } catch (error) {
    db.close(false);
    // The engine reports a replaced file as a read-only one.
    throw inodeOf(path) === opened ? error : new Fault('unavailable', [], new DatabaseFileMoved());
  }
}

function engineOver(db: Database): Engine {
  // A savepoint keeps the former content of each page that it changes; in files, that is more bytes per commit than its
  // own. After the migrations, which sort whole tables for new indexes.
  db.run('pragma temp_store = memory');
  const sharedReads = openSharedReadTransaction(db);
  const files = trackDatabaseFiles(db.filename);
  const log = openAuditLog(SQLITE);
  const writer = openSqliteWriter(db, sharedReads, files, log);
  const { read } = openSqliteReading(db, sharedReads);
  const { write, isOverloaded } = writer;
  const transactions: Transactions = { read, write, isOverloaded, yieldToWriters: yieldLock };
  const records = openSqliteRecords(db, sharedReads, transactions, log.rowMacs);
  const access = openAuthStore(transactions, log.rowMacs);
  return {
    figures: () => ({ ...writer.figures(), lists: undefined }),
    workMs: writer.workMs,
    // Lookups need no check of their own: all depend on the access state, which is at most a second old.
    records: {
      ...records,
      ready() {
        files.assertInPlace();
        return records.ready();
      },
    },
    access: {
      ...access,
      state(known) {
        files.assertInPlace();
        return access.state(known);
      },
    },
    credentials: openCredentialStore(transactions, SQLITE, log.rowMacs),
    sealed: openSealedStore(transactions, SQLITE),
    budgets: openBudgetStore(transactions, SQLITE),
    log: openLogStore(transactions, log, SQLITE),
    leases: openLeaseStore(transactions),
    removeErasedBytes: () => removeErasedBytes(db, sharedReads).then(() => 'overwritten', throwSqliteFault),
    // Index hints choose the plans of its statements.
    updateStatistics: async () => undefined,
    feed: openFeedStore(transactions, SQLITE),
    webhooks: openWebhookStore(transactions, SQLITE, log.rowMacs),
    embedded: {
      listDelegating: openSqliteLists(db, sharedReads).delegating,
      logBytes: files.logBytes,
      searchDelegating: (searchWhole) => openSqliteSearches(transactions, searchWhole),
    },
    close() {
      sharedReads.close();
      if (files.isMissing()) saveMovedDatabase(db);
      db.close(false);
    },
  };
}

/**
 * Keeps a copy of a database whose file was moved or removed, because its data ends with its last connection. Then
 * truncates the write-ahead log, so that a new file at the path does not find the log of another database.
 */
function saveMovedDatabase(db: Database): void {
  try {
    keepUpgradeCopy(db, `${db.filename}.rescued`, () => true);
    db.run('pragma wal_checkpoint(truncate)');
  } catch {
    // The folder may be gone too. That must not prevent the process from stopping.
  }
}
