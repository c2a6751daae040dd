import { afterAll, describe, expect, test } from 'bun:test';
import { SQL } from 'bun';
import { Refusal } from '../../src/model/fault.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine, parseDatabase, reopenEngine } from '../../src/ops/store/open.ts';
import { startProxiedCluster, urlThroughNodes } from '../support/citus_cluster.ts';
import type { PostgresServer } from '../support/postgres_server.ts';
import type { TcpProxy } from '../support/tcp_proxy.ts';

/** Starts on clusters that lack what this program needs. */

const cluster = await startProxiedCluster();
const [coordinator, worker] = cluster.nodes as [PostgresServer, PostgresServer];
/** The port at which the other nodes reach the worker. */
const workerPort = (cluster.proxies[0] as TcpProxy).port;
afterAll(() => {
  for (const proxy of cluster?.proxies ?? []) proxy.stop();
});

type Open = typeof reopenEngine;

const migrate: Open = (address) => openEngine(address, 'auto', { version: 'test', clock: systemClock });

/** The message of a refusal to open the database, or undefined if it opens. */
async function refusal(url: string, open = migrate): Promise<string | undefined> {
  const address = parseDatabase(url);
  if (!address) throw new Error(`${url} is not a database URL`);
  try {
    await (await open(address)).close();
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(Refusal);
    return (error as Refusal).message;
  }
}

/** Replaces the extension of a node by that of another release, as where its packages were never updated. */
async function installExtension(node: PostgresServer, url: string, version: string): Promise<void> {
  const sql = new SQL(node.url(new URL(url).pathname.slice(1)), { max: 1 });
  await sql.unsafe('set citus.enable_version_checks = off');
  await sql.unsafe('drop extension citus cascade');
  await sql.unsafe(`create extension citus version '${version}'`);
  await sql.close();
}

const OLD = '11.3-2';

describe('a start on a cluster', () => {
  test('a start on a database with a Citus that is too old is refused with advice', async () => {
    const url = await cluster.emptyDatabase();
    await installExtension(coordinator, url, OLD);
    expect(await refusal(url)).toBe(
      `the database has Citus ${OLD}, and this program needs 12 or later: update the packages on every node, then run alter ` +
        'extension citus update on each',
    );
  });

  test('a start with a worker whose Citus is too old is refused with statements that correct it', async () => {
    const url = await cluster.freshDatabase();
    await installExtension(worker, url, OLD);
    const sync = `select start_metadata_sync_to_node('127.0.0.1', ${workerPort})`;
    expect(await refusal(urlThroughNodes(url, cluster.nodes))).toBe(
      `node 127.0.0.1:${workerPort} of the cluster has Citus ${OLD}, and this program needs 12 or later: run alter extension ` +
        `citus update there, then ${sync} on the coordinator`,
    );
    await cluster.run(url, 'alter extension citus update', worker);
    await cluster.run(url, sync);
    expect(await refusal(url)).toBeUndefined();
    expect(await refusal(urlThroughNodes(url, [worker]))).toBeUndefined();
  });

  test('a start with a worker without the extension is refused with statements that correct it', async () => {
    const url = await cluster.freshDatabase();
    await cluster.run(url, 'drop extension citus cascade', worker);
    const sync = `select start_metadata_sync_to_node('127.0.0.1', ${workerPort})`;
    // Also where the URL names that worker first.
    for (const nodes of [cluster.nodes, cluster.nodes.toReversed()]) {
      expect(await refusal(urlThroughNodes(url, nodes))).toBe(
        `node 127.0.0.1:${workerPort} of the cluster has no Citus extension in this database, and this program needs 12 or ` +
          `later: run create extension citus there, then ${sync} on the coordinator`,
      );
    }
    await cluster.run(url, 'create extension citus', worker);
    await cluster.run(url, sync);
    expect(await refusal(urlThroughNodes(url, cluster.nodes))).toBeUndefined();
    expect(await refusal(urlThroughNodes(url, [worker]))).toBeUndefined();
  });

  test('a table that is not distributed is refused on every node, until a migration distributes it', async () => {
    const url = await cluster.freshDatabase();
    await cluster.run(url, `select undistribute_table('idempotency')`);
    const advice =
      'these tables are not distributed with Citus: idempotency. Run authrealm migrate as their owner, connected to the ' +
      'coordinator';
    expect(await refusal(url, reopenEngine)).toBe(advice);
    expect(await refusal(urlThroughNodes(url, [worker]), reopenEngine)).toBe(advice);
    expect(await refusal(url)).toBeUndefined();
    expect(await refusal(urlThroughNodes(url, [worker]), reopenEngine)).toBeUndefined();
  });

  test('a start does not wait for a worker that answers nothing', async () => {
    const url = await cluster.freshDatabase();
    const proxy = cluster.proxies[0] as TcpProxy;
    proxy.stall();
    expect(await refusal(url)).toBeUndefined();
    proxy.cut();
    proxy.resume();
  });
});

describe('a router with other settings', () => {
  const settings = ['default_transaction_read_only = on', 'search_path = elsewhere'];
  test.each(settings)('no process routes through a node with %s', async (setting) => {
    const url = await cluster.freshDatabase();
    const name = new URL(url).pathname.slice(1);
    await cluster.run(url, `alter database ${name} set ${setting}`, worker);
    const address = parseDatabase(urlThroughNodes(url, [worker, coordinator], '?load_balance_hosts=random'));
    if (!address) throw new Error(`${url} is not a database URL`);
    const engines = await Promise.all(Array.from({ length: 8 }, () => reopenEngine(address)));
    // Each lookup of clients needs a connection to the node that routes.
    for (const { access } of engines) await access.clientsAfter('', 1);
    const clients = await cluster.run(
      url,
      `select 1 from pg_stat_activity where datname = '${name}' and backend_type = 'client backend'
         and application_name !~ '^citus_' and pid <> pg_backend_pid()`,
      worker,
    );
    expect(clients).toHaveLength(0);
    await Promise.all(engines.map((engine) => engine.close()));
  });
});
