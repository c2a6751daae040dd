import { fileURLToPath } from 'node:url';
import { parsePostgres } from '../../src/store/postgres/address.ts';
import { schemaObjects } from '../../src/store/postgres/inspection_schema.ts';
import { connectToPrimary } from '../../src/store/postgres/primary.ts';
import { openRowStream } from '../../src/store/postgres/row_stream.ts';

/** What `doctor` compares a schema of PostgreSQL with; `scripts/write_schema.ts` writes it. */
export const SCHEMA_TABLE = fileURLToPath(new URL('../../src/store/postgres/schema.tsv', import.meta.url));

/** The content of that file for the schema of a database. */
export async function schemaTable(url: string): Promise<string> {
  const address = parsePostgres(url);
  if (!address) throw new Error(`${url} is not a PostgreSQL URL`);
  const stream = openRowStream(await connectToPrimary(address), 5_000);
  try {
    const parts = schemaObjects((text, ...values) => stream.rows(['begin'], text, values));
    const lines = await Array.fromAsync(parts, ({ type, name, definition }) =>
      [type, name, definition].join('\t').trimEnd(),
    );
    return `${lines.sort().join('\n')}\n`;
  } finally {
    await stream.close();
  }
}
