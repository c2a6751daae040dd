import type { ReservedSQL, SQL } from 'bun';
import { withTimeout } from '../../platform/timeout.ts';
import type { Dialect } from '../dialect.ts';
import type { Program } from '../migrations.ts';
import type { PostgresAddress } from '../postgres/address.ts';
import { BEGIN_READ, type BeginStatements } from '../postgres/begin_statements.ts';
import { BEGIN_READ_OF_NODES, isCitus } from '../postgres/citus.ts';
import { openClient } from '../postgres/client.ts';
import { postgresFault } from '../postgres/connection.ts';
import { CITUS, POSTGRES } from '../postgres/dialect.ts';
import { DatabaseError, ERROR_CODES } from '../postgres/errors.ts';
import { assertPostgresSchema } from '../postgres/migrate.ts';
import { numberParameters, parameterValues } from '../postgres/parameters.ts';
import { connectToPrimary, openPrimary } from '../postgres/primary.ts';
import { postgresMigrations, prepareSchema } from '../postgres/schema_setup.ts';
import { DATABASE_IDENTITY } from '../postgres/schema_state.ts';
import { clientWithTimeout } from '../postgres/sql_client.ts';
import type { CopySource, CopyTarget, KeyRange, PrimaryKey, RowBatch } from './port.ts';
import { assertNewest } from './schema.ts';
import {
  onConflict,
  REPLACE_INSTALLATION,
  SELECT_INSTALLATION,
  SELECT_MARKER,
  type SqlText,
  selectPageEnd,
  selectRange,
} from './statements.ts';
import { COPIED_TABLES, type CopiedTable } from './tables.ts';
import { assertMarked } from './unfinished_copy.ts';

/** One for each page that a copy processes at once. */
const CONNECTIONS = 4;
/** A page takes a fraction of a second, so a server that takes this long has stalled. */
const STATEMENT_MS_MAX = 300_000;

type ResultRow = Readonly<Record<string, unknown>>;
/** Runs a statement on one of the connections. */
type RunStatement = (text: SqlText) => Promise<readonly ResultRow[]>;

/** Forces reads by the index of the key. Without current statistics the planner may choose another plan. */
const USE_KEY_INDEX = ['seqscan', 'bitmapscan', 'sort', 'incremental_sort']
  .map((way) => `set local enable_${way} = off`)
  .join('; ');
/** Overrides timeouts of the role that a copy may exceed. */
const NO_TIMEOUTS = 'set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0';
const beginCopyRead = (begin: BeginStatements) => [...begin, USE_KEY_INDEX, NO_TIMEOUTS].join('; ');
const BEGIN_COPY_READ = beginCopyRead(BEGIN_READ);

/** A PostgreSQL source, read by several transactions with the same snapshot; a cluster by one, with a snapshot of each node. */
export async function openPostgresSource(address: PostgresAddress, program: Program): Promise<CopySource> {
  await assertPostgresCopySchema(address, 'source', program);
  const sql = await openAtPrimary(address);
  try {
    const isDistributed = await isCitus(clientWithTimeout(sql, STATEMENT_MS_MAX));
    const connections = isDistributed ? [await beginReadOfNodes(sql)] : await beginSharedRead(sql);
    let next = 0;
    return sourceOver(sql, (text) => {
      next = (next + 1) % connections.length;
      return query(connections[next] as ReservedSQL, text);
    });
  } catch (error) {
    await closeNow(sql);
    throw error;
  }
}

/** A PostgreSQL target. Its schema is created if it does not exist. */
export async function openPostgresTarget(address: PostgresAddress, program: Program): Promise<CopyTarget> {
  await assertPostgresCopySchema(address, 'target', program);
  const { isDistributed } = await prepareSchema(await connectToPrimary(address), 'check', program, undefined);
  return targetOver(await openAtPrimary(address), (isDistributed ? CITUS : POSTGRES).rowLocks);
}

/** Throws Refusal for another schema than a copy needs. */
async function assertPostgresCopySchema(
  address: PostgresAddress,
  which: 'source' | 'target',
  program: Program,
): Promise<void> {
  const sql = await connectToPrimary(address);
  try {
    const migrations = postgresMigrations();
    const found = await assertPostgresSchema(sql, 'auto', migrations, program);
    assertNewest(found, migrations.at(-1)?.version ?? 0, which);
  } finally {
    await sql.close();
  }
}

