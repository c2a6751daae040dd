import { describe, expect, test } from 'bun:test';
import { CITUS_TEST_SETTINGS } from '../support/citus_cluster.ts';
import { guideSettings, readCitusGuide, runBlock } from '../support/citus_guide.ts';
import {
  createCopyFixture,
  freshDatabaseOf,
  newMasterKey,
  responsesOf,
  startCopyService,
} from '../support/copy_fixtures.ts';
import { freshMasterKey, postgresAt } from '../support/database.ts';
import { type PostgresServer, ROLES, startServer } from '../support/postgres_server.ts';
import { AUTHREALM, runCommand, startCommand } from '../support/processes.ts';
import { createFixture, type Fixture, type Service, startService } from '../support/service.ts';
import { type ServiceProcess, startServiceProcess } from '../support/service_process.ts';
import { createSevenResourceProgram } from '../support/seventh_resource.ts';
import { underLoad } from '../support/steady_load.ts';

/** docs/guides/citus.md, from empty servers to the removal of a worker, run as written while a service runs. */

const REALMS = 8;
const SERVED: readonly string[] = ['lookup 200', 'write 201', 'lookup overloaded', 'write overloaded'];
const NAMES = ['coordinator', 'worker-1', 'worker-2', 'worker-3'] as const;
type Name = (typeof NAMES)[number];

const settings = { ...guideSettings(), ...CITUS_TEST_SETTINGS };
const started = await Promise.all(NAMES.map(async (name) => [name, await startServer(settings)] as const));
const servers = Object.fromEntries(started) as Record<Name, PostgresServer>;

const guideFor = (database: string, masterKeyFile: string, realm?: string) =>
  readCitusGuide({ servers, database, masterKeyFile, ...(realm === undefined ? {} : { realm }) });

/** Creates a database on some servers, joins all but `worker-3` and creates its tables, as the guide says. */
async function setUp(database: string, masterKeyFile: string, names: readonly Name[] = NAMES): Promise<void> {
  const [extension, nodes] = guideFor(database, masterKeyFile).sql('Set it up');
  for (const server of names.map((name) => servers[name])) {
    await runBlock(server, 'postgres', [
      `create database ${database} owner ${ROLES[0]} template template0 encoding 'UTF8' locale 'C'`,
    ]);
    await runBlock(server, database, extension);
  }
  await runBlock(servers.coordinator, database, nodes);
  const [migrate = []] = guideFor(database, masterKeyFile).commands('Set it up');
  const { code, stderr } = await runCommand([AUTHREALM, ...migrate]);
  expect([code, stderr]).toEqual([0, '']);
}

describe.each(['postgres', 'sqlite'] as const)('a copy of %s into a cluster', (engine) => {
  test(`a copy from ${engine} keeps every ID, ETag, feed position and token, and the feed continues`, async () => {
    const source = await freshDatabaseOf(engine, newMasterKey());
    const name = `from_${engine}`;
    await setUp(name, source.masterKeyFile, ['coordinator', 'worker-1', 'worker-2']);
    const before = await startCopyService(source);
    const fixture = await createCopyFixture(before);
    const { token, home } = fixture;
    const reader = await before.token('changes:read');
    const feed = `/v2/authentication-realms/${home.realm}/changes`;
    const readFeed = async (service: Service, path: string) => {
      const answer = await service.get(path, reader);
      expect(answer.status).toBe(200);
      return (await answer.json()) as FeedPage;
    };
    const positions = async (service: Service) => [
      await readFeed(service, `${feed}?limit=100`),
      await readFeed(service, '/v2/changes'),
    ];
    const expected = [await responsesOf(before, fixture), await positions(before)];
    const { meta } = await readFeed(before, `${feed}?limit=100`);
    await before.stop();

    const [copy = []] = guideFor(name, source.masterKeyFile).commands('Move to a cluster');
    const words = copy.map((word) => word.replace('"$OLD_DATABASE"', source.url));
    const copied = await runCommand([AUTHREALM, ...words]);
    expect([copied.code, copied.stderr]).toEqual([0, '']);

    const url = servers.coordinator.url(name);
    const after = await startCopyService(postgresAt(url, source.masterKeyFile));
    expect([await responsesOf(after, fixture), await positions(after)]).toEqual(expected);
    const user = { type: 'user_authentication_info', name: 'Later', email: 'later@example.com' };
    const path = `/v2/authentication-realms/${home.realm}/user-authentication-info`;
    expect((await after.post(path, token, { data: user })).status).toBe(201);
    const { data } = await readFeed(after, `${feed}?after=${meta.cursor}`);
    expect(data.map(({ type }) => type)).toEqual(['user-authentication-info.created']);
  }, 300_000);
});

interface FeedPage {
  readonly data: readonly { readonly type: string }[];
  readonly meta: { readonly cursor: string };
}

