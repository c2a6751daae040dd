import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { lookupPaths, userAt } from '../test/support/population.ts';
import { fetchToken } from './access_token.ts';
import { type SqliteFixture, sqliteFixture } from './fixture.ts';
import { fillBare } from './import_rate.ts';
import { assertSpread } from './key_spread.ts';
import {
  type LoadPlan,
  type Loads,
  load,
  median,
  restarting,
  runInterleaved,
  WARM_UP_SECONDS,
} from './load.ts';
import { measureOperations } from './operations.ts';
import { mappedBytes } from './process_usage.ts';
import { startConstant, startHandwritten, startNginx, toSample } from './reference_servers.ts';
import { type Result, type Run, report } from './report.ts';
import type { LookupRow } from './rows.ts';
import { assertSameBytes } from './same_bytes.ts';
import { type BenchServer, startServer, waitForResponse } from './server.ts';

const AUTHREALM = join(import.meta.dir, '../bin/authrealm');
const PATHS = 20_000;
const PORT = 18_080;
/** Above this size the same rows are not written a second time without the service. */
const BARE_USERS_MAX = 1_000_000;

const { values: options } = parseArgs({
  options: {
    users: { type: 'string', default: '10000,1000000,3000000' },
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '6' },
    connections: { type: 'string', default: '64' },
    /** A folder that keeps filled databases for the next run. */
    cache: { type: 'string' },
    /** One short round at 1,000 users: shows that the bench works, and no speed. */
    quick: { type: 'boolean', default: false },
    out: { type: 'string', default: join(import.meta.dir, 'results') },
  },
});

const sizes = options.quick ? [1_000] : options.users.split(',').map(Number);
const plan = {
  seconds: options.quick ? 1 : Number(options.seconds),
  rounds: options.quick ? 1 : Number(options.rounds),
  connections: Number(options.connections),
  warmUpSeconds: options.quick ? 1 : WARM_UP_SECONDS,
  pageRequests: options.quick ? 20 : 200,
  allowsErrorStatus: options.quick,
};

/** Milliseconds from the start of the process to the first 200 response to a lookup; the median of five starts. */
async function measureFirstResponse(serve: readonly string[], path: string, token: string): Promise<number> {
  const headers = { Authorization: `Bearer ${token}` };
  const times: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const child = Bun.spawn([...serve], { stdio: ['ignore', 'ignore', 'inherit'] });
    const { response, ms } = await waitForResponse(() =>
      fetch(`http://127.0.0.1:${PORT}${path}`, { headers }),
    );
    if (response.status !== 200) throw new Error(`the first response was ${response.status}`);
    times.push(ms);
    child.kill('SIGTERM');
    await child.exited;
  }
  return median(times);
}

interface Setup {
  readonly users: number;
  readonly folder: string;
  readonly file: string;
  readonly service: BenchServer;
  readonly token: string;
}

/** The loads of the service and of the reference servers, interleaved in rounds. */
async function measureLookups({ users, folder, file, service, token }: Setup) {
  const lookups = lookupPaths(users, Math.min(PATHS, users * 2));
  const newest = Math.ceil(users / 100);
  const newestLookups = lookupPaths(newest, Math.min(PATHS, newest * 2), (number) =>
    userAt(users - newest + number),
  );
  const widestGap = assertSpread(file, lookups);
  const headers = { Authorization: `Bearer ${token}` };
  const sample = await toSample(await fetch(`${service.url}${lookups[0]}`, { headers }));
  const nginx = await startNginx(folder, PORT + 1, sample);
  const constant = await startConstant(folder, PORT + 2, sample);
  const handwritten = await startHandwritten(PORT + 3, { database: file, baseUrl: service.url, token });
  await assertSameBytes([service, handwritten], lookups, token);
  const lookupPlan = { ...plan, token, paths: join(folder, 'lookups') };
  const newestPlan = { ...lookupPlan, paths: join(folder, 'newest') };
  writeFileSync(lookupPlan.paths, lookups.join('\n'));
  writeFileSync(newestPlan.paths, newestLookups.join('\n'));
  const warmUpPlan = { ...lookupPlan, seconds: plan.warmUpSeconds };
  for (const server of [nginx, constant]) await load(server, warmUpPlan);
  const of = (server: BenchServer, with_: LoadPlan) => () => load(server, with_);
  const loads: Loads<LookupRow> = await runInterleaved(
    { rounds: plan.rounds, file, prepare: restarting([service, handwritten], warmUpPlan) },
    {
      lookup: of(service, lookupPlan),
      newest: of(service, newestPlan),
      handwritten: of(handwritten, lookupPlan),
      constant: of(constant, lookupPlan),
      nginx: of(nginx, lookupPlan),
    },
  );
  const memory = service.memory();
  const mapped = mappedBytes(service.pid, file);
  for (const server of [nginx, constant, handwritten]) await server.stop();
  return { loads, widestGap, lookupPlan, firstPath: lookups[0] ?? '', memory, mapped };
}

async function measure(users: number): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'authrealm-bench-'));
  try {
    const bareFile = users <= BARE_USERS_MAX ? join(folder, 'bare.db') : undefined;
    const fixture = await sqliteFixture(AUTHREALM, folder, users, options.cache);
    const bareInsertsPerSecond = bareFile && fillBare(bareFile, users);
    const bare = bareFile && bareInsertsPerSecond ? { bareFile, bareInsertsPerSecond } : undefined;
    return await measureFixture(users, folder, fixture, bare);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureFixture(
  users: number,
  folder: string,
  { file, imported }: SqliteFixture,
  bare: { readonly bareFile: string; readonly bareInsertsPerSecond: number } | undefined,
): Promise<Result> {
  const flags = ['--database', `sqlite:${file}`];
  const serve = [AUTHREALM, 'serve', '--port', String(PORT), ...flags];
  const service = await startServer(serve, PORT);
  const token = await fetchToken(AUTHREALM, flags, service.url);
  const databaseBytes = statSync(file).size;
  const lookups = await measureLookups({ users, folder, file, service, token });
  const operations = await measureOperations(service, {
    ...lookups.lookupPlan,
    users,
    folder,
    file,
    ...(bare && { bareFile: bare.bareFile }),
  });
  await service.stop();
  return {
    users,
    loads: { ...lookups.loads, ...operations.loads },
    ...lookups.memory,
    firstResponseMs: await measureFirstResponse(serve, lookups.firstPath, token),
    databaseMb: databaseBytes / 1e6,
    mappedShare: Math.min(1, lookups.mapped / databaseBytes),
    widestGap: lookups.widestGap,
    importedPerSecond: imported.recordsPerSecond,
    importAnonymousMb: imported.anonymousMb,
    ...(bare && { bareInsertsPerSecond: bare.bareInsertsPerSecond }),
    operations,
  };
}

const results: Result[] = [];
for (const users of sizes) results.push(await measure(users));
const run: Run = {
  at: new Date(Date.now()).toISOString(),
  machine: { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length },
  seconds: plan.seconds,
  rounds: plan.rounds,
  connections: plan.connections,
  results,
};
mkdirSync(options.out, { recursive: true });
console.log(report(run, options.out));
