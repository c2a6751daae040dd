import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { SQL } from 'bun';
import { startCluster } from '../test/support/citus_cluster.ts';
import { lookupPaths, REALM } from '../test/support/population.ts';
import { endServers, startServer as startPostgres } from '../test/support/postgres_server.ts';
import { fetchToken } from './access_token.ts';
import { type CitusRun, reportCitus } from './citus_report.ts';
import { fillByImport } from './import_rate.ts';
import { writeKeyFile } from './key_file.ts';
import { load, type Measurements, runInterleaved, type UsageSource, WARM_UP_SECONDS } from './load.ts';
import { measureCreates, writePaths } from './operations.ts';
import { usageOf } from './process_usage.ts';
import { CITUS_SOURCES, type CitusRow, type CitusSource, citusRow } from './rows.ts';
import { type BenchServer, startServer } from './server.ts';

/**
 * The same rows and requests on plain PostgreSQL and on a Citus cluster (a coordinator and two workers on this machine),
 * interleaved in rounds: what routing costs. Needs AUTHREALM_TEST_CITUS, the folder with a build of Citus.
 */

const AUTHREALM = join(import.meta.dir, '../bin/authrealm');
const PATHS = 20_000;
const PORT = 18_110;
const SETTINGS = { max_connections: '400', shared_buffers: '1GB', max_wal_size: '4GB' };

const { values: options } = parseArgs({
  options: {
    users: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '6' },
    /** One short round at 1,000 users: shows that the bench works, and no speed. */
    quick: { type: 'boolean', default: false },
    out: { type: 'string', default: join(import.meta.dir, 'results') },
  },
});
const users = options.quick ? 1_000 : Number(options.users);
const seconds = options.quick ? 1 : Number(options.seconds);
const rounds = options.quick ? 1 : Number(options.rounds);
const warmUpSeconds = options.quick ? 1 : WARM_UP_SECONDS;

interface Source {
  readonly service: BenchServer;
  readonly token: string;
  /** All servers of the database. */
  readonly database: UsageSource;
}

/** The databases of the sources. Those of the cluster differ in the node that routes. */
async function openDatabases() {
  const plain = await startPostgres(SETTINGS);
  const cluster = await startCluster({ settings: SETTINGS });
  const url = await cluster.freshDatabase();
  const worker = await cluster.workerOf(url, REALM);
  const plainUsage = { usage: () => usageOf(plain.pid) };
  const clusterUsage = { usage: () => usageOf(...cluster.nodes.map(({ pid }) => pid)) };
  return {
    plain: { url: await plain.freshDatabase(), usage: plainUsage },
    coordinator: { url, usage: clusterUsage },
    worker: { url: worker.url(new URL(url).pathname.slice(1)), usage: clusterUsage },
  } as const satisfies Record<CitusSource, { url: string; usage: UsageSource }>;
}

async function vacuum(url: string): Promise<void> {
  const sql = new SQL(url, { max: 1 });
  await sql.unsafe('vacuum analyze').simple();
  await sql.close();
}

async function openSources(folder: string): Promise<Readonly<Record<CitusSource, Source>>> {
  const databases = await openDatabases();
  // The programs reject variables that begin like theirs.
  delete process.env.AUTHREALM_TEST_CITUS;
  const keyFile = writeKeyFile(folder);
  const flagsOf = (url: string) => ['--database', url, '--master-key-file', keyFile];
  for (const { url } of [databases.plain, databases.coordinator]) {
    await fillByImport(AUTHREALM, flagsOf(url), users);
    await vacuum(url);
  }
  const sources: [CitusSource, Source][] = [];
  for (const [at, name] of CITUS_SOURCES.entries()) {
    const { url, usage } = databases[name];
    const port = PORT + at;
    const serve = [AUTHREALM, 'serve', '--port', String(port), ...flagsOf(url)];
    const service = await startServer(serve, port, { isPinned: false });
    const token = await fetchToken(AUTHREALM, flagsOf(databases[name].url), service.url);
    sources.push([name, { service, token, database: usage }]);
  }
  return Object.fromEntries(sources) as Record<CitusSource, Source>;
}

async function measure(folder: string): Promise<CitusRun> {
  const sources = await openSources(folder);
  const paths = writePaths(folder, 'lookups', lookupPaths(users, Math.min(PATHS, users * 2)));
  const measurements: Measurements<CitusRow>[] = [];
  for (const source of CITUS_SOURCES) {
    const { service, token, database } = sources[source];
    const plan = {
      seconds,
      paths,
      token,
      database,
      isPinned: false,
      folder,
      allowsErrorStatus: options.quick,
    };
    await load(service, { ...plan, connections: 64, seconds: warmUpSeconds });
    const { createTogether16 } = measureCreates(service, { ...plan, connections: 16 });
    measurements.push({
      [citusRow(source, 'lookup1')]: () => load(service, { ...plan, connections: 1 }),
      [citusRow(source, 'lookup64')]: () => load(service, { ...plan, connections: 64 }),
      ...(createTogether16 && { [citusRow(source, 'create16')]: createTogether16 }),
    });
  }
  const loads = await runInterleaved(
    { rounds },
    Object.assign({}, ...measurements) as Measurements<CitusRow>,
  );
  for (const { service } of Object.values(sources)) await service.stop();
  return {
    at: new Date(Date.now()).toISOString(),
    machine: { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length },
    users,
    rounds,
    seconds,
    loads,
  };
}

const folder = mkdtempSync(join(tmpdir(), 'authrealm-bench-'));
mkdirSync(options.out, { recursive: true });
try {
  console.log(reportCitus(await measure(folder), options.out));
} finally {
  await endServers();
  rmSync(folder, { recursive: true, force: true });
}
process.exit(0);
