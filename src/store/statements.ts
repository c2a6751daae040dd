import { z } from 'zod';
import type { Stored } from '../directory/store.ts';
import { foldedKey, UNICODE_VERSION } from '../domain/folding.ts';
import {
  type AnyRecord,
  type Key,
  keyColumns,
  type Member,
  membersOf,
  type Resource,
} from '../domain/resource.ts';

/** A value as an engine takes it. */
export type SqlValue = string | number | Uint8Array | null;

type Row = Record<string, unknown>;

/** Every SQL text about one resource, and the two ways across: record to row, row to record. */
export interface Statements {
  /** Parameters: the key. Answers the members a caller may see. */
  readonly select: string;
  /** Parameters: the key. Answers every column, secrets as they are stored. */
  readonly selectStored: string;
  /** Every column of the table that says something about the record, in the order of `insertValues`. */
  readonly columns: readonly string[];
  /** Parameters: `updateValues`, then the key. */
  readonly update: string;
  /** Parameters: `updateValues`, the key, then the revision that must still be there. */
  readonly updateSeen: string;
  /** Parameters: the key. */
  readonly remove: string;
  /** Parameters: realm, identifier. Answers a row when the realm has such a record, under whichever user. */
  readonly holder: string;
  /** Parameters: realm, identifier, limit. Answers every column of the records behind them, in that order. */
  readonly scan: string;
  /** The same, of that realm only. */
  readonly scanRealm: string;
  readonly count: string;
  /** Parameters: realm. */
  readonly countRealm: string;
  readonly decodePlaced: (row: Row) => Stored;
  readonly insertValues: (key: Key, record: AnyRecord) => SqlValue[];
  readonly updateValues: (record: AnyRecord) => SqlValue[];
  readonly decode: (row: Row) => AnyRecord;
  /** The set of members whose index has exactly these columns, realm aside. */
  readonly uniqueMembers: (columns: readonly string[]) => readonly string[] | undefined;
  /** The members that name another record, with its table. */
  readonly references: readonly {
    readonly member: string;
    readonly column: string;
    readonly table: string;
  }[];
}

interface Column {
  readonly name: string;
  readonly isSecret: boolean;
  readonly encode: (record: AnyRecord) => SqlValue;
  /** Absent where the stored value is the member's value. */
  readonly decode?: (stored: unknown) => unknown;
  readonly member: string | undefined;
}

/** Derives the statements of a resource from its description. Done once per resource, at boot. */
export function statementsFor(resource: Resource, all: readonly Resource[]): Statements {
  const keys = keyColumns(resource);
  const columns = [...membersOf(resource).flatMap(memberColumns), ...foldingColumns(resource), ...stamps];
  const visible = columns.filter((column) => column.member !== undefined && !column.isSecret);
  const stored = columns.filter((column) => column.member !== undefined);
  const where = keys.map((column) => `${column} = ?`).join(' and ');
  const assignments = columns.map((column) => `${column.name} = ?`).join(', ');
  const id = `${keys.at(-1)} as id`;
  const names = (of: readonly Column[]) => of.map((column) => column.name).join(', ');
  const decoders = stored.filter((column) => column.decode || column.name !== column.member);

  return Object.freeze({
    select: `select ${id}, ${names(visible)} from ${resource.table} where ${where}`,
    selectStored: `select ${id}, ${names(stored)} from ${resource.table} where ${where}`,
    columns: [...keys, ...columns.map(({ name }) => name)],
    update: `update ${resource.table} set ${assignments} where ${where}`,
    updateSeen: `update ${resource.table} set ${assignments} where ${where} and revision = ?`,
    remove: `delete from ${resource.table} where ${where}`,
    holder: `select 1 from ${resource.table} where realm_id = ?1 and ${keys.at(-1)} = ?2`,
    ...scansOf(resource, names(stored)),
    insertValues: (key: Key, record: AnyRecord) => [
      ...key,
      ...columns.map((column) => column.encode(record)),
    ],
    updateValues: (record: AnyRecord) => columns.map((column) => column.encode(record)),
    decode: decoders.length === 0 ? (row: Row) => row as AnyRecord : (row: Row) => decodeRow(row, decoders),
    decodePlaced: (row: Row) => decodePlaced(row, decoders),
    uniqueMembers: (found: readonly string[]) =>
      resource.unique.find(
        (members) => members.map((member) => uniqueColumn(resource, member)).join() === found.join(),
      ),
    references: membersOf(resource).flatMap(({ name, placement }) => {
      const target = all.find((other) => other.name === placement.references);
      return target ? [{ member: name, column: name, table: target.table }] : [];
    }),
  });
}

