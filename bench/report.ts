import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BackgroundOperation, type BackgroundResult, responsesPerSecond } from './background_load.ts';
import type { Load } from './load.ts';
import type { LookupsUnderLoad, Operations } from './operations.ts';

/** The figures for one database size. */
export interface Result {
  readonly users: number;
  readonly lookup: Load;
  readonly nginx: Load;
  readonly ratioToNginx: number;
  readonly constant: Load;
  readonly ratioToConstant: number;
  readonly anonymousMb: number;
  readonly fileMb: number;
  readonly firstResponseMs: number;
  readonly databaseMb: number;
  /** The widest gap between two requested keys, as a multiple of the mean gap. */
  readonly widestGap: number;
  readonly importedPerSecond: number;
  /** The peak during the import. */
  readonly importAnonymousMb: number;
  readonly bareInsertsPerSecond: number;
  readonly operations: Operations;
}

export interface Run {
  readonly at: string;
  readonly machine: { readonly cpu: string; readonly cores: number };
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: number;
  readonly results: readonly Result[];
}

/** Writes the run as JSON, Markdown and SVG, and returns the Markdown. */
export function report(run: Run, folder: string): string {
  const table = markdown(run);
  writeFileSync(join(folder, 'lookups.json'), `${JSON.stringify(run, null, 2)}\n`);
  writeFileSync(join(folder, 'lookups.md'), table);
  writeFileSync(join(folder, 'lookups.svg'), chart(run));
  return table;
}

const whole = (value: number) => Math.round(value).toLocaleString('en');
const ms = (value: number) => value.toFixed(2);
const ratio = (value: number) => value.toFixed(2);

function markdown({ results, machine, connections, seconds, rounds, at }: Run): string {
  const rows: [string, (result: Result) => string][] = [
    ['lookups/s', ({ lookup }) => whole(lookup.requestsPerSecond)],
    ['p50, ms', ({ lookup }) => ms(lookup.p50)],
    ['p99, ms', ({ lookup }) => ms(lookup.p99)],
    ['nginx returning the same bytes, /s', ({ nginx }) => whole(nginx.requestsPerSecond)],
    ['ratio to nginx', ({ ratioToNginx }) => ratio(ratioToNginx)],
    ['bare `Bun.serve` returning the same bytes, /s', ({ constant }) => whole(constant.requestsPerSecond)],
    ['ratio to bare `Bun.serve`', ({ ratioToConstant }) => ratio(ratioToConstant)],
    ['anonymous memory, MB', ({ anonymousMb }) => whole(anonymousMb)],
    ['file-backed memory, MB', ({ fileMb }) => whole(fileMb)],
    ['process start to first 200 response, ms', ({ firstResponseMs }) => whole(firstResponseMs)],
    ['database, MB', ({ databaseMb }) => whole(databaseMb)],
    ['import, records/s', ({ importedPerSecond }) => whole(importedPerSecond)],
    ['import, anonymous memory, MB', ({ importAnonymousMb }) => whole(importAnonymousMb)],
    [
      'import, ratio to bare prepared inserts',
      (result) => ratio(result.importedPerSecond / result.bareInsertsPerSecond),
    ],
    ...operationRows().map(([name, cell]): [string, (result: Result) => string] => [
      name,
      ({ operations }) => cell(operations),
    ]),
  ];
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    line(['one core', ...results.map(({ users }) => `${whole(users)} users`)]),
    line(['---', ...results.map(() => '---:')]),
    ...rows.map(([name, cell]) => line([name, ...results.map(cell)])),
    '',
    `${machine.cpu}, ${machine.cores} cores: the service on one, the load on the other. ${connections} connections, ` +
      `medians of ${rounds} interleaved rounds of ${seconds} s; ratios are computed in each round; the database is read ` +
      `into the page cache before each round; ${at.slice(0, 10)}.`,
    '',
  ].join('\n');
}

/** The responses to one background operation, over all rounds. */
function formatResponses(results: readonly BackgroundResult[], operation: BackgroundOperation): string {
  const { succeeded, unavailable } = responsesPerSecond(results, operation);
  return `${operation} ${whole(succeeded)}/s, 503 ${whole(unavailable)}/s`;
}

