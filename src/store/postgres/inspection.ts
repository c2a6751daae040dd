import { Refusal } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import { openAuditLog } from '../audit/log.ts';
import { openLogStore } from '../audit/log_reading.ts';
import { openAuthStore } from '../auth/access.ts';
import { openForgedRows } from '../auth/forged_rows.ts';
import { openSealedStore } from '../auth/sealed_store.ts';
import type { EngineInspection } from '../engine.ts';
import { inspectionQueries } from '../inspection_queries.ts';
import type { Migration } from '../migrations.ts';
import { openRecordReading } from '../records/record_reading.ts';
import type { Transactions } from '../transactions.ts';
import type { PostgresAddress } from './address.ts';
import { BEGIN_READ, type BeginStatements, setLocal } from './begin_statements.ts';
import { POSTGRES, postgresStatements } from './dialect.ts';
import { postgresSchemaDifferences } from './inspection_schema.ts';
import { serverState } from './inspection_server.ts';
import { connectToPrimary } from './primary.ts';
import { type InspectionQuery, openRowStream, type RowStream } from './row_stream.ts';

/** The server cancels longer queries. */
export const BEGIN_INSPECTION: BeginStatements = [
  ...BEGIN_READ,
  setLocal({ statement_timeout: LIMITS.doctorQueryMsMax }),
];
/** How much longer the client waits where the server does not answer at all. */
const RESPONSE_GRACE_MS = 5_000;

const HAS_SCHEMA = `select exists (select 1 from pg_class
  where relnamespace = to_regnamespace(quote_ident(current_schema())) and relname = 'migration') as has_schema`;

/**
 * Opens a database for inspection over its own connection. Every query runs in its own read-only transaction, so that
 * no snapshot holds vacuum back for as long as all of them take.
 */
export async function inspectPostgres(
  address: PostgresAddress,
  known: readonly Migration[],
): Promise<EngineInspection> {
  // Preparing statements would not pay: each query runs once.
  const stream = openRowStream(
    await connectToPrimary({ ...address, isPrepared: false }),
    LIMITS.doctorQueryMsMax + RESPONSE_GRACE_MS,
  );
  const rows: InspectionQuery = (text, ...values) => stream.rows(BEGIN_INSPECTION, text, values);
  try {
    const [found] = await Array.fromAsync(rows<{ has_schema: boolean }>(HAS_SCHEMA));
    if (!found?.has_schema)
      throw new Refusal('this database has no authrealm schema: create it with authrealm init');
    return inspectionOver(stream, rows, address, known);
  } catch (error) {
    await stream.close();
    throw error;
  }
}

function inspectionOver(
  stream: RowStream,
  rows: InspectionQuery,
  address: PostgresAddress,
  known: readonly Migration[],
): EngineInspection {
  const queries = inspectionQueries(rows);
  return {
    ...queries,
    engine: () => versionOf(rows),
    server: () => serverState(rows, address),
    migrations: async () => ({ applied: await Array.fromAsync(queries.applied()), known }),
    schema: () => postgresSchemaDifferences(rows, queries.applied, known),
    integrity: () => integrityErrors(rows),
    accessOf() {
      const transactions = inspectionTransactions(rows);
      const sealed = openSealedStore(transactions, POSTGRES);
      const log = openAuditLog(POSTGRES);
      const access = openAuthStore(transactions, log.rowMacs);
      return {
        ...{ access, sealed, log: openLogStore(transactions, log, POSTGRES), useKeys: log.useKeys },
        records: openRecordReading(transactions, postgresStatements),
        forgedRows: openForgedRows(transactions, POSTGRES, log.rowMacs, access),
      };
    },
    close: () => stream.close(),
  };
}

/** Each statement of a read has its own snapshot: the values that are read here do not change. */
function inspectionTransactions(rows: InspectionQuery): Transactions {
  return {
    async read(work) {
      const running = work();
      let step = running.next();
      while (!step.done) {
        const request = step.value;
        if ('statements' in request) throw new Error('an inspection cannot write');
        const result = await Array.fromAsync(rows<Record<string, unknown>>(request.text, ...request.values));
        step = running.next({ rows: result, count: result.length });
      }
      return step.value;
    },
    write: () => Promise.reject(new Error('an inspection cannot write')),
    isOverloaded: () => false,
    yieldToWriters: async () => undefined,
  };
}

async function versionOf(rows: InspectionQuery): Promise<string> {
  const [row] = await Array.fromAsync(
    rows<{ version: string }>(`select current_setting('server_version') as version`),
  );
  return `postgres ${row?.version}`;
}

const CHECKSUM_FAILURES =
  'select checksum_failures as count from pg_stat_database where datname = current_database() and checksum_failures > 0';
const INVALID_INDEXES = `select c.relname as name from pg_index i join pg_class c on c.oid = i.indexrelid
  where c.relnamespace = to_regnamespace(quote_ident(current_schema())) and not (i.indisvalid and i.indisready) order by 1`;

/** Damaged rows make the other checks fail when they read them. */
async function* integrityErrors(rows: InspectionQuery): AsyncGenerator<string> {
  for await (const { count } of rows<{ count: string }>(CHECKSUM_FAILURES))
    yield `the server has read ${count} pages with a wrong checksum: check its log, and restore a backup`;
  for await (const { name } of rows<{ name: string }>(INVALID_INDEXES))
    yield `index ${name} is invalid and not used by queries: run reindex index ${name}`;
}
