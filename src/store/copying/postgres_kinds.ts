import type { Table } from './tables.ts';

type Ask = (text: string, values: readonly string[]) => Promise<readonly Readonly<Record<string, unknown>>[]>;

/** The kinds of columns, as the schema has them. */
export interface TableKinds {
  /** Must be called before a table is asked about. */
  learn(table: Table): Promise<void>;
  of(table: Table, column: string): string;
}

const KINDS = `select attname::text as name, format_type(atttypid, atttypmod) as kind from pg_attribute
  where attrelid = ?::text::regclass and attnum > 0 and not attisdropped`;

export function kindsFrom(ask: Ask): TableKinds {
  const known = new Map<Table, ReadonlyMap<string, string>>();
  return {
    async learn(table) {
      if (known.has(table)) return;
      const rows = await ask(KINDS, [table.name]);
      known.set(table, new Map(rows.map(({ name, kind }) => [String(name), String(kind)])));
    },
    of(table, column) {
      const kind = known.get(table)?.get(column);
      if (kind === undefined) throw new Error(`table ${table.name} has no column ${column}`);
      return kind;
    },
  };
}
