import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { postgresAt } from '../support/database.ts';
import { populationLines } from '../support/population.ts';
import { startServer } from '../support/postgres_server.ts';
import { AUTHREALM, runCommand, startCommand } from '../support/processes.ts';
import { freshFolder } from '../support/service.ts';

/** How long PostgreSQL is down; statements fail at once while it refuses connections. */
const DOWN_MS = 2_500;
const USERS = 5_000;

async function migratedDatabase(server: Awaited<ReturnType<typeof startServer>>) {
  const key = join(freshFolder(), 'key');
  expect((await runCommand([AUTHREALM, 'keys', 'make', key])).code).toBe(0);
  const url = await server.freshDatabase();
  expect((await runCommand([AUTHREALM, 'migrate', '--database', url])).code).toBe(0);
  return postgresAt(url, key, { database: url });
}

test('an import resumes when PostgreSQL, stopped during it, is back', async () => {
  const server = await startServer();
  const file = join(freshFolder(), 'lines.ndjson');
  writeFileSync(file, [...populationLines(USERS)].join('\n'));
  const database = await migratedDatabase(server);
  const importing = startCommand([AUTHREALM, 'import', file, ...database.args]);
  while ((await database.query('select 1 from user_info limit 1')).length === 0) await Bun.sleep(20);
  await server.stop('immediate');
  await Bun.sleep(DOWN_MS);
  await server.start();
  const code = await importing.process.exited;
  expect([code, code === 0 ? '' : importing.output()]).toEqual([0, '']);
  expect(await database.query<{ n: number }>('select count(*) as n from user_info')).toEqual([{ n: USERS }]);
  await server.stop();
}, 300_000);

test('an import on PostgreSQL leaves statistics for the planner', async () => {
  const server = await startServer();
  const { args, query } = await migratedDatabase(server);
  const file = join(freshFolder(), 'lines.ndjson');
  writeFileSync(file, [...populationLines(10)].join('\n'));
  expect(await runCommand([AUTHREALM, 'import', file, ...args])).toMatchObject({ code: 0, stderr: '' });
  const tables = "tablename in ('log_entry', 'user_info')";
  const found = await query(`select distinct tablename as name from pg_stats where ${tables} order by 1`);
  expect(found).toEqual([{ name: 'log_entry' }, { name: 'user_info' }]);
  await server.stop();
}, 300_000);
