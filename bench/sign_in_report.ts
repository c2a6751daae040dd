import { figures, type Load, type Loads, median, medianRatio } from './load.ts';
import { markdownTable, medianCell, milliseconds, ratio, spreadCell, whole } from './markdown.ts';
import { CHECKED_HASH_TEXTS, type CheckTimes } from './password_checks.ts';

/** Rows of checks alone, by callers that send the next check after each response. */
const CHECK_ROWS = {
  own: `${CHECKED_HASH_TEXTS.own}, 4 callers`,
  ownAlone: `${CHECKED_HASH_TEXTS.own}, one caller`,
  bcrypt10: `${CHECKED_HASH_TEXTS.bcrypt10}, 4 callers`,
  bcrypt12: `${CHECKED_HASH_TEXTS.bcrypt12}, 4 callers`,
} as const;

/** Rows of lookups and checks at the same time. "Half" is half of the rate of `quiet` and of `own`. */
const MIXED_ROWS = {
  quiet: '64 callers / none',
  fullQueue: '64 callers / full queue',
  quietAgain: '64 callers / none, again',
  half: 'half rate / none',
  halfFullQueue: 'half rate / full queue',
  halfHalfChecks: 'half rate / half rate',
  halfChecks: 'none / half rate',
} as const;

export type SignInRow = keyof typeof CHECK_ROWS | keyof typeof MIXED_ROWS;

export interface SignInRun {
  readonly at: string;
  readonly machine: { readonly cpu: string; readonly cores: number };
  readonly engine: string;
  readonly users: number;
  readonly rounds: number;
  readonly seconds: number;
  /** Of each row, one for each round: the lookups, or the checks of a row without lookups. */
  readonly loads: Loads<SignInRow>;
  /** The checks of rows that have them next to lookups or at a fixed rate. */
  readonly checks: Readonly<Partial<Record<SignInRow, readonly CheckTimes[]>>>;
}

/** The rates of a row divided by the mean of the quiet rates before and after it: the speed of a machine varies. */
function quietRatios(loads: SignInRun['loads'], row: SignInRow): readonly number[] {
  const { quiet, quietAgain, [row]: rows } = loads;
  const again = figures(quietAgain, 'requestsPerSecond');
  const means = figures(quiet, 'requestsPerSecond').map((rate, at) => (rate + (again[at] ?? Number.NaN)) / 2);
  return figures(rows, 'requestsPerSecond').map((rate, at) => rate / (means[at] ?? Number.NaN));
}

/** What a run must reach. */
interface Bar {
  readonly text: string;
  readonly figure: (run: SignInRun) => number;
  readonly min?: number;
  readonly max?: number;
}

const BARS: readonly Bar[] = [
  {
    text: 'rate of lookups with a full queue, ratio to quiet',
    figure: ({ loads }) => median(quietRatios(loads, 'fullQueue')),
    min: 0.8,
  },
  {
    text: 'p99 of lookups at half rate with a full queue, ratio to none',
    figure: ({ loads }) => medianRatio(loads.halfFullQueue, loads.half, 'p99'),
    max: 2,
  },
  {
    text: 'lookups of the same that were refused',
    figure: ({ loads }) => sum(figures(loads.halfFullQueue, 'errorStatuses')),
    max: 0,
  },
  {
    text: 'p99 of checks at half rate, ratio to one caller',
    figure: ({ loads }) => medianRatio(loads.halfChecks, loads.ownAlone, 'p99'),
    max: 2,
  },
  {
    text: 'checks of the same that were refused',
    figure: ({ checks }) => sum((checks.halfChecks ?? []).map(({ refused }) => refused)),
    max: 0,
  },
  {
    text: 'p99 of lookups with both at half rate, ratio to no checks',
    figure: ({ loads }) => medianRatio(loads.halfHalfChecks, loads.half, 'p99'),
    max: 2,
  },
  {
    text: 'checks of the same that were refused',
    figure: ({ checks }) => sum((checks.halfHalfChecks ?? []).map(({ refused }) => refused)),
    max: 0,
  },
];

const isMet = ({ min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY }: Bar, figure: number) =>
  figure >= min && figure <= max;

const limitOf = ({ min, max }: Bar) => (min === undefined ? `at most ${max}` : `at least ${min}`);

/** Whether the run reaches every bar. */
export function meetsBars(run: SignInRun): boolean {
  return BARS.every((bar) => isMet(bar, bar.figure(run)));
}

