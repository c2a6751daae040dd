import { Refusal } from '../../../model/fault.ts';
import { LIMITS } from '../../../model/limits.ts';
import { POSTGRES, postgresStatements } from '../../../records/store/postgres/dialect.ts';
import { migrationsOf } from '../../../sql/migrations.ts';
import type { PostgresAddress } from '../../../sql/postgres/address.ts';
import { BEGIN_READ, type BeginStatements, setLocal } from '../../../sql/postgres/begin_statements.ts';
import { databaseError, sqlState } from '../../../sql/postgres/errors.ts';
import { openConnectionPool } from '../../../sql/postgres/pool.ts';
import { openPrimary } from '../../../sql/postgres/primary.ts';
import { type InspectionQuery, openPostgresReading } from '../../../sql/postgres/reading.ts';
import { openPostgresSession } from '../../../sql/postgres/session.ts';
import { all } from '../../../sql/transaction_work.ts';
import type { EngineInspection } from '../engine.ts';
import { openInspectedStores } from '../inspected_stores.ts';
import { inspectionQueries } from '../inspection_queries.ts';
import { postgresSchemaDifferences } from './inspection_schema.ts';
import { serverState } from './inspection_server.ts';

/** The server cancels longer queries. */
export const BEGIN_INSPECTION: BeginStatements = [
  ...BEGIN_READ,
  setLocal({ statement_timeout: LIMITS.doctorQueryMsMax }),
];
/** The client waits longer, where the server does not answer at all. */
const WAIT_MS_MAX = LIMITS.doctorQueryMsMax + 5_000;

const HAS_SCHEMA = `select exists (select 1 from pg_class
  where relnamespace = to_regnamespace(quote_ident(current_schema())) and relname = 'migration') as has_schema`;

/**
 * Opens a database for inspection over its own connection. Each query or read runs in its own read-only transaction, so that no
 * snapshot holds vacuum back for as long as all of them take.
 */
export async function inspectPostgres(address: PostgresAddress): Promise<EngineInspection> {
  const primary = await openPrimary(address);
  // Another primary is not searched for.
  primary.close();
  // Preparing statements would not pay: each query runs once.
  const pool = openConnectionPool({ ...address, isPrepared: false }, 1, primary, WAIT_MS_MAX);
  const { perform } = openPostgresSession();
  const read = openPostgresReading(pool, perform, BEGIN_INSPECTION, withoutValues);
  const rows: InspectionQuery = (text, ...values) => read(() => all(text, ...values));
  try {
    const [found] = await rows<{ has_schema: boolean }>(HAS_SCHEMA);
    if (!found?.has_schema)
      throw new Refusal('this database has no authrealm schema: create it with authrealm init');
  } catch (error) {
    await pool.close();
    throw error;
  }
  const queries = inspectionQueries(rows, migrationsOf('postgres'), 'realm_id');
  return {
    ...queries,
    engine: async () => `postgres ${(await rows<{ version: string }>(SELECT_VERSION))[0]?.version}`,
    server: () => serverState(rows, address, primary),
    schema: () => postgresSchemaDifferences(rows, queries.migrations),
    integrity: () => integrityErrors(rows),
    accessOf: () => openInspectedStores(read, POSTGRES, postgresStatements),
    close: () => pool.close(),
  };
}

/** Missing objects and privileges: these messages of the server name tables and columns, and quote no values. */
const SCHEMA_ERROR = /^42/;

function withoutValues(error: unknown): unknown {
  if (SCHEMA_ERROR.test(sqlState(error) ?? '')) return new Error((error as Error).message);
  return databaseError(error) ?? error;
}

const SELECT_VERSION = `select current_setting('server_version') as version`;
const CHECKSUM_FAILURES =
  'select checksum_failures as count from pg_stat_database where datname = current_database() and checksum_failures > 0';
const INVALID_INDEXES = `select c.relname as name from pg_index i join pg_class c on c.oid = i.indexrelid
  where c.relnamespace = to_regnamespace(quote_ident(current_schema())) and not (i.indisvalid and i.indisready) order by 1`;

/** Damaged rows make the other checks fail when they read them. */
async function* integrityErrors(rows: InspectionQuery): AsyncGenerator<string> {
  for (const { count } of await rows<{ count: string }>(CHECKSUM_FAILURES))
    yield `the server has read ${count} pages with a wrong checksum: check its log, and restore a backup`;
  for (const { name } of await rows<{ name: string }>(INVALID_INDEXES))
    yield `index ${name} is invalid and not used by queries: run reindex index ${name}`;
}