async function openAtPrimary(address: PostgresAddress): Promise<SQL> {
  const primary = await openPrimary(address);
  primary.close();
  return openClient(address, CONNECTIONS, primary.current());
}

/** Begins read transactions that share the snapshot of the first one. */
async function beginSharedRead(sql: SQL): Promise<readonly ReservedSQL[]> {
  const connections = await Promise.all(Array.from({ length: CONNECTIONS }, () => sql.reserve()));
  const [first, ...others] = connections as [ReservedSQL, ...ReservedSQL[]];
  await withStatementTimeout(first.unsafe(BEGIN_COPY_READ).simple());
  const [row] = await withStatementTimeout(first.unsafe('select pg_export_snapshot() as snapshot'));
  const join = `${BEGIN_COPY_READ}; set transaction snapshot '${row.snapshot}'`;
  await Promise.all(others.map((other) => withStatementTimeout(other.unsafe(join).simple())));
  return connections;
}

/** A table with rows on every node. */
const READ_ALL_NODES = 'select count(*) from realm_clock';

/** Begins a read transaction for which every node takes its snapshot at once. */
async function beginReadOfNodes(sql: SQL): Promise<ReservedSQL> {
  const connection = await sql.reserve();
  await withStatementTimeout(connection.unsafe(beginCopyRead(BEGIN_READ_OF_NODES)).simple());
  await withStatementTimeout(connection.unsafe(READ_ALL_NODES));
  return connection;
}

async function query(
  via: Pick<SQL, 'unsafe'>,
  { text, values }: SqlText,
): Promise<readonly ResultRow[] & { readonly count: number }> {
  const { text: sql, order } = numberParameters(text);
  try {
    return await withStatementTimeout(via.unsafe(sql, parameterValues(values, order)));
  } catch (error) {
    throw postgresFault(error);
  }
}

function withStatementTimeout<T>(response: Promise<T>): Promise<T> {
  return withTimeout(response, STATEMENT_MS_MAX, () => {
    throw new DatabaseError(ERROR_CODES.timeout);
  });
}

/** Closes the connections without waiting for running statements, which never end on a stalled connection. */
async function closeNow(sql: SQL): Promise<void> {
  await sql.close({ timeout: 0 }).catch(() => undefined);
}

function sourceOver(sql: SQL, run: RunStatement): CopySource {
  const columnTypes = openColumnTypes(run);
  const selectLines = (table: CopiedTable, range: KeyRange) => {
    const { text, values } = selectRange(table, range, POSTGRES.logIds);
    const selected = table.columns.map((column) => jsonValueOf(column, columnTypes.of(table, column)));
    return { from: `from (select ${selected.join(', ')} ${text}) as r`, values };
  };
  return {
    async identity() {
      const [row] = await run({ text: SELECT_IDENTITY, values: [] });
      return `postgres ${row?.identity}`;
    },
    async installation() {
      const [row] = await run({ text: SELECT_INSTALLATION, values: [] });
      return { storeId: String(row?.store_id ?? ''), accessVersion: Number(row?.access_version ?? 0) };
    },
    async count({ name }) {
      const [row] = await run({ text: `select count(*) as n from ${name}`, values: [] });
      return Number(row?.n);
    },
    async pageEnd(table, after) {
      const { text, values } = selectPageEnd(table, after, POSTGRES.logIds);
      const [row] = await run({ text: `select json_build_array(${table.key}) as page_end ${text}`, values });
      return row?.page_end as PrimaryKey | undefined;
    },
    async digest(table, range) {
      await columnTypes.load(table);
      const { from, values } = selectLines(table, range);
      const digest = `encode(sha256(convert_to(${linesOf(table)}, 'UTF8')), 'hex')`;
      const [row] = await run({ text: `select count(*) as n, ${digest} as digest ${from}`, values });
      return { rows: Number(row?.n), digest: String(row?.digest) };
    },
    async rows(table, range) {
      await columnTypes.load(table);
      const { from, values } = selectLines(table, range);
      const [row] = await run({ text: `select ${linesOf(table)} as lines ${from}`, values });
      const lines = String(row?.lines ?? '');
      return lines === '' ? [] : lines.split('\n');
    },
    close: () => closeNow(sql),
  };
}

