import type { Database } from 'bun:sqlite';
import { Refusal } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import {
  assertServableSchema,
  type MigrateMode,
  type Migration,
  type Program,
  type SchemaVersion,
  schemaVersionOf,
  servesFromOf,
} from '../migrations.ts';
import { migrationTable } from '../tables/installation.ts';
import { tableText } from '../tables/schema.ts';
import { queryOnce, retryWhileBusy } from './connection.ts';
import { keepUpgradeCopy } from './file_copy.ts';

/**
 * Applies all pending migrations, each once even if several processes try: one transaction with the write lock checks
 * and applies them. An existing database is copied first.
 */
export async function migrateSqlite(
  db: Database,
  mode: MigrateMode,
  migrations: readonly Migration[],
  program: Program,
): Promise<void> {
  const newest = migrations.at(-1)?.version ?? 0;
  const found = await retryWhileBusy(
    () => assertSqliteSchema(db, mode, newest, program),
    LIMITS.migrationWaitMsMax,
  );
  if (found !== undefined && found >= newest) return;
  let copy: string | undefined;
  if (found !== undefined) {
    // A process that migrated first has kept its own copy; a migrated file must not be kept under the old schema number.
    const isUnmigrated = () => sqliteSchemaVersion(db)?.version === found;
    const keep = () => keepUpgradeCopy(db, `${db.filename}.schema-${found}`, isUnmigrated);
    copy = await retryWhileBusy(keep, LIMITS.migrationWaitMsMax);
  }
  const before = await retryWhileBusy(() => applyPending(db, migrations, program), LIMITS.migrationWaitMsMax);
  if (before > 0 && before < newest)
    program.onMigrated?.({ from: before, to: newest, ...(copy === undefined ? {} : { copy }) });
}

/**
 * Returns the version of the schema; undefined for an empty database. Throws Refusal where `mode` does not allow to
 * serve or migrate it. Changes nothing.
 */
export function assertSqliteSchema(
  db: Database,
  mode: MigrateMode,
  newest: number,
  program: Pick<Program, 'version' | 'missingDatabase'>,
): number | undefined {
  return assertServableSchema(sqliteSchemaVersion(db), mode, newest, program);
}

/** The version of the schema; undefined for a database without tables. Throws Refusal for one of another program. */
export function sqliteSchemaVersion(db: Database): SchemaVersion | undefined {
  const tables = queryOnce<{ name: string }>(db, `select name from sqlite_schema where type = 'table'`);
  if (tables.length === 0) return undefined;
  const names = new Set(tables.map(({ name }) => name));
  if (!names.has('migration') || !names.has('instance')) {
    throw new Refusal(
      `the database ${db.filename} belongs to another program, because it has tables but none of authrealm: pass another path with --database`,
    );
  }
  return schemaVersionOf(queryOnce<SchemaVersion>(db, 'select * from migration'));
}

const MIGRATION_TABLE = tableText(migrationTable, 'sqlite').replace('table', 'table if not exists');
const INSERT_INSTANCE =
  'insert or ignore into instance (singleton, store_id, access_version) values (1, ?, 1)';

/** Returns the version before; 0 for an empty database. */
function applyPending(db: Database, migrations: readonly Migration[], { version, clock }: Program): number {
  db.run('begin immediate');
  try {
    const applied = sqliteSchemaVersion(db)?.version ?? 0;
    db.run(MIGRATION_TABLE);
    const insert = db.prepare(migrationTable.insert);
    for (const migration of migrations.filter((each) => each.version > applied)) {
      db.run(migration.sql);
      insert.run(migration.version, migration.name, clock.now(), version, servesFromOf(migration));
    }
    db.prepare(INSERT_INSTANCE).run(clock.mintId());
    db.run('commit');
    return applied;
  } catch (error) {
    if (db.inTransaction) db.run('rollback');
    throw error;
  }
}
