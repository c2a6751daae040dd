import type { Database } from 'bun:sqlite';
import { Refusal } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import {
  assertServableSchema,
  type MigrateMode,
  type Migration,
  type MigrationRow,
  type Program,
  type SchemaVersion,
  schemaVersionOf,
  servesFromOf,
} from '../migrations.ts';
import { queryOnce, retryWhileBusy } from './connection.ts';
import { keepUpgradeCopy } from './file_copy.ts';

/**
 * Brings the schema to the newest migration, each applied once however many processes try: the check and the rows
 * stand in one transaction that holds the write lock. A file that already holds data is copied first.
 */
export async function migrateSqlite(
  db: Database,
  mode: MigrateMode,
  migrations: readonly Migration[],
  program: Program,
): Promise<void> {
  const newest = migrations.at(-1)?.version ?? 0;
  const found = await retryWhileBusy(
    () => assertSqliteSchema(db, mode, newest, program.version),
    LIMITS.migrationWaitMsMax,
  );
  if (mode === 'off' || (found !== undefined && found >= newest)) return;
  if (found !== undefined) {
    // Whoever was faster kept a copy before it migrated; what is migrated must never carry the number of what was.
    const isUntouched = (copied: Database) => sqliteSchemaVersion(copied)?.version === found;
    await retryWhileBusy(
      () => keepUpgradeCopy(db, `${db.filename}.schema-${found}`, isUntouched),
      LIMITS.migrationWaitMsMax,
    );
  }
  await retryWhileBusy(() => applyPending(db, migrations, program), LIMITS.migrationWaitMsMax);
}

/**
 * The schema that is there, undefined for none, where `mode` allows to go on from it. Changes nothing: a file that is
 * refused stays as it is.
 */
export function assertSqliteSchema(
  db: Database,
  mode: MigrateMode,
  newest: number,
  programVersion: string,
): number | undefined {
  return assertServableSchema(sqliteSchemaVersion(db), mode, newest, programVersion);
}

/** How far a database is, undefined for one without any table. Throws Refusal for one of another program. */
export function sqliteSchemaVersion(db: Database): SchemaVersion | undefined {
  const tables = queryOnce<{ name: string }>(db, `select name from sqlite_schema where type = 'table'`);
  if (tables.length === 0) return undefined;
  const names = new Set(tables.map(({ name }) => name));
  if (!names.has('migration') || !names.has('instance')) {
    throw new Refusal('the database file belongs to another program: it has tables, but none of authrealm');
  }
  return schemaVersionOf(queryOnce<MigrationRow>(db, 'select * from migration'));
}

const INSERT_MIGRATION =
  'insert into migration (version, name, applied_at, program_version, serves_from) values (?, ?, ?, ?, ?)';
const INSERT_INSTANCE =
  'insert or ignore into instance (singleton, store_id, access_version) values (1, ?, 1)';

function applyPending(db: Database, migrations: readonly Migration[], { version, clock }: Program): void {
  db.run('begin immediate');
  try {
    const done = sqliteSchemaVersion(db)?.version ?? 0;
    createMigrationTable(db);
    const insert = db.prepare(INSERT_MIGRATION);
    for (const migration of migrations.filter((each) => each.version > done)) {
      db.run(migration.sql);
      insert.run(migration.version, migration.name, clock.now(), version, servesFromOf(migration));
    }
    db.prepare(INSERT_INSTANCE).run(clock.mintId());
    db.run('commit');
  } catch (error) {
    if (db.inTransaction) db.run('rollback');
    throw error;
  }
}

/** The table of migrations, with a column that files of 0.1.0 lack. */
function createMigrationTable(db: Database): void {
  db.run(`create table if not exists migration (
    version integer not null primary key, name text not null, applied_at integer not null,
    program_version text not null, serves_from integer) strict`);
  const columns = db.prepare<{ name: string }, []>(`select name from pragma_table_info('migration')`).all();
  if (columns.some(({ name }) => name === 'serves_from')) return;
  db.run('alter table migration add column serves_from integer');
}
