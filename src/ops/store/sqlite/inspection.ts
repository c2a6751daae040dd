import { Database, type SQLiteError } from 'bun:sqlite';
import { existsSync } from 'node:fs';
import { Refusal } from '../../../model/fault.ts';
import { SQLITE, sqliteStatements } from '../../../records/store/sqlite/dialect.ts';
import type { Migration } from '../../../sql/migrations.ts';
import { connectImmutable, MAPPED_BYTES_MAX, queryOnce } from '../../../sql/sqlite/connection.ts';
import { fileSize } from '../../../sql/sqlite/database_files.ts';
import { sqliteSchemaVersion } from '../../../sql/sqlite/migrate.ts';
import { UNSHARED } from '../../../sql/sqlite/shared_read_transaction.ts';
import { openSqliteReading } from '../../../sql/sqlite/transactions.ts';
import type { EngineInspection } from '../engine.ts';
import { openInspectedStores } from '../inspected_stores.ts';
import { inspectionQueries, type SchemaObject, schemaDifferences } from '../inspection_queries.ts';

/** How long a query waits for recovery of the write-ahead log. Blocking is fine: nothing else runs in this process. */
const RECOVERY_WAIT_MS = 5_000;
const CACHE_KIB = 65_536;
/** A file without tables has at most one page. */
const PAGE_BYTES = 4_096;
/** The integrity check of the engine ends after this number of errors. */
const INTEGRITY_ERRORS_MAX = 1_000;

/**
 * Opens a database for inspection. The connection cannot write and blocks no writer. Each query has its own snapshot,
 * so that the write-ahead log can be checkpointed between them.
 */
export function inspectSqlite(path: string, known: readonly Migration[]): EngineInspection {
  if (!existsSync(path)) throw new Refusal(`there is no database ${path}: create it with authrealm init`);
  const { db, isImmutable } = openReadOnly(path);
  db.run(`pragma busy_timeout = ${RECOVERY_WAIT_MS}`);
  if (!hasTables(db)) {
    db.close(false);
    throw new Refusal(
      `${path} is empty: mount the volume of the database or restore a backup, or create one with authrealm init`,
    );
  }
  db.run(`pragma cache_size = -${CACHE_KIB}`);
  db.run(`pragma mmap_size = ${MAPPED_BYTES_MAX}`);
  const rows: Rows = <T>(sql: string) => db.prepare<T, []>(sql).iterate();
  return {
    ...inspectionQueries(rows, known, 'slot'),
    engine: () =>
      versionOf(rows) + (isImmutable ? ', read as an immutable file because its folder is not writable' : ''),
    server: () => ({ facts: [], findings: [] }),
    schema: () => sqliteSchemaDifferences(db, known),
    integrity: () => integrityErrors(rows),
    accessOf: () => {
      // Throws for a file of another program.
      sqliteSchemaVersion(db);
      return openInspectedStores(openSqliteReading(db, UNSHARED).read, SQLITE, sqliteStatements);
    },
    close: () => db.close(false),
  };
}

type Rows = <T>(sql: string) => Iterable<T>;

/** Whether a start has created tables in a file. One that was killed before leaves a file without them. */
export function isSqliteFileUsed(path: string): boolean {
  // Another read-only connection would keep the -wal and -shm files until garbage collection.
  if (fileSize(path) > PAGE_BYTES) return true;
  using db = openReadOnly(path).db;
  db.run(`pragma busy_timeout = ${RECOVERY_WAIT_MS}`);
  return hasTables(db);
}

/** A damaged file has tables: its checks report what is wrong. */
function hasTables(db: Database): boolean {
  try {
    return queryOnce(db, `select 1 from sqlite_schema where type = 'table' limit 1`).length > 0;
  } catch {
    return true;
  }
}

/**
 * In WAL mode the engine creates an index file next to the database, so its folder must be writable. Where it is not,
 * and the -wal file is absent or empty, no process has the database open, and it can be read as an immutable file.
 */
function openReadOnly(path: string): { readonly db: Database; readonly isImmutable: boolean } {
  const db = new Database(path, { readonly: true });
  try {
    queryOnce(db, 'select count(*) from sqlite_schema');
  } catch (error) {
    const { code = '' } = error as SQLiteError;
    if (code === 'SQLITE_READONLY_ROLLBACK') {
      db.close(false);
      throw error;
    }
    if (NEEDS_FOLDER.test(code) && fileSize(`${path}-wal`) === 0) {
      db.close(false);
      return { db: connectImmutable(path), isImmutable: true };
    }
  }
  return { db, isImmutable: false };
}

const NEEDS_FOLDER = /^SQLITE_(READONLY|CANTOPEN)/;

function versionOf(rows: Rows): string {
  return `sqlite ${[...rows<{ version: string }>('select sqlite_version() as version')][0]?.version}`;
}

const SELECT_OBJECTS = `select type, name, sql as definition from sqlite_schema where name not like 'sqlite_%' and name <> 'migration'`;

/**
 * Compares the schema with one that the same migrations create. Yields nothing where unknown migrations were applied.
 */
export function* sqliteSchemaDifferences(db: Database, known: readonly Migration[]) {
  const applied = queryOnce<{ version: number }>(db, 'select version from migration');
  if (applied.some(({ version }) => !known.some((each) => each.version === version))) return;
  using model = new Database(':memory:');
  for (const { version, sql } of known) if (applied.some((each) => each.version === version)) model.run(sql);
  yield* schemaDifferences(objectsIn(db), objectsIn(model));
}

const objectsIn = (db: Database) => queryOnce<SchemaObject>(db, SELECT_OBJECTS);

/** Results of the integrity check of the engine. Also checks foreign keys: connections of other programs may write without enforcing them. */
export function* integrityErrors(rows: Rows): Iterable<string> {
  for (const { integrity_check: message } of rows<{ integrity_check: string }>(
    `pragma integrity_check(${INTEGRITY_ERRORS_MAX})`,
  )) {
    if (message !== 'ok') yield message.replaceAll('\n', ' ');
  }
  for (const { table, parent, count } of rows<{ table: string; parent: string; count: number }>(
    SELECT_ORPHANS,
  )) {
    yield `${count} rows of ${table} reference a row of ${parent} that does not exist`;
  }
}

const SELECT_ORPHANS =
  'select "table", parent, count(*) as count from pragma_foreign_key_check group by "table", parent';
