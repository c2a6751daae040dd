import type { Index } from '../lists/list_plans.ts';
import type { SqlClient } from './sql_client.ts';

/** The indexes of the schema, read from the catalog. */
export interface IndexCatalog {
  /** The B-tree indexes of a table that cover all of its rows. */
  of(table: string): readonly Index[];
  /** The columns of an index; undefined where it does not exist. */
  columnsOf(index: string): readonly string[] | undefined;
}

const SELECT_INDEXES = `select t.relname as table_name, c.relname as name, i.indisunique as is_unique, array_to_string(array(
    select a.attname from unnest(i.indkey::smallint[]) with ordinality as k (number, place)
    join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number order by k.place), ' ') as columns
  from pg_index i join pg_class c on c.oid = i.indexrelid join pg_class t on t.oid = i.indrelid
  where c.relam = (select oid from pg_am where amname = 'btree') and c.relnamespace = to_regnamespace(quote_ident(current_schema())) and i.indpred is null`;

interface IndexRow {
  readonly table_name: string;
  readonly name: string;
  readonly is_unique: boolean;
  readonly columns: string;
}

export async function readIndexes(sql: SqlClient): Promise<IndexCatalog> {
  const rows = ((await sql.unsafe(SELECT_INDEXES)) as IndexRow[]).map(
    ({ table_name: table, name, is_unique, columns }) => ({
      table,
      name,
      columns: columns.split(' '),
      isUnique: is_unique,
    }),
  );
  const byTable = Map.groupBy(rows, ({ table }) => table);
  const byName = new Map(rows.map(({ name, columns }) => [name, columns]));
  return { of: (table) => byTable.get(table) ?? [], columnsOf: (index) => byName.get(index) };
}
