import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { perSecond, type Treatment, type Work } from './background_load.ts';
import type { Load } from './load.ts';
import type { Accompanied, Operations } from './operations.ts';

/** What one size of database came to. */
export interface Result {
  readonly users: number;
  readonly lookup: Load;
  readonly nginx: Load;
  readonly ofNginx: number;
  readonly constant: Load;
  readonly ofConstant: number;
  readonly anonymousMb: number;
  readonly fileMb: number;
  readonly firstAnswerMs: number;
  readonly databaseMb: number;
  /** The widest stretch of rows that nobody asks for, in mean stretches. */
  readonly widestGap: number;
  readonly importedPerSecond: number;
  /** The most that was seen while it ran. */
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

/** Writes the run as JSON, Markdown and SVG, and answers the Markdown. */
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
    ['nginx, the same bytes as a constant, /s', ({ nginx }) => whole(nginx.requestsPerSecond)],
    ['of nginx', ({ ofNginx }) => ratio(ofNginx)],
    ['bare `Bun.serve`, the same constant, /s', ({ constant }) => whole(constant.requestsPerSecond)],
    ['of bare `Bun.serve`', ({ ofConstant }) => ratio(ofConstant)],
    ['anonymous memory, MB', ({ anonymousMb }) => whole(anonymousMb)],
    ['file-backed memory, MB', ({ fileMb }) => whole(fileMb)],
    ['start to first 200, ms', ({ firstAnswerMs }) => whole(firstAnswerMs)],
    ['database, MB', ({ databaseMb }) => whole(databaseMb)],
    ['import, records/s', ({ importedPerSecond }) => whole(importedPerSecond)],
    ['import, anonymous memory, MB', ({ importAnonymousMb }) => whole(importAnonymousMb)],
    ['of bare prepared inserts', (result) => ratio(result.importedPerSecond / result.bareInsertsPerSecond)],
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
      `median of ${rounds} interleaved rounds of ${seconds} s, of ratios that of each round, the database read into ` +
      `memory before each, ${at.slice(0, 10)}.`,
    '',
  ].join('\n');
}

/** How one kind of work fared, over all rounds. */
function treatedAs(treatments: readonly Treatment[], work: Work): string {
  const { done, deferred } = perSecond(treatments, work);
  return `${work} ${whole(done)}/s, 503 ${whole(deferred)}/s`;
}

/** The rows of everything beside the lookups. */
function operationRows(): readonly [string, (operations: Operations) => string][] {
  const kept = ({ rateKept, p99Grown }: Accompanied) => `${ratio(rateKept)}, ${ratio(p99Grown)}`;
  const treated = ({ treatments }: Accompanied, ...works: readonly Work[]) =>
    works.map((work) => treatedAs(treatments, work)).join('; ');
  return [
    ['reverse lookups/s, both kinds', ({ find }) => whole(find.requestsPerSecond)],
    ['cost of one, in lookups by ID', ({ findCost }) => ratio(findCost)],
    ['first page of 100 users by key, one caller, ms', ({ firstPageMs }) => ms(firstPageMs)],
    [
      'a deep page of the first one (which page)',
      ({ deepPageMs, firstPageMs, deepPage }) => `${ratio(deepPageMs / firstPageMs)} (${whole(deepPage)})`,
    ],
    ['page of 25 users with an exact total, one caller, ms', ({ totalledPageMs }) => ms(totalledPageMs)],
    ['durable creates/s, one caller', ({ createAlone }) => whole(createAlone.requestsPerSecond)],
    [
      'durable creates/s, 64 callers, whose commits are shared',
      ({ createTogether }) => whole(createTogether.requestsPerSecond),
    ],
    [
      'the engine alone, one commit after the other, /s',
      ({ bareCreatesPerSecond }) => whole(bareCreatesPerSecond),
    ],
    [
      'of the engine alone, one caller and 64',
      ({ createAlone, createTogether, bareCreatesPerSecond: bare }) =>
        `${ratio(createAlone.requestsPerSecond / bare)}, ${ratio(createTogether.requestsPerSecond / bare)}`,
    ],
    [
      'lookups beside 500 writes/s and a full password queue: rate, p99',
      ({ company }) => kept(company.writes),
    ],
    ['what that company was answered', ({ company }) => treated(company.writes, 'links', 'passwords')],
    [
      'lookups beside 20 lists/s, five totals counted a second: rate, p99',
      ({ company }) => kept(company.lists),
    ],
    ['what that company was answered', ({ company }) => treated(company.lists, 'lists')],
    ['lookups beside 64 callers of `ilike(email,*zz*)`: rate, p99', ({ company }) => kept(company.searches)],
    ['what that company was answered', ({ company }) => treated(company.searches, 'searches')],
  ];
}

const BAR = { height: 26, gap: 8, left: 250, width: 420 };

/** A bar for each server and size, as long as its requests per second. */
function chart({ results }: Run): string {
  const bars = results.flatMap(({ users, lookup, nginx, constant }) => [
    { name: `authrealm, ${whole(users)} users`, load: lookup, color: '#2563eb' },
    { name: 'bare Bun.serve, a constant', load: constant, color: '#94a3b8' },
    { name: 'nginx, a constant', load: nginx, color: '#94a3b8' },
  ]);
  const most = Math.max(...bars.map(({ load }) => load.requestsPerSecond));
  const height = bars.length * (BAR.height + BAR.gap) + BAR.gap;
  const drawn = bars.map(({ name, load, color }, index) => {
    const top = BAR.gap + index * (BAR.height + BAR.gap);
    const width = (load.requestsPerSecond / most) * BAR.width;
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
    `aria-label="Requests per second on one core">\n${drawn.join('\n')}\n</svg>\n`
  );
}
