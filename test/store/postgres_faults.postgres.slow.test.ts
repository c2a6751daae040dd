import { afterAll, beforeAll, expect, test } from 'bun:test';
import { SQL } from 'bun';
import { TOO_MANY_CONNECTIONS } from '../../src/store/postgres/errors.ts';
import { databaseBy, type Heard, startTroubled, type Troubled } from '../support/fault_injection.ts';
import { type PostgresServer, startServer } from '../support/postgres_server.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp_proxy.ts';

/** PostgreSQL in trouble, under a service that serves on (issue 5, point 3). */

/** No one listens there. */
const UNUSED_PORT = 1;

let server: PostgresServer;
let proxy: TcpProxy;
/** Over the proxy. */
let troubled: Troubled;
/** Over nothing but the network of this machine. */
let near: Troubled;

beforeAll(async () => {
  server = await startServer({ max_connections: '40', superuser_reserved_connections: '0' });
  proxy = await startTcpProxy(server.port);
  troubled = await startTroubled(await databaseBy(server, [proxy.port]));
  near = await startTroubled(await databaseBy(server, [server.port]));
}, 300_000);
afterAll(async () => {
  await troubled.stop();
  await near.stop();
  proxy.stop();
  await server.stop();
});

const statusesOf = (heard: readonly Heard[]) => heard.map(({ status }) => status);
const faultsOf = ({ service }: Troubled) => service.log.filter((record) => record.event === 'fault');
const both = ({ look, write } = troubled) => Promise.all([look(), write()]);
/** Longer than clients are trusted without being read again (LIMITS.accessTableAgeMsMax). */
const felt = () => Bun.sleep(1_000);

async function admin(...statements: readonly string[]): Promise<void> {
  const sql = new SQL(server.url(), { max: 1 });
  for (const statement of statements) await sql.unsafe(statement);
  await sql.close();
}

test.each(['fast', 'immediate'] as const)('stopped and started again: %s', async (mode) => {
  await server.stop(mode);
  const refused = await both(near);
  expect(refused.map(({ ms, status }) => [status, ms < 500])).toEqual([
    [503, true],
    [503, true],
  ]);
  await felt();
  expect(statusesOf(await both(near))).toEqual([503, 503]);
  const unready = await near.service.get('/readyz');
  const { dependencies } = (await unready.json()) as { dependencies: object };
  expect([unready.status, dependencies]).toEqual([
    503,
    { database: 'in trouble', access_table: 'in trouble' },
  ]);
  expect((await near.service.get('/healthz')).status).toBe(200);
  await server.start();
  await near.recovered();
});

test('behind what accepts connections for an engine that is not there: only the first answer is late', async () => {
  await server.stop();
  expect(statusesOf(await both())).toEqual([503, 503]);
  for (const { ms, status } of await both()) expect([status, ms < 500]).toEqual([503, true]);
  await server.start();
  await troubled.recovered();
}, 300_000);

test('killed under load: no write that was acknowledged is lost, and none was done twice', async () => {
  const before = await near.users();
  const loading = near.load(2_500);
  await Bun.sleep(500);
  await server.kill();
  await Bun.sleep(300);
  await server.start();
  const heard = await loading;
  expect(new Set(statusesOf(heard))).toEqual(new Set([200, 201, 503]));
  const acknowledged = heard.flatMap(({ id }) => id ?? []);
  expect(acknowledged.length).toBeGreaterThan(20);
  expect(await near.users()).toEqual(new Set([...before, ...acknowledged]));
  await near.recovered();
});

