import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BackgroundKind, responsesPerSecond } from './background_load.ts';
import { type Figure, figures, type Loads, median, medianRatio } from './load.ts';
import { markdownTable, medianCell, micros, milliseconds, ratio, spreadCell, whole } from './markdown.ts';
import type { Operations } from './operations.ts';
import { LOOKUP_ROWS, type LookupRow, OPERATION_ROWS, type OperationRow } from './rows.ts';

type Row = LookupRow | OperationRow;

/** The figures for one database size. */
export interface Result {
  readonly users: number;
  /** Of each row, one load for each round. */
  readonly loads: Loads<Row>;
  readonly anonymousMb: number;
  readonly fileMb: number;
  readonly firstResponseMs: number;
  readonly databaseMb: number;
  /** The share of the file that the service has mapped. */
  readonly mappedShare: number;
  /** The widest gap between two requested keys, as a multiple of the mean gap. */
  readonly widestGap: number;
  readonly importedPerSecond: number;
  /** The peak during the import. */
  readonly importAnonymousMb: number;
  readonly bareInsertsPerSecond?: number;
  readonly operations: Omit<Operations, 'loads'>;
}

export interface Run {
  readonly at: string;
  readonly machine: { readonly cpu: string; readonly cores: number };
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: number;
  readonly results: readonly Result[];
}

/** Writes the run as JSON and its chart, and returns it as Markdown. */
export function report(run: Run, folder: string): string {
  writeFileSync(join(folder, 'lookups.json'), `${JSON.stringify(run, null, 1)}\n`);
  writeFileSync(join(folder, 'lookups.svg'), chart(run));
  return markdown(run);
}

/** The ratio of one row to another, computed in each round. */
export function rowRatio({ loads }: Result, [row, to]: readonly [Row, Row], figure: Figure): number {
  return medianRatio(loads[row], loads[to], figure);
}

/** Every table of the run. */
export function markdown(run: Run): string {
  const { machine, connections, seconds, rounds, at, results } = run;
  return [
    ...results.map(sizeTable),
    comparisons(results),
    `${machine.cpu}, ${machine.cores} cores: the server on one, the load on the other. ${connections} connections where no ` +
      `other number is given; medians of ${rounds} interleaved rounds of ${seconds} s, in parentheses the least and the ` +
      'greatest; ratios are computed in each round. Processor time is that of the server and its child processes, in user and ' +
      'kernel mode, divided by the requests. File reads are its calls of `read` and `pread`. The database is read into the ' +
      `page cache before each round; ${at.slice(0, 10)}.\n`,
  ].join('\n');
}

/** Every row at one size. */
function sizeTable({ users, loads }: Result): string {
  const rows = Object.entries({ ...LOOKUP_ROWS, ...OPERATION_ROWS }) as [Row, string][];
  return markdownTable(
    [`${whole(users)} users`, 'per second', 'processor, µs', 'p50, ms', 'p99, ms', 'file reads'],
    rows.map(([row, text]) => [
      text,
      spreadCell(loads[row], 'requestsPerSecond'),
      spreadCell(loads[row], 'cpuMicros', micros),
      medianCell(loads[row], 'p50', milliseconds),
      medianCell(loads[row], 'p99', milliseconds),
      medianCell(loads[row], 'readCalls', ratio),
    ]),
  );
}

type Cell = readonly [string, (result: Result) => string];

/** Ratios between rows, and the figures that are not rates, for all sizes. */
function comparisons(results: readonly Result[]): string {
  const cells: readonly Cell[] = [...ratioCells(), ...fileCells(), ...operationCells(), ...backgroundCells()];
  return markdownTable(
    ['ratios and other figures', ...results.map(({ users }) => `${whole(users)} users`)],
    cells.map(([name, cell]) => [name, ...results.map(cell)]),
  );
}

/** The speed of one row relative to another: by processor time, and by rate. */
function speedCell(row: Row, to: Row): (result: Result) => string {
  return (result) =>
    `${ratio(rowRatio(result, [to, row], 'cpuMicros'))}, ${ratio(rowRatio(result, [row, to], 'requestsPerSecond'))}`;
}

function costCell(row: Row, of: Row): (result: Result) => string {
  return (result) => ratio(rowRatio(result, [row, of], 'cpuMicros'));
}

function ratioCells(): readonly Cell[] {
  return [
    [
      'speed of a lookup, ratio to the hand-written server: by processor time, by rate',
      speedCell('lookup', 'handwritten'),
    ],
    ['speed of a lookup, ratio to `Bun.serve` returning a constant', speedCell('lookup', 'constant')],
    ['speed of a lookup, ratio to nginx returning a constant', speedCell('lookup', 'nginx')],
    ['speed of a lookup of the newest 1 %, ratio to all users', speedCell('newest', 'lookup')],
    ['processor time of a reverse lookup, in lookups by ID', costCell('reverse', 'lookupAgain')],
    ['processor time of a user with all links, in lookups by ID', costCell('person', 'lookupAgain')],
    ['processor time of a page with a total, ratio to one without', costCell('pageWithTotal', 'page')],
  ];
}

