import type { ReservedSQL, SQL } from 'bun';
import { withTimeout } from '../../platform/timeout.ts';
import type { Program } from '../migrations.ts';
import type { PostgresAddress } from '../postgres/address.ts';
import { openClient } from '../postgres/client.ts';
import { postgresFault } from '../postgres/connection.ts';
import { DatabaseError, ERROR_CODES } from '../postgres/errors.ts';
import { assertPostgresSchema } from '../postgres/migrate.ts';
import { numberParameters, parameterValues } from '../postgres/parameters.ts';
import { connectToPrimary, openPrimary } from '../postgres/primary.ts';
import { postgresMigrations, prepareSchema } from '../postgres/schema_setup.ts';
import { DATABASE_IDENTITY } from '../postgres/schema_state.ts';
import type { CopySource, CopyTarget, KeyRange, PrimaryKey, RowBatch } from './port.ts';
import { assertNewest } from './schema.ts';
import {
  onConflict,
  REPLACE_INSTALLATION,
  SELECT_INSTALLATION,
  SELECT_MARK,
  type SqlText,
  selectPageEnd,
  selectRange,
} from './statements.ts';
import { type CopiedTable, TABLES, transferredColumns } from './tables.ts';
import { assertMarked } from './unfinished_copy.ts';

/** How many pages are read or written at once: as many as are under way in a copy. */
const CONNECTIONS = 4;
/** A page takes a fraction of a second; an engine that is silent for so long will not answer any more. */
const STATEMENT_MS_MAX = 300_000;

type Row = Readonly<Record<string, unknown>>;
/** Runs a statement on one of some connections. */
type Ask = (text: SqlText) => Promise<readonly Row[]>;

/** Pages are read along the index of the key. Without statistics, or with old ones, the planner takes another one. */
const ALONG_THE_KEY = ['seqscan', 'bitmapscan', 'sort', 'incremental_sort']
  .map((way) => `set local enable_${way} = off`)
  .join('; ');
/** A role may have timeouts for statements and idle transactions that a copy exceeds. */
const NO_TIMEOUTS = 'set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0';
const BEGIN = `begin isolation level repeatable read, read only; ${ALONG_THE_KEY}; ${NO_TIMEOUTS}`;

/** A PostgreSQL database that is copied from, by read transactions of one snapshot. */
export async function openPostgresSource(address: PostgresAddress, program: Program): Promise<CopySource> {
  await assertSchema(address, 'source', program);
  const sql = await openAtPrimary(address);
  try {
    const connections = await beginSharedRead(sql);
    let turn = 0;
    return reading(sql, (text) => {
      turn = (turn + 1) % connections.length;
      return query(connections[turn] as ReservedSQL, text);
    });
  } catch (error) {
    await closeSoon(sql);
    throw error;
  }
}

/** A PostgreSQL database that is copied to. Its schema is made where there is none. */
export async function openPostgresTarget(address: PostgresAddress, program: Program): Promise<CopyTarget> {
  await assertSchema(address, 'target', program);
  await prepareSchema(address, 'check', program, undefined);
  return writing(await openAtPrimary(address));
}

async function assertSchema(
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
  await inTime(first.unsafe(BEGIN).simple());
  const [row] = await inTime(first.unsafe('select pg_export_snapshot() as moment'));
  const join = `${BEGIN}; set transaction snapshot '${row.moment}'`;
  await Promise.all(others.map((other) => inTime(other.unsafe(join).simple())));
  return connections;
}

async function query(via: Pick<SQL, 'unsafe'>, { text, values }: SqlText): Promise<readonly Row[]> {
  const { text: sql, order } = numberParameters(text);
  try {
    return await inTime(via.unsafe(sql, parameterValues(values, order)));
  } catch (error) {
    throw postgresFault(error);
  }
}

function inTime<T>(answer: Promise<T>): Promise<T> {
  return withTimeout(answer, STATEMENT_MS_MAX, () => {
    throw new DatabaseError(ERROR_CODES.timeout);
  });
}

/** Statements in progress are given up: a connection that stalls would never end. */
async function closeSoon(sql: SQL): Promise<void> {
  await sql.close({ timeout: 0 }).catch(() => undefined);
}

function reading(sql: SQL, ask: Ask): CopySource {
  const kinds = kindsFrom(ask);
  const linesOf = (table: CopiedTable, columns: readonly string[], range: KeyRange) => {
    const { text, values } = selectRange(table, range);
    const selected = columns.map((column) => jsonValueOf(column, kinds.of(table, column))).join(', ');
    return { from: `from (select ${selected} ${text}) as r`, values };
  };
  return {
    async identity() {
      const [row] = await ask({ text: SELECT_IDENTITY, values: [] });
      return `postgres ${row?.identity}`;
    },
    async installation() {
      const [row] = await ask({ text: SELECT_INSTALLATION, values: [] });
      return { storeId: String(row?.store_id ?? ''), accessVersion: Number(row?.access_version ?? 0) };
    },
    async count({ name }) {
      const [row] = await ask({ text: `select count(*) as n from ${name}`, values: [] });
      return Number(row?.n);
    },
    async pageEnd(table, after) {
      const { text, values } = selectPageEnd(table, after);
      const [row] = await ask({ text: `select json_build_array(${table.key}) as page_end ${text}`, values });
      return row?.page_end as PrimaryKey | undefined;
    },
    async sum(table, range) {
      await kinds.learn(table);
      const { from, values } = linesOf(table, table.columns, range);
      const [row] = await ask({ text: `select count(*) as n, ${DIGEST} as digest ${from}`, values });
      return { rows: Number(row?.n), digest: String(row?.digest) };
    },
    async rows(table, range) {
      await kinds.learn(table);
      const { from, values } = linesOf(table, transferredColumns(table), range);
      const [row] = await ask({ text: `select ${LINES} as lines ${from}`, values });
      const lines = String(row?.lines ?? '');
      return lines === '' ? [] : lines.split('\n');
    },
    close: () => closeSoon(sql),
  };
}

