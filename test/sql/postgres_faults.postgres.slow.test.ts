import { expect, test } from 'bun:test';
import { SQL } from 'bun';
import { TOO_MANY_CONNECTIONS } from '../../src/sql/postgres/errors.ts';
import {
  AT_ONCE_MS_MAX,
  databaseThrough,
  type FaultyService,
  startFaultyService,
  type TimedResponse,
} from '../support/fault_injection.ts';
import { startServer } from '../support/postgres_server.ts';
import { errorsOf } from '../support/service.ts';
import { startTcpProxy } from '../support/tcp_proxy.ts';

/** Faults of PostgreSQL under a running service. */

/** A port without a listener. */
const UNUSED_PORT = 1;

const server = await startServer({ max_connections: '40', superuser_reserved_connections: '0' });
const proxy = await startTcpProxy(server.port);
/** Connected through the proxy. */
const proxied = await startFaultyService(await databaseThrough(server, [proxy.port]));
/** Connected without the proxy. */
const direct = await startFaultyService(await databaseThrough(server, [server.port]));

const statusesOf = (answers: readonly TimedResponse[]) => answers.map(({ status }) => status);
const faultsOf = ({ service }: FaultyService) => service.log.filter((record) => record.event === 'fault');
const lookUpAndWrite = ({ lookUp, write } = proxied) => Promise.all([lookUp(), write()]);
/** Waits longer than the maximum age of the access table (LIMITS.accessTableAgeMsMax). */
const waitForAccessTable = () => Bun.sleep(1_000);

async function admin(...statements: readonly string[]): Promise<void> {
  const sql = new SQL(server.url(), { max: 1 });
  for (const statement of statements) await sql.unsafe(statement);
  await sql.close();
}

test.each(['fast', 'immediate'] as const)(
  'a service answers 503 while PostgreSQL is stopped (%s), and recovers',
  async (mode) => {
    const token = await direct.service.token('realms:read');
    await server.stop(mode);
    const refused = await lookUpAndWrite(direct);
    expect(refused.map(({ ms, status }) => [status, ms < AT_ONCE_MS_MAX])).toEqual([
      [503, true],
      [503, true],
    ]);
    await waitForAccessTable();
    expect(statusesOf(await lookUpAndWrite(direct))).toEqual([503, 503]);
    const [error] = await errorsOf(await direct.service.get('/v2/authentication-realms', token));
    expect([error?.code, error?.detail]).toEqual([
      'unavailable',
      expect.stringContaining('cannot be reached'),
    ]);
    const unready = await direct.service.get('/readyz');
    const { dependencies } = (await unready.json()) as { dependencies: object };
    expect([unready.status, dependencies]).toEqual([
      503,
      { database: 'in trouble', access_table: 'in trouble' },
    ]);
    expect((await direct.service.get('/healthz')).status).toBe(200);
    await server.start();
    await direct.measureRecovery();
  },
);

test('when a proxy accepts connections for a stopped PostgreSQL, only the first answer is late', async () => {
  await server.stop();
  expect(statusesOf(await lookUpAndWrite())).toEqual([503, 503]);
  for (const { ms, status } of await lookUpAndWrite())
    expect([status, ms < AT_ONCE_MS_MAX]).toEqual([503, true]);
  await server.start();
  await proxied.measureRecovery();
}, 300_000);

test('when PostgreSQL is killed under load, no acknowledged write is lost or done twice', async () => {
  const before = await direct.users();
  const loading = direct.runLoad(2_500);
  await Bun.sleep(500);
  await server.kill();
  await Bun.sleep(300);
  await server.start();
  const answers = await loading;
  expect(new Set(statusesOf(answers))).toEqual(new Set([200, 201, 503]));
  const acknowledged = answers.flatMap(({ id }) => id ?? []);
  expect(acknowledged.length).toBeGreaterThan(20);
  expect(await direct.users()).toEqual(new Set([...before, ...acknowledged]));
  await direct.measureRecovery();
});

