import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { PostgresRun } from '../../bench/postgres_report.ts';
import { benchInto } from './benched.ts';

/** What lookups on PostgreSQL must reach, each measured in the same run as what it is measured by. */
const THRESHOLDS: readonly {
  readonly name: string;
  readonly of: (run: PostgresRun) => number;
  readonly holds: (figure: number) => boolean;
}[] = [
  { name: 'best of pgbench', of: ({ ofPgbench }) => ofPgbench, holds: (figure) => figure >= 1 },
  {
    name: 'median of pgbench, alone',
    of: ({ alone }) => alone.p50OfPgbench,
    holds: (figure) => figure <= 1.5,
  },
  {
    name: 'p99 of the driver, alone',
    of: ({ alone }) => alone.p99OfDriver,
    holds: (figure) => figure <= 2.5,
  },
];

const { values: given } = parseArgs({ options: { results: { type: 'string' } } });
const run: PostgresRun =
  given.results === undefined
    ? await benchInto('postgres.ts', (folder) => read(join(folder, 'postgres.json')))
    : read(given.results);
const judged = THRESHOLDS.map(({ name, of, holds }) => {
  const figure = of(run);
  return { holds: holds(figure), text: `${name} ${figure.toFixed(2)}${holds(figure) ? '' : ' (!)'}` };
});
console.log(`${run.users.toLocaleString('en')} users: ${judged.map(({ text }) => text).join(', ')}`);
process.exitCode = judged.every(({ holds }) => holds) ? 0 : 1;

function read(path: string): PostgresRun {
  return JSON.parse(readFileSync(path, 'utf8')) as PostgresRun;
}
