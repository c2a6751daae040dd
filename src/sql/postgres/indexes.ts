import { engineIndexes, engineKey } from '../tables/schema.ts';
import { TABLES } from '../tables/tables.ts';

/** The definition of a B-tree index that covers all rows of its table. */
const WHOLE_INDEX = /^(unique )?\(([\w, ]+)\)$/;

const INDEXES = TABLES.flatMap((table) => {
  const key = {
    table: table.name,
    name: `${table.name}_pkey`,
    isUnique: true,
    columns: engineKey(table, 'postgres'),
  };
  const others = Object.entries(engineIndexes(table, 'postgres')).flatMap(([name, definition]) => {
    const [, unique, columns] = WHOLE_INDEX.exec(definition) ?? [];
    return columns ? [{ ...key, name, isUnique: unique !== undefined, columns: columns.split(', ') }] : [];
  });
  return [key, ...others];
});

/** The B-tree indexes of a table that cover all of its rows. */
export const postgresIndexesOf = (name: string) => INDEXES.filter(({ table }) => table === name);

/** The columns of one of these indexes; undefined for another one. */
export const columnsOfIndex = (index: string) => INDEXES.find(({ name }) => name === index)?.columns;
