import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BackgroundKind } from './background_load.ts';
import { type Figure, figures, type Loads, median, medianRatio } from './load.ts';
import { markdownTable, medianCell, micros, ratio, whole } from './markdown.ts';
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

/** The rows that a page shows; the file of the run has all. */
const SHOWN: readonly Row[] = [
  ...(['lookup', 'handwritten', 'nginx', 'person', 'reverse'] as const),
  ...(['pageWithTotal', 'createTogether64'] as const),
];

/** The tables of the run. */
export function markdown({ machine, connections, seconds, rounds, at, results }: Run): string {
  return [
    rateTable(results),
    comparisons(results),
    `${machine.cpu}, ${machine.cores} cores: the server on one, the load on the other. ${connections} connections by ` +
      `default; medians of ${rounds} rounds of ${seconds} s; ${at.slice(0, 10)}.\n`,
  ].join('\n');
}

/** Rate and processor time of a request at each size. */
function rateTable(results: readonly Result[]): string {
  const texts: Readonly<Record<Row, string>> = { ...LOOKUP_ROWS, ...OPERATION_ROWS };
  return markdownTable(
    ['per second; processor time, µs', ...results.flatMap(({ users }) => [`${whole(users)} users`, 'µs'])],
    SHOWN.map((row) => [
      texts[row],
      ...results.flatMap(({ loads }) => [
        medianCell(loads[row], 'requestsPerSecond'),
        medianCell(loads[row], 'cpuMicros', micros),
      ]),
    ]),
  );
}

type Cell = readonly [string, (result: Result) => string];

/** Ratios between rows, and the figures that are not rates, for all sizes. */
function comparisons(results: readonly Result[]): string {
  const cells: readonly Cell[] = [
    ['speed of a lookup, ratio to the hand-written server', speedCell('handwritten')],
    ['speed of a lookup, ratio to nginx', speedCell('nginx')],
    ['database, MB', ({ databaseMb }) => whole(databaseMb)],
    ['memory without mapped files, MB', ({ anonymousMb }) => whole(anonymousMb)],
    ['start to first response, ms', ({ firstResponseMs }) => whole(firstResponseMs)],
    ['import, records/s', ({ importedPerSecond }) => whole(importedPerSecond)],
    [
      'import, ratio to bare prepared inserts',
      ({ importedPerSecond, bareInsertsPerSecond: bare }) => (bare ? ratio(importedPerSecond / bare) : '–'),
    ],
    ...backgroundCells(),
  ];
  return markdownTable(
    ['ratios and other figures', ...results.map(({ users }) => `${whole(users)} users`)],
    cells.map(([name, cell]) => [name, ...results.map(cell)]),
  );
}

/** The speed of a lookup relative to another row, by processor time. */
function speedCell(to: Row): (result: Result) => string {
  return (result) => ratio(rowRatio(result, [to, 'lookup'], 'cpuMicros'));
}

/** What is handled concurrently with the lookups. */
const BACKGROUND_ROWS: Readonly<Partial<Record<BackgroundKind, string>>> = {
  links: '500 creates of a link/s',
  passwords: 'a full password queue',
};

/** Lookups while other requests are handled. */
function backgroundCells(): readonly Cell[] {
  return Object.entries(BACKGROUND_ROWS).map(([kind, text]) => [
    `lookups with ${text}: rate, p99`,
    ({ operations }) => {
      const measured = operations.background[kind as BackgroundKind];
      return measured ? `${ratio(measured.rateRatio)}, ${ratio(measured.p99Ratio)}` : '–';
    },
  ]);
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
