import { NIL_UUID, uuidBytes } from '../../src/model/id.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { COUNT_COLUMNS } from '../../src/sql/tables/record_counts.ts';
import { isCitusEngine } from './citus_cluster.ts';
import type { TestDatabase } from './database.ts';

/** The tables of the log and of its anchors, with the columns of their keys. */
const LOG_TABLES: Readonly<Record<string, readonly string[]>> = {
  log_entry: ['realm_id', 'seq'],
  act: ['seq'],
  realm_clock: ['realm_id'],
  user_salt: ['realm_id', 'user_id'],
};

/**
 * Columns of these tables that are not part of the log: webhooks use the first one to find a realm sooner (decision 0020),
 * lists use the others for their totals (decision 0015).
 */
const UNPROTECTED = ['realm_clock.moved', ...COUNT_COLUMNS.map((name) => `realm_clock.${name}`)];

/** SQLite generates this column, and Citus distributes by it. */
const UNCHANGEABLE = ['act.log_id'];
/** Citus distributes these tables by this column, which cannot change then. */
const UNCHANGEABLE_ON_CITUS = [
  'log_entry.realm_id',
  'realm_clock.realm_id',
  'user_salt.realm_id',
  'erasure.realm_id',
];

type Value = string | number | Uint8Array | null;

/** A changed value of a row. */
export interface Tampering {
  readonly table: string;
  readonly column: string;
  /** Restores the value. */
  undo(): Promise<void>;
}

/** Replaces a random value of the log by another one of its type. */
export async function tamperWithLog(
  database: TestDatabase,
  draw: (below: number) => number,
): Promise<Tampering> {
  const tables = Object.keys(LOG_TABLES);
  const table = tables[draw(tables.length)] as string;
  const rows = await database.query<Record<string, Value>>(`select * from ${table}`);
  const row = rows[draw(rows.length)] as Record<string, Value>;
  const excluded = [...UNPROTECTED, ...UNCHANGEABLE, ...(isCitusEngine ? UNCHANGEABLE_ON_CITUS : [])];
  // The installation has no rows under its number.
  if (row.realm_id === NIL_UUID) excluded.push('realm_clock.number');
  const columns = Object.keys(row).filter((name) => !excluded.includes(`${table}.${name}`));
  const column = columns[draw(columns.length)] as string;
  const literal = (name: string, value: Value) => sqlLiteral(database, value, name);
  const was = row[column] as Value;
  const isIdOfBytes = database.address.engine === 'sqlite' && 'user_id' in row && table !== 'act';
  const newValue = otherThan(was, { column, isIdOfBytes }, draw);
  const places = (LOG_TABLES[table] ?? []).map((name) => [name, row[name] as Value] as const);
  const where = (values: readonly (readonly [string, Value])[]) =>
    values.map(([name, value]) => `${name} = ${literal(name, value)}`).join(' and ');
  const newKey = places.map(([name, value]) => [name, name === column ? newValue : value] as const);
  const set = async (value: Value, at: readonly (readonly [string, Value])[]) => {
    const written = await database.tamper(
      `update ${table} set ${column} = ${literal(column, value)} where ${where(at)}`,
    );
    if (written !== 1) throw new Error(`${table}.${column}: ${written} rows were written`);
  };
  await set(newValue, places);
  return { table, column, undo: () => set(was, newKey) };
}

/** The SQL literal of a value; PostgreSQL compares an ID only if its column is named. */
export function sqlLiteral({ address }: Pick<TestDatabase, 'address'>, value: Value, column = ''): string {
  const isPostgres = address.engine === 'postgres';
  if (value === null) return 'null';
  if (value instanceof Uint8Array) {
    const hex = Buffer.from(value).toString('hex');
    return isPostgres ? `decode('${hex}', 'hex')` : `x'${hex}'`;
  }
  if (typeof value === 'number') return String(value);
  const text = `'${value.replaceAll("'", "''")}'`;
  return isPostgres && /^(?:realm|user|record)_id$/.test(column) ? `${text}::uuid` : text;
}

const LONGS = new Set(['seq', 'at', 'entries', 'anchor_seq', 'anchor_entries']);
const BYTES = new Set(['tag', 'detail', 'personal', 'salt', 'anchor_tag', 'anchor_mac']);

interface TamperedColumn {
  readonly column: string;
  /** Whether its table stores IDs as bytes. */
  readonly isIdOfBytes: boolean;
}

/** Another value of the column. */
function otherThan(
  value: Value,
  { column, isIdOfBytes }: TamperedColumn,
  draw: (below: number) => number,
): Value {
  if (value instanceof Uint8Array) {
    const bytes = Buffer.from(value);
    const at = draw(bytes.length);
    const edit = draw(3);
    if (edit === 0) return Buffer.concat([bytes, Buffer.from([draw(256)])]);
    if (edit === 1) return bytes.subarray(0, -1);
    bytes[at] = (bytes[at] as number) ^ (1 << draw(8));
    return bytes;
  }
  if (typeof value === 'number') return value + 1_000 + draw(1_000);
  if (LONGS.has(column)) return 1 + draw(1_000);
  if (value === null && BYTES.has(column)) return Buffer.from([draw(256)]);
  if (/(?:^|_)id$/.test(column) && column !== 'request_id')
    return isIdOfBytes ? uuidBytes(systemClock.mintId()) : systemClock.mintId();
  if (value === null) return 'x';
  const at = draw(value.length + 1);
  return `${value.slice(0, at)}x${value.slice(at)}`;
}