describe('a cluster that serves', async () => {
  const DATABASE = 'grown';
  const SCOPE = 'users:write profile-infos:read';
  const masterKeyFile = freshMasterKey();
  let serving: ServiceProcess;
  let token: string;
  const fixtures: Fixture[] = [];
  const created: string[] = [];

  await setUp(DATABASE, masterKeyFile);
  const database = postgresAt(servers.coordinator.url(DATABASE), masterKeyFile);
  await serve((words) => words);
  /** For fixtures. */
  const direct = await startService({ ...database.flags, offline: 'true' });
  for (let count = 0; count < REALMS; count += 1) await createRealm();

  async function createRealm(): Promise<void> {
    const fixture = await createFixture(direct.db);
    fixtures.push(fixture);
    created.push(fixture.user);
  }

  /** Starts a service as the guide does, with changes to its words, and stops the last one. */
  async function serve(change: (words: string) => string): Promise<void> {
    const [, words = []] = guideFor(DATABASE, masterKeyFile).commands('Set it up');
    const args = words.slice(1).map(change);
    const next = await startServiceProcess({ database: { args }, scope: SCOPE, flags: ['--offline'] });
    token = await next.token();
    await serving?.running.stop();
    serving = next;
  }

  /** Runs the work of a section under load. Every request must be served that the machine has time for. */
  async function rehearse(heading: string, work: () => Promise<unknown>): Promise<void> {
    let seconds = 0;
    const report = await underLoad({ url: serving.url, token, fixtures }, async () => {
      const start = performance.now();
      await work();
      seconds = (performance.now() - start) / 1_000;
    });
    console.log(`${heading}: ${seconds.toFixed(1)} s; ${report.summary}`);
    created.push(...report.created);
    const others = Object.keys(report.answers).filter((name) => !SERVED.includes(name));
    expect([report.created.length > 0, others]).toEqual([true, []]);
  }

  async function runSection(heading: string, realm?: string): Promise<void> {
    const [block] = guideFor(DATABASE, masterKeyFile, realm).sql(heading);
    await runBlock(servers.coordinator, DATABASE, block);
  }

  async function count(sql: string): Promise<number> {
    const [found] = await database.query<{ n: number }>(`select count(*)::integer as n from ${sql}`);
    return found?.n ?? 0;
  }

  /** The number of shards of realms on a server. */
  const shardsOn = ({ port }: PostgresServer) =>
    count(`pg_dist_shard_placement join pg_dist_shard using (shardid)
      where logicalrelid = 'realm'::regclass and nodeport = ${port}`);

  const shardOf = (realm: string) => `get_shard_id_for_distribution_column('realm', '${realm}')`;
  const isOn = async (realm: string, { port }: PostgresServer) =>
    (await count(`pg_dist_shard_placement where shardid = ${shardOf(realm)} and nodeport = ${port}`)) === 1;

  async function realmOn(server: PostgresServer): Promise<string> {
    for (;;) {
      for (const { realm } of fixtures) if (await isOn(realm, server)) return realm;
      await createRealm();
    }
  }

  test('a new cluster has realms on both workers and none on the coordinator', async () => {
    expect(await shardsOn(servers['worker-1'])).toBe(await shardsOn(servers['worker-2']));
    expect(await shardsOn(servers.coordinator)).toBe(0);
  });

  test('a worker is added and shards move to it while every request is served', async () => {
    await rehearse('Add a worker', () => runSection('Add a worker'));
    expect(await shardsOn(servers['worker-3'])).toBeGreaterThan(0);
  }, 300_000);

  test('a realm gets a worker of its own while every request is served', async () => {
    const heading = 'Give a realm a worker of its own';
    const realm = await realmOn(servers['worker-1']);
    await rehearse(heading, () => runSection(heading, realm));
    expect(await isOn(realm, servers['worker-3'])).toBe(true);
    expect(
      await count(`pg_dist_shard where shardid = ${shardOf(realm)} and shardminvalue = shardmaxvalue`),
    ).toBe(1);
  }, 300_000);

  const address = ({ host, port }: PostgresServer) => `${host}:${port}`;
  const withoutRemoved = (word: string) =>
    word.replace(address(servers['worker-1']), address(servers['worker-3']));

  test('a worker is removed while every request is served, and is not needed any more', async () => {
    const removed = servers['worker-1'];
    await serve(withoutRemoved);
    await rehearse('Remove a worker', () => runSection('Remove a worker'));
    await removed.stop('immediate');
    await rehearse('Without that worker', () => Bun.sleep(1_000));
    expect(await count(`pg_dist_node where nodeport = ${removed.port}`)).toBe(0);
  }, 300_000);

  test('a further migration adds a table, and migrate distributes it while every request is served', async () => {
    const program = await createSevenResourceProgram();
    await serve(withoutRemoved);
    const [migrate = []] = guideFor(DATABASE, masterKeyFile).commands('Set it up');
    await rehearse('Upgrade', async () => {
      const { code, stdout, stderr } = await runCommand([program.authrealm, ...migrate]);
      expect([code, stdout, stderr]).toEqual([0, expect.stringMatching(/applied: \d+ device\n$/), '']);
    });
    const table = (name: string) => `pg_dist_shard where logicalrelid = '${name}'::regclass`;
    expect(await count(table('device'))).toBe(await count(table('realm')));
    const together = `pg_dist_partition where logicalrelid in ('device'::regclass, 'realm'::regclass)`;
    expect(await count(`(select distinct colocationid from ${together}) as groups`)).toBe(1);
    // A process of the new release starts, which it would not with a table on one node.
    const started = startCommand([program.authrealm, 'serve', '--port', '0', '--offline', ...database.args]);
    await started.line(/^listening on /);
    expect(await started.stop()).toBe(0);
  }, 300_000);

  test('every user that was created while the cluster grew is stored once, and records agree with changes', async () => {
    const rows = await database.query<{ id: string }>('select id::text as id from user_info');
    expect(rows.map(({ id }) => id).sort()).toEqual(created.toSorted());
    expect(await database.findInconsistencies()).toEqual([]);
  }, 300_000);
});
