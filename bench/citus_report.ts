import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Loads, medianRatio } from './load.ts';
import { markdownTable, medianCell, ratio, sharedMachineNote, whole } from './markdown.ts';
import {
  CITUS_OPERATIONS,
  CITUS_SOURCES,
  type CitusOperation,
  type CitusRow,
  type CitusSource,
  citusRow,
} from './rows.ts';

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
  coordinator: 'Citus by its coordinator',
  worker: 'Citus by the worker of the realm',
};

export function citusMarkdown(run: CitusRun): string {
  const { loads, users } = run;
  const cell = (source: CitusSource, operation: CitusOperation) => {
    const row = loads[citusRow(source, operation)];
    const cost = medianRatio(row, loads[citusRow('plain', operation)], 'databaseCpuMicros');
    return `${medianCell(row, 'requestsPerSecond')} (${ratio(cost)})`;
  };
  return [
    markdownTable(
      [`per second, ${whole(users)} users`, ...CITUS_SOURCES.map((source) => SOURCE_TEXTS[source])],
      (Object.entries(CITUS_OPERATIONS) as [CitusOperation, string][]).map(([operation, text]) => [
        text,
        ...CITUS_SOURCES.map((source) => cell(source, operation)),
      ]),
    ),
    'In parentheses: processor time of all database servers, ratio to PostgreSQL.',
    '',
    sharedMachineNote(run, 'all servers and the load'),
    '',
  ].join('\n');
}
