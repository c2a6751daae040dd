import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine, parseDatabase } from '../../src/ops/store/open.ts';
import { freshDaemonFolder, runAsDaemon } from './daemons.ts';
import { sharedArtefact } from './folder.ts';
import { type PostgresServer, ROLES, runOn, startServer } from './postgres_server.ts';
import { startTcpProxy, type TcpProxy } from './tcp_proxy.ts';

/** A Citus cluster from the files in AUTHREALM_TEST_CITUS: a coordinator and workers. */
export interface CitusCluster {
  /** The coordinator, then the workers. */
  readonly nodes: readonly PostgresServer[];
  readonly coordinator: PostgresServer;
  readonly workers: readonly PostgresServer[];
  /** Servers that are in no database's cluster yet. */
  readonly spares: readonly PostgresServer[];
  /** The URL of a new database with the extension on every node, but without tables, for the role `postgres`. */
  emptyDatabase(): Promise<string>;
  /** The same with the migrated and distributed schema: a copy of the template. */
  freshDatabase(): Promise<string>;
  /** The name of that template. */
  template(): Promise<string>;
  /** A copy of a database on every node. No connection to it may be open. */
  copyDatabase(url: string): Promise<string>;
  /** The URLs of a database on each node. */
  urlsOf(url: string): readonly string[];
  /** The worker with the rows of a realm. */
  workerOf(url: string, realm: string): Promise<PostgresServer>;
  /** Runs SQL in a database of one node, or of the coordinator. */
  run<R>(url: string, sql: string, node?: PostgresServer): Promise<R[]>;
}

/** The build of Citus links another libssl than the server. */
export const CITUS_TEST_SETTINGS = { 'citus.node_conninfo': 'sslmode=disable' };

/** A shard count that leaves both workers some realms. */
export const CITUS_SETTINGS = {
  ...CITUS_TEST_SETTINGS,
  shared_preload_libraries: 'citus',
  'citus.shard_count': '4',
  max_connections: '400',
  max_prepared_transactions: '400',
  // A database with Citus tables has a background worker.
  max_worker_processes: '100',
  wal_level: 'logical',
};

const WORKERS = 2;

/** The error of a database that is copied while a session is connected to it. */
const OBJECT_IN_USE = '55006';

/** Whether the suites run on Citus. */
export const isCitusEngine = process.env.AUTHREALM_TEST_ENGINE === 'citus';

let shared: Promise<CitusCluster> | undefined;

/** The cluster that the suites of a test process share. */
export function sharedCluster(): Promise<CitusCluster> {
  shared ??= process.env.AUTHREALM_TEST_ARTEFACTS === undefined ? startCluster() : startCopiedCluster();
  return shared;
}

/** Describes a stopped cluster, next to the data folders of its nodes. */
interface StoppedCluster {
  readonly ports: readonly number[];
  readonly template: string;
}

const DESCRIPTION = 'cluster.json';

/** Starts a copy of a cluster that has its template, which takes many times as long to create. */
async function startCopiedCluster(): Promise<CitusCluster> {
  const stopped = await sharedArtefact('cluster', createStoppedCluster);
  const { ports, template }: StoppedCluster = JSON.parse(readFileSync(join(stopped, DESCRIPTION), 'utf8'));
  const nodes = await Promise.all(
    ports.map(async (_, index) => {
      const folder = freshDaemonFolder();
      await runAsDaemon(['cp', '-a', join(stopped, String(index)), join(folder, 'data')], folder);
      return startNode({}, folder);
    }),
  );
  const cases = ports.map((port, index) => `when ${port} then ${nodes[index]?.port}`).join(' ');
  for (const node of nodes) {
    await runOn(node.url(), `alter database ${template} with allow_connections true`);
    // A new port may be the old one of another node, and ports are unique.
    await runOn(node.url(template), 'update pg_dist_node set nodeport = -nodeport');
    await runOn(node.url(template), `update pg_dist_node set nodeport = case -nodeport ${cases} end`);
    await closeDatabase(node, template);
  }
  return clusterOf(nodes, { template });
}

