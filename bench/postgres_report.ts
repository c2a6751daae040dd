import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Load } from './load.ts';

/** Loads of so many callers, the medians of all rounds. */
export interface Compared {
  readonly clients: number;
  readonly service: Load;
  readonly pgbench: Load;
}

export interface PostgresRun {
  readonly at: string;
  readonly machine: { readonly cpu: string; readonly cores: number };
  readonly server: string;
  readonly users: number;
  readonly rounds: number;
  readonly seconds: number;
  readonly compared: readonly Compared[];
  /** The most lookups a second through the service, of the most of pgbench; the median over the rounds. */
  readonly ofPgbench: number;
  readonly alone: {
    readonly service: Load;
    readonly pgbench: Load;
    readonly driver: Load;
    /** The service's median latency of pgbench's, and its 99th percentile of the driver's. */
    readonly p50OfPgbench: number;
    readonly p99OfDriver: number;
  };
  readonly importedPerSecond: number;
  readonly databaseMb: number;
}

/** Writes the run as JSON and Markdown, and answers the Markdown. */
export function reportPostgres(run: PostgresRun, folder: string): string {
  const table = markdown(run);
  writeFileSync(join(folder, 'postgres.json'), `${JSON.stringify(run, null, 2)}\n`);
  writeFileSync(join(folder, 'postgres.md'), table);
  return table;
}

const whole = (value: number) => Math.round(value).toLocaleString('en');
const ms = (value: number) => value.toFixed(3);
const ratio = (value: number) => value.toFixed(2);

function markdown(run: PostgresRun): string {
  const { compared, alone, server, users, rounds, seconds, machine, at } = run;
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const loads = (load: Load) => [whole(load.requestsPerSecond), ms(load.p50), ms(load.p99)];
  return [
    line([`${server}, ${whole(users)} users`, 'lookups/s', 'p50, ms', 'p99, ms']),
    line(['---', '---:', '---:', '---:']),
    ...[...compared].flatMap(({ clients, service, pgbench }) => [
      line([`authrealm over HTTP, ${clients} callers`, ...loads(service)]),
      line([`pgbench, the same rows, ${clients} callers`, ...loads(pgbench)]),
    ]),
    line(['authrealm over HTTP, one caller', ...loads(alone.service)]),
    line(['pgbench, one caller', ...loads(alone.pgbench)]),
    line(['bare `Bun.SQL`, one caller', ...loads(alone.driver)]),
    '',
    `The best of authrealm is ${ratio(run.ofPgbench)} of the best of pgbench; for one caller the median is ` +
      `${ratio(alone.p50OfPgbench)} of pgbench's, the 99th percentile ${ratio(alone.p99OfDriver)} of the driver's. ` +
      `Import: ${whole(run.importedPerSecond)} records/s, ${whole(run.databaseMb)} MB.`,
    '',
    `${machine.cpu}, ${machine.cores} cores, which the service, the database and the load share. Median of ${rounds} ` +
      `interleaved rounds of ${seconds} s, of ratios that of each round, ${at.slice(0, 10)}.`,
    '',
  ].join('\n');
}
