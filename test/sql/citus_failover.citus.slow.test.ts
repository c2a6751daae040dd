import { expect, test } from 'bun:test';
import { CITUS_SETTINGS, startCluster } from '../support/citus_cluster.ts';
import { type CitusGuide, readCitusGuide, runBlock } from '../support/citus_guide.ts';
import { freshMasterKey, postgresAt } from '../support/database.ts';
import type { PostgresServer } from '../support/postgres_server.ts';
import { createFixture, type Fixture, oidcPath, startService } from '../support/service.ts';
import { type ServiceProcess, startServiceProcess } from '../support/service_process.ts';
import { replicationSettings, startStandby, waitUntilSynchronous } from '../support/standby.ts';

/**
 * A cluster whose nodes have synchronous standbys loses each of its first nodes in turn, while writers record which writes were
 * acknowledged. The SQL is that of docs/guides/citus.md.
 */

const HEADING = 'Standbys';
const NAMES = ['coordinator', 'worker-1', 'worker-2'] as const;
type Name = (typeof NAMES)[number];

/** At the beginning; more are created until each worker has one. */
const REALMS = 8;
const SCOPE = 'realms:read users:write profile-infos:read';
const RETRY_PAUSE_MS = 50;
/** How long a node is down before its standby is promoted. */
const AWAY_MS = 1_000;

const settings = { ...replicationSettings(), 'citus.recover_2pc_interval': '2s' };
const cluster = await startCluster({ settings });
const url = await cluster.freshDatabase();
const name = new URL(url).pathname.slice(1);
const masterKeyFile = freshMasterKey();
const [coordinator, first, second] = cluster.nodes as [PostgresServer, PostgresServer, PostgresServer];
/** The servers that accept writes. */
const current: Record<Name, PostgresServer> = { coordinator, 'worker-1': first, 'worker-2': second };
const startStandbyOf = async (node: Name) =>
  [node, await startStandby(current[node], { ...CITUS_SETTINGS, ...settings })] as const;
const standbys = Object.fromEntries(await Promise.all(NAMES.map(startStandbyOf))) as Record<
  Name,
  PostgresServer
>;
const [synchronous] = guideWith({}).sql(HEADING);
for (const node of NAMES) {
  await runBlock(current[node], 'postgres', synchronous);
  await waitUntilSynchronous(current[node]);
}
const service = await startService({ ...postgresAt(url, masterKeyFile).flags, offline: 'true' });
const fixtures = await Promise.all(Array.from({ length: REALMS }, () => createFixture(service.db)));
for (const worker of [first, second])
  while (!(await hasRealm(worker, fixtures))) fixtures.push(await createFixture(service.db));
await service.stop();
const serving = await serve();
const token = await serving.token();

/** The guide with the servers that were started first and their standbys; `replaced` has others for some names. */
function guideWith(replaced: Readonly<Record<string, PostgresServer>>): CitusGuide {
  const servers = { coordinator, 'worker-1': first, 'worker-2': second };
  const copies = Object.fromEntries(NAMES.map((node) => [`${node}-standby`, standbys[node]]));
  return readCitusGuide({ servers: { ...servers, ...copies, ...replaced }, database: name, masterKeyFile });
}

function serve(): Promise<ServiceProcess> {
  const [words = []] = guideWith({}).commands(HEADING);
  const flags = ['--offline', '--processes', '2'];
  return startServiceProcess({ database: { args: words.slice(1) }, scope: SCOPE, flags });
}

/** IDs of users whose creation was acknowledged, by realm. */
const acknowledged = new Map<string, Set<string>>();
let isWriting = true;
let count = 0;

/** Creates users one after the other. Each request is sent again, with its key, until it is acknowledged. */
async function write({ realm, user }: Fixture): Promise<void> {
  const own = new Set<string>([user]);
  acknowledged.set(realm, own);
  const path = `/v2/authentication-realms/${realm}/user-authentication-info`;
  while (isWriting) {
    count += 1;
    const headers = { 'Idempotency-Key': `user-${count}` };
    const data = { type: 'user_authentication_info', name: 'User', email: `user.${count}@example.com` };
    own.add(await sendUntilAcknowledged(() => serving.withoutRetry.post(path, token, { data }, headers)));
  }
}