/** Returns a folder with the data of a cluster. */
async function createStoppedCluster(): Promise<string> {
  const folders = Array.from({ length: WORKERS + 1 }, () => freshDaemonFolder());
  const nodes = await Promise.all(folders.map((folder) => startNode({}, folder)));
  const template = await clusterOf(nodes).template();
  await Promise.all(nodes.map((node) => node.stop()));
  const stopped = freshDaemonFolder('disk');
  for (const [index, folder] of folders.entries())
    await runAsDaemon(['cp', '-a', join(folder, 'data'), join(stopped, String(index))], stopped);
  const described: StoppedCluster = { ports: nodes.map(({ port }) => port), template };
  writeFileSync(join(stopped, DESCRIPTION), JSON.stringify(described));
  return stopped;
}

function startNode(settings: Readonly<Record<string, string>>, folder?: string): Promise<PostgresServer> {
  if (process.env.AUTHREALM_TEST_CITUS === undefined) {
    throw new Error('a cluster needs AUTHREALM_TEST_CITUS, the folder with a build of Citus');
  }
  return startServer({ ...CITUS_SETTINGS, ...settings }, folder);
}

/** Starts a separate cluster. `settings` apply to every node; `nodes` are its servers if they are running already. */
export async function startCluster({
  spares: spareCount = 0,
  settings = {},
  firstWorker,
  portOf = ({ port }) => port,
}: {
  readonly spares?: number;
  readonly settings?: Readonly<Record<string, string>>;
  /** Replaces the first worker. */
  readonly firstWorker?: PostgresServer;
  /** The port at which the other nodes reach a worker, for example that of a proxy. */
  readonly portOf?: (worker: PostgresServer) => number | Promise<number>;
} = {}): Promise<CitusCluster> {
  const start = () => startNode(settings);
  const nodes = await Promise.all([
    start(),
    firstWorker ?? start(),
    ...Array.from({ length: WORKERS - 1 + spareCount }, start),
  ]);
  const ports = new Map<number, PostgresServer>();
  for (const worker of nodes.slice(1, WORKERS + 1)) ports.set(await portOf(worker), worker);
  return clusterOf(nodes, { ports });
}

/** A cluster whose nodes reach each worker through a proxy. */
export interface ProxiedCluster extends CitusCluster {
  /** In the order of the workers. */
  readonly proxies: readonly TcpProxy[];
}

export async function startProxiedCluster(
  settings: Readonly<Record<string, string>> = {},
): Promise<ProxiedCluster> {
  const proxies: TcpProxy[] = [];
  const cluster = await startCluster({
    settings,
    async portOf({ port }) {
      const proxy = await startTcpProxy(port);
      proxies.push(proxy);
      return proxy.port;
    },
  });
  return { ...cluster, proxies };
}

/** The URL of a database through several nodes. */
export function urlThroughNodes(url: string, nodes: readonly PostgresServer[], query = ''): string {
  return url.replace(/(?<=@)[^/]+/, nodes.map(({ host, port }) => `${host}:${port}`).join()) + query;
}

interface ClusterOptions {
  /** The workers by the port at which the other nodes reach them, by default their own. */
  readonly ports?: ReadonlyMap<number, PostgresServer>;
  /** The name of an existing template. */
  readonly template?: string;
}