test('a service recovers after an administrator terminates its connections', async () => {
  await admin(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where backend_type = 'client backend' and pid <> pg_backend_pid()`,
  );
  await proxied.measureRecovery();
});

test('when PostgreSQL stalls, only the first answer is late, and no transaction stays open', async () => {
  proxy.stall();
  const first = await lookUpAndWrite();
  expect(statusesOf(first)).toEqual([503, 503]);
  for (const { ms, status } of await lookUpAndWrite())
    expect([status, ms < AT_ONCE_MS_MAX]).toEqual([503, true]);
  proxy.resume();
  await proxied.measureRecovery();
  const sql = new SQL(server.url(), { max: 1 });
  const open = `select 1 from pg_stat_activity where state like 'idle in transaction%'`;
  while ((await sql.unsafe(open)).length > 0) await Bun.sleep(100);
  await sql.close();
}, 300_000);

test('a connection that is silent from its start times out', async () => {
  proxy.cut();
  proxy.stall();
  expect(statusesOf(await lookUpAndWrite())).toEqual([503, 503]);
  proxy.cut();
  proxy.resume();
  await proxied.measureRecovery();
}, 300_000);

test('on a slow network, requests are answered later', async () => {
  proxy.delay(40);
  const answers = await lookUpAndWrite();
  proxy.delay(0);
  expect(statusesOf(answers)).toEqual([200, 201]);
  proxy.delay(1_200);
  const late = await Promise.all([...(await lookUpAndWrite()), ...(await lookUpAndWrite())]);
  proxy.delay(0);
  for (const { status } of late) expect([200, 201, 503]).toContain(status);
  await proxied.measureRecovery();
}, 300_000);

test('while another session locks a table, PostgreSQL cancels writes and lookups are served', async () => {
  const holder = new SQL(proxied.service.database.url, { max: 1 });
  await holder.unsafe('begin; lock table user_info in share mode').simple();
  const [look, write] = await lookUpAndWrite();
  expect([look?.status, write?.status]).toEqual([200, 503]);
  expect((await proxied.lookUp()).status).toBe(200);
  await holder.unsafe('rollback').simple();
  await holder.close();
  await proxied.measureRecovery();
}, 300_000);

test('a service answers 503 while PostgreSQL has no connection left, and recovers', async () => {
  const connections: SQL[] = [];
  const connect = async (): Promise<boolean> => {
    const connection = new SQL(server.url(), { max: 1 });
    connections.push(connection);
    return connection.unsafe('select 1').then(
      () => true,
      ({ errno }: { readonly errno?: unknown }) => {
        expect(errno).toBe(TOO_MANY_CONNECTIONS);
        return false;
      },
    );
  };
  const database = new URL(proxied.service.database.url).pathname.slice(1);
  const isServiceConnected = async () =>
    (await connections[0]?.unsafe('select 1 from pg_stat_activity where datname = $1', [database]))
      ?.length !== 0;
  const faultsBefore = faultsOf(proxied).length;
  try {
    // The proxy is disconnected until all connections are taken: the service could take one of them.
    proxy.redirectTo(UNUSED_PORT);
    proxy.cut();
    expect(await connect()).toBeTrue();
    while (await isServiceConnected()) await Bun.sleep(10);
    while (await connect());
    proxy.redirectTo(server.port);
    expect(statusesOf(await lookUpAndWrite())).toEqual([503, 503]);
    await waitForAccessTable();
    expect(statusesOf(await lookUpAndWrite())).toEqual([503, 503]);
    const causes = faultsOf(proxied).flatMap((fault, at) => (at < faultsBefore ? [] : [fault.cause]));
    expect(causes).toContain(TOO_MANY_CONNECTIONS);
  } finally {
    proxy.redirectTo(server.port);
    await Promise.all(connections.map((connection) => connection.close()));
  }
  await proxied.measureRecovery();
}, 300_000);

test('while PostgreSQL is read-only, lookups are served and writes are refused', async () => {
  await admin('alter system set default_transaction_read_only = on', 'select pg_reload_conf()');
  while ((await proxied.write()).status === 201) await Bun.sleep(10);
  expect(statusesOf(await lookUpAndWrite())).toEqual([200, 503]);
  await waitForAccessTable();
  expect(statusesOf(await lookUpAndWrite())).toEqual([200, 503]);
  await admin(
    'set default_transaction_read_only = off',
    'alter system reset default_transaction_read_only',
    'select pg_reload_conf()',
  );
  await proxied.measureRecovery();
});

test('the log names fault codes, and no values or engine messages', async () => {
  const { fixture } = proxied;
  const faults = [...faultsOf(proxied), ...faultsOf(direct)];
  expect(faults.length).toBeGreaterThan(10);
  for (const fault of faults) {
    expect(fault.code).toBeOneOf(['unavailable', 'unknown_outcome', 'not_ready']);
    expect(fault.cause).toMatch(/^(?:[0-9A-Z]{5}|ERR_POSTGRES_[A-Z_]+|DATABASE_[A-Z_]+|ANSWER_TIMEOUT)$/);
  }
  const logged = JSON.stringify(faults);
  for (const secret of [fixture.subject, fixture.username, 'terminating', 'too many', 'Connection']) {
    expect(logged).not.toContain(secret);
  }
});
