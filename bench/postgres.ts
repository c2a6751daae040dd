import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { SQL } from 'bun';
import { findPaths, lookupPaths } from '../test/support/population.ts';
import { type PostgresServer, startServer as startPostgres } from '../test/support/postgres_server.ts';
import { fetchToken } from './access_token.ts';
import { fillByImport } from './import_rate.ts';
import { writeKeyFile } from './key_file.ts';
import {
  type Loads,
  load,
  type Measurements,
  type RequestTimes,
  restarting,
  runInterleaved,
  type UsageSource,
  WARM_UP_SECONDS,
  withUsage,
} from './load.ts';
import { measureCreates, writePaths } from './operations.ts';
import { personPaths } from './person.ts';
import { pgbench } from './pgbench.ts';
import { hashedUserAt, lookupScripts } from './postgres_population.ts';
import { type PostgresRun, reportPostgres } from './postgres_report.ts';
import { usageOf } from './process_usage.ts';
import { startHandwritten } from './reference_servers.ts';
import type { PostgresRow } from './rows.ts';
import { assertSameBytes } from './same_bytes.ts';
import { type BenchServer, startServer } from './server.ts';

/** Operations of the service on PostgreSQL, and the same lookups by references on the same server, interleaved in rounds. */

const AUTHREALM = join(import.meta.dir, '../bin/authrealm');
const PATHS = 20_000;
const PORT = 18_090;

const { values: options } = parseArgs({
  options: {
    users: { type: 'string', default: '1000000' },
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '6' },
    processes: { type: 'string', default: '1' },
    /** One short round at 1,000 users: shows that the bench works, and no speed. */
    quick: { type: 'boolean', default: false },
    out: { type: 'string', default: join(import.meta.dir, 'results') },
  },
});
const users = options.quick ? 1_000 : Number(options.users);
const seconds = options.quick ? 1 : Number(options.seconds);
const rounds = options.quick ? 1 : Number(options.rounds);
const warmUpSeconds = options.quick ? 1 : WARM_UP_SECONDS;

/** Runs a script that measures one caller in a separate process and prints its `RequestTimes`. */
async function runProcess(script: string, args: readonly string[], token = ''): Promise<RequestTimes> {
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
  readonly database: UsageSource;
  readonly service: BenchServer;
  readonly folder: string;
  readonly token: string;
}

async function measureRounds({ url, database, service, folder, token }: Setup): Promise<Loads<PostgresRow>> {
  const lookups = lookupPaths(users, Math.min(PATHS, users * 2), hashedUserAt);
  const target = { database: url, baseUrl: service.url, token, isPinned: false };
  const handwritten = await startHandwritten(PORT + 1, target);
  await assertSameBytes([service, handwritten], lookups, token);
  const scripts = lookupScripts(users, PATHS);
  const paths = writePaths(folder, 'lookups', lookups);
  const count = Math.min(PATHS, users);
  const reversePaths = writePaths(folder, 'reverse', findPaths(users, count));
  const persons = writePaths(folder, 'persons', personPaths(users, count, hashedUserAt));
  const allowsErrorStatus = options.quick;
  const plan = {
    connections: 64,
    seconds,
    paths,
    token,
    database,
    isPinned: false,
    folder,
    allowsErrorStatus,
  };
  const by = (server: BenchServer, connections: number) => () => load(server, { ...plan, connections });
  const byPgbench = (clients: number) => () =>
    withUsage({ database }, () => pgbench(url, { clients, seconds, scripts, folder }));
  const alone: Measurements<PostgresRow> = {
    serviceAlone: () =>
      withUsage({ server: service, database }, () =>
        runProcess('single_client.ts', [service.url, paths], token),
      ),
    driverAlone: () => withUsage({ database }, () => runProcess('bare_driver.ts', [url, String(users)])),
  };
  const prepare = restarting([service, handwritten], { ...plan, seconds: warmUpSeconds });
  const reads = await runInterleaved(
    { rounds, prepare },
    {
      service16: by(service, 16),
      handwritten16: by(handwritten, 16),
      pgbench16: byPgbench(16),
      service64: by(service, 64),
      handwritten64: by(handwritten, 64),
      pgbench64: byPgbench(64),
      service256: by(service, 256),
      handwritten256: by(handwritten, 256),
      pgbench256: byPgbench(256),
      pgbenchAlone: byPgbench(1),
      ...alone,
      person: () => load(service, { ...plan, paths: persons }),
      reverse: () => load(service, { ...plan, paths: reversePaths }),
    },
  );
  await handwritten.stop();
  const creates = await runInterleaved({ rounds }, measureCreates(service, plan));
  return { ...reads, ...creates };
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

async function measure(postgres: PostgresServer, folder: string): Promise<PostgresRun> {
  const url = await postgres.freshDatabase();
  const flags = ['--database', url, '--master-key-file', writeKeyFile(folder)];
  const { recordsPerSecond } = await fillByImport(AUTHREALM, flags, users, hashedUserAt);
  const description = await describeDatabase(url);
  const serve = [AUTHREALM, 'serve', '--port', String(PORT), '--processes', options.processes, ...flags];
  const service = await startServer(serve, PORT, { isPinned: false });
  const token = await fetchToken(AUTHREALM, flags, service.url);
  const database = { usage: () => usageOf(postgres.pid) };
  const loads = await measureRounds({ url, database, service, folder, token });
  await service.stop();
  return {
    at: new Date(Date.now()).toISOString(),
    machine: { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length },
    ...description,
    users,
    rounds,
    seconds,
    loads,
    importedPerSecond: recordsPerSecond,
  };
}

async function run(): Promise<PostgresRun> {
  const folder = mkdtempSync(join(tmpdir(), 'authrealm-bench-'));
  const postgres = await startPostgres({
    max_connections: '400',
    shared_buffers: '4GB',
    max_wal_size: '4GB',
  });
  try {
    return await measure(postgres, folder);
  } finally {
    await postgres.stop('immediate');
    rmSync(folder, { recursive: true, force: true });
  }
}

mkdirSync(options.out, { recursive: true });
console.log(reportPostgres(await run(), options.out));
process.exit(0);
