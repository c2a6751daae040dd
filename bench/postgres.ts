import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { SQL } from 'bun';
import { lookupPaths } from '../test/support/population.ts';
import { startServer as startPostgres } from '../test/support/postgres_server.ts';
import { fetchToken } from './clients.ts';
import { fillByImport } from './import_rate.ts';
import { type Load, load, median, medianOf, WARM_UP_SECONDS } from './load.ts';
import { pgbench } from './pgbench.ts';
import { hashedUserAt, lookupScripts } from './postgres_population.ts';
import { type PostgresRun, reportPostgres } from './postgres_report.ts';
import { type BenchServer, startServer } from './server.ts';

/** Lookups through the service on PostgreSQL, beside pgbench and the bare driver on the same server, round by round. */

const AUTHREALM = join(import.meta.dir, '../bin/authrealm');
const PATHS = 20_000;
const PORT = 18_090;
const CLIENTS = [16, 64, 256];

const { values: given } = parseArgs({
  options: {
    users: { type: 'string', default: '1000000' },
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '6' },
    processes: { type: 'string', default: '1' },
    out: { type: 'string', default: join(import.meta.dir, 'results') },
  },
});
const users = Number(given.users);
const seconds = Number(given.seconds);
const rounds = Number(given.rounds);

/** What is measured in every round. */
interface Round {
  readonly service: readonly Load[];
  readonly pgbench: readonly Load[];
  readonly alone: { readonly service: Load; readonly pgbench: Load; readonly driver: Load };
}

/** One caller in a process of its own, which prints what it came to. */
async function alone(script: string, words: readonly string[], token = ''): Promise<Load> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, script), ...words, String(seconds)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, BENCH_TOKEN: token },
  });
  const output = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error(`${script} failed`);
  return JSON.parse(output);
}

interface Setting {
  readonly url: string;
  readonly service: BenchServer;
  readonly folder: string;
  readonly paths: string;
  readonly token: string;
}

function measurementsOf({ url, service, folder, paths, token }: Setting) {
  const scripts = lookupScripts(users, PATHS);
  return {
    service: (connections: number, forSeconds = seconds) =>
      load(service.url, { connections, seconds: forSeconds, paths, token, isPinned: false }),
    pgbench: (clients: number) => pgbench(url, { clients, seconds, scripts, folder }),
    alone: () => alone('lone_caller.ts', [service.url, paths], token),
    driver: () => alone('bare_driver.ts', [url, String(users)]),
  };
}

async function measure(setting: Setting): Promise<readonly Round[]> {
  const ask = measurementsOf(setting);
  await ask.service(64, WARM_UP_SECONDS);
  const done: Round[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const service: Load[] = [];
    const reference: Load[] = [];
    for (const clients of CLIENTS) {
      service.push(await ask.service(clients));
      reference.push(await ask.pgbench(clients));
    }
    const alone = {
      service: await ask.alone(),
      pgbench: await ask.pgbench(1),
      driver: await ask.driver(),
    };
    done.push({ service, pgbench: reference, alone });
  }
  return done;
}

function summed(done: readonly Round[]): Pick<PostgresRun, 'compared' | 'ofPgbench' | 'alone'> {
  const best = (loads: readonly Load[]) => Math.max(...loads.map((each) => each.requestsPerSecond));
  const alone = (of: keyof Round['alone']) => medianOf(done.map((round) => round.alone[of]));
  return {
    compared: CLIENTS.map((clients, index) => ({
      clients,
      service: medianOf(done.map((round) => round.service[index] as Load)),
      pgbench: medianOf(done.map((round) => round.pgbench[index] as Load)),
    })),
    ofPgbench: median(done.map((round) => best(round.service) / best(round.pgbench))),
    alone: {
      service: alone('service'),
      pgbench: alone('pgbench'),
      driver: alone('driver'),
      p50OfPgbench: median(done.map((round) => round.alone.service.p50 / round.alone.pgbench.p50)),
      p99OfDriver: median(done.map((round) => round.alone.service.p99 / round.alone.driver.p99)),
    },
  };
}

async function describe(url: string): Promise<{ server: string; databaseMb: number }> {
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
    const described = await describe(url);
    const serve = [AUTHREALM, 'serve', '--port', String(PORT), '--processes', given.processes, ...flags];
    const service = await startServer(serve, PORT, { isPinned: false });
    const token = await fetchToken(AUTHREALM, flags, service.url);
    const paths = join(folder, 'paths');
    writeFileSync(paths, lookupPaths(users, PATHS, hashedUserAt).join('\n'));
    const done = await measure({ url, service, folder, paths, token });
    await service.stop();
    return {
      at: new Date(Date.now()).toISOString(),
      machine: { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length },
      ...described,
      users,
      rounds,
      seconds,
      ...summed(done),
      importedPerSecond: recordsPerSecond,
    };
  } finally {
    await postgres.stop('immediate');
    rmSync(folder, { recursive: true, force: true });
  }
}

mkdirSync(given.out, { recursive: true });
console.log(reportPostgres(await run(), given.out));
process.exit(0);
