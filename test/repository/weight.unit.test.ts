import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * weight.tsv limits the lines of each module and the words of the pages of each folder. The end of a larger change sets all rows to what
 * was reached.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const lines = (text: string) => text.split('\n').length - 1;
const words = (text: string) => text.split(/\s+/).filter(Boolean).length;

/** `src/http` for a file in any folder below it, `src` for a file in `src`. */
const moduleOf = (path: string) => path.split('/').slice(0, -1).slice(0, 2).join('/');

interface Table {
  readonly pattern: string;
  readonly unit: 'lines' | 'words';
  count(text: string): number;
  rowOf(path: string): string;
  /** What to do about a row that weighs more. */
  readonly advice: string;
}

const ONLY_FALLS =
  'delete as much elsewhere in the same commit, and let that row fall by what this one rises: the sum only falls';
const shortening = (what: string) =>
  `shorten it, or let the row rise by no more than this commit adds in ${what}`;

const TABLES: readonly Table[] = [
  { pattern: 'src/**/*', unit: 'lines', count: lines, rowOf: moduleOf, advice: ONLY_FALLS },
  { pattern: 'console/**/*', unit: 'lines', count: lines, rowOf: moduleOf, advice: ONLY_FALLS },
  { pattern: 'test/**/*.ts', unit: 'lines', count: lines, rowOf: () => 'tests', advice: shortening('tests') },
  {
    pattern: '{scripts,bench,site}/**/*.{ts,tsx,css,lua}',
    unit: 'lines',
    count: lines,
    rowOf: (path) => path.split('/')[0] ?? '',
    advice: shortening('scripts, benchmarks and site'),
  },
  { pattern: '*.md', unit: 'words', count: words, rowOf: (path) => path, advice: shortening('pages') },
  {
    ...{ pattern: '{deploy,docs,test}/**/*.md', unit: 'words', count: words, rowOf: dirname },
    advice: shortening('pages'),
  },
];

/** The rows of weight.tsv, and under `sum` of a folder the most that its rows may be together. */
const allowed = new Map(
  readFileSync(join(import.meta.dir, 'weight.tsv'), 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((row) => row.split('\t'))
    .map(([name = '', weight]) => [name, Number(weight)] as const),
);

function weigh({ pattern, count, rowOf }: Table): ReadonlyMap<string, number> {
  const weights = new Map<string, number>();
  for (const path of new Bun.Glob(pattern).scanSync(ROOT)) {
    if (path.includes('node_modules/') || path === 'test/flaky.md') continue;
    const row = rowOf(path);
    weights.set(row, (weights.get(row) ?? 0) + count(readFileSync(join(ROOT, path), 'utf8')));
  }
  return weights;
}

test.each(TABLES)('no row weighs more than weight.tsv allows: $pattern', (table) => {
  const weights = weigh(table);
  expect(weights.size).toBeGreaterThan(0);
  const beyond = [...weights].filter(([row, weight]) => weight > (allowed.get(row) ?? 0));
  expect(
    beyond.map(
      ([row, weight]) => `${row}: ${weight} ${table.unit}, not ${allowed.get(row) ?? 0}: ${table.advice}`,
    ),
  ).toEqual([]);
});

test.each(['src', 'console'])(
  'the rows of weight.tsv for %s are together no more than their sum',
  (folder) => {
    const rows = [...allowed].filter(([row]) => row === folder || row.startsWith(`${folder}/`));
    const total = rows.reduce((sum, [, weight]) => sum + weight, 0);
    expect(total).toBeLessThanOrEqual(allowed.get(`sum of ${folder}`) ?? 0);
  },
);
