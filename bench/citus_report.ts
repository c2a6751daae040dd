import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Loads, medianRatio } from './load.ts';
import {
  markdownTable,
  medianCell,
  micros,
  ratio,
  sharedMachineNote,
  spreadCell,
  whole,
} from './markdown.ts';
import { CITUS_OPERATIONS, CITUS_SOURCES, type CitusOperation, type CitusRow, citusRow } from './rows.ts';

export interface CitusRun {
  readonly at: string;
  readonly machine: { readonly cpu: string; readonly cores: number };
  readonly users: number;
  readonly rounds: number;
  readonly seconds: number;
  /** Of each row, one load for each round. */
  readonly loads: Loads<CitusRow>;
}

/** Writes the run as JSON, and returns it as Markdown. */
export function reportCitus(run: CitusRun, folder: string): string {
  writeFileSync(join(folder, 'citus.json'), `${JSON.stringify(run, null, 1)}\n`);
  return citusMarkdown(run);
}

const SOURCE_TEXTS = {
  plain: 'PostgreSQL',
  coordinator: 'Citus, the coordinator routes',
  worker: 'Citus, the worker of the realm routes',
};

export function citusMarkdown(run: CitusRun): string {
  const { loads, users } = run;
  const operations = Object.entries(CITUS_OPERATIONS) as [CitusOperation, string][];
  const table = markdownTable(
    [
      `${whole(users)} users`,
      'per second',
      'processor of the server, µs',
      'of the database, µs',
      'ratio to PostgreSQL',
      'p50, ms',
    ],
    operations.flatMap(([operation, text]) =>
      CITUS_SOURCES.map((source) => {
        const row = loads[citusRow(source, operation)];
        const plain = loads[citusRow('plain', operation)];
        return [
          `${text}: ${SOURCE_TEXTS[source]}`,
          spreadCell(row, 'requestsPerSecond'),
          spreadCell(row, 'cpuMicros', micros),
          spreadCell(row, 'databaseCpuMicros', micros),
          ratio(medianRatio(row, plain, 'databaseCpuMicros')),
          medianCell(row, 'p50', (value) => value.toFixed(2)),
        ];
      }),
    ),
  );
  return [
    table,
    'Processor of the database is that of all its servers; the ratio is of that figure.',
    '',
    sharedMachineNote(run, 'the services, all servers of the database and the load'),
    '',
  ].join('\n');
}
