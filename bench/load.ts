import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import type { ProcessUsage } from './process_usage.ts';
import { type BenchServer, LOAD_CORE, pinned } from './server.ts';

/** The rate and the latencies of one run of a load. */
export interface RequestTimes {
  readonly requests: number;
  readonly requestsPerSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Microseconds of processor time that the load used for each request. */
  readonly loadCpuMicros?: number;
  /** Responses with an error status, which are not in `requests`. */
  readonly errorStatuses?: number;
}

/** A run of a load, and what the measured processes used for each request. */
export interface Load extends Omit<RequestTimes, 'requests'> {
  /** Of the server. Absent where the load has no server. */
  readonly cpuMicros?: number;
  readonly readCalls?: number;
  /** Of PostgreSQL. */
  readonly databaseCpuMicros?: number;
}

export type Figure = keyof Load;

/** A process whose usage is measured. */
export interface UsageSource {
  usage(): ProcessUsage;
}

interface MeasuredProcesses {
  readonly server?: UsageSource | undefined;
  readonly database?: UsageSource | undefined;
}

/** Until hot code has been compiled. */
export const WARM_UP_SECONDS = 5;

/** A link to create: the collection of a user, and the body. */
export interface LinkRequest {
  readonly collection: string;
  readonly body: string;
}

export interface LoadPlan {
  readonly connections: number;
  readonly seconds: number;
  readonly paths: string;
  readonly token: string;
  /** False if the load and the measured server share all cores. */
  readonly isPinned?: boolean;
  /** A lower priority than that of the server and a background load; by default if the load is pinned. */
  readonly isNiced?: boolean;
  /** PostgreSQL, if its usage is measured as well. */
  readonly database?: UsageSource;
  /** Posted by every request, with `{n}` replaced by a unique value. */
  readonly body?: string;
  /** Posted to the user of each response; all requests of a user count as one. */
  readonly links?: readonly LinkRequest[];
  /** Leaves out requests with an error status, in place of failing: a busy machine makes a service shed load. */
  readonly allowsErrorStatus?: boolean;
  /** Each connection waits so long before a request, on average. */
  readonly pauseMs?: number;
}

/** Makes the posted values unique across runs. */
let runCount = 0;

/** Before a round: starts servers again, in new processes, and loads them until hot code has been compiled. */
export function restarting(servers: readonly BenchServer[], plan: LoadPlan): () => Promise<void> {
  return async () => {
    for (const server of servers) {
      await server.restart();
      await load(server, plan);
    }
  };
}

/** Runs wrk against a server, on the other core. Throws if any response was not a 2xx. */
export function load(server: UsageSource & { readonly url: string }, plan: LoadPlan): Promise<Load> {
  return withUsage({ server, database: plan.database }, () => runWrk(server.url, plan));
}

async function runWrk(url: string, plan: LoadPlan): Promise<RequestTimes> {
  const {
    connections,
    seconds,
    isPinned = true,
    isNiced = isPinned,
    links = [],
    allowsErrorStatus = false,
  } = plan;
  const wrk = [
    'wrk',
    '-t1',
    `-c${connections}`,
    `-d${seconds}s`,
    // A slow response is a latency; only one that does not come is an error.
    '--timeout=10s',
    '-s',
    join(import.meta.dir, 'load.lua'),
    url,
  ];
  const niced = isNiced ? ['nice', '-n', '10', ...wrk] : wrk;
  const command = isPinned ? pinned(LOAD_CORE, niced) : niced;
  const child = Bun.spawn(command, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...loadEnvironment(plan) },
  });
  const output = await new Response(child.stdout).text();
  const line = output.split('\n').find((each) => each.startsWith('{'));
  if ((await child.exited) !== 0 || line === undefined) throw new Error(`wrk failed: ${output}`);
  const report = JSON.parse(line) as Record<string, number>;
  if ((report.statuses !== 0 && !allowsErrorStatus) || report.errors !== 0)
    throw new Error(
      `of ${report.requests} requests to ${url}, ${report.statuses} had an error status and ${report.errors} no response`,
    );
  const answered = Number(report.requests) - Number(report.statuses);
  if (answered === 0) throw new Error(`${url} answered no request within ${seconds} s`);
  const requests = answered / (1 + links.length);
  return {
    requests,
    requestsPerSecond: requests / (Number(report.microseconds) / 1e6),
    p50: Number(report.p50) / 1000,
    p99: Number(report.p99) / 1000,
    loadCpuMicros: Number(child.resourceUsage()?.cpuTime.total) / requests,
    errorStatuses: Number(report.statuses),
  };
}

