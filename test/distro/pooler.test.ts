import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { SQL } from 'bun';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine, type PostgresAddress, parsePostgres } from '../../src/ops/store/open.ts';
import { writeMasterKey } from '../support/fault_injection.ts';
import { startPgBouncer } from '../support/pgbouncer.ts';
import { sharedServer } from '../support/postgres_server.ts';
import { AUTHREALM, runCommand } from '../support/processes.ts';

/** How a start handles PgBouncer of Debian, which does not separate the prepared statements of its clients. */

setDefaultTimeout(300_000);

const PROGRAM = { version: 'test', clock: systemClock };
const MIXED =
  /^the pooler does not separate the prepared statements of its clients.*prepare=off.* --database$/;
const server = await sharedServer();

const freshName = async () => new URL(await server.freshDatabase()).pathname.slice(1);
const addressOf = (url: string) => parsePostgres(url) as PostgresAddress;

/** The error of opening a database; undefined on success. */
async function refusal(url: string, ownerUrl?: string): Promise<string | undefined> {
  const owner = ownerUrl === undefined ? undefined : addressOf(ownerUrl);
  try {
    await (await openEngine(addressOf(url), 'auto', PROGRAM, owner)).close();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

async function tablesOf(name: string): Promise<number> {
  const sql = new SQL(server.url(name), { max: 1 });
  const [row] = await sql
    .unsafe(`select count(*)::integer as n from pg_tables where schemaname = 'public'`)
    .finally(() => sql.close());
  return row.n;
}

describe.each([
  ['with default settings', {}],
  ['in round-robin order', { server_round_robin: '1' }],
  ['with one connection', { default_pool_size: '1' }],
] as const)('a transaction pool %s', async (_which, settings) => {
  const bouncer = await startPgBouncer(server, settings);

  test('a transaction pool is refused with prepared statements before a table is created, and accepted without them', async () => {
    const name = await freshName();
    expect(await refusal(bouncer.url(name))).toMatch(MIXED);
    expect(await tablesOf(name)).toBe(0);
    expect(await refusal(`${bouncer.url(name)}?prepare=off`)).toBeUndefined();
    expect(await refusal(bouncer.url(name))).toMatch(MIXED);
  });

  test('a transaction pool is refused for the migrating role too', async () => {
    const name = await freshName();
    expect(await refusal(server.url(name), bouncer.url(name))).toMatch(/prepare=off.* --migrate-database$/);
    expect(await tablesOf(name)).toBe(0);
  });

  test('a transaction pool is detected while other clients use it', async () => {
    const name = await freshName();
    const others = Array.from({ length: 6 }, () => new SQL(bouncer.url(name), { max: 1, prepare: false }));
    let isDone = false;
    const using = others.map(async (other) => {
      while (!isDone) await other.unsafe('select 1');
    });
    for (const _round of Array(5)) expect(await refusal(bouncer.url(name))).toMatch(MIXED);
    isDone = true;
    await Promise.all(using);
    await Promise.all(others.map((other) => other.close()));
  });
});

test('a session pool is accepted with prepared statements', async () => {
  const bouncer = await startPgBouncer(server, { pool_mode: 'session' });
  expect(await refusal(bouncer.url(await freshName()))).toBeUndefined();
});

test('serve refuses a transaction pool with exit code 1', async () => {
  const bouncer = await startPgBouncer(server);
  const words = ['--database', bouncer.url(await freshName()), '--master-key-file', writeMasterKey()];
  const { code, stdout, stderr } = await runCommand([AUTHREALM, 'serve', '--port', '0', ...words]);
  expect([code, stdout, stderr]).toEqual([
    1,
    '',
    expect.stringMatching(/^authrealm: the pooler .*prepare=off/),
  ]);
});
