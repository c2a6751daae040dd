import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type PostgresRun, ratioOfBest, ratiosAlone } from '../../bench/postgres_report.ts';
import { runBench } from './run_bench.ts';

/** Thresholds of lookups on PostgreSQL; each baseline is measured in the same run. */
const THRESHOLDS: readonly {
  readonly name: string;
  readonly of: (run: PostgresRun) => number;
  readonly passes: (figure: number) => boolean;
}[] = [
  { name: 'best of pgbench', of: (run) => ratioOfBest(run, 'pgbench'), passes: (figure) => figure >= 1 },
  {
    name: 'median of pgbench, alone',
    of: (run) => ratiosAlone(run).p50,
    passes: (figure) => figure <= 1.5,
  },
  {
    name: 'p99 of the driver, alone',
    of: (run) => ratiosAlone(run).p99,
    passes: (figure) => figure <= 2.5,
  },
];

const { values: options } = parseArgs({ options: { results: { type: 'string' } } });
const run: PostgresRun =
  options.results === undefined
    ? await runBench('postgres.ts', (folder) => read(join(folder, 'postgres.json')))
    : read(options.results);
const outcomes = THRESHOLDS.map(({ name, of, passes }) => {
  const figure = of(run);
  return { passes: passes(figure), text: `${name} ${figure.toFixed(2)}${passes(figure) ? '' : ' (!)'}` };
});
console.log(`${run.users.toLocaleString('en')} users: ${outcomes.map(({ text }) => text).join(', ')}`);
process.exitCode = outcomes.every(({ passes }) => passes) ? 0 : 1;

function read(path: string): PostgresRun {
  return JSON.parse(readFileSync(path, 'utf8')) as PostgresRun;
}