/** Runs a load, and divides what the processes used meanwhile by the number of requests. */
export async function withUsage(
  { server, database }: MeasuredProcesses,
  run: () => Promise<RequestTimes>,
): Promise<Load> {
  const before = { server: server?.usage(), database: database?.usage() };
  const { requests, ...times } = await run();
  const perRequest = (source: keyof typeof before, figure: keyof ProcessUsage) => {
    const start = before[source];
    const end = { server, database }[source]?.usage();
    return start && end ? (end[figure] - start[figure]) / requests : undefined;
  };
  const figures = {
    cpuMicros: perRequest('server', 'cpuMicros'),
    readCalls: perRequest('server', 'readCalls'),
    databaseCpuMicros: perRequest('database', 'cpuMicros'),
  };
  const known = Object.entries(figures).filter(([, value]) => value !== undefined);
  return { ...times, ...Object.fromEntries(known) };
}

export interface Rounds {
  readonly rounds: number;
  /** The database file; none on PostgreSQL. */
  readonly file?: string;
  /** Runs before each round. */
  readonly prepare?: () => Promise<void>;
}

/** Measurements by the name of their row. A row without one is not measured. */
export type Measurements<Row extends string> = Readonly<Partial<Record<Row, () => Promise<Load>>>>;

/** The loads of each measured row, one for each round. */
export type Loads<Row extends string> = Readonly<Partial<Record<Row, readonly Load[]>>>;

/**
 * Runs each measurement once per round, and returns the loads of all rounds for each measurement. Every second round runs in
 * reverse order, so that no measurement is always the first after the file was read.
 */
export async function runInterleaved<Row extends string>(
  { rounds, file, prepare }: Rounds,
  measurements: Measurements<Row>,
): Promise<Loads<Row>> {
  const inOrder = Object.entries(measurements) as [Row, () => Promise<Load>][];
  const loads = Object.fromEntries(inOrder.map(([row]) => [row, []])) as unknown as Record<Row, Load[]>;
  for (let round = 0; round < rounds; round += 1) {
    if (file !== undefined) await readIntoPageCache(file);
    await prepare?.();
    for (const [row, measure] of round % 2 === 0 ? inOrder : inOrder.toReversed())
      try {
        loads[row].push(await measure());
      } catch (error) {
        throw new Error(`the row "${row}" could not be measured`, { cause: error });
      }
  }
  return loads;
}

/** Reads a file to its end: the system may have evicted it from the page cache since the last round. */
export async function readIntoPageCache(file: string): Promise<void> {
  for await (const _ of createReadStream(file, { highWaterMark: READ_BYTES }));
}

const READ_BYTES = 1 << 20;

function loadEnvironment({ paths, token, body, links, pauseMs }: LoadPlan): Record<string, string> {
  const pause = pauseMs === undefined ? {} : { BENCH_PAUSE_MS: String(pauseMs) };
  const always = { BENCH_PATHS: paths, BENCH_TOKEN: token, ...pause };
  if (body === undefined) return always;
  runCount += 1;
  const posted = { ...always, BENCH_BODY: body, BENCH_SALT: `${process.pid}-${runCount}-` };
  if (links === undefined) return posted;
  const lines = links.map((link) => `${link.collection} ${link.body}`);
  return { ...posted, BENCH_LINKS: lines.join('\n') };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? Number.NaN) + (sorted[Math.ceil(middle)] ?? Number.NaN)) / 2;
}

/** The values of a figure in all rounds; NaN where a round has none, and no values of a row that was not measured. */
export function figures(loads: readonly Load[] | undefined, figure: Figure): readonly number[] {
  return (loads ?? []).map((each) => each[figure] ?? Number.NaN);
}

/**
 * The median over the rounds of the ratio of one figure to another. Within a round the two are measured seconds apart; the
 * speed of a machine varies from minute to minute.
 */
export function medianRatio(
  numerators: readonly Load[] | undefined,
  denominators: readonly Load[] | undefined,
  figure: Figure,
): number {
  const below = figures(denominators, figure);
  return median(figures(numerators, figure).map((value, round) => value / (below[round] ?? Number.NaN)));
}
