import { expect, test } from 'bun:test';
import { NIL_UUID } from '../../src/model/id.ts';
import { startCluster } from '../support/citus_cluster.ts';
import { sendUntilDone, startClusterService, usersPath } from '../support/cluster_service.ts';
import { createFixture, type Fixture } from '../support/service.ts';
import { addTarget, sequenceRange, startReceiver } from '../support/webhook_receivers.ts';

const REALMS = 8;
const WRITERS = 50;
const GRANT_PAUSE_MS = 50;
const RECEIVED_MS_MAX = 60_000;

test('all shards move under 50 writers, and each write is done once and sent in order', async () => {
  const cluster = await startCluster();
  const receiver = startReceiver();
  // The longer the move, the more tokens.
  const flags = { allowPrivate: 'localhost 127.0.0.0/8', grantRate: 'off' };
  const own = await startClusterService(cluster, () => flags);
  const { service, token, database } = own;
  await addTarget(service, receiver.url, { eventsMax: 100 });
  const fixtures: Fixture[] = [];
  while (fixtures.length < REALMS) fixtures.push(await createFixture(service.db));
  const { clientId, secret } = await service.client('users:read');
  const count = async (from: string) => {
    const [found] = await database.query<{ n: number }>(`select count(*)::integer as n from ${from}`);
    return found?.n ?? 0;
  };

  let isMoving = true;
  const created: string[] = [];
  let sent = 0;
  async function write(): Promise<void> {
    while (isMoving) {
      sent += 1;
      const key = `moved.${sent}`;
      const data = { type: 'user_authentication_info', name: 'User', email: `${key}@example.com` };
      const path = usersPath(fixtures[sent % REALMS] as Fixture);
      const send = () => service.withoutRetry.post(path, token, { data }, { 'Idempotency-Key': key });
      created.push(await sendUntilDone(send));
    }
  }
  let granted = 0;
  async function grant(): Promise<void> {
    while (isMoving) {
      await service.grant({ clientId, secret });
      granted += 1;
      await Bun.sleep(GRANT_PAUSE_MS);
    }
  }
  /** Moves every shard of realm data, and the one of the tables on one node, to the other worker. */
  async function move(): Promise<number> {
    const ports = cluster.workers.map(({ port }) => port);
    const shards = await cluster.run<{ shardid: string; nodeport: number }>(
      own.adminUrl,
      `select shardid::text, nodeport::integer from pg_dist_shard_placement join pg_dist_shard using (shardid)
       where logicalrelid in ('realm_clock'::regclass, 'lease'::regclass) order by shardid`,
    );
    for (const { shardid, nodeport } of shards) {
      const target = ports.find((port) => port !== nodeport);
      const from = `'127.0.0.1', ${nodeport}`;
      const to = `'127.0.0.1', ${target}`;
      await cluster.run(own.adminUrl, `select citus_move_shard_placement(${shardid}, ${from}, ${to})`);
      expect(await count(`pg_dist_shard_placement where shardid = ${shardid} and nodeport = ${target}`)).toBe(
        1,
      );
    }
    return shards.length;
  }

  const load = Promise.all([grant(), ...Array.from({ length: WRITERS }, write)]);
  const start = performance.now();
  const moved = await move().finally(() => {
    isMoving = false;
  });
  await load;
  const seconds = (performance.now() - start) / 1_000;
  console.log(
    `${moved} shards moved in ${seconds.toFixed(1)} s, ${created.length} writes, ${granted} tokens granted`,
  );

  expect(new Set(created).size).toBe(created.length);
  expect(await count(`user_info where email like 'moved.%'`)).toBe(created.length);
  expect(await count(`user_info join unnest('{${created.join()}}'::uuid[]) as made (id) using (id)`)).toBe(
    created.length,
  );
  for (const { realm } of fixtures) {
    const changes = await count(`log_entry where realm_id = '${realm}'`);
    await receiver.until(() => receiver.sequences(realm).length >= changes, RECEIVED_MS_MAX);
    expect(receiver.sequences(realm)).toEqual([...sequenceRange(changes)]);
  }
  expect(await database.findInconsistencies()).toEqual([]);
  // The grants of a minute share an entry, which is written at its end or at the stop.
  await service.stop();
  const entries = await database.query<{ detail: string }>(
    `select detail from act where log_id = '${NIL_UUID}' and action = 'token.granted' and object = '${clientId}'`,
  );
  const counts = entries.map(({ detail }) => Number(JSON.parse(detail).count ?? 1));
  expect(counts.reduce((sum, each) => sum + each, 0)).toBe(granted);
}, 300_000);
