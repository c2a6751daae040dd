import { systemClock } from '../../../src/ops/process/clock.ts';
import { migrationsOf } from '../../../src/sql/migrations.ts';
import { parsePostgres } from '../../../src/sql/postgres/address.ts';
import { migratePostgres } from '../../../src/sql/postgres/migrate.ts';
import { connectToPrimary } from '../../../src/sql/postgres/primary.ts';

/**
 * One of several processes that migrate a database to the next schema at once. Arguments: URL, the statements of the
 * next migration. It prints `ready`, starts when it reads a line, and prints `done`.
 */
const [url = '', sql = ''] = process.argv.slice(2);
const address = parsePostgres(url);
if (!address) throw new Error(`${url} is not a database URL`);
const known = migrationsOf('postgres');
const next = { version: known.length + 1, name: 'next', sql };
const client = await connectToPrimary(address);
console.log('ready');
for await (const _ of console) break;
await migratePostgres(client, [...known, next], { version: '0.2.0', clock: systemClock });
console.log('done');
await client.close();
