import type { SqlValue } from './transaction_work.ts';

type Row = Readonly<Record<string, unknown>>;

/** How the rows of a table hold objects: one description for reading and writing them. An absent member is null. */
export interface RowMapping<T> {
  /** The columns of a select. */
  readonly columns: string;
  /** Inserts the values of an object. */
  readonly insert: string;
  /** Replaces all columns but those of the key, in an `on conflict do update set`. */
  readonly replacement: string;
  read(row: Row): T;
  values(object: T): readonly SqlValue[];
}

interface Description<T> {
  /** The column of each member. */
  readonly columns: { readonly [Name in keyof T]-?: string };
  /** The members that are 64-bit numbers, which some engines return as text. */
  readonly longs: readonly (keyof T)[];
}

export function rowMapping<T extends object>(
  table: string,
  { columns, longs }: Description<T>,
): RowMapping<T> {
  const members = Object.entries(columns) as [keyof T & string, string][];
  const names = members.map(([, column]) => column);
  const read = (member: keyof T, value: unknown): unknown => {
    if (value === null) return undefined;
    return longs.includes(member) ? Number(value) : value;
  };
  return {
    columns: names.join(', '),
    insert: `insert into ${table} (${names.join(', ')}) values (${names.map(() => '?').join(', ')})`,
    replacement: names.map((name) => `${name} = excluded.${name}`).join(', '),
    read: (row) =>
      Object.fromEntries(members.map(([member, column]) => [member, read(member, row[column])])) as T,
    values: (object) => members.map(([member]) => (object[member] ?? null) as SqlValue),
  };
}
