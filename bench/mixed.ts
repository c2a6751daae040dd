import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { lookupPaths, REALM } from '../test/support/population.ts';
import { createBenchClient, fetchToken, runAuthrealm } from './access_token.ts';
import { openEngineDatabase } from './engine_database.ts';
import { importLines } from './import_rate.ts';
import { type Load, type LoadPlan, load, WARM_UP_SECONDS } from './load.ts';
import { belowMin, type MixedRow, type MixedRun, mixedMarkdown } from './mixed_report.ts';
import { mixedDirectory, type RepeatedRequest, repeatedRequests } from './mixed_requests.ts';
import { writePaths } from './operations.ts';
import { type BenchServer, LOAD_CORE, pinned, startServer } from './server.ts';

/** Lookups concurrently with callers of each other operation, one operation after the other. */

const AUTHREALM = join(import.meta.dir, '../bin/authrealm');
const PORT = 18_100;
const METRICS = '127.0.0.1:18101';
const LOOKUP_PATHS = 20_000;
/** How long the callers run before lookups are measured. */
const LEAD_MS = 300;
/** How many operations share a measurement of quiet lookups: the one before them and the one after them. */
const GROUP = 4;

const { values: options } = parseArgs({
  options: {
    engine: { type: 'string', default: 'sqlite' },
    users: { type: 'string', default: '100000' },
    realms: { type: 'string', default: '1000' },
    callers: { type: 'string', default: '64' },
    seconds: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '3' },
    /** Only operations whose name contains one of these texts, separated by commas. */
    only: { type: 'string', default: '' },
    /** One short round at 1,000 users and 10 realms: shows that the bench works, and no speed. */
    quick: { type: 'boolean', default: false },
    out: { type: 'string', default: join(import.meta.dir, 'results') },
  },
});
const users = options.quick ? 1_000 : Number(options.users);
const realms = options.quick ? 10 : Number(options.realms);
const rounds = options.quick ? 1 : Number(options.rounds);
const seconds = Number(options.seconds);
const isPinned = options.engine === 'sqlite';

interface Measurement {
  readonly lookups: Load;
  readonly requests: number;
  readonly seconds: number;
  readonly overloaded: number;
  readonly failed: number;
}

/** Measures lookups while callers repeat a request. */
async function measureWith(
  service: BenchServer,
  plan: LoadPlan,
  request: RepeatedRequest,
  paths: string,
): Promise<Measurement> {
  const script = join(import.meta.dir, 'load.lua');
  const flags = ['-t1', `-c${options.callers}`, '-d60s', '--timeout=10s', '-s', script];
  const wrk = ['wrk', ...flags, request.url];
  // As the lookups' load, with which the callers share a core.
  const command = plan.isPinned === false ? wrk : pinned(LOAD_CORE, ['nice', '-n', '10', ...wrk]);
  const child = Bun.spawn(command, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      BENCH_TOKEN: 'none',
      BENCH_SALT: `${process.pid}-${performance.now()}-`,
      BENCH_OVERLOADED: 'yes',
      ...request.environment,
      BENCH_PATHS: paths,
    },
  });
  const output = new Response(child.stdout).text();
  await Bun.sleep(LEAD_MS);
  const lookups = await load(service, plan).finally(() => child.kill('SIGINT'));
  const line = (await output).split('\n').find((each) => each.startsWith('{'));
  if (line === undefined) throw new Error(`the callers of ${request.name} failed`);
  const report = JSON.parse(line) as Record<'requests' | 'statuses' | 'overloaded' | 'microseconds', number>;
  const { requests, statuses, overloaded, microseconds } = report;
  return { lookups, requests, overloaded, seconds: microseconds / 1e6, failed: statuses - overloaded };
}

interface RatedMeasurement extends Measurement {
  readonly ratio: number;
}

