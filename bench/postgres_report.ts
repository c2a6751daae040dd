import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Loads, median, medianRatio } from './load.ts';
import {
  markdownTable,
  medianCell,
  micros,
  milliseconds,
  ratio,
  sharedMachineNote,
  whole,
} from './markdown.ts';
import { POSTGRES_ROWS, type PostgresRow } from './rows.ts';

export interface PostgresRun {
  readonly at: string;
  readonly machine: { readonly cpu: string; readonly cores: number };
  readonly server: string;
  readonly users: number;
  readonly rounds: number;
  readonly seconds: number;
  /** Of each row, one load for each round. */
  readonly loads: Loads<PostgresRow>;
  readonly importedPerSecond: number;
  readonly databaseMb: number;
}

/** Writes the run as JSON, and returns it as Markdown. */
export function reportPostgres(run: PostgresRun, folder: string): string {
  writeFileSync(join(folder, 'postgres.json'), `${JSON.stringify(run, null, 1)}\n`);
  return postgresMarkdown(run);
}

/** The best rate of the service, by any number of callers, divided by that of a reference; the median over the rounds. */
export function ratioOfBest({ loads }: PostgresRun, reference: 'pgbench' | 'handwritten'): number {
  const best = (source: 'service' | typeof reference, round: number) =>
    Math.max(
      ...([16, 64, 256] as const).map(
        (callers) => loads[`${source}${callers}`]?.[round]?.requestsPerSecond ?? Number.NaN,
      ),
    );
  return median((loads.service16 ?? []).map((_, round) => best('service', round) / best(reference, round)));
}

/** For one caller: the median latency relative to pgbench, and the 99th percentile relative to the driver. */
export function ratiosAlone({ loads }: PostgresRun): { readonly p50: number; readonly p99: number } {
  return {
    p50: medianRatio(loads.serviceAlone, loads.pgbenchAlone, 'p50'),
    p99: medianRatio(loads.serviceAlone, loads.driverAlone, 'p99'),
  };
}

/** The rows that a page shows; the file of the run has all. */
const SHOWN = [
  ...(['service64', 'handwritten64', 'pgbench64'] as const),
  ...(['reverse', 'createTogether64'] as const),
];

export function postgresMarkdown(run: PostgresRun): string {
  const { loads, server, users } = run;
  const table = markdownTable(
    [
      `${server}, ${whole(users)} users`,
      ...['per second', 'processor of the server, µs', 'of PostgreSQL, µs', 'p99, ms'],
    ],
    SHOWN.map((row) => [
      POSTGRES_ROWS[row],
      medianCell(loads[row], 'requestsPerSecond'),
      medianCell(loads[row], 'cpuMicros', micros),
      medianCell(loads[row], 'databaseCpuMicros', micros),
      medianCell(loads[row], 'p99', milliseconds),
    ]),
  );
  const alone = ratiosAlone(run);
  const byProcessor = medianRatio(loads.handwritten64, loads.service64, 'cpuMicros');
  return [
    table,
    `The best rate by any number of callers is ${ratio(ratioOfBest(run, 'pgbench'))} of pgbench's and ` +
      `${ratio(ratioOfBest(run, 'handwritten'))} of the hand-written server's, by processor time ${ratio(byProcessor)}. ` +
      `For one caller, the median latency is ${ratio(alone.p50)} times that of pgbench. Import: ` +
      `${whole(run.importedPerSecond)} records/s.`,
    '',
    sharedMachineNote(run, 'the service, the database and the load'),
    '',
  ].join('\n');
}
