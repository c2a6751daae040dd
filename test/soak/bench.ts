import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Result, Run } from '../../bench/report.ts';
import { benchInto } from './benched.ts';

/** What must be reached, each measured in the same run as what it is measured by. */
interface Threshold {
  readonly name: string;
  readonly unit: string;
  readonly of: (result: Result) => number;
  readonly holds: (figure: number) => boolean;
}

const ofNginx = (result: Result) => result.ofNginx;
const ofBare = (result: Result) => result.importedPerSecond / result.bareInsertsPerSecond;

const ALWAYS: readonly Threshold[] = [
  { name: 'p99', unit: ' ms', of: ({ lookup }) => lookup.p99, holds: (figure) => figure < 4 },
  { name: 'anonymous', unit: ' MB', of: (result) => result.anonymousMb, holds: (figure) => figure < 120 },
  { name: 'first 200', unit: ' ms', of: (result) => result.firstAnswerMs, holds: (figure) => figure < 300 },
];

/** What must hold of everything beside the lookups, whatever the size. */
const OPERATIONS: readonly Threshold[] = [
  {
    name: 'reverse lookup of lookup',
    unit: '',
    of: ({ operations }) => operations.findCost,
    holds: (figure) => figure <= 1.2,
  },
  {
    name: 'deep page of first page',
    unit: '',
    of: ({ operations }) => operations.deepPageMs / operations.firstPageMs,
    holds: (figure) => figure <= 1.2,
  },
  {
    name: 'rate beside writes and passwords',
    unit: '',
    of: ({ operations }) => operations.company.writes.rateKept,
    holds: (figure) => figure >= 0.7,
  },
  {
    name: 'writes of 500 a second',
    unit: '',
    of: ({ operations }) => operations.company.writes.paceKept,
    holds: (figure) => figure >= 0.95,
  },
  {
    name: 'lists of 20 a second',
    unit: '',
    of: ({ operations }) => operations.company.lists.paceKept,
    holds: (figure) => figure >= 0.95,
  },
  {
    name: 'p99 beside lists',
    unit: '',
    of: ({ operations }) => operations.company.lists.p99Grown,
    holds: (figure) => figure <= 2,
  },
  {
    name: 'p99 beside searches',
    unit: '',
    of: ({ operations }) => operations.company.searches.p99Grown,
    holds: (figure) => figure <= 2,
  },
];

const THRESHOLDS: readonly { readonly users: number; readonly all: readonly Threshold[] }[] = [
  {
    users: 10_000,
    all: [
      { name: 'of nginx', unit: '', of: ofNginx, holds: (figure) => figure >= 0.53 },
      ...ALWAYS,
      ...OPERATIONS,
    ],
  },
  {
    users: 1_000_000,
    all: [
      { name: 'of nginx', unit: '', of: ofNginx, holds: (figure) => figure >= 0.42 },
      ...ALWAYS,
      ...OPERATIONS,
      { name: 'import of bare inserts', unit: '', of: ofBare, holds: (figure) => figure >= 1 / 3 },
    ],
  },
];

const { values: given } = parseArgs({ options: { results: { type: 'string' } } });
const { results } =
  given.results === undefined
    ? await benchInto('run.ts', (folder) => readRun(join(folder, 'lookups.json')))
    : readRun(given.results);
const judged = THRESHOLDS.map(({ users, all }) => {
  const result = results.find((each) => each.users === users);
  if (!result) throw new Error(`the bench has no result for ${users} users`);
  const figures = all.map(({ name, unit, of, holds }) => {
    const figure = of(result);
    return {
      holds: holds(figure),
      text: `${name} ${figure.toFixed(2)}${unit}${holds(figure) ? '' : ' (!)'}`,
    };
  });
  return {
    holds: figures.every((figure) => figure.holds),
    text: `${users.toLocaleString('en')} users: ${figures.map(({ text }) => text).join(', ')}`,
  };
});
console.log(judged.map(({ text }) => text).join('; '));
process.exitCode = judged.every(({ holds }) => holds) ? 0 : 1;

function readRun(path: string): Run {
  return JSON.parse(readFileSync(path, 'utf8')) as Run;
}
