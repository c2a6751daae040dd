import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { NIL_UUID } from '../../src/model/id.ts';
import { startCluster } from '../support/citus_cluster.ts';
import { answerTo, REALMS, startClusterService } from '../support/cluster_service.ts';
import type { PostgresServer } from '../support/postgres_server.ts';
import { type Fixture, oidcPath, startService } from '../support/service.ts';
import { addTarget, sequenceRange, startReceiver } from '../support/webhook_receivers.ts';

/** A service while a node of its cluster is down. Every answer is the first one: nothing is sent again. */

/** A node that is down refuses connections, so its realms are answered without waiting for a time limit. */
const AT_ONCE_MS = 3_000;
/** Longer than the pauses between attempts to read the log. */
const DELIVERED_MS_MAX = 60_000;

const cluster = await startCluster();
const own = await startClusterService(cluster, () => ({ allowPrivate: 'localhost 127.0.0.0/8' }));
const { service, token } = own;
/** The worker with the log of the installation, and a realm on it. */
const home = await cluster.workerOf(own.adminUrl, NIL_UUID);
/** The other worker, and a realm on it. */
const other = cluster.workers.find((worker) => worker !== home) as PostgresServer;
const atHome = await own.fixtureOn(home);
const elsewhere = await own.fixtureOn(other);
const granted = await service.client('users:read profile-infos:read');
const receiver = startReceiver();
await addTarget(service, receiver.url, {
  from: 'oldest',
  realms: new Set([atHome.realm, elsewhere.realm]),
});

/** Every change of both realms was sent, in order. */
async function expectDelivered(): Promise<void> {
  for (const { realm } of [atHome, elsewhere]) {
    const clocks = await own.database.query<{ seq: number }>(
      `select seq::integer as seq from realm_clock where realm_id = '${realm}'`,
    );
    const all = sequenceRange(clocks[0]?.seq ?? 0);
    await receiver.until(() => receiver.sequences(realm).length >= all.length, DELIVERED_MS_MAX);
    expect(receiver.sequences(realm)).toEqual([...all]);
  }
}

async function expectServed(fixture: Fixture): Promise<void> {
  expect((await own.answersIn(fixture)).map(({ status }) => status)).toEqual([200, 200, 201]);
}

async function expectUnavailable(fixture: Fixture): Promise<void> {
  for (const { status, retryAfter, ms } of await own.answersIn(fixture)) {
    expect([status, retryAfter, ms < AT_ONCE_MS]).toEqual([503, '1', true]);
  }
}

async function readyNodes(): Promise<unknown> {
  const answer = await service.withoutRetry.get('/readyz');
  return [answer.status, ((await answer.json()) as { nodes?: unknown }).nodes];
}

const client = { data: { name: 'shop', scopes: ['users:read'], realms: '*' } };

const grantToken = async (of = granted) => (await service.requestGrant(of)).status;

/** A change stream of a realm, which collects what it sends. */
async function followChanges({ realm }: Fixture) {
  const closing = new AbortController();
  const answer = await fetch(`${service.url}${REALMS}/${realm}/changes`, {
    headers: { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' },
    signal: closing.signal,
  });
  const stream = { status: answer.status, text: '', close: () => closing.abort() };
  const read = async () => {
    for await (const part of answer.body ?? []) stream.text += new TextDecoder().decode(part);
  };
  read().catch(() => undefined);
  return stream;
}

describe('while the worker without the log of the installation is down', async () => {
  const followed = [await followChanges(elsewhere), await followChanges(atHome)];
  beforeAll(() => other.kill());
  afterAll(() => {
    for (const { close } of followed) close();
  });

  test('realms on a worker that is down are 503 with Retry-After at once', () =>
    expectUnavailable(elsewhere));

  test('realms are served while another worker is down', () => expectServed(atHome));

  test('change streams of a realm continue while another worker is down', async () => {
    const [, stream] = followed as [(typeof followed)[0], (typeof followed)[0]];
    const [path, user] = own.newUser(atHome);
    const made = await service.withoutRetry.post(path, token, user);
    const { data } = (await made.json()) as { data: { id: string } };
    while (!stream.text.includes(data.id)) await Bun.sleep(20);
    expect(stream.status).toBe(200);
  });

  test('/readyz is 200 and counts two of three nodes while a worker is down', async () => {
    expect(await readyNodes()).toEqual([200, { reachable: 2, total: 3 }]);
  });

  test('tokens are granted while a worker is down', async () => {
    expect(await grantToken()).toBe(200);
  });

  test('the creation of a client is 503 while a worker is down', async () => {
    const answer = await answerTo(service.withoutRetry.post('/admin/v1/clients', token, client));
    expect(answer.status).toBe(503);
  });

  test('a process that starts while a worker is down serves the realms on other workers', async () => {
    const second = await startService({ ...own.database.flags, offline: 'true' });
    const access_token = await second.grant(granted);
    expect((await second.withoutRetry.get(oidcPath(atHome), access_token)).status).toBe(200);
  });

  test('realms are served again once their worker has restarted', async () => {
    await other.start();
    await expectServed(elsewhere);
    // The count gives each node a limited time, and the worker has just started.
    const all = [200, { reachable: 3, total: 3 }];
    while (!Bun.deepEquals(await readyNodes(), all)) await Bun.sleep(20);
    const [stream] = followed as [(typeof followed)[0]];
    const { length } = stream.text;
    while (stream.text.length === length) await Bun.sleep(20);
  });

  test('webhook targets receive the changes of all realms in order once a worker has restarted', () =>
    expectDelivered());
});

describe('while the worker with the log of the installation is down', async () => {
  /** Clients without an earlier grant, because further ones of a minute share an entry. */
  const others = [await service.client('users:read'), await service.client('users:read')];
  let before: number;
  beforeAll(async () => {
    before = await countGrants();
    await home.kill();
  });

  async function countGrants(): Promise<number> {
    const rows = await own.database.query<{ n: number }>(
      `select count(*)::integer as n from act where log_id = '${NIL_UUID}' and action = 'token.granted'`,
    );
    return rows[0]?.n ?? 0;
  }

  test('realms are 503 while their worker with the log of the installation is down, and others are served', async () => {
    await expectServed(elsewhere);
    await expectUnavailable(atHome);
  });

  test('tokens are granted while the log of the installation is unavailable, and their entries are written later', async () => {
    for (const other of others) expect(await grantToken(other)).toBe(200);
    const answer = await answerTo(service.withoutRetry.post('/admin/v1/clients', token, client));
    expect(answer.status).toBe(503);
    await home.start();
    while ((await countGrants()) < before + 2) await Bun.sleep(50);
    expect(await countGrants()).toBe(before + 2);
    await expectServed(atHome);
  });

  test('webhook targets receive all changes in order once the log of the installation is available again', () =>
    expectDelivered());
});
