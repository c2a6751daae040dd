import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { OPERATIONS } from '../src/http/operations/api.ts';
import type { JsonObject } from '../test/support/json_schema.ts';
import { type Operation, openOperationClient, operationsOf } from '../test/support/openapi_client.ts';
import { openValidRequests } from '../test/support/openapi_requests.ts';
import { lookupPaths, populationLines, REALM, realmLines } from '../test/support/population.ts';
import { startServer as startPostgres } from '../test/support/postgres_server.ts';
import { createBenchClient, fetchToken } from './access_token.ts';
import { importLines } from './import_rate.ts';
import { writeKeyFile } from './key_file.ts';
import { type Load, type LoadPlan, load, median, WARM_UP_SECONDS } from './load.ts';
import { type MixedRow, type MixedRun, mixedMarkdown } from './mixed_report.ts';
import { writePaths } from './operations.ts';
import { type BenchServer, LOAD_CORE, pinned, startServer } from './server.ts';

/** Lookups beside callers of each other operation, one operation after the other. */

const AUTHREALM = join(import.meta.dir, '../bin/authrealm');
const PORT = 18_100;
const METRICS_PORT = 18_101;
const LOOKUP_PATHS = 20_000;

const { values: options } = parseArgs({
  options: {
    engine: { type: 'string', default: 'sqlite' },
    users: { type: 'string', default: '1000000' },
    realms: { type: 'string', default: '1000' },
    callers: { type: 'string', default: '64' },
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '1' },
    /** Only operations whose name contains this text. */
    only: { type: 'string', default: '' },
    /** One short round at 1,000 users and 10 realms: shows that the bench works, and no speed. */
    quick: { type: 'boolean', default: false },
    out: { type: 'string', default: join(import.meta.dir, 'results') },
  },
});
const users = options.quick ? 1_000 : Number(options.users);
const realms = options.quick ? 10 : Number(options.realms);
const seconds = options.quick ? 1 : Number(options.seconds);
const rounds = options.quick ? 1 : Number(options.rounds);
const isPostgres = options.engine === 'postgres';

