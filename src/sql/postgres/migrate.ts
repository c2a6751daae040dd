import type { SQL } from 'bun';
import { Refusal } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import {
  assertServableSchema,
  type MigrateMode,
  type Migration,
  type Program,
  servesFromOf,
} from '../migrations.ts';
import { migrationTable } from '../tables/installation.ts';
import { tableText } from '../tables/schema.ts';
import { distributeTables, isCitus } from './citus.ts';
import { isRetryableConflict, SCHEMA_CONFLICTS_MAX } from './connection.ts';
import { INSUFFICIENT_PRIVILEGE, sqlState, UNIQUE_VIOLATION } from './errors.ts';
import { numberParameters } from './parameters.ts';
import { grantTableRights, missingGrants, quoteIdentifier, type RoleSchema } from './rights.ts';
import { currentRoleSchema, postgresSchemaVersion } from './schema_state.ts';
import { clientWithTimeout, type SqlClient } from './sql_client.ts';

/** Returns the version of the schema. Throws Refusal where `mode` does not allow to serve it. Changes nothing. */
export async function assertPostgresSchema(
  sql: SQL,
  mode: MigrateMode,
  migrations: readonly Migration[],
  program: Pick<Program, 'version' | 'missingDatabase'>,
): Promise<number | undefined> {
  const found = await postgresSchemaVersion(clientWithTimeout(sql));
  return assertServableSchema(found, mode, newestOf(migrations), program);
}

/** Longer than the lock timeout of the statements, so that the server gives up first. */
const STATEMENT_WAIT_MS_MAX = LIMITS.migrationWaitMsMax + LIMITS.storeWaitMsMax;
/**
 * How long an attempt waits for the lock of a table: readers queue behind it, and run in the pauses between attempts.
 */
const TABLE_WAIT_MS_MAX = 200;
const LOCK_RETRY_PAUSE_MS = 1_000;

const MIGRATION_TABLE = tableText(migrationTable, 'postgres').replace('table', 'table if not exists');
const { text: INSERT_MIGRATION } = numberParameters(migrationTable.insert);
const INSERT_INSTANCE =
  'insert into instance (singleton, store_id, access_version) values (1, $1, 1) on conflict do nothing';

/**
 * Applies all pending migrations, each in its own transaction. Inserting the row of the migration takes the lock: one
 * process applies it, and the others wait for the row and find it applied. On an empty database one transaction applies
 * all of them, so that no process sees half a schema. The role `user` gets the privileges to serve. With Citus, the tables are
 * distributed. Throws Refusal before any change where Citus is too old.
 */
export async function migratePostgres(
  sql: SQL,
  migrations: readonly Migration[],
  program: Program,
  user?: string,
): Promise<void> {
  const reader = clientWithTimeout(sql);
  const isDistributed = await isCitus(reader);
  const { role, schema } = await currentRoleSchema(reader);
  const grantee = user === role ? undefined : user;
  const deadline = performance.now() + LIMITS.migrationWaitMsMax;
  const next = (found: { readonly version: number } | undefined) =>
    nextMigrations(migrations, found?.version);
  const before = await postgresSchemaVersion(reader);
  let [attempt, applied] = [1, 0];
  for (let pending = next(before); pending.length > 0; attempt += 1) {
    try {
      await inTransaction(sql, async (own) => {
        for (const migration of pending) {
          await beginMigration(own, migration, program);
          // Without a timeout: a migration may rewrite a large table.
          await sql.unsafe(migration.sql).simple();
          await own.unsafe(INSERT_INSTANCE, [program.clock.mintId()]);
        }
        if (grantee !== undefined) await grantTableRights(own, grantee, schema);
      });
      applied += pending.length;
    } catch (error) {
      if (hasState(error, INSUFFICIENT_PRIVILEGE)) throw schemaNotPermitted(error, { role, schema });
      await waitForOtherMigration(error, attempt, deadline);
    }
    const later = next(await postgresSchemaVersion(reader));
    if (later[0] !== pending[0]) attempt = 0;
    pending = later;
  }
  if (grantee !== undefined) await grantMissing(sql, grantee, { role, schema });
  if (isDistributed) await distributeTables(sql, reader);
  // Otherwise another process has migrated.
  if (before && applied > 0) program.onMigrated?.({ from: before.version, to: newestOf(migrations) });
}

