import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { SQL } from 'bun';
import { lookupPaths } from '../test/support/population.ts';
import { startServer as startPostgres } from '../test/support/postgres_server.ts';
import { fetchToken } from './access_token.ts';
import { fillByImport } from './import_rate.ts';
import { type Load, load, median, medianOf, WARM_UP_SECONDS } from './load.ts';
import { pgbench } from './pgbench.ts';
import { hashedUserAt, lookupScripts } from './postgres_population.ts';
import { type PostgresRun, reportPostgres } from './postgres_report.ts';
import { type BenchServer, startServer } from './server.ts';

/** Lookups through the service on PostgreSQL, and by pgbench and the driver on the same server, interleaved in rounds. */

const AUTHREALM = join(import.meta.dir, '../bin/authrealm');
const PATHS = 20_000;
const PORT = 18_090;
const CLIENTS = [16, 64, 256];

const { values: options } = parseArgs({
  options: {
    users: { type: 'string', default: '1000000' },
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '6' },
    processes: { type: 'string', default: '1' },
    out: { type: 'string', default: join(import.meta.dir, 'results') },
  },
});
const users = Number(options.users);
const seconds = Number(options.seconds);
const rounds = Number(options.rounds);

/** The loads of one round. */
interface Round {
  readonly service: readonly Load[];
  readonly pgbench: readonly Load[];
  readonly singleClient: { readonly service: Load; readonly pgbench: Load; readonly driver: Load };
}

/** Runs a script that measures one caller in a separate process and prints its `Load`. */
async function runProcess(script: string, args: readonly string[], token = ''): Promise<Load> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, script), ...args, String(seconds)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, BENCH_TOKEN: token },
  });
  const output = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error(`${script} failed`);
  return JSON.parse(output);
}

interface Setup {
  readonly url: string;
  readonly service: BenchServer;
  readonly folder: string;
  readonly paths: string;
  readonly token: string;
}

function createMeasurements({ url, service, folder, paths, token }: Setup) {
  const scripts = lookupScripts(users, PATHS);
  return {
    service: (connections: number, forSeconds = seconds) =>
      load(service.url, { connections, seconds: forSeconds, paths, token, isPinned: false }),
    pgbench: (clients: number) => pgbench(url, { clients, seconds, scripts, folder }),
    singleClient: () => runProcess('single_client.ts', [service.url, paths], token),
    driver: () => runProcess('bare_driver.ts', [url, String(users)]),
  };
}

async function measureRounds(setup: Setup): Promise<readonly Round[]> {
  const measurements = createMeasurements(setup);
  await measurements.service(64, WARM_UP_SECONDS);
  const completed: Round[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const service: Load[] = [];
    const pgbenchLoads: Load[] = [];
    for (const clients of CLIENTS) {
      service.push(await measurements.service(clients));
      pgbenchLoads.push(await measurements.pgbench(clients));
    }
    const singleClient = {
      service: await measurements.singleClient(),
      pgbench: await measurements.pgbench(1),
      driver: await measurements.driver(),
    };
    completed.push({ service, pgbench: pgbenchLoads, singleClient });
  }
  return completed;
}

function summarize(
  completed: readonly Round[],
): Pick<PostgresRun, 'comparisons' | 'ratioToPgbench' | 'singleClient'> {
  const best = (loads: readonly Load[]) => Math.max(...loads.map((each) => each.requestsPerSecond));
  const single = (target: keyof Round['singleClient']) =>
    medianOf(completed.map((round) => round.singleClient[target]));
  return {
    comparisons: CLIENTS.map((clients, index) => ({
      clients,
      service: medianOf(completed.map((round) => round.service[index] as Load)),
      pgbench: medianOf(completed.map((round) => round.pgbench[index] as Load)),
    })),
    ratioToPgbench: median(completed.map((round) => best(round.service) / best(round.pgbench))),
    singleClient: {
      service: single('service'),
      pgbench: single('pgbench'),
      driver: single('driver'),
      p50RatioToPgbench: median(
        completed.map((round) => round.singleClient.service.p50 / round.singleClient.pgbench.p50),
      ),
      p99RatioToDriver: median(
        completed.map((round) => round.singleClient.service.p99 / round.singleClient.driver.p99),
      ),
    },
  };
}

async function describeDatabase(url: string): Promise<{ server: string; databaseMb: number }> {
  const sql = new SQL(url, { max: 1 });
  const [row] = await sql.unsafe(
    `select current_setting('server_version_num')::integer / 10000 as version,
       pg_database_size(current_database())::float8 / 1e6 as megabytes`,
  );
  await sql.unsafe('vacuum analyze').simple();
  await sql.close();
  return { server: `PostgreSQL ${row.version}`, databaseMb: row.megabytes };
}

async function run(): Promise<PostgresRun> {
  const folder = mkdtempSync(join(tmpdir(), 'authrealm-bench-'));
  const postgres = await startPostgres({
    max_connections: '400',
    shared_buffers: '4GB',
    max_wal_size: '4GB',
  });
  try {
    const url = await postgres.freshDatabase();
    const keyFile = join(folder, 'master.key');
    writeFileSync(keyFile, Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex'), {
      mode: 0o600,
    });
    const flags = ['--database', url, '--master-key-file', keyFile];
    const { recordsPerSecond } = await fillByImport(AUTHREALM, flags, users, hashedUserAt);
    const description = await describeDatabase(url);
    const serve = [AUTHREALM, 'serve', '--port', String(PORT), '--processes', options.processes, ...flags];
    const service = await startServer(serve, PORT, { isPinned: false });
    const token = await fetchToken(AUTHREALM, flags, service.url);
    const paths = join(folder, 'paths');
    writeFileSync(paths, lookupPaths(users, PATHS, hashedUserAt).join('\n'));
    const completed = await measureRounds({ url, service, folder, paths, token });
    await service.stop();
    return {
      at: new Date(Date.now()).toISOString(),
      machine: { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length },
      ...description,
      users,
      rounds,
      seconds,
      ...summarize(completed),
      importedPerSecond: recordsPerSecond,
    };
  } finally {
    await postgres.stop('immediate');
    rmSync(folder, { recursive: true, force: true });
  }
}

mkdirSync(options.out, { recursive: true });
console.log(reportPostgres(await run(), options.out));
process.exit(0);
