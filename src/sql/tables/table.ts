import { type Revision, type Uuid, uuidText } from '../../model/id.ts';
import type { Realms, Scopes } from '../../model/principal.ts';
import type { Resource } from '../../model/resource.ts';
import type { Dialect } from '../dialect.ts';
import type { Row, SqlValue } from '../transaction_work.ts';

/** What the columns of each kind hold, as the program has it. */
interface KindValues {
  /** Text on SQLite: in tables with few rows, or rows that expire, with keys that are otherwise text. */
  readonly id: Uuid;
  /** 16 bytes on SQLite, in the order of its text: in the tables of records and of their log, whose size their IDs decide. */
  readonly id_bytes: Uuid;
  /** On SQLite the number in its clock: in the tables of records below realms, their log and the salts. */
  readonly realm: Uuid;
  readonly text: string;
  readonly revision: Revision;
  readonly scopes: Scopes;
  readonly realms: Realms;
  /** Words without spaces. */
  readonly list: readonly string[];
  readonly list_or_all: '*' | readonly string[];
  readonly json: unknown;
  readonly flag: boolean;
  /** The number of a member of a short list. */
  readonly code: number;
  readonly number: number;
  /** A number of up to 53 bits. */
  readonly long: number;
  /** A `long` that begins with 0. */
  readonly count: number;
  /** A `count` that means nothing in another database. */
  readonly local: number;
  /** Milliseconds since the epoch. */
  readonly instant: number;
  readonly bytes: Uint8Array;
  /** A ciphertext of the keyring, bound to the key of its row. */
  readonly sealed: Uint8Array;
  /**
   * The HMAC over the other columns of its row, under a key that the master key opens (src/log/store/row_macs.ts): a row that another
   * program writes has none, and is not honoured. That of `act` covers the tag before it as well (src/log/chain.ts). The HMAC of a
   * password hash, `password_hash_mac`, covers some columns alone (src/sign_in/store/password_macs.ts), so its kind is `bytes`.
   */
  readonly mac: Uint8Array;
}

export type ColumnKind = keyof KindValues;

/** The kind of a column, with `?` where it may be null. */
export type TableColumn = ColumnKind | `${ColumnKind}?`;

type TableColumns = Readonly<Record<string, TableColumn>>;

/** How the values of a kind are stored: as they are where it has no functions. */
export interface KindStorage<T> {
  readonly sqlite: 'text' | 'integer' | 'blob';
  readonly postgres: string;
  read?(stored: SqlValue): T;
  write?(value: T): SqlValue;
}

const TEXT = { sqlite: 'text', postgres: 'text collate "C"' } as const;
const NUMBER = { sqlite: 'integer', postgres: 'integer' } as const;
// An engine may return a 64-bit number as text.
const LONG = { sqlite: 'integer', postgres: 'bigint', read: Number } as const;
const BYTES = { sqlite: 'blob', postgres: 'bytea' } as const;

const wordsIn = (stored: SqlValue): string[] => String(stored).split(' ').filter(Boolean);
const joined = (words: Iterable<string>): string => [...words].join(' ');

export const KINDS: { readonly [K in ColumnKind]: KindStorage<KindValues[K]> } = {
  id: { sqlite: 'text', postgres: 'uuid' },
  id_bytes: { sqlite: 'blob', postgres: 'uuid', read: uuidText },
  realm: { sqlite: 'integer', postgres: 'uuid' },
  text: TEXT,
  revision: TEXT,
  scopes: { ...TEXT, read: (stored) => new Set(wordsIn(stored)), write: joined },
  realms: {
    ...TEXT,
    read: (stored) => (stored === '*' ? '*' : new Set(wordsIn(stored) as Uuid[])),
    write: joined,
  },
  list: { ...TEXT, read: wordsIn, write: joined },
  list_or_all: { ...TEXT, read: (stored) => (stored === '*' ? '*' : wordsIn(stored)), write: joined },
  json: {
    ...TEXT,
    read: (stored) => JSON.parse(stored as string),
    write: (value) => JSON.stringify(value) ?? null,
  },
  flag: { ...NUMBER, read: (stored) => stored === 1, write: (value) => (value ? 1 : 0) },
  code: { sqlite: 'integer', postgres: 'smallint' },
  number: NUMBER,
  long: LONG,
  count: LONG,
  local: LONG,
  instant: LONG,
  bytes: BYTES,
  sealed: BYTES,
  mac: BYTES,
};