/** Measures every request once, in groups between measurements of quiet lookups. */
async function measureRound(
  service: BenchServer,
  plan: LoadPlan,
  requests: readonly RepeatedRequest[],
  pathsOf: (request: RepeatedRequest) => string,
): Promise<ReadonlyMap<string, RatedMeasurement>> {
  const measured = new Map<string, RatedMeasurement>();
  let before = await load(service, plan);
  for (let start = 0; start < requests.length; start += GROUP) {
    const group: [string, Measurement][] = [];
    for (const request of requests.slice(start, start + GROUP))
      group.push([request.name, await measureWith(service, plan, request, pathsOf(request))]);
    const after = await load(service, plan);
    const quiet = (before.requestsPerSecond + after.requestsPerSecond) / 2;
    for (const [name, each] of group) {
      const ratio = each.lookups.requestsPerSecond / quiet;
      measured.set(name, { ...each, ratio });
      console.error(`${name}: ${ratio.toFixed(2)}, ${each.requests} responses`);
    }
    before = after;
  }
  return measured;
}

function rowOf(name: string, all: readonly ReadonlyMap<string, RatedMeasurement>[]): MixedRow {
  const measured = all.flatMap((round) => round.get(name) ?? []);
  const sum = (of: (each: Measurement) => number) => measured.reduce((total, each) => total + of(each), 0);
  const requests = Math.max(
    1,
    sum((each) => each.requests),
  );
  return {
    name,
    ratios: measured.map(({ ratio }) => ratio),
    p99: measured.map(({ lookups }) => lookups.p99),
    perSecond: measured.map((each) => each.requests / each.seconds),
    overloadedShare: sum(({ overloaded }) => overloaded) / requests,
    failedShare: sum(({ failed }) => failed) / requests,
  };
}

async function measure(flags: readonly string[], folder: string): Promise<MixedRun> {
  const directory = mixedDirectory(users, realms, rounds);
  await importLines(AUTHREALM, flags, directory.lines(), users * 3);
  // The realms that settings and the merchant mapping name.
  await runAuthrealm(AUTHREALM, ['init', '--preset-realms', ...flags]);
  const ports = ['--offline', '--port', String(PORT), '--metrics', METRICS];
  const serve = [AUTHREALM, 'serve', ...ports, '--grant-rate', 'off', '--account-realm', REALM, ...flags];
  const service = await startServer(serve, PORT, { isPinned });
  const token = await fetchToken(AUTHREALM, flags, service.url);
  const paths = writePaths(folder, 'lookups', lookupPaths(users, Math.min(LOOKUP_PATHS, users * 2)));
  const plan = {
    ...{ connections: 64, seconds, paths, token },
    isPinned,
    allowsErrorStatus: options.quick,
  };
  const repeated = await repeatedRequests({
    url: service.url,
    metricsUrl: `http://${METRICS}`,
    directory,
    credentials: (scope) =>
      createBenchClient(AUTHREALM, flags, {
        scope,
        // The requests of this bench report no addresses of end users.
        options: scope.includes('sign-in') ? ['--end-user-address', 'none'] : [],
      }),
  });
  const requests = repeated.filter(({ name }) => options.only.split(',').some((text) => name.includes(text)));
  await load(service, { ...plan, seconds: options.quick ? 1 : WARM_UP_SECONDS });
  const all: ReadonlyMap<string, RatedMeasurement>[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const inOrder = round % 2 === 0 ? requests : requests.toReversed();
    const pathsOf = (request: RepeatedRequest) => writePaths(folder, 'callers', request.paths(round));
    all.push(await measureRound(service, plan, inOrder, pathsOf));
  }
  await service.stop();
  return {
    at: new Date(Date.now()).toISOString(),
    machine: { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length },
    ...{ engine: options.engine, users, realms: directory.realms },
    ...{ callers: Number(options.callers), seconds, rounds },
    rows: requests.map(({ name }) => rowOf(name, all)),
  };
}

async function run(): Promise<MixedRun> {
  const folder = mkdtempSync(join(tmpdir(), 'authrealm-bench-'));
  const { flags, stop } = await openEngineDatabase(options.engine, folder);
  try {
    return await measure(flags, folder);
  } finally {
    await stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const result = await run();
mkdirSync(options.out, { recursive: true });
writeFileSync(join(options.out, `mixed-${result.engine}.json`), `${JSON.stringify(result, null, 2)}\n`);
console.log(mixedMarkdown(result));
process.exit(options.quick || belowMin(result).length === 0 ? 0 : 1);