/** The rows of all operations other than lookups by ID. */
function operationRows(): readonly [string, (operations: Operations) => string][] {
  const ratios = ({ rateRatio, p99Ratio }: LookupsUnderLoad) => `${ratio(rateRatio)}, ${ratio(p99Ratio)}`;
  const responses = (
    { backgroundResults: results }: LookupsUnderLoad,
    ...operations: readonly BackgroundOperation[]
  ) => operations.map((operation) => formatResponses(results, operation)).join('; ');
  return [
    ['reverse lookups/s, both kinds', ({ reverseLookup }) => whole(reverseLookup.requestsPerSecond)],
    ['cost of a reverse lookup, in lookups by ID', ({ reverseLookupCost }) => ratio(reverseLookupCost)],
    ['first page of 100 users by key, one caller, ms', ({ firstPageMs }) => ms(firstPageMs)],
    [
      'time of a deep page, ratio to the first page (page number)',
      ({ deepPageMs, firstPageMs, deepPage }) => `${ratio(deepPageMs / firstPageMs)} (${whole(deepPage)})`,
    ],
    ['page of 25 users with an exact total, one caller, ms', ({ pageWithTotalMs }) => ms(pageWithTotalMs)],
    [
      'durable creates/s, one caller',
      ({ singleClientCreates }) => whole(singleClientCreates.requestsPerSecond),
    ],
    [
      'durable creates/s, 64 callers that share commits',
      ({ concurrentCreates }) => whole(concurrentCreates.requestsPerSecond),
    ],
    [
      'SQLite without the service, sequential commits/s',
      ({ bareCreatesPerSecond }) => whole(bareCreatesPerSecond),
    ],
    [
      'creates, ratio to SQLite without the service: one caller, 64 callers',
      ({ singleClientCreates, concurrentCreates, bareCreatesPerSecond: bare }) =>
        `${ratio(singleClientCreates.requestsPerSecond / bare)}, ${ratio(concurrentCreates.requestsPerSecond / bare)}`,
    ],
    [
      'lookups with 500 writes/s and a full password queue: ratio of rate, of p99',
      ({ background }) => ratios(background.writes),
    ],
    [
      'responses to the background writes',
      ({ background }) => responses(background.writes, 'links', 'passwords'),
    ],
    [
      'lookups with 20 lists/s, five totals counted per second: ratio of rate, of p99',
      ({ background }) => ratios(background.lists),
    ],
    ['responses to the background lists', ({ background }) => responses(background.lists, 'lists')],
    [
      'lookups with 64 callers of `ilike(email,*zz*)`: ratio of rate, of p99',
      ({ background }) => ratios(background.searches),
    ],
    ['responses to the background searches', ({ background }) => responses(background.searches, 'searches')],
  ];
}

const BAR = { height: 26, gap: 8, left: 250, width: 420 };

/** A bar for each server and size; its length is the requests per second. */
function chart({ results }: Run): string {
  const bars = results.flatMap(({ users, lookup, nginx, constant }) => [
    { name: `authrealm, ${whole(users)} users`, load: lookup, color: '#2563eb' },
    { name: 'bare Bun.serve, a constant', load: constant, color: '#94a3b8' },
    { name: 'nginx, a constant', load: nginx, color: '#94a3b8' },
  ]);
  const fastest = Math.max(...bars.map(({ load }) => load.requestsPerSecond));
  const height = bars.length * (BAR.height + BAR.gap) + BAR.gap;
  const elements = bars.map(({ name, load, color }, index) => {
    const top = BAR.gap + index * (BAR.height + BAR.gap);
    const width = (load.requestsPerSecond / fastest) * BAR.width;
    const text = `y="${top + BAR.height / 2 + 5}" font-size="14" fill="#475569"`;
    return (
      `<text x="${BAR.left - 10}" text-anchor="end" ${text}>${name}</text>` +
      `<rect x="${BAR.left}" y="${top}" width="${width.toFixed(1)}" height="${BAR.height}" rx="3" fill="${color}"/>` +
      `<text x="${(BAR.left + width + 8).toFixed(1)}" ${text}>${whole(load.requestsPerSecond)}/s</text>`
    );
  });
  const size = `width="${BAR.left + BAR.width + 100}" height="${height}"`;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="system-ui, sans-serif" role="img" ` +
    `aria-label="Requests per second on one core">\n${elements.join('\n')}\n</svg>\n`
  );
}