/** The index of the key is in the order of realm and identifier: a scan walks it, wherever it begins. */
function scansOf(resource: Resource, stored: string) {
  const above = keyColumns(resource).slice(0, -1);
  const id = keyColumns(resource).at(-1);
  const [order, behind] = resource.parent
    ? ['realm_id, id', '(realm_id, id) > (?1, ?2)']
    : ['realm_id', 'realm_id > ?2'];
  const select = `select ${[...above, `${id} as id`].join(', ')}, ${stored} from ${resource.table}`;
  return {
    scan: `${select} where ${behind} order by ${order} limit ?3`,
    scanRealm: `${select} where realm_id = ?1 and ${id} > ?2 order by ${order} limit ?3`,
    count: `select count(*) as n from ${resource.table}`,
    countRealm: `select count(*) as n from ${resource.table} where realm_id = ?1`,
  };
}

function decodeRow(row: Row, decoders: readonly Column[]): AnyRecord {
  for (const { name, member, decode } of decoders) {
    if (member === undefined || !(name in row)) continue;
    const value = decode ? decode(row[name]) : row[name];
    delete row[name];
    if (value !== undefined) row[member] = value;
  }
  return row as AnyRecord;
}

/** A row of a scan: the columns above its own identifier are its address, the rest its record. */
function decodePlaced({ realm_id, user_id, ...rest }: Row, decoders: readonly Column[]): Stored {
  const record = decodeRow(rest, decoders);
  const above = [realm_id, user_id].filter((id) => id !== undefined);
  return { key: [...above, record.id] as unknown as Key, record };
}

const stamps: readonly Column[] = (['created_at', 'updated_at', 'revision'] as const).map((name) => ({
  name,
  member: name,
  isSecret: false,
  encode: (record: AnyRecord) => record[name],
}));

/** The column of a member. Booleans are kept as 0 and 1, lists and objects as JSON, the rest as it is. */
function memberColumns({ name, schema, placement }: Member): Column[] {
  const isSecret = placement.secret !== undefined;
  const base = { name: placement.secret === 'sealed' ? `${name}_sealed` : name, member: name, isSecret };
  const absent = (value: unknown) => (value === null ? undefined : value);
  if (isSecret) return [{ ...base, encode: (record) => (record[name] ?? null) as SqlValue, decode: absent }];
  switch (jsonType(schema)) {
    case 'boolean':
      return [{ ...base, encode: (record) => (record[name] ? 1 : 0), decode: (stored) => stored === 1 }];
    case 'array':
    case 'object':
      return [
        {
          ...base,
          encode: (record) => (record[name] === undefined ? null : JSON.stringify(record[name])),
          decode: (stored) => (stored === null ? undefined : JSON.parse(stored as string)),
        },
      ];
    default:
      return [{ ...base, encode: (record) => (record[name] ?? null) as SqlValue }];
  }
}

function jsonType(schema: z.ZodType): unknown {
  return z.toJSONSchema(schema, { io: 'output' }).type;
}

function foldingColumns(resource: Resource): Column[] {
  const folded = membersOf(resource).filter(({ placement }) => placement.folded);
  if (folded.length === 0) return [];
  const keys = folded.map(({ name }) => ({
    name: `${name}_key`,
    member: undefined,
    isSecret: false,
    encode: (record: AnyRecord) => foldedKey(record[name] as string),
  }));
  return [
    ...keys,
    { name: 'unicode_version', member: undefined, isSecret: false, encode: () => UNICODE_VERSION },
  ];
}

function uniqueColumn(resource: Resource, member: string): string {
  const found = membersOf(resource).find(({ name }) => name === member);
  return found?.placement.folded ? `${member}_key` : member;
}