const newestOf = (migrations: readonly Migration[]): number => migrations.at(-1)?.version ?? 0;

/** The migrations of the next transaction. */
function nextMigrations(migrations: readonly Migration[], applied: number | undefined): readonly Migration[] {
  if (applied === undefined) return migrations;
  return migrations.filter(({ version }) => version > applied).slice(0, 1);
}

/** Returns where the migration is to be attempted again unless another process has applied it. Throws otherwise. */
async function waitForOtherMigration(error: unknown, attempt: number, deadline: number): Promise<void> {
  if (isConcurrentMigration(error) && attempt <= SCHEMA_CONFLICTS_MAX) return;
  if (!hasState(error, LOCK_NOT_AVAILABLE)) throw error;
  if (performance.now() > deadline) throw schemaLocked(error);
  await Bun.sleep(LOCK_RETRY_PAUSE_MS);
}

/** Runs `work` in a transaction. The client must have one connection. */
async function inTransaction(sql: SQL, work: (own: SqlClient) => Promise<void>): Promise<void> {
  const own = clientWithTimeout(sql, STATEMENT_WAIT_MS_MAX);
  await own.unsafe('begin');
  try {
    await work(own);
    await own.unsafe('commit');
  } catch (error) {
    await own.unsafe('rollback').catch(() => undefined);
    throw error;
  }
}

async function beginMigration(
  own: SqlClient,
  migration: Migration,
  { version, clock }: Program,
): Promise<void> {
  await own.unsafe(`set local lock_timeout = ${LIMITS.migrationWaitMsMax}`);
  await own.unsafe(MIGRATION_TABLE);
  const row = [migration.version, migration.name, String(clock.now()), version, servesFromOf(migration)];
  await own.unsafe(INSERT_MIGRATION, row);
  await own.unsafe(`set local lock_timeout = ${TABLE_WAIT_MS_MAX}`);
}

function schemaNotPermitted(cause: unknown, { role, schema }: RoleSchema): Refusal {
  return new Refusal(
    `role ${role} may not change schema ${schema} (${(cause as Error).message}): pass its owner with --migrate-database, ` +
      `or run as its owner: grant create on schema ${quoteIdentifier(schema)} to ${quoteIdentifier(role)}`,
    { cause },
  );
}

function schemaLocked(cause: unknown): Refusal {
  return new Refusal(
    'the schema could not be changed because its tables were locked: try again when long exports and other migrations ' +
      'have ended',
    { cause },
  );
}

/** Grants privileges that the migrations did not grant. The row of the first migration is the lock. */
async function grantMissing(sql: SQL, grantee: string, { role, schema }: RoleSchema): Promise<void> {
  if ((await missingGrants(clientWithTimeout(sql), grantee, schema)).length === 0) return;
  try {
    await inTransaction(sql, async (own) => {
      await own.unsafe('select version from migration where version = 1 for update');
      await grantTableRights(own, grantee, schema);
    });
  } catch (error) {
    if (!hasState(error, INSUFFICIENT_PRIVILEGE)) throw error;
    throw new Refusal(
      `role ${role} may not grant the use of schema ${schema} to ${grantee} (${(error as Error).message}): pass the ` +
        'owner of the schema with --migrate-database',
      { cause: error },
    );
  }
}

const DUPLICATE_TABLE = '42P07';
/** The row type of a table that another process creates at the same time. */
const DUPLICATE_OBJECT = '42710';
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * Another process applied the migration first, or conflicted with it. An error that repeats is that of the migration
 * itself.
 */
function isConcurrentMigration(error: unknown): boolean {
  return hasState(error, UNIQUE_VIOLATION, DUPLICATE_TABLE, DUPLICATE_OBJECT) || isRetryableConflict(error);
}

function hasState(error: unknown, ...codes: readonly string[]): boolean {
  return codes.includes(sqlState(error) ?? '');
}
