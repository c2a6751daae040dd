import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RequestTimes } from './load.ts';

/** Debian does not put pgbench on the PATH. */
export const PGBENCH = '/usr/lib/postgresql/15/bin/pgbench';

/** On a busy machine. */
const CONNECTIONS_PER_SECOND = 64;

export interface PgbenchPlan {
  readonly clients: number;
  readonly seconds: number;
  /** Each transaction runs one of them, chosen at random. */
  readonly scripts: readonly string[];
  readonly folder: string;
}

/**
 * Runs pgbench with prepared statements at its maximum rate. Latencies come from its log. Throws if it fails.
 */
export async function pgbench(url: string, plan: PgbenchPlan): Promise<RequestTimes> {
  const { clients, seconds, folder } = plan;
  const workFolder = join(folder, 'pgbench');
  rmSync(workFolder, { recursive: true, force: true });
  mkdirSync(workFolder);
  const scripts = plan.scripts.map((script, index) => {
    const path = join(workFolder, `${index}.sql`);
    writeFileSync(path, `${script}\n`);
    return path;
  });
  // It opens its connections within its time, one after the other.
  const time = seconds + Math.ceil(clients / CONNECTIONS_PER_SECOND);
  // With many clients only a sample is logged: writing every transaction would reduce the rate.
  const samplingRate = clients === 1 ? 1 : 0.05;
  const child = Bun.spawn(
    [
      PGBENCH,
      ...['--no-vacuum', '--protocol', 'prepared', '--client', String(clients)],
      ...['--jobs', String(Math.min(clients, 2)), '--time', String(time)],
      ...['--log', '--log-prefix', join(workFolder, 'log'), '--sampling-rate', String(samplingRate)],
      ...scripts.flatMap((path) => ['--file', path]),
      url,
    ],
    { stdio: ['ignore', 'pipe', 'pipe'], cwd: workFolder },
  );
  const [output, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  const tps = /tps = ([\d.]+) \(without/.exec(output)?.[1];
  const requests = Number(/actually processed: (\d+)/.exec(output)?.[1]);
  if ((await child.exited) !== 0 || tps === undefined) throw new Error(`pgbench failed: ${errors}${output}`);
  const latencies = readdirSync(workFolder)
    .filter((name) => name.startsWith('log'))
    .flatMap((name) => readFileSync(join(workFolder, name), 'utf8').trim().split('\n'))
    // Client, transaction, microseconds, …
    .map((line) => Number(line.split(' ')[2]) / 1000);
  return { requests, requestsPerSecond: Number(tps), ...quantilesOf(latencies) };
}

/** The median and the 99th percentile, in milliseconds. Sorts its input. */
export function quantilesOf(latencies: number[]): Pick<RequestTimes, 'p50' | 'p99'> {
  latencies.sort((left, right) => left - right);
  const at = (share: number) => latencies[Math.floor(share * (latencies.length - 1))] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99) };
}