/** Checks alone, and the ratios that a run must reach, by engine. */
export function signInSummary(runs: readonly SignInRun[]): string {
  const checks = (['own', 'bcrypt10', 'bcrypt12'] as const).map((row) => [
    `checks/s: ${CHECK_ROWS[row]}`,
    ...runs.map(({ loads }) => medianCell(loads[row], 'requestsPerSecond', (value) => value.toFixed(1))),
  ]);
  const ratios = BARS.filter(({ max }) => max !== 0).map((bar) => [
    `${bar.text}, ${limitOf(bar)}`,
    ...runs.map((run) => ratio(bar.figure(run))),
  ]);
  const notes = runs.map(({ engine, rounds, at }) => `${engine} ${rounds}, ${at.slice(0, 10)}`);
  return [
    markdownTable(['', ...runs.map(({ engine }) => engine)], [...checks, ...ratios]),
    `${runs[0]?.machine.cpu}, ${runs[0]?.machine.cores} cores; rounds: ${notes.join('; ')}.\n`,
  ].join('\n');
}

/** All rows of a run. */
export function signInMarkdown(run: SignInRun): string {
  const { engine, machine, users, rounds, seconds, at } = run;
  const cores =
    engine === 'sqlite'
      ? 'the service and its worker on one, the load on the other'
      : 'shared by the service, its worker, the database and the load';
  return [
    checkTable(run),
    mixedTable(run),
    barTable(run),
    `${engine}, ${whole(users)} users, ${machine.cpu}, ${machine.cores} cores, ${cores}; medians of ${rounds} rounds of ` +
      `${seconds} s, in parentheses the least and the greatest; ${at.slice(0, 10)}.\n`,
  ].join('\n');
}

function checkTable({ engine, loads }: SignInRun): string {
  const perProcessor = (rows: readonly Load[] | undefined) =>
    median(figures(rows, 'cpuMicros').map((micros) => 1e6 / micros));
  return markdownTable(
    [`checks, ${engine}`, 'per second', 'processor, ms', 'per second of processor', 'p50, ms', 'p99, ms'],
    Object.entries(CHECK_ROWS).map(([row, text]) => {
      const rows = loads[row as SignInRow];
      return [
        text,
        spreadCell(rows, 'requestsPerSecond', (value) => value.toFixed(1)),
        spreadCell(rows, 'cpuMicros', (micros) => (micros / 1_000).toFixed(1)),
        perProcessor(rows).toFixed(1),
        medianCell(rows, 'p50', whole),
        medianCell(rows, 'p99', whole),
      ];
    }),
  );
}

function mixedTable({ engine, loads, checks }: SignInRun): string {
  return markdownTable(
    [
      `lookups / checks, ${engine}`,
      ...['lookups/s', 'ratio to quiet', 'p99, ms', 'refused'],
      ...['checks/s', 'p99, ms', 'refused'],
    ],
    Object.entries(MIXED_ROWS).map(([name, text]) => {
      const row = name as SignInRow;
      const lookups = row === 'halfChecks' ? undefined : loads[row];
      return [
        text,
        medianCell(lookups, 'requestsPerSecond'),
        lookups ? ratio(median(quietRatios(loads, row))) : '–',
        medianCell(lookups, 'p99', milliseconds),
        lookups ? whole(sum(figures(lookups, 'errorStatuses'))) : '–',
        ...checkCells(checks[row]),
      ];
    }),
  );
}

function checkCells(checks: readonly CheckTimes[] | undefined): readonly string[] {
  if (!checks) return ['–', '–', '–'];
  const refused = sum(checks.map((each) => each.refused));
  const sent = refused + sum(checks.map(({ answered }) => answered));
  return [
    median(checks.map(({ perSecond }) => perSecond)).toFixed(1),
    orDash(median(checks.map(({ p99 }) => p99))),
    `${whole(refused)} of ${whole(sent)}`,
  ];
}

/** No check has ended in a run that is too short. */
const orDash = (value: number) => (Number.isNaN(value) ? '–' : whole(value));

function barTable(run: SignInRun): string {
  return markdownTable(
    [`required, ${run.engine}`, 'measured', 'bar', 'met'],
    BARS.map((bar) => {
      const figure = bar.figure(run);
      const { text, max } = bar;
      return [
        ...[text, max === 0 ? whole(figure) : ratio(figure)],
        ...[limitOf(bar), isMet(bar, figure) ? 'yes' : 'no'],
      ];
    }),
  );
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
