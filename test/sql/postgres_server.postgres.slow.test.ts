import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { SQL } from 'bun';
import { type PostgresServer, sharedServer, startServer } from '../support/postgres_server.ts';
import { startCommand } from '../support/processes.ts';

/** Runs one statement on a new connection. */
async function query(url: string, statement: string): Promise<readonly Record<string, unknown>[]> {
  const sql = new SQL(url, { max: 1 });
  return sql.unsafe(statement).finally(() => sql.close());
}

async function createNoteTable(server: PostgresServer): Promise<string> {
  const url = await server.freshDatabase();
  await query(url, 'create table note as select 1 as number');
  return url;
}

const notes = (url: string) => query(url, 'select number from note');

test('each fresh database is new and empty, in UTF-8 and with the C collation', async () => {
  const server = await sharedServer();
  const urls = await Promise.all([server.freshDatabase(), server.freshDatabase()]);
  for (const url of urls) {
    const facts = `current_setting('server_encoding') as encoding, datcollate from pg_database`;
    expect(await query(url, `select ${facts} where datname = current_database()`)).toEqual([
      { encoding: 'UTF8', datcollate: 'C' },
    ]);
    await query(url, 'create table note (number int)');
  }
  expect(new Set(urls).size).toBe(2);
});

test('a role needs its password', async () => {
  const server = await sharedServer();
  await query(server.url(), `create role clerk login password 'p@ss/word'`);
  expect(await query(server.url('postgres', 'clerk', 'p@ss/word'), 'select current_user')).toEqual([
    { current_user: 'clerk' },
  ]);
  await expect(query(server.url('postgres', 'clerk', 'wrong'), 'select 1')).rejects.toThrow(/password/);
});

test('committed rows survive a crash, and uncommitted rows do not', async () => {
  const server = await startServer({ max_connections: '20' });
  const url = await createNoteTable(server);
  const open = new SQL(url, { max: 1 });
  const unfinished = open.unsafe('insert into note values (2); select pg_sleep(60)').then(
    () => 'answered',
    () => 'cut',
  );
  while ((await query(url, `select 1 from pg_stat_activity where wait_event = 'PgSleep'`)).length === 0);
  const before = server.pid;
  await server.kill();
  expect(await unfinished).toBe('cut');
  await server.start();
  expect(server.pid).not.toBe(before);
  expect(await notes(url)).toEqual([{ number: 1 }]);
  expect(await query(url, 'show max_connections')).toEqual([{ max_connections: '20' }]);
  expect(server.log()).toContain('database system was not properly shut down');
});

test('a server stops when its test process exits, even when that is killed', async () => {
  const module = JSON.stringify(join(import.meta.dir, '../support/postgres_server.ts'));
  const script = `const { sharedServer } = await import(${module});
    console.log((await sharedServer()).url());
    await new Promise(() => {});`;
  const running = startCommand([process.execPath, '-e', script]);
  const url = await running.line(/^postgres:/);
  expect(await query(url, 'select 1 as number')).toEqual([{ number: 1 }]);
  running.process.kill('SIGKILL');
  const isReachable = () =>
    query(url, 'select 1').then(
      () => true,
      () => false,
    );
  while (await isReachable()) await Bun.sleep(10);
});
