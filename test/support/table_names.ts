import { engineKey } from '../../src/sql/tables/schema.ts';
import type { Table } from '../../src/sql/tables/table.ts';
import { TABLES } from '../../src/sql/tables/tables.ts';

const namesOf = (tables: readonly Table[]): readonly string[] => tables.map(({ name }) => name);

/** The tables of the installation as a whole. Each follows those that it references. */
export const INSTANCE_TABLES = namesOf(TABLES.filter(({ placement }) => placement !== 'by realm'));

/** The tables of realm data. Each follows those that it references. */
export const REALM_TABLES = namesOf(TABLES.filter(({ placement }) => placement === 'by realm'));

/** The column by which Citus distributes a table of realm data. */
export function distributionColumn(name: string): string {
  const table = TABLES.find((each) => each.name === name);
  return (table && engineKey(table, 'postgres')[0]) ?? '';
}
