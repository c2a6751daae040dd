import { closeSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { buildLibrary } from '../../durability/disk.ts';
import { fillDisk, freeDisk } from '../../support/ballast.ts';
import { startProxiedCluster, urlThroughNodes } from '../../support/citus_cluster.ts';
import { findPort } from '../../support/daemons.ts';
import { postgresAt, sqliteAt, type TestDatabase } from '../../support/database.ts';
import { writeMasterKey } from '../../support/fault_injection.ts';
import { type PostgresServer, startServer } from '../../support/postgres_server.ts';
import { runCommand } from '../../support/processes.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp_proxy.ts';
import { type RestartableService, startRestartable } from '../restartable_service.ts';

export const ENGINES = ['sqlite', 'postgres', 'citus'] as const;
export type EngineName = (typeof ENGINES)[number];

/** A service with its database, disk, clock and network, each of which can be made to fail. */
export interface TortureEnvironment {
  /** A direct connection, not through the proxy. */
  readonly database: TestDatabase;
  readonly service: RestartableService;
  readonly logFile: string;
  /** Offsets the wall clock of all programs of this environment. */
  setClock: ((milliseconds: number) => void) | undefined;
  readonly disk: Disk | undefined;
  readonly engine: Pick<PostgresServer, 'kill' | 'start'> | undefined;
  readonly network: Pick<TcpProxy, 'cut' | 'delay' | 'stall' | 'resume'> | undefined;
  end(): Promise<void>;
}

/** The disk of the database. */
interface Disk {
  /** Fills it; undefined unless this environment mounted it. */
  readonly fill: (() => void) | undefined;
  free(): void;
  /** Undefined without a C compiler. */
  readonly failSyncs: ((isFailing: boolean) => void) | undefined;
  readonly makeReadOnly: ((isReadOnly: boolean) => void) | undefined;
}

/** One base URL for all programs, so that each accepts the tokens of the others. */
const FLAGS = ['--base-url', 'http://authrealm.test'];
const PROCESSES = 2;
const DISK_MB = 512;

export async function openTortureEnvironment(
  engine: EngineName,
  folder: string,
): Promise<TortureEnvironment> {
  const open = { sqlite: onSqlite, postgres: onPostgres, citus: onCitus };
  return open[engine](folder);
}

/** Libraries loaded by LD_PRELOAD, which need a C compiler. */
interface Shims {
  readonly environment: Readonly<Record<string, string>>;
  readonly setClock: TortureEnvironment['setClock'];
  readonly failSyncs: Disk['failSyncs'];
  readonly makeReadOnly: Disk['makeReadOnly'];
}

function openShims(folder: string): Shims {
  if (!Bun.which('cc'))
    return { environment: {}, setClock: undefined, failSyncs: undefined, makeReadOnly: undefined };
  const [clock, fail, readOnly] = ['clock', 'fail', 'read-only'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(clock, Buffer.alloc(8));
  const control = (path: string) => (isOn: boolean) =>
    isOn ? writeFileSync(path, '') : rmSync(path, { force: true });
  return {
    environment: {
      LD_PRELOAD: `${buildLibrary('sync')}:${buildLibrary('clock')}`,
      FORCE_CLOCK: clock,
      FORCE_FAIL: fail,
      FORCE_READ_ONLY: readOnly,
    },
    setClock(milliseconds) {
      const nanoseconds = Buffer.alloc(8);
      nanoseconds.writeBigInt64LE(BigInt(Math.round(milliseconds)) * 1_000_000n);
      // In one write, in place: the programs have this page mapped.
      const file = openSync(clock, 'r+');
      writeSync(file, nanoseconds, 0, nanoseconds.length, 0);
      closeSync(file);
    },
    failSyncs: control(fail),
    makeReadOnly: control(readOnly),
  };
}

async function onSqlite(folder: string): Promise<TortureEnvironment> {
  const { environment, setClock, failSyncs, makeReadOnly } = openShims(folder);
  const mountPoint = await mountSmallDisk(join(folder, 'disk'));
  const database = sqliteAt(join(mountPoint ?? folder, 'torture.db'));
  const logFile = join(folder, 'torture.log');
  const options = { database, logFile, flags: FLAGS, environment, isSupervised: true };
  const service = await startRestartable({ ...options, port: findPort() }, PROCESSES);
  return {
    database,
    service,
    logFile,
    setClock,
    disk: {
      fill: mountPoint === undefined ? undefined : () => fillDisk(mountPoint),
      free: () => freeDisk(mountPoint ?? folder),
      failSyncs,
      makeReadOnly,
    },
    engine: undefined,
    network: undefined,
    async end() {
      await service.end();
      if (mountPoint !== undefined) await runCommand(['umount', '--lazy', mountPoint]);
    },
  };
}

async function onPostgres(folder: string): Promise<TortureEnvironment> {
  const { environment, setClock } = openShims(folder);
  const server = await startServer();
  const direct = await server.freshDatabase();
  const network = await startTcpProxy(server.port);
  const masterKeyFile = writeMasterKey();
  const proxied = new URL(direct);
  proxied.port = String(network.port);
  const logFile = join(folder, 'torture.log');
  const options = {
    database: postgresAt(proxied.href, masterKeyFile),
    logFile,
    flags: FLAGS,
    environment,
    isSupervised: true,
  };
  const service = await startRestartable({ ...options, port: findPort() }, PROCESSES);
  return {
    database: postgresAt(direct, masterKeyFile),
    service,
    logFile,
    setClock,
    disk: undefined,
    engine: server,
    network,
    async end() {
      await service.end();
      network.stop();
    },
  };
}

/** Transactions of several nodes that a killed node left prepared are ended after this, so that no round waits long. */
const RECOVERY = { 'citus.recover_2pc_interval': '2s' };

/**
 * The service prefers the coordinator and may use every worker. Each kill takes another node, and the network between the nodes
 * can fail.
 */
async function onCitus(folder: string): Promise<TortureEnvironment> {
  const { environment, setClock } = openShims(folder);
  const cluster = await startProxiedCluster(RECOVERY);
  const direct = await cluster.freshDatabase();
  const masterKeyFile = writeMasterKey();
  const listed = urlThroughNodes(direct, cluster.nodes);
  const logFile = join(folder, 'torture.log');
  const options = {
    database: postgresAt(listed, masterKeyFile),
    logFile,
    flags: FLAGS,
    environment,
    isSupervised: true,
  };
  const service = await startRestartable({ ...options, port: findPort() }, PROCESSES);
  let kills = 0;
  const target = () => cluster.nodes[kills % cluster.nodes.length] as PostgresServer;
  return {
    database: postgresAt(direct, masterKeyFile),
    service,
    logFile,
    setClock,
    disk: undefined,
    engine: {
      kill: () => target().kill(),
      async start() {
        await target().start();
        kills += 1;
      },
    },
    network: allOf(cluster.proxies),
    async end() {
      await service.end();
      for (const proxy of cluster.proxies) proxy.stop();
    },
  };
}

/** Several proxies that fail together. */
function allOf(proxies: readonly TcpProxy[]): TortureEnvironment['network'] {
  const each = (act: (proxy: TcpProxy) => void) => () => proxies.forEach(act);
  return {
    cut: each((proxy) => proxy.cut()),
    stall: each((proxy) => proxy.stall()),
    resume: each((proxy) => proxy.resume()),
    delay: (milliseconds) => each((proxy) => proxy.delay(milliseconds))(),
  };
}

/** Mounts a tmpfs of this size, where the system permits it. */
async function mountSmallDisk(folder: string): Promise<string | undefined> {
  mkdirSync(folder);
  const mount = ['mount', '-t', 'tmpfs', '-o', `size=${DISK_MB}m,mode=0700`, 'authrealm-torture', folder];
  const isMounted = await runCommand(mount).then(
    ({ code }) => code === 0,
    () => false,
  );
  return isMounted ? folder : undefined;
}
