import { Refusal } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import { openAuthReading } from '../auth/access.ts';
import type { EngineInspection } from '../engine.ts';
import { openSealedValueReader } from '../idempotency/sealed.ts';
import { inspectionQueries } from '../inspection_queries.ts';
import type { Migration } from '../migrations.ts';
import type { SqlValue } from '../records/statements.ts';
import type { Transactions } from '../transactions.ts';
import type { PostgresAddress } from './address.ts';
import { BEGIN_READING } from './begin_statements.ts';
import { POSTGRES } from './dialect.ts';
import { roleState } from './inspection_rights.ts';
import { postgresSchemaDifferences } from './inspection_schema.ts';
import { serverState } from './inspection_server.ts';
import { connectToPrimary } from './primary.ts';
import { openRowStream, type RowStream } from './row_stream.ts';

/** The engine itself ends what takes longer. */
export const BEGIN_INSPECTION = `${BEGIN_READING}; set local statement_timeout = ${LIMITS.doctorQueryMsMax}`;
/** How much later it is given up where the engine does not answer at all. */
const PATIENCE_MS = 5_000;

const HAS_SCHEMA = `select exists (select 1 from pg_class
  where relnamespace = to_regnamespace(quote_ident(current_schema())) and relname = 'migration') as is_there`;

/**
 * Opens a database to look at it, over connections of its own: every transaction only reads, and each question has a
 * moment of its own, so that nothing of the past is kept for as long as all of them take.
 */
export async function inspectPostgres(
  address: PostgresAddress,
  known: readonly Migration[],
): Promise<EngineInspection> {
  // Nothing is asked twice.
  const stream = openRowStream(
    await connectToPrimary({ ...address, isPrepared: false }),
    LIMITS.doctorQueryMsMax + PATIENCE_MS,
  );
  const rows: InspectionQuery = (text, ...values) => stream.rows(BEGIN_INSPECTION, text, values);
  try {
    const [found] = await Array.fromAsync(rows<{ is_there: boolean }>(HAS_SCHEMA));
    if (!found?.is_there) throw new Refusal('there is no schema in this database: authrealm init makes it');
    return inspectionOver(stream, rows, address, known);
  } catch (error) {
    await stream.close();
    throw error;
  }
}

/** How the questions about the engine itself are asked. */
export type InspectionQuery = <T>(text: string, ...values: readonly SqlValue[]) => AsyncGenerator<T>;

function inspectionOver(
  stream: RowStream,
  rows: InspectionQuery,
  address: PostgresAddress,
  known: readonly Migration[],
): EngineInspection {
  const questions = inspectionQueries({ rows, isBeyondAscii: (column) => `${column} ~ '[^ -~]'` });
  return {
    ...questions,
    engine: () => versionOf(rows),
    server: () => serverState(rows, address),
    rights: () => roleState(rows),
    migrations: async () => ({ applied: await Array.fromAsync(questions.applied()), known }),
    schema: () => postgresSchemaDifferences(rows, questions.applied, known),
    integrity: () => integrityErrors(rows),
    accessOf() {
      const transactions = inspectionTransactions(rows);
      const sealed = openSealedValueReader(transactions, POSTGRES, questions.schema);
      return { access: openAuthReading(transactions, questions.schema), sealed };
    },
    close: () => stream.close(),
  };
}

/** Each statement of a piece of work has a moment of its own: what is looked for here does not move. */
function inspectionTransactions(rows: InspectionQuery): Transactions {
  return {
    async read(work) {
      const going = work();
      let step = going.next();
      while (!step.done) {
        const asked = step.value;
        if ('statements' in asked) throw new Error('who looks writes nothing');
        const told = await Array.fromAsync(rows<Record<string, unknown>>(asked.text, ...asked.values));
        step = going.next({ rows: told, count: told.length });
      }
      return step.value;
    },
    write: () => Promise.reject(new Error('who looks writes nothing')),
    isOverloaded: () => false,
    yieldToWriters: async () => undefined,
  };
}

async function versionOf(rows: InspectionQuery): Promise<string> {
  const [told] = await Array.fromAsync(
    rows<{ version: string }>(`select current_setting('server_version') as version`),
  );
  return `postgres ${told?.version}`;
}

const CHECKSUM_FAILURES =
  'select checksum_failures as count from pg_stat_database where datname = current_database() and checksum_failures > 0';
const INVALID_INDEXES = `select c.relname as name from pg_index i join pg_class c on c.oid = i.indexrelid
  where c.relnamespace = to_regnamespace(quote_ident(current_schema())) and not (i.indisvalid and i.indisready) order by 1`;

/** Rows are read by the other checks; what is damaged on the way is told by the engine there. */
async function* integrityErrors(rows: InspectionQuery): AsyncGenerator<string> {
  for await (const { count } of rows<{ count: string }>(CHECKSUM_FAILURES))
    yield `the engine has read ${count} pages whose checksum was wrong: see its log, and restore a backup`;
  for await (const { name } of rows<{ name: string }>(INVALID_INDEXES))
    yield `index ${name} is not complete, and nothing is found by it: reindex it`;
}
