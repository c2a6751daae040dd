import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CitusRun, citusMarkdown } from './citus_report.ts';
import { markdownTable, medianCell, milliseconds, ratio, whole } from './markdown.ts';
import { type MixedRun, worstMarkdown } from './mixed_report.ts';
import { type PeerResult, type PeersRun, peersMarkdown } from './peers/report.ts';
import { type PostgresRun, postgresMarkdown } from './postgres_report.ts';
import { markdown, type Result, type Run, rowRatio } from './report.ts';
import { type SignInRun, signInSummary } from './sign_in_report.ts';

/**
 * Writes the figures of the last runs, from bench/results, into the pages that show them: `npm run bench:pages`. A block of a
 * page begins with a comment that names it, and ends with the next comment. A block without results stays as it is.
 */

const ROOT = join(import.meta.dir, '..');

/** The text of each page that shows figures, by path. */
export function benchmarkPages(): Readonly<Record<string, string>> {
  const run = readResult<Run>('lookups');
  const postgres = readResult<PostgresRun>('postgres');
  const peers = readResult<PeersRun>('peers');
  const citus = readResult<CitusRun>('citus');
  const mixed = ['mixed-sqlite', 'mixed-postgres'].flatMap((name) => readResult<MixedRun>(name) ?? []);
  const signIn = ['sqlite', 'postgres', 'citus'].flatMap(
    (engine) => readResult<SignInRun>(`sign-in-${engine}`) ?? [],
  );
  const blocks: Readonly<Record<string, string | undefined>> = {
    summary: run && summary(run, postgres),
    sqlite: run && markdown(run),
    postgres: postgres && postgresMarkdown(postgres),
    peers: peers && peersMarkdown({ ...peers, results: peers.results.filter(isPeer) }),
    citus: citus && citusMarkdown(citus),
    mixed: mixed.length > 0 ? `${mixed.map(worstMarkdown).join('\n')}\n` : undefined,
    sign_in: signIn.length > 0 ? signInSummary(signIn) : undefined,
  };
  return Object.fromEntries(
    ['README.md', 'docs/benchmarks.md'].map((path) => {
      const text = readFileSync(join(ROOT, path), 'utf8');
      return [path, withBlocks(text, blocks)];
    }),
  );
}

/** A baseline is an earlier authrealm. */
const isPeer = ({ name }: PeerResult) => !name.startsWith('authrealm ');

function readResult<T>(name: string): T | undefined {
  const file = join(ROOT, `bench/results/${name}.json`);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as T) : undefined;
}

const BLOCK = /(<!-- bench: (\w+) -->\n)[\s\S]*?(<!-- end -->)/g;

/** Replaces the blocks of a page; throws if it shows one that no run writes. */
export function withBlocks(text: string, blocks: Readonly<Record<string, string | undefined>>): string {
  return text.replace(BLOCK, (kept: string, start: string, name: string, end: string) => {
    if (!(name in blocks)) throw new Error(`no run writes the block "${name}"`);
    const block = blocks[name];
    return block === undefined ? kept : `${start}\n${block}\n${end}`;
  });
}

type Cell = readonly [string, (result: Result) => string];

/** The table of the README: the first two sizes. Ratios are of processor time. */
export function summary(run: Run, postgres: PostgresRun | undefined): string {
  const results = run.results.slice(0, 2);
  const rate = (row: keyof Result['loads']) => (result: Result) =>
    medianCell(result.loads[row], 'requestsPerSecond');
  const cells: readonly Cell[] = [
    ['lookups/s by ID', rate('lookup')],
    [
      'ratio to a hand-written server',
      (result) => ratio(rowRatio(result, ['handwritten', 'lookup'], 'cpuMicros')),
    ],
    [
      'ratio to nginx returning a constant',
      (result) => ratio(rowRatio(result, ['nginx', 'lookup'], 'cpuMicros')),
    ],
    ['users with all links/s', rate('person')],
    ['page with the exact total, ms', ({ loads }) => medianCell(loads.pageWithTotal, 'p50', milliseconds)],
    ['durable creates of a linked user/s', rate('createTogether64')],
    ...(postgres && results.some(({ users }) => users === postgres.users) ? [postgresCell(postgres)] : []),
  ];
  return markdownTable(
    ['', ...results.map(({ users }) => `${whole(users)} users`)],
    cells.map(([name, cell]) => [name, ...results.map(cell)]),
  );
}

/** Measured at one size. */
function postgresCell(run: PostgresRun): Cell {
  return [
    'lookups/s on PostgreSQL, 64 callers',
    ({ users }) => (users === run.users ? medianCell(run.loads.service64, 'requestsPerSecond') : ''),
  ];
}

if (import.meta.main)
  for (const [path, text] of Object.entries(benchmarkPages())) writeFileSync(join(ROOT, path), text);