test('its connections are ended by an administrator: the next ones serve', async () => {
  await admin(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where backend_type = 'client backend' and pid <> pg_backend_pid()`,
  );
  await troubled.recovered();
});

test('stalled: one answer is late, the others come at once, and nothing is left behind', async () => {
  proxy.stall();
  const first = await both();
  expect(statusesOf(first)).toEqual([503, 503]);
  for (const { ms, status } of await both()) expect([status, ms < 500]).toEqual([503, true]);
  proxy.resume();
  await troubled.recovered();
  await Bun.sleep(500);
  const sql = new SQL(server.url(), { max: 1 });
  const [left] = await sql.unsafe(
    `select count(*)::integer as n from pg_stat_activity where state like 'idle in transaction%'`,
  );
  await sql.close();
  expect(left.n).toBe(0);
}, 300_000);

test('silent from the start of a connection on: it is given up in time', async () => {
  proxy.cut();
  proxy.stall();
  expect(statusesOf(await both())).toEqual([503, 503]);
  proxy.cut();
  proxy.resume();
  await troubled.recovered();
}, 300_000);

test('slow: it is answered, only later', async () => {
  proxy.delay(40);
  const heard = await both();
  proxy.delay(0);
  expect(statusesOf(heard)).toEqual([200, 201]);
  proxy.delay(1_200);
  const late = await Promise.all([...(await both()), ...(await both())]);
  proxy.delay(0);
  for (const { status } of late) expect([200, 201, 503]).toContain(status);
  await troubled.recovered();
}, 300_000);

test('a lock that somebody holds: writes are given up by the engine itself, lookups go on', async () => {
  const holder = new SQL(troubled.service.database.url, { max: 1 });
  await holder.unsafe('begin; lock table user_info in share mode').simple();
  const [look, write] = await both();
  expect([look?.status, write?.status]).toEqual([200, 503]);
  expect((await troubled.look()).status).toBe(200);
  await holder.unsafe('rollback').simple();
  await holder.close();
  await troubled.recovered();
}, 300_000);

test('out of connections', async () => {
  const hogs: SQL[] = [];
  const take = async (): Promise<boolean> => {
    const hog = new SQL(server.url(), { max: 1 });
    hogs.push(hog);
    return hog.unsafe('select 1').then(
      () => true,
      ({ errno }: { readonly errno?: unknown }) => {
        expect(errno).toBe(TOO_MANY_CONNECTIONS);
        return false;
      },
    );
  };
  const database = new URL(troubled.service.database.url).pathname.slice(1);
  const isHeld = async () =>
    (await hogs[0]?.unsafe('select 1 from pg_stat_activity where datname = $1', [database]))?.length !== 0;
  const faultsBefore = faultsOf(troubled).length;
  try {
    // Nothing leads to the engine before its last connection is taken: the service would be faster now and then.
    proxy.leadTo(UNUSED_PORT);
    proxy.cut();
    expect(await take()).toBeTrue();
    while (await isHeld()) await Bun.sleep(10);
    while (await take());
    proxy.leadTo(server.port);
    expect(statusesOf(await both())).toEqual([503, 503]);
    await felt();
    expect(statusesOf(await both())).toEqual([503, 503]);
    const causes = faultsOf(troubled).flatMap((fault, at) => (at < faultsBefore ? [] : [fault.cause]));
    expect(causes).toContain(TOO_MANY_CONNECTIONS);
  } finally {
    proxy.leadTo(server.port);
    await Promise.all(hogs.map((hog) => hog.close()));
  }
  await troubled.recovered();
}, 300_000);

test('read-only: lookups go on, writes are refused', async () => {
  await admin('alter system set default_transaction_read_only = on', 'select pg_reload_conf()');
  while ((await troubled.write()).status === 201) await Bun.sleep(10);
  expect(statusesOf(await both())).toEqual([200, 503]);
  await felt();
  expect(statusesOf(await both())).toEqual([200, 503]);
  await admin(
    'set default_transaction_read_only = off',
    'alter system reset default_transaction_read_only',
    'select pg_reload_conf()',
  );
  await troubled.recovered();
});

test('the log names codes, and nothing that anybody said', async () => {
  const { planted } = troubled;
  const faults = [...faultsOf(troubled), ...faultsOf(near)];
  expect(faults.length).toBeGreaterThan(10);
  for (const fault of faults) {
    expect(fault.code).toBeOneOf(['unavailable', 'unknown_outcome', 'not_ready']);
    expect(fault.cause).toMatch(/^(?:[0-9A-Z]{5}|ERR_POSTGRES_[A-Z_]+|DATABASE_[A-Z_]+|Fault)$/);
  }
  const said = JSON.stringify(faults);
  for (const secret of [planted.subject, planted.username, 'terminating', 'too many', 'Connection']) {
    expect(said).not.toContain(secret);
  }
});