/** A request that callers repeat. */
interface Repeated {
  readonly name: string;
  readonly url: string;
  readonly path: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** A valid request of every operation but lookups, of a stream, and of the metrics listener. */
async function repeatedRequests(url: string, flags: readonly string[]): Promise<readonly Repeated[]> {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as JsonObject;
  const lookups = new Set(OPERATIONS.filter(({ loopUse }) => loopUse === 'lookup').map(({ name }) => name));
  const names = new Set(OPERATIONS.map(({ name }) => name));
  const operations = operationsOf(document).filter(({ id }) => names.has(id));
  const { validRequest } = await openValidRequests({
    document,
    operations,
    caller: openOperationClient(document),
    credentials: (scope) => createBenchClient(AUTHREALM, flags, scope),
  });
  const repeated: Repeated[] = [];
  for (const operation of operations.filter(({ id }) => !lookups.has(id)))
    repeated.push(await repeat(url, operation, await validRequest(operation)));
  const search = repeated.find(
    ({ name }) => name === 'search-every-user-authentication-password-profile-info',
  );
  const feed = repeated.find(({ name }) => name === 'list-changes');
  if (!search || !feed) throw new Error('an operation is missing');
  return [
    ...repeated,
    variant(search, 'search-every username nobody', { BENCH_BODY: '{"filter":"eq(username,nobody)"}' }),
    { ...variant(feed, 'stream-changes', { BENCH_ACCEPT: 'text/event-stream' }), path: feedPath },
    { ...feed, name: 'list-changes of the largest realm', path: feedPath },
    { name: 'scrape-metrics', url: `http://127.0.0.1:${METRICS_PORT}`, path: '/metrics', environment: {} },
  ];
}

const feedPath = `/v2/authentication-realms/${REALM}/changes`;

function variant(of: Repeated, name: string, environment: Repeated['environment']): Repeated {
  return { ...of, name, environment: { ...of.environment, ...environment } };
}

async function repeat(
  url: string,
  { id, method, path, body }: Operation,
  { path: parameters = {}, query = '', token, body: sent, headers = {} }: SentRequest,
): Promise<Repeated> {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => parameters[name] ?? '');
  const text = typeof sent === 'string' ? sent : JSON.stringify(sent);
  return {
    name: id,
    url,
    path: query === '' ? filled : `${filled}?${query}`,
    environment: {
      BENCH_METHOD: method.toUpperCase(),
      BENCH_TOKEN: token ?? 'none',
      ...(headers.accept ? { BENCH_ACCEPT: headers.accept } : {}),
      // The valid requests end their unique texts with a number.
      ...(body && text ? { BENCH_BODY: text.replaceAll(/ \d+"/g, ' {n}"'), BENCH_TYPE: body.type } : {}),
    },
  };
}

type SentRequest = Awaited<ReturnType<Awaited<ReturnType<typeof openValidRequests>>['validRequest']>>;

/** Measures lookups while callers repeat a request, whatever its status. */
async function measureBeside(service: BenchServer, plan: LoadPlan, request: Repeated, folder: string) {
  const paths = writePaths(folder, 'beside', [request.path]);
  const script = join(import.meta.dir, 'load.lua');
  const duration = `${Math.ceil(plan.seconds) + 2}s`;
  const wrk = [
    'wrk',
    '-t1',
    `-c${options.callers}`,
    `-d${duration}`,
    '--timeout=10s',
    '-s',
    script,
    request.url,
  ];
  const child = Bun.spawn(plan.isPinned === false ? wrk : pinned(LOAD_CORE, wrk), {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      BENCH_TOKEN: 'none',
      BENCH_SALT: `${process.pid}-${performance.now()}-`,
      ...request.environment,
      BENCH_PATHS: paths,
    },
  });
  const output = new Response(child.stdout).text();
  await Bun.sleep(1_000);
  const lookups = await load(service, plan);
  await child.exited;
  const line = (await output).split('\n').find((each) => each.startsWith('{'));
  if (line === undefined) throw new Error(`the callers of ${request.name} failed`);
  const { requests = 0, statuses = 0, microseconds = 1 } = JSON.parse(line) as Record<string, number>;
  return {
    lookups,
    perSecond: requests / (microseconds / 1e6),
    failedShare: requests > 0 ? statuses / requests : 0,
  };
}

async function measureRow(
  service: BenchServer,
  plan: LoadPlan,
  request: Repeated,
  folder: string,
): Promise<MixedRow> {
  const ratios: number[] = [];
  let last: Awaited<ReturnType<typeof measureBeside>> | undefined;
  const p99: number[] = [];
  const quiets: Load[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const quiet = await load(service, plan);
    last = await measureBeside(service, plan, request, folder);
    ratios.push(last.lookups.requestsPerSecond / quiet.requestsPerSecond);
    p99.push(last.lookups.p99);
    quiets.push(quiet);
  }
  return {
    name: request.name,
    ratio: median(ratios),
    quietPerSecond: median(quiets.map(({ requestsPerSecond }) => requestsPerSecond)),
    p99: median(p99),
    perSecond: last?.perSecond ?? 0,
    failedShare: last?.failedShare ?? 0,
  };
}

/** One large realm, and many small ones. */
function* directoryLines(): Generator<string> {
  yield* populationLines(users);
  for (let number = 1; number < realms; number += 1) yield realmLines(number);
}

async function measure(flags: readonly string[], folder: string): Promise<MixedRun> {
  await importLines(AUTHREALM, flags, directoryLines(), users * 3);
  const ports = ['--offline', '--port', String(PORT), '--metrics-port', String(METRICS_PORT)];
  const service = await startServer([AUTHREALM, 'serve', ...ports, ...flags], PORT, {
    isPinned: !isPostgres,
  });
  const token = await fetchToken(AUTHREALM, flags, service.url);
  const paths = writePaths(folder, 'lookups', lookupPaths(users, Math.min(LOOKUP_PATHS, users * 2)));
  const plan = {
    connections: 64,
    seconds,
    paths,
    token,
    isPinned: !isPostgres,
    allowsErrorStatus: options.quick,
  };
  const requests = (await repeatedRequests(service.url, flags)).filter(({ name }) =>
    name.includes(options.only),
  );
  await load(service, { ...plan, seconds: options.quick ? 1 : WARM_UP_SECONDS });
  const rows: MixedRow[] = [];
  for (const request of requests) {
    rows.push(await measureRow(service, plan, request, folder));
    console.error(JSON.stringify(rows.at(-1)));
  }
  await service.stop();
  return {
    at: new Date(Date.now()).toISOString(),
    machine: { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length },
    ...{ engine: options.engine, users, realms, callers: Number(options.callers), seconds, rounds, rows },
  };
}

async function run(): Promise<MixedRun> {
  const folder = mkdtempSync(join(tmpdir(), 'authrealm-bench-'));
  const postgres = isPostgres
    ? await startPostgres({ max_connections: '400', max_wal_size: '4GB' })
    : undefined;
  try {
    const database = postgres ? await postgres.freshDatabase() : `sqlite:${join(folder, 'mixed.db')}`;
    const key = postgres ? ['--master-key-file', writeKeyFile(folder)] : [];
    return await measure(['--database', database, ...key], folder);
  } finally {
    await postgres?.stop('immediate');
    rmSync(folder, { recursive: true, force: true });
  }
}

const result = await run();
mkdirSync(options.out, { recursive: true });
writeFileSync(join(options.out, `mixed-${result.engine}.json`), `${JSON.stringify(result, null, 2)}\n`);
console.log(mixedMarkdown(result));
process.exit(0);
