import type { TestDatabase } from './database.ts';

/** Where the log, and what says of it where it begins and ends, is kept; with the columns that tell a row from the others. */
const KEPT: Readonly<Record<string, readonly string[]>> = {
  change: ['realm_id', 'seq'],
  act: ['seq'],
  realm_clock: ['realm_id'],
  user_salt: ['realm_id', 'user_id'],
};

/** What stands in these rows and is no word about the log: it has webhooks find a realm sooner (decision 0020). */
const BESIDE = ['realm_clock.moved'];

type Value = string | number | Uint8Array | null;

/** A value of a row that was made another one. */
export interface Tampering {
  readonly table: string;
  readonly column: string;
  /** Makes it what it was. */
  undo(): Promise<void>;
}

/** One value of the log, drawn at random, becomes another one of its kind. */
export async function tamperWithLog(
  database: TestDatabase,
  draw: (below: number) => number,
): Promise<Tampering> {
  const tables = Object.keys(KEPT);
  const table = tables[draw(tables.length)] as string;
  const rows = await database.query<Record<string, Value>>(`select * from ${table}`);
  const row = rows[draw(rows.length)] as Record<string, Value>;
  const columns = Object.keys(row).filter((name) => !BESIDE.includes(`${table}.${name}`));
  const column = columns[draw(columns.length)] as string;
  const say = sayingOf(database);
  const was = row[column] as Value;
  const becomes = otherThan(was, column, draw);
  const places = (KEPT[table] ?? []).map((name) => [name, row[name] as Value] as const);
  const where = (values: readonly (readonly [string, Value])[]) =>
    values.map(([name, value]) => `${name} = ${say(name, value)}`).join(' and ');
  const there = places.map(([name, value]) => [name, name === column ? becomes : value] as const);
  const set = async (value: Value, at: readonly (readonly [string, Value])[]) => {
    const written = await database.tamper(
      `update ${table} set ${column} = ${say(column, value)} where ${where(at)}`,
    );
    if (written !== 1) throw new Error(`${table}.${column}: ${written} rows were written`);
  };
  await set(becomes, places);
  return { table, column, undo: () => set(was, there) };
}

/** How an engine is told a value of a column. */
function sayingOf({ address }: TestDatabase) {
  const isDistant = address.engine === 'postgres';
  return (column: string, value: Value): string => {
    if (value === null) return 'null';
    if (value instanceof Uint8Array) {
      const hex = Buffer.from(value).toString('hex');
      return isDistant ? `decode('${hex}', 'hex')` : `x'${hex}'`;
    }
    if (typeof value === 'number') return String(value);
    const text = `'${value.replaceAll("'", "''")}'`;
    return isDistant && /^(?:realm|user|record)_id$/.test(column) ? `${text}::uuid` : text;
  };
}

const LONGS = new Set(['seq', 'at', 'tagged_seq', 'entries', 'anchor_seq', 'anchor_entries']);
const BYTES = new Set(['tag', 'personal', 'salt', 'anchor_tag', 'anchor_mac']);

/** Another value that the column may have. */
function otherThan(value: Value, column: string, draw: (below: number) => number): Value {
  if (value instanceof Uint8Array) {
    const bytes = Buffer.from(value);
    const at = draw(bytes.length);
    bytes[at] = (bytes[at] as number) ^ (1 << draw(8));
    return bytes;
  }
  if (typeof value === 'number') return value + 1_000 + draw(1_000);
  if (LONGS.has(column)) return 1 + draw(1_000);
  if (BYTES.has(column)) return Buffer.from([draw(256)]);
  if (/(?:^|_)id$/.test(column) && column !== 'request_id') return crypto.randomUUID();
  if (value === null) return 'x';
  const at = draw(value.length + 1);
  return `${value.slice(0, at)}x${value.slice(at)}`;
}
