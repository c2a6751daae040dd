import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { SQL } from 'bun';
import { type PostgresServer, sharedServer, startServer } from '../support/postgres_server.ts';
import { start } from '../support/processes.ts';

/** One statement over a connection of its own. */
async function ask(url: string, statement: string): Promise<readonly Record<string, unknown>[]> {
  const sql = new SQL(url, { max: 1 });
  return sql.unsafe(statement).finally(() => sql.close());
}

async function withNote(server: PostgresServer): Promise<string> {
  const url = await server.freshDatabase();
  await ask(url, 'create table note as select 1 as number');
  return url;
}

const notes = (url: string) => ask(url, 'select number from note');

test('a test process has one server', async () => {
  const server = await sharedServer();
  expect(await sharedServer()).toBe(server);
  const [answer] = await ask(server.url(), 'select version()');
  expect(answer?.version).toMatch(/^PostgreSQL 1\d/);
});

test('a fresh database is empty and keeps text as it comes', async () => {
  const server = await sharedServer();
  const urls = await Promise.all([server.freshDatabase(), server.freshDatabase()]);
  for (const url of urls) {
    const facts = `current_setting('server_encoding') as encoding, datcollate from pg_database`;
    expect(await ask(url, `select ${facts} where datname = current_database()`)).toEqual([
      { encoding: 'UTF8', datcollate: 'C' },
    ]);
    await ask(url, 'create table note (number int)');
  }
  expect(new Set(urls).size).toBe(2);
});

test('a role gives its password', async () => {
  const server = await sharedServer();
  await ask(server.url(), `create role clerk login password 'p@ss/word'`);
  expect(await ask(server.url('postgres', 'clerk', 'p@ss/word'), 'select current_user')).toEqual([
    { current_user: 'clerk' },
  ]);
  await expect(ask(server.url('postgres', 'clerk', 'wrong'), 'select 1')).rejects.toThrow(/password/);
});

test.each(['fast', 'immediate'] as const)('what was committed is there after a stop: %s', async (mode) => {
  const server = await startServer();
  const url = await withNote(server);
  const open = new SQL(url, { max: 1 });
  await open.unsafe('select 1');
  await server.stop(mode);
  await expect(ask(url, 'select 1')).rejects.toThrow();
  await open.close();
  await server.start();
  expect(await notes(url)).toEqual([{ number: 1 }]);
});

test('what was committed is there after a crash, and what was not is gone', async () => {
  const server = await startServer({ max_connections: '20' });
  const url = await withNote(server);
  const open = new SQL(url, { max: 1 });
  const unfinished = open.unsafe('insert into note values (2); select pg_sleep(60)').then(
    () => 'answered',
    () => 'cut',
  );
  while ((await ask(url, `select 1 from pg_stat_activity where wait_event = 'PgSleep'`)).length === 0);
  const before = server.pid;
  await server.kill();
  expect(await unfinished).toBe('cut');
  await server.start();
  expect(server.pid).not.toBe(before);
  expect(await notes(url)).toEqual([{ number: 1 }]);
  expect(await ask(url, 'show max_connections')).toEqual([{ max_connections: '20' }]);
  expect(server.log()).toContain('database system was not properly shut down');
});

test('a server ends with the test process, even one that is killed', async () => {
  const module = JSON.stringify(join(import.meta.dir, '../support/postgres_server.ts'));
  const script = `const { sharedServer } = await import(${module});
    console.log((await sharedServer()).url());
    await new Promise(() => {});`;
  const running = start([process.execPath, '-e', script]);
  const url = await running.line(/^postgres:/);
  expect(await ask(url, 'select 1 as number')).toEqual([{ number: 1 }]);
  running.process.kill('SIGKILL');
  const isThere = () =>
    ask(url, 'select 1').then(
      () => true,
      () => false,
    );
  while (await isThere()) await Bun.sleep(10);
});
