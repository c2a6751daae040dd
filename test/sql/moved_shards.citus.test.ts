import { expect, test } from 'bun:test';
import { SQL } from 'bun';
import { CITUS_WRITE } from '../../src/sql/postgres/scope_locks.ts';
import { mintId } from '../records/contract/store_fixtures.ts';
import { sharedCluster } from '../support/citus_cluster.ts';

/** What a write needs of Citus while shards are moved. */

test('a shard is moved after the transactions that have locked one of its realms, with the rows that they wrote', async () => {
  const cluster = await sharedCluster();
  const url = await cluster.freshDatabase();
  const realm = mintId();
  const source = await cluster.workerOf(url, realm);
  const target = cluster.workers.find((worker) => worker !== source) ?? source;

  const writing = new SQL(url, { max: 1 });
  for (const text of CITUS_WRITE.begin) await writing.unsafe(text);
  await writing.unsafe(CITUS_WRITE.lockClock, [realm]);
  let isMoved = false;
  const move = cluster.run(
    url,
    `select citus_move_shard_placement(shardid, nodename, nodeport, '${target.host}', ${target.port}, 'block_writes')
     from pg_dist_shard_placement where shardid = get_shard_id_for_distribution_column('realm', '${realm}')`,
  );
  const waiting = `select 1 from pg_stat_activity
    where wait_event_type = 'Lock' and query like '%citus_move_shard_placement%' and datname = current_database()`;
  void move.then(() => {
    isMoved = true;
  });
  while (!isMoved && (await cluster.run(url, waiting)).length === 0) await Bun.sleep(20);
  expect(await cluster.workerOf(url, realm)).toBe(source);
  await writing.unsafe(`update realm_clock set seq = 7 where realm_id = '${realm}'`);
  await writing.unsafe('commit');
  await move;
  expect(await cluster.workerOf(url, realm)).toBe(target);
  const clocks = `select seq::integer as seq from realm_clock where realm_id = '${realm}'`;
  expect(await cluster.run<{ seq: number }>(url, clocks)).toEqual([{ seq: 7 }]);
  await writing.close();
}, 300_000);