/** The kind of a column, and whether it may be null. */
export function kindOf(column: TableColumn): { readonly kind: ColumnKind; readonly isNullable: boolean } {
  const isNullable = column.endsWith('?');
  return { kind: (isNullable ? column.slice(0, -1) : column) as ColumnKind, isNullable };
}

type Camel<N extends string> = N extends `${infer Word}_${infer Others}`
  ? `${Word}${Capitalize<Camel<Others>>}`
  : N;

/** The member of an object that a column holds: `realm` for the ID in `realm_id`, `createdAt` for `created_at`. */
type MemberOf<N extends string, C> = C extends 'id' | 'id?'
  ? N extends `${infer Thing}_id`
    ? Camel<Thing>
    : N
  : Camel<N>;

type ValueOf<C> = C extends `${infer K extends ColumnKind}?`
  ? KindValues[K] | undefined
  : C extends ColumnKind
    ? KindValues[C]
    : never;

type ColumnsLike<C, P> = { [N in keyof C & string]: C[N] extends P ? N : never }[keyof C & string];

/** A row of a table as the program has it. Its HMAC belongs to the row as it is stored. */
export type StoredRow<T extends Pick<Table, 'columns'>> = {
  readonly [N in keyof T['columns'] & string as T['columns'][N] extends 'mac' | 'mac?'
    ? never
    : MemberOf<N, T['columns'][N]>]: ValueOf<T['columns'][N]>;
};

/** The same for a write, where members without a value may be missing. */
export type RowInput<T extends Pick<Table, 'columns'>> = Partial<StoredRow<T>> &
  StoredRow<{ readonly columns: Omit<T['columns'], ColumnsLike<T['columns'], `${string}?`>> }>;

/** Where the rows of a table are on a cluster (docs/guides/citus.md). */
export type Placement = 'every node' | 'one node' | 'by realm';

/** A foreign key. */
export interface TableReference {
  readonly columns: readonly string[];
  readonly table: string;
  readonly target: readonly string[];
  /** The columns of the target on SQLite, where they are others. */
  readonly sqliteTarget?: readonly string[];
}

/** A table as data: statements, both schemas, and what is copied, sealed and signed are derived from it. */
export interface TableDescription<C extends TableColumns = TableColumns> {
  readonly name: string;
  readonly placement: Placement;
  /** Those of the key first, the HMAC last. */
  readonly columns: C;
  readonly key: readonly (keyof C & string)[];
  /** SQLite finds its rows by a number, and not by their key. */
  readonly hasRowId?: true;
  /** Its rows mean nothing in another database. */
  readonly isOfDatabase?: true;
  readonly check?: string;
  readonly references?: readonly TableReference[];
  /** The columns of each index, or its method, with its condition; with `unique` before them. */
  readonly indexes?: Readonly<Record<string, string>>;
  /** What one engine alone has. */
  readonly sqlite?: EngineTable;
  readonly postgres?: EngineTable;
  readonly resource?: Resource;
}

/** The parts of a table that one engine has, in its own SQL. */
export interface EngineTable {
  /** The definitions of columns, which come first. */
  readonly columns?: Readonly<Record<string, string>>;
  /** Instead of the key of the table. */
  readonly key?: readonly string[];
  readonly indexes?: Readonly<Record<string, string>>;
  /** Statements after its indexes. */
  readonly more?: readonly string[];
}

/**
 * The text of an insert. Parameters: every column, IDs as text. Where the dialect encodes some, it is made with the dialect: SQLite
 * would store the text.
 */
type InsertOf<C> =
  ColumnsLike<C, 'id_bytes' | 'id_bytes?' | 'realm'> extends never
    ? string
    : (dialect: Pick<Dialect, 'id' | 'realm'>) => string;

/** Stored values by column. */
export type EncodedRow = Readonly<Record<string, SqlValue>>;

export interface Table<C extends TableColumns = TableColumns> extends TableDescription<C> {
  /** The names of its columns, separated by commas. */
  readonly names: string;
  /** The columns that the HMAC of a row covers: all but itself and ciphertexts, which authenticate themselves. */
  readonly signed: readonly string[];
  readonly select: string;
  /** The columns that an update sets: all but those of the key. */
  readonly updated: readonly string[];
  /** Parameters: the updated columns. */
  readonly update: string;
  /** `column = excluded.column` for each of them. */
  readonly replacement: string;
  /** The stored values by column, without the HMAC. */
  encode(row: RowInput<{ readonly columns: C }>): EncodedRow;
  /** The same in the order of the columns. */
  values(row: RowInput<{ readonly columns: C }>): readonly SqlValue[];
  read(stored: Row): StoredRow<{ readonly columns: C }>;
}

