import { parsePostgres } from '../../src/store/postgres/address.ts';
import { objectsOf, schemaObjects } from '../../src/store/postgres/inspection_schema.ts';
import { connectToPrimary } from '../../src/store/postgres/primary.ts';
import { openRowStream } from '../../src/store/postgres/row_stream.ts';
import { TABLES } from '../../src/store/tables/tables.ts';

type SchemaObject = ReturnType<typeof objectsOf>[number];

const linesOf = (objects: readonly SchemaObject[]): readonly string[] =>
  objects.map(({ type, name, definition }) => [type, name, definition].join(' ').trimEnd()).sort();

/** The objects of the schema as the tables are described: what `doctor` compares a schema of PostgreSQL with. */
export const DESCRIBED_OBJECTS = linesOf(TABLES.flatMap(objectsOf));

/** The same of the schema of a database. */
export async function storedObjects(url: string): Promise<readonly string[]> {
  const address = parsePostgres(url);
  if (!address) throw new Error(`${url} is not a PostgreSQL URL`);
  const stream = openRowStream(await connectToPrimary(address), 5_000);
  try {
    const objects = schemaObjects((text, ...values) => stream.rows(['begin'], text, values));
    return linesOf(await Array.fromAsync(objects));
  } finally {
    await stream.close();
  }
}
