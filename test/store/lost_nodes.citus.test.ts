import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { NIL_UUID } from '../../src/domain/id.ts';
import { type CitusCluster, startCluster } from '../support/citus_cluster.ts';
import { freshMasterKey, postgresAt, type TestDatabase } from '../support/database.ts';
import type { PostgresServer } from '../support/postgres_server.ts';
import { createFixture, type Fixture, oidcPath, type Service, startService } from '../support/service.ts';

/** A service while a node of its cluster is away. Every answer is the first one: nothing is sent again. */

const REALMS = '/v2/authentication-realms';
const SCOPE = 'realms:read realms:write users:read users:write profile-infos:read admin';
/** A node that is away refuses connections, so its realms are answered without waiting for a time limit. */
const AT_ONCE_MS = 1_500;

let cluster: CitusCluster;
let database: TestDatabase;
let service: Service;
let token: string;
/** The worker with the log of the installation, and a realm on it. */
let home: PostgresServer;
let atHome: Fixture;
/** The other worker, and a realm on it. */
let other: PostgresServer;
let elsewhere: Fixture;

beforeAll(async () => {
  cluster = await startCluster();
  database = postgresAt(await cluster.freshDatabase(), freshMasterKey());
  service = await startService({ ...database.flags, offline: 'true' });
  token = await service.token(SCOPE);
  home = await cluster.workerOf(database.url, NIL_UUID);
  other = cluster.workers.find((worker) => worker !== home) as PostgresServer;
  atHome = await fixtureOn(home);
  elsewhere = await fixtureOn(other);
}, 300_000);
afterAll(() => service?.stop());

async function fixtureOn(worker: PostgresServer): Promise<Fixture> {
  for (;;) {
    const fixture = await createFixture(service.db);
    if ((await cluster.workerOf(adminUrl(), fixture.realm)) === worker) return fixture;
  }
}

const adminUrl = () => database.url.replace(/(?<=\/\/)\w+(?=@)/, 'postgres');

interface Answer {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly isAtOnce: boolean;
}

async function answerTo(request: () => Promise<Response>): Promise<Answer> {
  const start = performance.now();
  const answer = await request();
  await answer.arrayBuffer();
  return {
    status: answer.status,
    retryAfter: answer.headers.get('retry-after'),
    isAtOnce: performance.now() - start < AT_ONCE_MS,
  };
}

let names = 0;
const newUser = () => {
  names += 1;
  return { data: { type: 'user_authentication_info', name: 'User', email: `user.${names}@example.com` } };
};

/** A lookup, a list and a write in a realm. */
async function answersIn(fixture: Fixture): Promise<readonly Answer[]> {
  const users = `${REALMS}/${fixture.realm}/user-authentication-info`;
  const { get, post } = service.withoutRetry;
  return [
    await answerTo(() => get(oidcPath(fixture), token)),
    await answerTo(() => get(users, token)),
    await answerTo(() => post(users, token, newUser())),
  ];
}

async function expectServed(fixture: Fixture): Promise<void> {
  expect((await answersIn(fixture)).map(({ status }) => status)).toEqual([200, 200, 201]);
}

async function expectUnavailable(fixture: Fixture): Promise<void> {
  for (const answer of await answersIn(fixture)) {
    expect(answer).toEqual({ status: 503, retryAfter: expect.stringMatching(/^\d+$/), isAtOnce: true });
  }
}

async function readyNodes(): Promise<unknown> {
  const answer = await service.withoutRetry.get('/readyz');
  return [answer.status, ((await answer.json()) as { nodes?: unknown }).nodes];
}

const client = { data: { name: 'shop', scopes: ['users:read'], realms: '*' } };

async function grantToken(): Promise<number> {
  const form = {
    grant_type: 'client_credentials',
    client_id: granted.clientId,
    client_secret: granted.secret,
  };
  return (await service.requestToken(form)).status;
}

let granted: { clientId: string; secret: string };
beforeAll(async () => {
  granted = await service.client('users:read profile-infos:read');
});

describe('while the worker without the log of the installation is away', () => {
  beforeAll(() => other.kill());

  test('its realms are 503 with Retry-After at once', () => expectUnavailable(elsewhere));

  test('realms on other workers are served', () => expectServed(atHome));

  test('the readiness is 200 and counts two of three nodes', async () => {
    expect(await readyNodes()).toEqual([200, { reachable: 2, total: 3 }]);
  });

  test('tokens are granted', async () => {
    expect(await grantToken()).toBe(200);
  });

  test('a new client is 503', async () => {
    const answer = await answerTo(() => service.withoutRetry.post('/admin/v1/clients', token, client));
    expect(answer.status).toBe(503);
  });

  test('a process starts and serves the realms on other workers', async () => {
    const second = await startService({ ...database.flags, offline: 'true' });
    const form = {
      grant_type: 'client_credentials',
      client_id: granted.clientId,
      client_secret: granted.secret,
    };
    const { access_token } = (await (await second.requestToken(form)).json()) as { access_token: string };
    expect((await second.withoutRetry.get(oidcPath(atHome), access_token)).status).toBe(200);
    await second.stop();
  });

  test('its realms are served again once it is back', async () => {
    await other.start();
    await expectServed(elsewhere);
    expect(await readyNodes()).toEqual([200, { reachable: 3, total: 3 }]);
  });
});

describe('while the worker with the log of the installation is away', () => {
  let before: number;
  beforeAll(async () => {
    before = await countGrants();
    await home.kill();
  });

  async function countGrants(): Promise<number> {
    const rows = await database.query<{ n: number }>(
      `select count(*)::integer as n from act where log_id = '${NIL_UUID}' and action = 'token.granted'`,
    );
    return rows[0]?.n ?? 0;
  }

  test('realms elsewhere are served, those on it are 503', async () => {
    await expectServed(elsewhere);
    await expectUnavailable(atHome);
  });

  test('tokens are granted, and their log entries are written once it is back', async () => {
    expect([await grantToken(), await grantToken()]).toEqual([200, 200]);
    const answer = await answerTo(() => service.withoutRetry.post('/admin/v1/clients', token, client));
    expect(answer.status).toBe(503);
    await home.start();
    while ((await countGrants()) < before + 2) await Bun.sleep(50);
    expect(await countGrants()).toBe(before + 2);
    await expectServed(atHome);
  });
});
