import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { LOAD_CORE, pinned } from './server.ts';

export interface Load {
  readonly requestsPerSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

/** Until hot code has been compiled. */
export const WARM_UP_SECONDS = 5;

export interface LoadPlan {
  readonly connections: number;
  readonly seconds: number;
  readonly paths: string;
  readonly token: string;
  /** False if the load and the measured server share all cores. */
  readonly isPinned?: boolean;
  /** Posted by every request, with `{n}` replaced by a unique value. */
  readonly body?: string;
}

/** Makes the posted values unique across runs. */
let runCount = 0;

/** Runs wrk against a server, on the other core. Throws if any response was not a 2xx. */
export async function load(url: string, plan: LoadPlan): Promise<Load> {
  const { connections, seconds, paths, token, body, isPinned = true } = plan;
  const wrk = [
    'wrk',
    '-t1',
    `-c${connections}`,
    `-d${seconds}s`,
    '-s',
    join(import.meta.dir, 'load.lua'),
    url,
  ];
  // At a lower priority than the background load, which runs on the same core.
  const command = isPinned ? pinned(LOAD_CORE, ['nice', '-n', '10', ...wrk]) : wrk;
  const child = Bun.spawn(command, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, BENCH_PATHS: paths, BENCH_TOKEN: token, ...bodyEnvironment(body) },
  });
  const output = await new Response(child.stdout).text();
  const line = output.split('\n').find((each) => each.startsWith('{'));
  if ((await child.exited) !== 0 || line === undefined) throw new Error(`wrk failed: ${output}`);
  const { requests, microseconds, p50, p99, failed } = JSON.parse(line) as Record<string, number>;
  if (failed !== 0) throw new Error(`${failed} of ${requests} requests failed`);
  return {
    requestsPerSecond: Number(requests) / (Number(microseconds) / 1e6),
    p50: Number(p50) / 1000,
    p99: Number(p99) / 1000,
  };
}

export interface Rounds {
  readonly rounds: number;
  /** The database. */
  readonly file: string;
}

/**
 * Runs each measurement once per round, and returns the loads of all rounds for each measurement. Every second round runs in
 * reverse order, so that no measurement is always the first after the file was read.
 */
export async function runInterleaved(
  { rounds, file }: Rounds,
  measurements: readonly (() => Promise<Load>)[],
): Promise<Load[][]> {
  const loads: Load[][] = measurements.map(() => []);
  const inOrder = [...measurements.entries()];
  for (let round = 0; round < rounds; round += 1) {
    await readIntoPageCache(file);
    for (const [index, measure] of round % 2 === 0 ? inOrder : inOrder.toReversed()) {
      loads[index]?.push(await measure());
    }
  }
  return loads;
}

/** Reads a file to its end: the system may have evicted it from the page cache since the last round. */
export async function readIntoPageCache(file: string): Promise<void> {
  for await (const _ of createReadStream(file, { highWaterMark: READ_BYTES }));
}

const READ_BYTES = 1 << 20;

function bodyEnvironment(body: string | undefined): Record<string, string> {
  if (body === undefined) return {};
  runCount += 1;
  return { BENCH_BODY: body, BENCH_SALT: `${process.pid}-${runCount}-` };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? Number.NaN) + (sorted[Math.ceil(middle)] ?? Number.NaN)) / 2;
}

/** The median of each figure over several rounds. */
export function medianOf(loads: readonly Load[]): Load {
  return {
    requestsPerSecond: median(loads.map((each) => each.requestsPerSecond)),
    p50: median(loads.map((each) => each.p50)),
    p99: median(loads.map((each) => each.p99)),
  };
}

/**
 * The median over the rounds of the ratio of one figure to another. Within a round the two are measured seconds apart; the
 * speed of a machine varies from minute to minute.
 */
export function medianRatio(
  numerators: readonly Load[],
  denominators: readonly Load[],
  member: keyof Load,
): number {
  return median(numerators.map((each, round) => each[member] / (denominators[round] as Load)[member]));
}
