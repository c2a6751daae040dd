import { systemClock } from '../../../src/ops/process/clock.ts';
import { sqliteMigrations } from '../../../src/ops/store/sqlite/open.ts';
import { connectSqlite, retryWhileBusy } from '../../../src/sql/sqlite/connection.ts';
import { migrateSqlite } from '../../../src/sql/sqlite/migrate.ts';

/**
 * One of several processes that migrate a database to the next schema at once. Arguments: path, the statements of the
 * next migration. It prints `ready`, starts when it reads a line, and prints `done`.
 */
const [path = '', sql = ''] = process.argv.slice(2);
const known = sqliteMigrations();
const next = { version: known.length + 1, name: 'next', sql };
// As at the start of the service: another process can hold the lock.
const db = await retryWhileBusy(() => connectSqlite(path));
console.log('ready');
for await (const _ of console) break;
await migrateSqlite(db, 'auto', [...known, next], { version: '0.2.0', clock: systemClock });
console.log('done');
db.close();