/** `servers`: the coordinator, the workers, and the spares. */
function clusterOf(servers: readonly PostgresServer[], options: ClusterOptions = {}): CitusCluster {
  const nodes = servers.slice(0, WORKERS + 1);
  const spares = servers.slice(WORKERS + 1);
  const [coordinator, ...workers] = nodes as [PostgresServer, ...PostgresServer[]];
  const { ports = new Map(workers.map((worker) => [worker.port, worker])) } = options;
  let databases = 0;
  let template = options.template === undefined ? undefined : Promise.resolve(options.template);

  const run: CitusCluster['run'] = (url, sql, node = coordinator) => runOn(node.url(nameOf(url)), sql);

  async function createOnAll(source: string): Promise<string> {
    databases += 1;
    const name = `citus_${databases}_${systemClock.mintId().slice(-12)}`;
    const like = `owner ${ROLES[0]} template ${source} encoding 'UTF8' locale 'C' strategy file_copy`;
    const create = (server: PostgresServer) => runOn(server.url(), `create database ${name} ${like}`);
    await Promise.all(
      servers.map((server) =>
        create(server).catch(async (error) => {
          // A maintenance daemon of the source that was just starting when the connections to it were ended.
          if (error.errno !== OBJECT_IN_USE) throw error;
          await closeDatabase(server, source);
          return create(server);
        }),
      ),
    );
    return coordinator.url(name);
  }

  async function emptyDatabase(): Promise<string> {
    const url = await createOnAll('template0');
    await Promise.all(servers.map((server) => run(url, 'create extension citus', server)));
    await run(url, `select citus_set_coordinator_host('${coordinator.host}', ${coordinator.port})`);
    for (const port of ports.keys()) await run(url, `select citus_add_node('${coordinator.host}', ${port})`);
    return url;
  }

  /** A database that is copied must have no connections, so none is allowed to the template. */
  async function migratedTemplate(): Promise<string> {
    const url = await emptyDatabase();
    const address = parseDatabase(url.replace('//postgres@', `//${ROLES[0]}@`));
    if (!address) throw new Error(`${url} is not a database URL`);
    await (await openEngine(address, 'auto', { version: 'test', clock: systemClock })).close();
    await run(url, `grant select, insert, update, delete on all tables in schema public to ${ROLES[1]}`);
    await closeOnAll(nameOf(url));
    return nameOf(url);
  }

  function templateName(): Promise<string> {
    template ??= migratedTemplate();
    return template;
  }

  function closeOnAll(name: string): Promise<unknown> {
    return Promise.all(servers.map((server) => closeDatabase(server, name)));
  }

  function runOnAll(statement: string): Promise<unknown> {
    return Promise.all(servers.map((server) => runOn(server.url(), statement)));
  }

  return {
    nodes,
    coordinator,
    workers,
    spares,
    run,
    emptyDatabase,
    template: templateName,
    async freshDatabase() {
      const url = await createOnAll(await templateName());
      await run(url, `update instance set store_id = '${systemClock.mintId()}'`);
      return url;
    },
    async copyDatabase(url) {
      await closeOnAll(nameOf(url));
      const copy = await createOnAll(nameOf(url));
      await runOnAll(`alter database ${nameOf(url)} with allow_connections true`);
      return copy;
    },
    urlsOf: (url) => nodes.map((node) => node.url(nameOf(url))),
    async workerOf(url, realm) {
      const [found] = await run<{ port: number }>(
        url,
        `select nodeport as port from pg_dist_shard_placement
         where shardid = get_shard_id_for_distribution_column('realm_clock', '${realm}'::uuid)`,
      );
      const worker = [...ports, ...spares.map((spare) => [spare.port, spare] as const)].find(
        ([port]) => port === Number(found?.port),
      )?.[1];
      if (!worker) throw new Error(`realm ${realm} is on no node of the cluster`);
      return worker;
    },
  };
}

/** Ends the connections to a database, the one of the maintenance daemon among them, and allows no others. */
async function closeDatabase(server: PostgresServer, name: string): Promise<void> {
  await runOn(server.url(), `alter database ${name} with allow_connections false`);
  const end = `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '${name}'`;
  await runOn(server.url(), end);
}

function nameOf(url: string): string {
  return new URL(url).pathname.slice(1);
}
