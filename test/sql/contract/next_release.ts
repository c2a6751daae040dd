import { systemClock } from '../../../src/ops/process/clock.ts';
import { parseDatabase } from '../../../src/ops/store/open.ts';
import { sqliteMigrations } from '../../../src/ops/store/sqlite/open.ts';
import { type Migration, migrationsOf, servesFromOf } from '../../../src/sql/migrations.ts';
import { migratePostgres } from '../../../src/sql/postgres/migrate.ts';
import { connectToPrimary } from '../../../src/sql/postgres/primary.ts';
import { connectSqlite } from '../../../src/sql/sqlite/connection.ts';
import { migrateSqlite } from '../../../src/sql/sqlite/migrate.ts';
import { INSTANCE_TABLES, REALM_TABLES } from '../../support/table_names.ts';

/**
 * The migrations of the next release: those of this release, and one more that expands every table.
 * Argument: the URL. It prints the resulting schema version.
 */
const [url = ''] = process.argv.slice(2);
const program = { version: '99.0.0', clock: systemClock };

const tables = [...INSTANCE_TABLES, ...REALM_TABLES].filter((table) => table !== 'migration');
const EXPANSION = [
  ...tables.map((table) => `alter table ${table} add column of_next text not null default 'none';`),
  'create table of_next (realm_id text not null, id text not null, primary key (realm_id, id));',
  ...tables.map((table) => `create index ${table}_by_next on ${table} (of_next);`),
].join('\n');

/** Adds the next migration; every program that can serve this release's schema can serve the next one too. */
function withNext(known: readonly Migration[]): readonly Migration[] {
  const oldest = Math.max(...known.map((each) => servesFromOf(each)));
  const next = {
    version: known.length + 1,
    name: 'next',
    sql: `-- serves: ${oldest}\n${EXPANSION}`,
  };
  return [...known, next];
}

const address = parseDatabase(url);
if (!address) throw new Error(`${url} is not a database URL`);
const migrations = withNext(address.engine === 'sqlite' ? sqliteMigrations() : migrationsOf('postgres'));
if (address.engine === 'sqlite') {
  const db = connectSqlite(address.path);
  await migrateSqlite(db, 'auto', migrations, program);
  db.close();
} else {
  const client = await connectToPrimary(address);
  await migratePostgres(client, migrations, program);
  await client.close();
}
console.log(`schema ${migrations.length}`);