function fileCells(): readonly Cell[] {
  return [
    ['database, MB', ({ databaseMb }) => whole(databaseMb)],
    ['share of the database that is mapped', ({ mappedShare }) => ratio(mappedShare)],
    ['anonymous memory, MB', ({ anonymousMb }) => whole(anonymousMb)],
    ['file-backed memory, MB', ({ fileMb }) => whole(fileMb)],
    ['process start to first 200 response, ms', ({ firstResponseMs }) => whole(firstResponseMs)],
    ['import, records/s', ({ importedPerSecond }) => whole(importedPerSecond)],
    ['import, anonymous memory, MB', ({ importAnonymousMb }) => whole(importAnonymousMb)],
    [
      'import, ratio to bare prepared inserts',
      ({ importedPerSecond, bareInsertsPerSecond: bare }) => (bare ? ratio(importedPerSecond / bare) : '–'),
    ],
  ];
}

function operationCells(): readonly Cell[] {
  const single = ({ loads }: Result) => median(figures(loads.createLink, 'requestsPerSecond'));
  return [
    [
      'first page of 100 users by key, one caller, ms',
      ({ operations }) => milliseconds(operations.firstPageMs),
    ],
    [
      'time of a deep page, ratio to the first page (page number)',
      ({ operations: { deepPageMs, firstPageMs, deepPage } }) =>
        `${ratio(deepPageMs / firstPageMs)} (${whole(deepPage)})`,
    ],
    [
      'creates of a link by one caller, ratio to SQLite without the service',
      (result) => {
        const bare = result.operations.bareCreatesPerSecond;
        return bare ? ratio(single(result) / bare) : '–';
      },
    ],
  ];
}

/** What is handled concurrently with the lookups. */
const BACKGROUND_ROWS: Readonly<Record<BackgroundKind, string>> = {
  links: '500 creates of a link/s',
  passwords: 'a full password queue, 80 callers',
  totals: '20 pages with the exact total/s',
  lists: '20 filtered lists/s, five totals counted per second',
  searches: '64 callers of `ilike(email,*zz*)`',
};

/** Lookups while other requests are handled, and the responses to those. */
function backgroundCells(): readonly Cell[] {
  return Object.entries(BACKGROUND_ROWS).map(([kind, text]) => [
    `lookups with ${text}: ratio of rate, of p99 (its responses)`,
    ({ operations }) => backgroundCell(kind as BackgroundKind, operations),
  ]);
}

function backgroundCell(kind: BackgroundKind, { background }: Result['operations']): string {
  const measured = background[kind];
  if (!measured) return '–';
  const { succeeded, unavailable } = responsesPerSecond(measured.backgroundResults, kind);
  const responses = `${whole(succeeded)}/s, 503 ${whole(unavailable)}/s`;
  return `${ratio(measured.rateRatio)}, ${ratio(measured.p99Ratio)} (${responses})`;
}

const BAR = { height: 26, gap: 8, left: 250, width: 420 };

/** A bar for each server and size; its length is the requests per second. */
function chart({ results }: Run): string {
  const bars = results.flatMap(({ users, loads }) => [
    { name: `authrealm, ${whole(users)} users`, loads: loads.lookup, color: '#2563eb' },
    { name: 'hand-written Bun.serve', loads: loads.handwritten, color: '#64748b' },
    { name: 'Bun.serve, a constant', loads: loads.constant, color: '#94a3b8' },
    { name: 'nginx, a constant', loads: loads.nginx, color: '#94a3b8' },
  ]);
  const rates = bars.map(({ loads }) => median(figures(loads, 'requestsPerSecond')));
  const fastest = Math.max(...rates);
  const height = bars.length * (BAR.height + BAR.gap) + BAR.gap;
  const elements = bars.map(({ name, color }, index) => {
    const rate = rates[index] ?? Number.NaN;
    const top = BAR.gap + index * (BAR.height + BAR.gap);
    const width = (rate / fastest) * BAR.width;
    const text = `y="${top + BAR.height / 2 + 5}" font-size="14" fill="#475569"`;
    return (
      `<text x="${BAR.left - 10}" text-anchor="end" ${text}>${name}</text>` +
      `<rect x="${BAR.left}" y="${top}" width="${width.toFixed(1)}" height="${BAR.height}" rx="3" fill="${color}"/>` +
      `<text x="${(BAR.left + width + 8).toFixed(1)}" ${text}>${whole(rate)}/s</text>`
    );
  });
  const size = `width="${BAR.left + BAR.width + 100}" height="${height}"`;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="system-ui, sans-serif" role="img" ` +
    `aria-label="Requests per second on one core">\n${elements.join('\n')}\n</svg>\n`
  );
}
