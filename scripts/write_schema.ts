import { rmSync, writeFileSync } from 'node:fs';
import { systemClock } from '../src/platform/clock.ts';
import { VERSION } from '../src/platform/version.ts';
import { openEngine, parseDatabase } from '../src/store/open.ts';
import { RUN_FOLDER } from '../test/support/folder.ts';
import { SCHEMA_TABLE, schemaTable } from '../test/support/postgres_schema_table.ts';
import { endServers, startServer } from '../test/support/postgres_server.ts';

/**
 * Writes `src/store/postgres/schema.tsv`, with which `doctor` compares the schema of a database, from a freshly migrated
 * PostgreSQL database: run `npx bun scripts/write_schema.ts` after adding a migration.
 */

const server = await startServer();
try {
  const url = await server.freshDatabase();
  const address = parseDatabase(url);
  if (!address) throw new Error(`${url} is not a database URL`);
  await (await openEngine(address, 'auto', { version: VERSION, clock: systemClock })).close();
  writeFileSync(SCHEMA_TABLE, await schemaTable(url));
} finally {
  await endServers();
  rmSync(RUN_FOLDER, { recursive: true, force: true });
}
console.log(`${SCHEMA_TABLE} is up to date`);
