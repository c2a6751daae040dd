import { afterAll, describe, expect, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import { type Engine, parseDatabase, reopenEngine } from '../../src/ops/store/open.ts';
import { startCluster, urlThroughNodes } from '../support/citus_cluster.ts';
import { sendUntilDone, startClusterService } from '../support/cluster_service.ts';
import { freshMasterKey, postgresAt, type TestDatabase } from '../support/database.ts';
import { runDoctorOn } from '../support/doctor_report.ts';
import type { PostgresServer } from '../support/postgres_server.ts';
import { createFixture, type Fixture, type Service, startService } from '../support/service.ts';
import { startTcpProxy } from '../support/tcp_proxy.ts';
import { addTarget, sequenceRange, startReceiver } from '../support/webhook_receivers.ts';

/** Processes that route through different nodes of a cluster. */

const cluster = await startCluster();

const RANDOM = '?load_balance_hosts=random';

const adminUrlOf = ({ url }: Pick<TestDatabase, 'url'>) => url.replace('//service@', '//postgres@');

/** Whether a process is connected to this node, other than the nodes of the cluster. */
async function isUsed(database: TestDatabase, node: PostgresServer): Promise<boolean> {
  const url = adminUrlOf(database);
  const rows = await cluster.run(
    url,
    `select 1 from pg_stat_activity where datname = current_database() and usename = 'service'
       and application_name !~ '^citus_'`,
    node,
  );
  return rows.length > 0;
}

test('processes with load_balance_hosts=random prefer different nodes', async () => {
  const database = postgresAt(await cluster.freshDatabase(), freshMasterKey());
  const address = parseDatabase(urlThroughNodes(database.url, cluster.nodes, RANDOM));
  if (!address) throw new Error(`${database.url} is not a database URL`);
  const engines: Engine[] = [];
  const areAllUsed = async () =>
    (await Promise.all(cluster.nodes.map((node) => isUsed(database, node)))).every(Boolean);
  while (!(await areAllUsed())) {
    // If each process chose at random, one such run in ten billion would use more.
    expect(engines.length).toBeLessThan(60);
    const engine = await reopenEngine(address);
    engines.push(engine);
    await engine.records.ready();
  }
  await Promise.all(engines.map((engine) => engine.close()));
});

/** Seconds by which the clock of each node is ahead. */
const AHEAD_S = [0, 20, -15] as const;
const REALMS = 4;
const WRITERS = 6;
const WRITES = 12;
/** Both take seconds, longer on a busy machine. What only the sweep finds takes LIMITS.webhookSweepMs, ten minutes. */
const RECEIVED_MS_MAX = 60_000;
const FEED_MS_MAX = 60_000;
/** One for all services, so that each accepts the tokens of the others. */
const BASE_URL = 'https://identity.example.com';

describe('processes that route through nodes whose clocks differ', async () => {
  const database = postgresAt(await cluster.freshDatabase(), freshMasterKey());
  const url = adminUrlOf(database);
  const name = new URL(url).pathname.slice(1);
  for (const [at, node] of cluster.nodes.entries()) await shiftClock(url, name, node, AHEAD_S[at] ?? 0);
  const receiver = startReceiver();
  const flags = {
    ...database.flags,
    offline: 'true',
    allowPrivate: 'localhost 127.0.0.0/8',
    baseUrl: BASE_URL,
  };
  const services = await Promise.all(
    cluster.nodes.map((node) => startService({ ...flags, database: urlThroughNodes(database.url, [node]) })),
  );
  // The next block kills nodes.
  afterAll(() => Promise.all(services.map((service) => service.stop())));

  /**
   * All nodes share the clock of this machine, so the statements of the service find a shifted one first. Other settings of such a
   * node differ too.
   */
  async function shiftClock(url: string, name: string, node: PostgresServer, seconds: number): Promise<void> {
    if (seconds === 0) return;
    const statements = [
      'set citus.enable_ddl_propagation = off',
      `create function public.clock_timestamp() returns timestamptz language sql volatile
         as $$ select pg_catalog.clock_timestamp() + interval '${seconds} s' $$`,
      `alter database ${name} set search_path = public, pg_catalog`,
      `alter database ${name} set default_transaction_isolation = 'serializable'`,
      `alter database ${name} set timezone = 'Asia/Kolkata'`,
      `alter database ${name} set statement_timeout = '2s'`,
    ];
    await cluster.run(url, statements.join('; '), node);
  }

  /** Follows the feed of all realms until `count` changes of each of these were read. Returns their sequence numbers. */
  async function followFeed(reader: Service, token: string, realms: readonly string[], count: number) {
    const read = new Map(realms.map((realm) => [realm, [] as number[]]));
    const cursors = new Map<string, string>();
    const page = async <T>(path: string) => (await (await reader.get(path, token)).json()) as T;
    const isComplete = () => [...read.values()].every(({ length }) => length >= count);
    const start = performance.now();
    while (!isComplete()) {
      if (performance.now() - start > FEED_MS_MAX) throw new Error(`read ${JSON.stringify([...read])}`);
      const heads = await page<{ data: { realm_id: string; cursor: string }[] }>('/v2/changes?limit=100');
      const moved = heads.data.filter(({ realm_id, cursor }) => cursors.get(realm_id) !== cursor);
      for (const { realm_id: realm } of moved) {
        const after = cursors.get(realm);
        const query = after === undefined ? '' : `?after=${after}`;
        const path = `/v2/authentication-realms/${realm}/changes${query}`;
        const { data, meta } = await page<{ data: { sequence: string }[]; meta: { cursor: string } }>(path);
        read.get(realm)?.push(...data.map(({ sequence }) => Number(sequence)));
        cursors.set(realm, meta.cursor);
      }
      await Bun.sleep(50);
    }
    return read;
  }

  test('the feed and webhooks have every change of a realm in order although the clocks of its routers differ', async () => {
    const [one, other, reader] = services as [Service, Service, Service];
    await addTarget(reader, receiver.url, { eventsMax: 10 });
    const fixtures: Fixture[] = [];
    for (let made = 0; made < REALMS; made += 1) fixtures.push(await createFixture(one.db));
    const token = await one.token('users:write');
    const read = await reader.token('changes:read');
    // The clients that were just created are read again.
    for (const { clock } of services) clock.advance(LIMITS.accessTableAgeMsMax + 1);
    let names = 0;
    const write = async (writer: number) => {
      for (let at = 0; at < WRITES; at += 1) {
        const { realm } = fixtures[(writer + at) % REALMS] as Fixture;
        names += 1;
        const data = { type: 'user_authentication_info', name: 'User', email: `user.${names}@example.com` };
        const { post } = (writer + at) % 2 === 0 ? one : other;
        const path = `/v2/authentication-realms/${realm}/user-authentication-info`;
        expect((await post(path, token, { data })).status).toBe(201);
      }
    };
    const created = 6;
    const written = (WRITERS * WRITES) / REALMS;
    const all = sequenceRange(created + written);
    const realms = fixtures.map(({ realm }) => realm);
    const following = followFeed(reader, read, realms, all.length);
    await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
    const sequences = await following;
    for (const realm of realms) {
      await receiver.until(() => receiver.sequences(realm).length >= all.length, RECEIVED_MS_MAX);
      expect(receiver.sequences(realm)).toEqual([...all]);
      expect(sequences.get(realm)).toEqual([...all]);
    }
    // The clocks did differ.
    const moved = await database.query<{ moved: number }>('select moved from realm_clock order by moved');
    expect((moved.at(-1)?.moved ?? 0) - (moved[0]?.moved ?? 0)).toBeGreaterThan(10);
  });

  test('a request that is sent through two routers at once with one Idempotency-Key is done once', async () => {
    const [one, other] = services as [Service, Service, Service];
    const { realm } = await createFixture(one.db);
    const token = await one.token('users:write');
    for (const { clock } of services) clock.advance(LIMITS.accessTableAgeMsMax + 1);
    const path = `/v2/authentication-realms/${realm}/user-authentication-info`;
    const send = ({ post }: Service, key: number) => {
      const data = { type: 'user_authentication_info', name: 'User', email: `keyed.${key}@example.com` };
      return sendUntilDone(() => post(path, token, { data }, { 'Idempotency-Key': `keyed-${key}` }));
    };
    for (let key = 0; key < 10; key += 1) {
      const [first, second] = await Promise.all([send(one, key), send(other, key)]);
      expect(first).toBe(second);
    }
    const [users] = await database.query<{ n: number }>(
      `select count(*)::integer as n from user_info where realm_id = '${realm}' and email like 'keyed.%'`,
    );
    const [changes] = await database.query<{ n: number; last: number }>(
      `select count(*)::integer as n, max(seq)::integer as last from log_entry where realm_id = '${realm}'`,
    );
    expect([users?.n, changes?.n, changes?.last]).toEqual([10, 16, 16]);
  });

  test('doctor names the nodes whose clocks differ', async () => {
    const { report } = await runDoctorOn(database);
    const findings = report('server').findings.map(({ says }) => says.replace(/[\d.]+:\d+/, 'NODE'));
    expect(findings).toEqual([
      expect.stringMatching(/^the clock of node NODE differs by (19|20|21) s .*synchronize both$/),
      expect.stringMatching(/^the clock of node NODE differs by (14|15|16) s /),
    ]);
  });
});

/** The promise is one second; a busy machine may need more. */
const LEFT_MS_MAX = LIMITS.statementMsMax;

/** Two routers, each behind a proxy, and a realm on the worker that is not a router. */
describe('a process whose router fails', async () => {
  const [coordinator, first, other] = cluster.nodes as [PostgresServer, PostgresServer, PostgresServer];
  const routers = await Promise.all(
    [coordinator, other].map(async (node) => ({ node, proxy: await startTcpProxy(node.port) })),
  );
  const ports = routers.map(({ node, proxy }) => ({ ...node, port: proxy.port }));
  const own = await startClusterService(cluster, ({ url }) => ({
    database: urlThroughNodes(url, ports, RANDOM),
  }));
  const fixture = await own.fixtureOn(first);

  /** The router in use. */
  async function currentRouter() {
    for (const router of routers) if (await isUsed(own.database, router.node)) return router;
    throw new Error('no router is in use');
  }

  /** The time until a lookup, a list and a write succeed. */
  async function measureRecovery(): Promise<number> {
    const start = performance.now();
    for (;;) {
      const answers = await own.answersIn(fixture);
      const statuses = answers.map(({ status }) => status);
      for (const { status, retryAfter } of answers) if (status === 503) expect(retryAfter).toBe('1');
      if (statuses.join() === '200,200,201') return performance.now() - start;
      expect(performance.now() - start).toBeLessThan(LEFT_MS_MAX);
      await Bun.sleep(20);
    }
  }

  test('a process replaces a killed router within a second, and then the next one', async () => {
    for (let kills = 0; kills < 2; kills += 1) {
      const { node } = await currentRouter();
      await node.kill();
      const ms = await measureRecovery();
      console.log(`left a killed router after ${Math.round(ms)} ms`);
      expect(ms).toBeLessThan(LEFT_MS_MAX);
      await node.start();
    }
  });

  test('a process replaces a router that answers nothing within a second', async () => {
    const { proxy } = await currentRouter();
    proxy.stall();
    const ms = await measureRecovery();
    console.log(`left a silent router after ${Math.round(ms)} ms`);
    expect(ms).toBeLessThan(LEFT_MS_MAX);
    proxy.cut();
    proxy.resume();
  });
});
