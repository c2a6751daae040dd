import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Load } from './load.ts';

/** Debian puts what is not for everybody's path here. */
export const PGBENCH = '/usr/lib/postgresql/15/bin/pgbench';

export interface PgbenchPlan {
  readonly clients: number;
  readonly seconds: number;
  /** One of them is drawn for each transaction. */
  readonly scripts: readonly string[];
  readonly folder: string;
}

/**
 * Has pgbench select rows as fast as it can, prepared, over loopback; its latencies are those of its own log. Throws
 * where it fails.
 */
export async function pgbench(url: string, plan: PgbenchPlan): Promise<Load> {
  const { clients, seconds, folder } = plan;
  const own = join(folder, 'pgbench');
  rmSync(own, { recursive: true, force: true });
  mkdirSync(own);
  const scripts = plan.scripts.map((script, index) => {
    const path = join(own, `${index}.sql`);
    writeFileSync(path, `${script}\n`);
    return path;
  });
  // One in so many transactions is logged: writing them all would slow down what is measured.
  const rate = clients === 1 ? 1 : 0.05;
  const child = Bun.spawn(
    [
      PGBENCH,
      ...['--no-vacuum', '--protocol', 'prepared', '--client', String(clients)],
      ...['--jobs', String(Math.min(clients, 2)), '--time', String(seconds)],
      ...['--log', '--log-prefix', join(own, 'log'), '--sampling-rate', String(rate)],
      ...scripts.flatMap((path) => ['--file', path]),
      url,
    ],
    { stdio: ['ignore', 'pipe', 'pipe'], cwd: own },
  );
  const [output, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  const rateTold = /tps = ([\d.]+) \(without/.exec(output)?.[1];
  if ((await child.exited) !== 0 || rateTold === undefined) throw new Error(`pgbench failed: ${errors}`);
  const latencies = readdirSync(own)
    .filter((name) => name.startsWith('log'))
    .flatMap((name) => readFileSync(join(own, name), 'utf8').trim().split('\n'))
    // Client, transaction, microseconds, …
    .map((line) => Number(line.split(' ')[2]) / 1000);
  return { requestsPerSecond: Number(rateTold), ...quantilesOf(latencies) };
}

/** The median and the 99th percentile, milliseconds. */
export function quantilesOf(latencies: number[]): Pick<Load, 'p50' | 'p99'> {
  latencies.sort((left, right) => left - right);
  const at = (share: number) => latencies[Math.floor(share * (latencies.length - 1))] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99) };
}
