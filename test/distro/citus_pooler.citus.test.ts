import { expect, setDefaultTimeout, test } from 'bun:test';
import { startCluster } from '../support/citus_cluster.ts';
import { freshMasterKey } from '../support/database.ts';
import { type PgBouncer, startPgBouncer } from '../support/pgbouncer.ts';
import { createFixture, type Fixture, oidcPath, type Service, startService } from '../support/service.ts';

/** A service that reaches each node of a Citus cluster through a PgBouncer of its own, in transaction mode. */

setDefaultTimeout(300_000);

const REALMS = '/v2/authentication-realms';

const cluster = await startCluster();
const url = await cluster.freshDatabase();
const database = new URL(url).pathname.slice(1);
const masterKeyFile = freshMasterKey();
// Fewer connections than a process has: transactions change connections.
const bouncers = await Promise.all(
  cluster.nodes.map((node) => startPgBouncer(node, { default_pool_size: '5' })),
);

/** A service on the poolers in this order. */
function serve(order: readonly PgBouncer[], query = ''): Promise<Service> {
  const hosts = order.map(({ host, port }) => `${host}:${port}`).join();
  const through = `postgres://postgres@${hosts}/${database}?prepare=off${query}`;
  return startService({ database: through, masterKeyFile, offline: 'true' });
}

const newUser = { data: { type: 'user_authentication_info', name: 'User', email: 'user@example.com' } };
const users = ({ realm }: Fixture) => `${REALMS}/${realm}/user-authentication-info`;

test.each(['&load_balance_hosts=random', ''])(
  'lookups, writes, lists and the feed of several realms are served through the poolers%s',
  async (query) => {
    const service = await serve(bouncers, query);
    const token = await service.token('profile-infos:read users:read users:write changes:read');
    for (let count = 0; count < 4; count += 1) {
      const fixture = await createFixture(service.db);
      const key = { 'Idempotency-Key': `user-${fixture.realm}` };
      const answers = await Promise.all([
        service.get(oidcPath(fixture), token),
        service.post(users(fixture), token, newUser, key),
        service.get(users(fixture), token),
        service.get(`${REALMS}/${fixture.realm}/changes`, token),
      ]);
      expect(answers.map(({ status }) => status)).toEqual([200, 201, 200, 200]);
      expect((await service.post(users(fixture), token, newUser, key)).status).toBe(201);
    }
  },
);

test('a process switches from the pooler of a node that is down to the next one', async () => {
  const [coordinator, first, second] = bouncers as [PgBouncer, PgBouncer, PgBouncer];
  const service = await serve([first, coordinator, second]);
  const token = await service.token('profile-infos:read users:write');
  const lost = cluster.workers[0];
  let fixture: Fixture;
  do fixture = await createFixture(service.db);
  while ((await cluster.workerOf(url, fixture.realm)) === lost);
  expect((await service.get(oidcPath(fixture), token)).status).toBe(200);
  await lost?.kill();
  const start = performance.now();
  const statuses = async () => [
    (await service.withoutRetry.get(oidcPath(fixture), token)).status,
    (await service.withoutRetry.post(users(fixture), token, newUser)).status,
  ];
  while ((await statuses()).join() !== '200,201') {
    expect(performance.now() - start).toBeLessThan(30_000);
    await Bun.sleep(100);
  }
  console.log(`served again after ${Math.round(performance.now() - start)} ms`);
});