const LINES = `coalesce(string_agg(row_to_json(r)::text, E'\\n'), '')`;
const DIGEST = `encode(sha256(convert_to(${LINES}, 'UTF8')), 'hex')`;
const SELECT_IDENTITY = `select ${DATABASE_IDENTITY} || ' ' || current_schema() as identity`;

function jsonValueOf(column: string, kind: string): string {
  return kind === BYTES ? `encode(${column}, 'hex') as ${column}` : column;
}

const BYTES = 'bytea';

function writing(sql: SQL): CopyTarget {
  const ask: Ask = (text) => query(sql, text);
  const kinds: TableKinds = kindsFrom(ask);
  const askAlongTheKey: Ask = async (text) => {
    const connection = await sql.reserve();
    try {
      const [, rows] = await Promise.all([
        inTime(connection.unsafe(BEGIN).simple()),
        query(connection, text),
      ]);
      return rows;
    } finally {
      await connection.unsafe('rollback').catch(() => undefined);
      connection.release();
    }
  };

  /** Rows as a table, each column of the kind it is kept as. */
  const recordsetOf = (table: CopiedTable, columns: readonly string[]): string => {
    const named = columns.map((column) => {
      const kind = kinds.of(table, column);
      return `${column} ${kind === BYTES ? 'text' : kind}`;
    });
    return `json_to_recordset(?::text::json) as x (${named.join(', ')})`;
  };

  /** A run that marks the target waits for this statement; after it, a statement of another run writes nothing. */
  async function write({ rows, mark }: RowBatch, text: string): Promise<void> {
    const marked = `with marked as (${SELECT_MARK} for share)`;
    const written = await ask({
      text: `${marked}, written as (${text} returning 1) select count(*) as n from written`,
      values: [mark, arrayOf(rows)],
    });
    assertMarked(Number(written[0]?.n) === rows.length);
  }

  return {
    ...reading(sql, askAlongTheKey),
    async remove(batch) {
      const { table } = batch;
      await kinds.learn(table);
      const meets = table.key.map((column) => `t.${column} = x.${column}`).join(' and ');
      const text = `delete from ${table.name} t using ${recordsetOf(table, table.key)} where ${meets} and ${IS_MARKED}`;
      await write(batch, text);
    },
    async put(batch) {
      const { table } = batch;
      await kinds.learn(table);
      const columns = transferredColumns(table);
      const kept = columns.map((column) =>
        kinds.of(table, column) === BYTES ? `decode(x.${column}, 'hex')` : `x.${column}`,
      );
      const from = `from ${recordsetOf(table, columns)} where ${IS_MARKED}`;
      const text = `insert into ${table.name} (${columns.join(', ')}) select ${kept.join(', ')} ${from}`;
      await write(batch, text + onConflict(table));
    },
    async replaceInstallation(old, { storeId, accessVersion }) {
      const values = [storeId, accessVersion, old.storeId, old.accessVersion];
      return (await ask({ text: REPLACE_INSTALLATION, values })).length === 1;
    },
    async analyze() {
      await ask({ text: `analyze ${TABLES.map(({ name }) => name).join(', ')}`, values: [] });
    },
  };
}

const IS_MARKED = 'exists (select 1 from marked)';

function arrayOf(rows: readonly string[]): string {
  return `[${rows.join(',')}]`;
}

/** The kinds of columns, as the schema has them. */
interface TableKinds {
  /** Must be called before a table is asked about. */
  learn(table: CopiedTable): Promise<void>;
  of(table: CopiedTable, column: string): string;
}

const KINDS = `select attname::text as name, format_type(atttypid, atttypmod) as kind from pg_attribute
  where attrelid = ?::text::regclass and attnum > 0 and not attisdropped`;

function kindsFrom(ask: Ask): TableKinds {
  const known = new Map<CopiedTable, ReadonlyMap<string, string>>();
  return {
    async learn(table) {
      if (known.has(table)) return;
      const rows = await ask({ text: KINDS, values: [table.name] });
      known.set(table, new Map(rows.map(({ name, kind }) => [String(name), String(kind)])));
    },
    of(table, column) {
      const kind = known.get(table)?.get(column);
      if (kind === undefined) throw new Error(`table ${table.name} has no column ${column}`);
      return kind;
    },
  };
}
