import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Load } from './load.ts';

/** Loads with one number of clients; medians over all rounds. */
export interface Comparison {
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
  readonly comparisons: readonly Comparison[];
  /** The best rate through the service divided by the best rate of pgbench; the median over the rounds. */
  readonly ratioToPgbench: number;
  readonly singleClient: {
    readonly service: Load;
    readonly pgbench: Load;
    readonly driver: Load;
    /** The service's median latency divided by pgbench's, and its 99th percentile divided by the driver's. */
    readonly p50RatioToPgbench: number;
    readonly p99RatioToDriver: number;
  };
  readonly importedPerSecond: number;
  readonly databaseMb: number;
}

/** Writes the run as JSON and Markdown, and returns the Markdown. */
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
  const { comparisons, singleClient, server, users, rounds, seconds, machine, at } = run;
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const loadCells = (load: Load) => [whole(load.requestsPerSecond), ms(load.p50), ms(load.p99)];
  return [
    line([`${server}, ${whole(users)} users`, 'lookups/s', 'p50, ms', 'p99, ms']),
    line(['---', '---:', '---:', '---:']),
    ...[...comparisons].flatMap(({ clients, service, pgbench }) => [
      line([`authrealm over HTTP, ${clients} callers`, ...loadCells(service)]),
      line([`pgbench, the same rows, ${clients} callers`, ...loadCells(pgbench)]),
    ]),
    line(['authrealm over HTTP, one caller', ...loadCells(singleClient.service)]),
    line(['pgbench, one caller', ...loadCells(singleClient.pgbench)]),
    line(['bare `Bun.SQL`, one caller', ...loadCells(singleClient.driver)]),
    '',
    `The best rate of authrealm is ${ratio(run.ratioToPgbench)} times the best rate of pgbench. For one caller, the ` +
      `median latency is ${ratio(singleClient.p50RatioToPgbench)} times that of pgbench, and the 99th percentile ` +
      `${ratio(singleClient.p99RatioToDriver)} times that of the driver. ` +
      `Import: ${whole(run.importedPerSecond)} records/s, ${whole(run.databaseMb)} MB.`,
    '',
    `${machine.cpu}, ${machine.cores} cores, shared by the service, the database and the load. Medians of ${rounds} ` +
      `interleaved rounds of ${seconds} s; ratios are computed in each round; ${at.slice(0, 10)}.`,
    '',
  ].join('\n');
}