/** The rows `r` as lines. The order is that of the subquery already, except where it comes from several nodes of a cluster. */
function linesOf({ key }: CopiedTable): string {
  const order = key.map((column) => `r.${column}`).join(', ');
  return `coalesce(string_agg(row_to_json(r)::text, E'\\n' order by ${order}), '')`;
}

const SELECT_IDENTITY = `select ${DATABASE_IDENTITY} || ' ' || current_schema() as identity`;

function jsonValueOf(column: string, type: string): string {
  return type === BYTES ? `encode(${column}, 'hex') as ${column}` : column;
}

const BYTES = 'bytea';

function targetOver(sql: SQL, rowLocks: Dialect['rowLocks']): CopyTarget {
  const run: RunStatement = (text) => query(sql, text);
  const columnTypes: ColumnTypes = openColumnTypes(run);
  const runByKeyIndex: RunStatement = async (text) => {
    const connection = await sql.reserve();
    try {
      const [, rows] = await Promise.all([
        withStatementTimeout(connection.unsafe(BEGIN_COPY_READ).simple()),
        query(connection, text),
      ]);
      return rows;
    } finally {
      await connection.unsafe('rollback').catch(() => undefined);
      connection.release();
    }
  };

  /** A JSON array of rows as a table, with the column types of the schema. */
  const recordsetOf = (table: CopiedTable, columns: readonly string[]): string => {
    const named = columns.map((column) => {
      const type = columnTypes.of(table, column);
      return `${column} ${type === BYTES ? 'text' : type}`;
    });
    return `json_to_recordset(?::text::json) as x (${named.join(', ')})`;
  };

  /** Until the commit, no other run can replace the marker; later writes of this run then write nothing. */
  async function write({ rows, marker }: RowBatch, text: string): Promise<void> {
    const written = sql.begin(async (transaction) => {
      const marked = await query(transaction, { text: SELECT_MARKER + rowLocks.shared, values: [marker] });
      assertMarked(marked.length === 1);
      const { count } = await query(transaction, { text, values: [jsonArray(rows)] });
      assertMarked(count === rows.length);
    });
    await withStatementTimeout(written);
  }

  return {
    ...sourceOver(sql, runByKeyIndex),
    async remove(batch) {
      const { table } = batch;
      await columnTypes.load(table);
      const keyMatches = table.key.map((column) => `t.${column} = x.${column}`).join(' and ');
      const text = `delete from ${table.name} t using ${recordsetOf(table, table.key)} where ${keyMatches}`;
      await write(batch, text);
    },
    async put(batch) {
      const { table } = batch;
      const { columns } = table;
      await columnTypes.load(table);
      const values = columns.map((column) =>
        columnTypes.of(table, column) === BYTES ? `decode(x.${column}, 'hex')` : `x.${column}`,
      );
      const from = `from ${recordsetOf(table, columns)}`;
      const text = `insert into ${table.name} (${columns.join(', ')}) select ${values.join(', ')} ${from}`;
      await write(batch, text + onConflict(table));
    },
    async replaceInstallation(old, { storeId, accessVersion }) {
      const values = [storeId, accessVersion, old.storeId, old.accessVersion];
      return (await run({ text: REPLACE_INSTALLATION, values })).length === 1;
    },
    async analyze() {
      await run({ text: `analyze ${COPIED_TABLES.map(({ name }) => name).join(', ')}`, values: [] });
    },
  };
}

function jsonArray(rows: readonly string[]): string {
  return `[${rows.join(',')}]`;
}

/** The column types of tables. */
interface ColumnTypes {
  /** Must be called before `of`. */
  load(table: CopiedTable): Promise<void>;
  of(table: CopiedTable, column: string): string;
}

const SELECT_COLUMN_TYPES = `select attname::text as name, format_type(atttypid, atttypmod) as type from pg_attribute
  where attrelid = ?::text::regclass and attnum > 0 and not attisdropped`;

function openColumnTypes(run: RunStatement): ColumnTypes {
  const types = new Map<CopiedTable, ReadonlyMap<string, string>>();
  return {
    async load(table) {
      if (types.has(table)) return;
      const rows = await run({ text: SELECT_COLUMN_TYPES, values: [table.name] });
      types.set(table, new Map(rows.map(({ name, type }) => [String(name), String(type)])));
    },
    of(table, column) {
      const type = types.get(table)?.get(column);
      if (type === undefined) throw new Error(`table ${table.name} has no column ${column}`);
      return type;
    },
  };
}
