import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { BackgroundKind } from '../../bench/background_load.ts';
import { figures, median } from '../../bench/load.ts';
import { type Result, type Run, rowRatio } from '../../bench/report.ts';
import { runBench } from './run_bench.ts';

/** A threshold of a figure; its baseline is measured in the same run. */
interface Threshold {
  readonly name: string;
  readonly unit: string;
  readonly of: (result: Result) => number;
  readonly passes: (figure: number) => boolean;
}

const ofBare = (result: Result) => result.importedPerSecond / (result.bareInsertsPerSecond ?? Number.NaN);

type UnderLoadFigure = 'rateRatio' | 'p99Ratio' | 'backgroundRateRatio';

/** A figure of the lookups while a background load runs; NaN, which passes no threshold, if it was not measured. */
function underLoad({ operations }: Result, kind: BackgroundKind, figure: UnderLoadFigure): number {
  return operations.background[kind]?.[figure] ?? Number.NaN;
}

const ALWAYS: readonly Threshold[] = [
  {
    name: 'of the hand-written server, by processor time',
    unit: '',
    of: (result) => rowRatio(result, ['handwritten', 'lookup'], 'cpuMicros'),
    passes: (figure) => figure >= 0.9,
  },
  {
    name: 'newest 1 % of the rest',
    unit: '',
    of: (result) => rowRatio(result, ['lookup', 'newest'], 'cpuMicros'),
    passes: (figure) => figure >= 0.9,
  },
  {
    name: 'p99',
    unit: ' ms',
    of: ({ loads }) => median(figures(loads.lookup, 'p99')),
    passes: (figure) => figure < 4,
  },
  { name: 'anonymous', unit: ' MB', of: (result) => result.anonymousMb, passes: (figure) => figure < 120 },
  {
    name: 'first 200',
    unit: ' ms',
    of: (result) => result.firstResponseMs,
    passes: (figure) => figure < 300,
  },
];

/** Thresholds of all operations other than lookups, for every size. */
const OPERATIONS: readonly Threshold[] = [
  {
    name: 'reverse lookup of lookup',
    unit: '',
    of: (result) => rowRatio(result, ['reverse', 'lookupAgain'], 'cpuMicros'),
    passes: (figure) => figure <= 1.2,
  },
  {
    name: 'deep page of first page',
    unit: '',
    of: ({ operations }) => operations.deepPageMs / operations.firstPageMs,
    passes: (figure) => figure <= 1.2,
  },
  {
    name: 'lookup rate during 500 creates a second',
    unit: '',
    of: (result) => underLoad(result, 'links', 'rateRatio'),
    passes: (figure) => figure >= 0.75,
  },
  {
    name: 'lookup rate with a full password queue',
    unit: '',
    of: (result) => underLoad(result, 'passwords', 'rateRatio'),
    passes: (figure) => figure >= 0.7,
  },
  {
    name: 'creates of 500 a second',
    unit: '',
    of: (result) => underLoad(result, 'links', 'backgroundRateRatio'),
    passes: (figure) => figure >= 0.95,
  },
  {
    name: 'pages with totals of 20 a second',
    unit: '',
    of: (result) => underLoad(result, 'totals', 'backgroundRateRatio'),
    passes: (figure) => figure >= 0.95,
  },
  {
    name: 'lookup rate during pages with totals',
    unit: '',
    of: (result) => underLoad(result, 'totals', 'rateRatio'),
    passes: (figure) => figure >= 0.95,
  },
  {
    name: 'lists of 20 a second',
    unit: '',
    of: (result) => underLoad(result, 'lists', 'backgroundRateRatio'),
    passes: (figure) => figure >= 0.95,
  },
  {
    name: 'p99 during lists',
    unit: '',
    of: (result) => underLoad(result, 'lists', 'p99Ratio'),
    passes: (figure) => figure <= 2,
  },
  {
    name: 'p99 during searches',
    unit: '',
    of: (result) => underLoad(result, 'searches', 'p99Ratio'),
    passes: (figure) => figure <= 2,
  },
];

const THRESHOLDS: readonly { readonly users: number; readonly all: readonly Threshold[] }[] = [
  { users: 10_000, all: [...ALWAYS, ...OPERATIONS] },
  {
    users: 1_000_000,
    all: [
      ...ALWAYS,
      ...OPERATIONS,
      { name: 'import of bare inserts', unit: '', of: ofBare, passes: (figure) => figure >= 1 / 3 },
    ],
  },
  { users: 3_000_000, all: ALWAYS },
];

const { values: options } = parseArgs({ options: { results: { type: 'string' } } });
const { results } =
  options.results === undefined
    ? await runBench('run.ts', (folder) => readRun(join(folder, 'lookups.json')))
    : readRun(options.results);
const outcomes = THRESHOLDS.map(({ users, all }) => {
  const result = results.find((each) => each.users === users);
  if (!result) throw new Error(`the bench has no result for ${users} users`);
  const figures = all.map(({ name, unit, of, passes }) => {
    const figure = of(result);
    return {
      passes: passes(figure),
      text: `${name} ${figure.toFixed(2)}${unit}${passes(figure) ? '' : ' (!)'}`,
    };
  });
  return {
    passes: figures.every((figure) => figure.passes),
    text: `${users.toLocaleString('en')} users: ${figures.map(({ text }) => text).join(', ')}`,
  };
});
console.log(outcomes.map(({ text }) => text).join('; '));
process.exitCode = outcomes.every(({ passes }) => passes) ? 0 : 1;

function readRun(path: string): Run {
  return JSON.parse(readFileSync(path, 'utf8')) as Run;
}
