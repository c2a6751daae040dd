import { systemClock } from '../../../src/platform/clock.ts';
import { connectSqlite, retryWhileBusy } from '../../../src/store/sqlite/connection.ts';
import { migrateSqlite } from '../../../src/store/sqlite/migrate.ts';
import { sqliteMigrations } from '../../../src/store/sqlite/open.ts';

/**
 * One process of several that bring a database to the next schema at once. Arguments: path, the statements of the next
 * migration. It says `ready`, begins when a line comes in, and says `done`.
 */
const [path = '', sql = ''] = process.argv.slice(2);
const known = sqliteMigrations();
const next = { version: known.length + 1, name: 'next', sql };
// As a start does: the first touch can meet the lock of the process that was there before.
const db = await retryWhileBusy(() => connectSqlite(path));
console.log('ready');
for await (const _ of console) break;
await migrateSqlite(db, 'auto', [...known, next], { version: '0.2.0', clock: systemClock });
console.log('done');
db.close();