export function table<const C extends TableColumns>(
  description: TableDescription<C>,
): Table<C> & { readonly insert: InsertOf<C> } {
  const { name, key } = description;
  const columns = Object.entries<TableColumn>(description.columns).map(([column, of]) => {
    const { kind } = kindOf(of);
    return { column, kind, member: memberOf(column, kind), ...KINDS[kind] } as StoredColumn;
  });
  // The HMAC is added to the values of the others.
  if (columns.slice(0, -1).some(({ kind }) => kind === 'mac'))
    throw new Error(`the last column of ${name} must be its HMAC`);
  const names = columns.map(({ column }) => column);
  const updated = names.filter((column) => !key.includes(column));
  const members = columns.filter(({ kind }) => kind !== 'mac');
  const insert = (dialect: Pick<Dialect, 'id' | 'realm'>) => {
    const values = columns.map(({ kind }) => parameterOf(kind, dialect));
    return `insert into ${name} (${names.join(', ')}) values (${values.join(', ')})`;
  };
  const isEncoded = columns.some(({ kind }) => kind === 'id_bytes' || kind === 'realm');
  const asGiven = (text: string) => text;
  const encode = (row: object) =>
    Object.fromEntries(members.map((column) => [column.column, storedValue(column, row)]));
  return Object.freeze({
    ...description,
    names: names.join(', '),
    signed: members.filter(({ kind }) => kind !== 'sealed').map(({ column }) => column),
    select: `select ${names.join(', ')} from ${name}`,
    insert: (isEncoded ? insert : insert({ id: asGiven, realm: asGiven })) as InsertOf<C>,
    updated,
    update: `update ${name} set ${assignments(updated)}`,
    replacement: updated.map((column) => `${column} = excluded.${column}`).join(', '),
    encode,
    values: (row: object) => Object.values(encode(row)),
    read: (stored: Row) =>
      Object.fromEntries(
        members.map(({ column, member, read }) => {
          const value = stored[column] as SqlValue;
          if (value === null) return [member, undefined];
          return [member, read ? read(value) : value];
        }),
      ) as StoredRow<{ readonly columns: C }>,
  });
}

/** SQL for a parameter as such a column stores it. */
export function parameterOf(
  column: TableColumn | undefined,
  { id, realm }: Pick<Dialect, 'id' | 'realm'>,
  parameter = '?',
): string {
  if (column === 'realm') return realm(parameter);
  return column?.startsWith('id_bytes') ? id(parameter) : parameter;
}

/** SQL that reads rows in the order of their key, with realms as their IDs. */
export function rowOrder(
  { name, key, columns }: Table,
  dialect: Pick<Dialect, 'id' | 'realm' | 'orderedRows'>,
) {
  const { source, id, isAfter } = dialect.orderedRows;
  const hasNumbers = columns.realm_id === 'realm';
  const from = hasNumbers ? source(name) : name;
  const named = (column: string) => {
    if (hasNumbers && column === 'realm_id') return id(name);
    return from === name ? column : `${name}.${column}`;
  };
  const order = key.map(named).join(', ');
  return {
    source: from,
    named,
    order,
    /** SQL for whether a row comes after a key, whose parameters begin with this number. */
    isAfter(first: number): string {
      const parameters = key.map((column, at) => parameterOf(columns[column], dialect, `?${first + at}`));
      const [, own = ''] = key;
      return hasNumbers
        ? isAfter(name, `?${first}`, named(own), parameters[1] as string)
        : `(${order}) > (${parameters.join(', ')})`;
    },
  };
}

/** SQL that sets these columns to parameters. */
export function assignments(columns: readonly string[]): string {
  return columns.map((column) => `${column} = ?`).join(', ');
}

/** The values of these columns. */
export function valuesIn(row: EncodedRow, columns: readonly string[]): readonly SqlValue[] {
  return columns.map((column) => row[column] ?? null);
}

interface StoredColumn extends KindStorage<unknown> {
  readonly column: string;
  readonly kind: ColumnKind;
  readonly member: string;
}

function storedValue({ member, write }: StoredColumn, row: object): SqlValue {
  const value: unknown = row[member as keyof typeof row];
  if (value === undefined) return null;
  return write ? write(value) : (value as SqlValue);
}

function memberOf(column: string, kind: ColumnKind): string {
  const name = kind === 'id' ? column.replace(/_id$/, '') : column;
  return name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}
