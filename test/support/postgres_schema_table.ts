import { SQL } from 'bun';
import { objectsOf, schemaObjects } from '../../src/ops/store/postgres/inspection_schema.ts';
import { TABLES } from '../../src/sql/tables/tables.ts';

type SchemaObject = ReturnType<typeof objectsOf>[number];

const linesOf = (objects: readonly SchemaObject[]): readonly string[] =>
  objects.map(({ type, name, definition }) => [type, name, definition].join(' ').trimEnd()).sort();

/** The objects of the schema as the tables are described: what `doctor` compares a schema of PostgreSQL with. */
export const DESCRIBED_OBJECTS = linesOf(TABLES.flatMap(objectsOf));

/** The same of the schema of a database. */
export async function storedObjects(url: string): Promise<readonly string[]> {
  const sql = new SQL(url, { max: 1 });
  try {
    return linesOf(await schemaObjects((text) => sql.unsafe(text)));
  } finally {
    await sql.close();
  }
}
