import type { Index } from '../lists/list_plans.ts';
import type { SqlClient } from './sql_client.ts';

export type IndexCatalog = Awaited<ReturnType<typeof readIndexes>>;

const SELECT_INDEXES = `select t.relname as table_name, c.relname as name, i.indisunique as is_unique, array_to_string(array(
    select a.attname from unnest(i.indkey::smallint[]) with ordinality as k (number, place)
    join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number order by k.place), ' ') as columns
  from pg_index i join pg_class c on c.oid = i.indexrelid join pg_class t on t.oid = i.indrelid
  where c.relam = (select oid from pg_am where amname = 'btree') and c.relnamespace = to_regnamespace(quote_ident(current_schema())) and i.indpred is null`;

/** Reads the indexes of the schema from the catalog. */
export async function readIndexes(sql: SqlClient) {
  const rows =
    await sql.unsafe<{ table_name: string; name: string; is_unique: boolean; columns: string }[]>(
      SELECT_INDEXES,
    );
  const indexes = rows.map(({ table_name: table, name, is_unique: isUnique, columns }) => ({
    table,
    name,
    isUnique,
    columns: columns.split(' '),
  }));
  const byTable = Map.groupBy(indexes, ({ table }) => table);
  const byName = new Map(indexes.map(({ name, columns }) => [name, columns]));
  return {
    /** The B-tree indexes of a table that cover all of its rows. */
    of: (table: string): readonly Index[] => byTable.get(table) ?? [],
    /** The columns of an index; undefined where it does not exist. */
    columnsOf: (index: string): readonly string[] | undefined => byName.get(index),
  };
}
