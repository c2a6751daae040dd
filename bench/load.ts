import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { LOAD_CORE, pinned } from './server.ts';

export interface Load {
  readonly requestsPerSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

/** Until what is asked most has been compiled. */
export const WARM_UP_SECONDS = 5;

export interface LoadPlan {
  readonly connections: number;
  readonly seconds: number;
  readonly paths: string;
  readonly token: string;
  /** False where the load shares all cores with what it measures. */
  readonly isPinned?: boolean;
  /** Posted by every request, `{n}` replaced by something new each time. */
  readonly body?: string;
}

/** Makes what one run posts differ from what every other run posts. */
let runs = 0;

/** Runs wrk against a server from the core the server does not have. Throws where any answer was not a 2xx. */
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
  // At a lower priority than the callers who keep the lookups company, who have the same core.
  const command = isPinned ? pinned(LOAD_CORE, ['nice', '-n', '10', ...wrk]) : wrk;
  const child = Bun.spawn(command, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, BENCH_PATHS: paths, BENCH_TOKEN: token, ...posted(body) },
  });
  const output = await new Response(child.stdout).text();
  const line = output.split('\n').find((each) => each.startsWith('{'));
  if ((await child.exited) !== 0 || line === undefined) throw new Error(`wrk failed: ${output}`);
  const { requests, microseconds, p50, p99, failed } = JSON.parse(line) as Record<string, number>;
  if (failed !== 0) throw new Error(`${failed} of ${requests} answers were no success`);
  return {
    requestsPerSecond: Number(requests) / (Number(microseconds) / 1e6),
    p50: Number(p50) / 1000,
    p99: Number(p99) / 1000,
  };
}

export interface Turns {
  readonly rounds: number;
  /** The database. */
  readonly file: string;
}

/**
 * Each measurement in turn, round by round; answers what every round came to, for each measurement. Every second round
 * goes the other way, so that none is always the first one behind a file that was just read.
 */
export async function inTurn(
  { rounds, file }: Turns,
  measurements: readonly (() => Promise<Load>)[],
): Promise<Load[][]> {
  const loads: Load[][] = measurements.map(() => []);
  const onwards = [...measurements.entries()];
  for (let round = 0; round < rounds; round += 1) {
    await readThrough(file);
    for (const [index, measure] of round % 2 === 0 ? onwards : onwards.toReversed()) {
      loads[index]?.push(await measure());
    }
  }
  return loads;
}

/** Reads a file to its end, so that the system has it in memory: it may have taken that back since the last time. */
export async function readThrough(file: string): Promise<void> {
  for await (const _ of createReadStream(file, { highWaterMark: READ_BYTES }));
}

const READ_BYTES = 1 << 20;

function posted(body: string | undefined): Record<string, string> {
  if (body === undefined) return {};
  runs += 1;
  return { BENCH_BODY: body, BENCH_SALT: `${process.pid}-${runs}-` };
}

/** The middle one, or the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? Number.NaN) + (sorted[Math.ceil(middle)] ?? Number.NaN)) / 2;
}

/** The medians of several rounds, each figure by itself. */
export function medianOf(loads: readonly Load[]): Load {
  return {
    requestsPerSecond: median(loads.map((each) => each.requestsPerSecond)),
    p50: median(loads.map((each) => each.p50)),
    p99: median(loads.map((each) => each.p99)),
  };
}

/**
 * What a figure comes to of another one: the median of what it came to in each round. The two were measured within
 * seconds of each other there, and a machine is not as fast in every minute.
 */
export function medianRatio(of: readonly Load[], by: readonly Load[], figure: keyof Load): number {
  return median(of.map((each, round) => each[figure] / (by[round] as Load)[figure]));
}