async function sendUntilAcknowledged(send: () => Promise<Response>): Promise<string> {
  for (;;) {
    const answer = await send();
    const body = (await answer.json()) as { data: { id: string } };
    if (answer.status === 201) return body.data.id;
    // In flight, unavailable, or committed without an acknowledgement: the key keeps it from being written twice.
    expect([409, 503]).toContain(answer.status);
    await Bun.sleep(RETRY_PAUSE_MS);
  }
}

/** Resolves when each of these realms has acknowledged two more writes, of which the second began after the call. */
async function waitForWrites(realms: readonly string[]): Promise<void> {
  const sizes = () => realms.map((realm) => acknowledged.get(realm)?.size ?? 0);
  const before = sizes();
  while (sizes().some((size, at) => size < (before[at] ?? 0) + 2)) await Bun.sleep(RETRY_PAUSE_MS);
}

const realmsOf = (own: readonly Fixture[]) => own.map(({ realm }) => realm);

let writers: readonly Promise<void>[] = [];
test('writers of all realms are acknowledged while every node has its standby', async () => {
  writers = fixtures.map(write);
  await waitForWrites(realmsOf(fixtures));
}, 300_000);

/** Kills a node, and gives its place to its standby. */
async function loseNode(node: Name): Promise<void> {
  const lost = current[node];
  const standby = standbys[node];
  const elsewhere: Fixture[] = [];
  for (const fixture of fixtures) {
    if ((await workerOf(fixture.realm)) !== lost.port) elsewhere.push(fixture);
  }
  await lost.kill();
  const start = performance.now();
  await Bun.sleep(AWAY_MS);
  await waitForWrites(realmsOf(elsewhere));
  // The coordinator has no realms.
  expect(elsewhere.length === fixtures.length).toBe(node === 'coordinator');
  const list = await serving.withoutRetry.get('/v2/authentication-realms', token);
  expect(list.status).toBe(node === 'coordinator' ? 200 : 503);
  const downMs = performance.now() - start;
  const guide = guideWith({ 'worker-2': lost, 'worker-2-standby': standby });
  const [, promotion, update] = guide.sql(HEADING);
  await runBlock(standby, 'postgres', promotion);
  current[node] = standby;
  await runBlock(current.coordinator, name, update);
  const updated = performance.now();
  await waitForWrites(realmsOf(fixtures));
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
  console.log(
    `${node}: ${elsewhere.length} of ${fixtures.length} realms written meanwhile; down ${seconds(downMs)}; ` +
      `all realms written ${seconds(performance.now() - updated)} after the update`,
  );
}

async function hasRealm({ port }: PostgresServer, of: readonly Fixture[]): Promise<boolean> {
  for (const { realm } of of) if ((await workerOf(realm)) === port) return true;
  return false;
}

async function workerOf(realm: string): Promise<number> {
  const [found] = await runBlock<{ port: number }>(current.coordinator, name, [
    `select nodeport as port from pg_dist_shard_placement
     where shardid = get_shard_id_for_distribution_column('realm', '${realm}')`,
  ]);
  return Number(found?.port);
}

async function expectLookups(service: ServiceProcess, bearer: string): Promise<void> {
  for (const fixture of fixtures) expect((await service.get(oidcPath(fixture), bearer)).status).toBe(200);
}

test.each(['worker-1', 'coordinator', 'worker-2'] as const)(
  'processes continue after the loss of %s, without a restart',
  async (node) => {
    await loseNode(node);
    await expectLookups(serving, token);
  },
  300_000,
);

test('a process starts and serves after each node was replaced by its standby', async () => {
  const second = await serve();
  await expectLookups(second, await second.token());
}, 300_000);

test('no node has a prepared transaction after all failovers', async () => {
  const [prepared] = guideWith({}).sql('While a node is down');
  for (const node of NAMES) {
    while ((await runBlock(current[node], name, prepared)).length > 0) await Bun.sleep(RETRY_PAUSE_MS);
  }
}, 300_000);

test('no acknowledged write is lost or written twice, and records agree with changes', async () => {
  isWriting = false;
  await Promise.all(writers);
  const database = postgresAt(current.coordinator.url(name), masterKeyFile);
  const rows = await database.query<{ id: string }>('select id::text as id from user_info');
  const expected = [...acknowledged.values()].flatMap((own) => [...own]);
  expect(rows.map(({ id }) => id).sort()).toEqual(expected.sort());
  expect(await database.findInconsistencies()).toEqual([]);
  console.log(`${expected.length} users acknowledged`);
}, 300_000);
