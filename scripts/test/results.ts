import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Engine, ROOT, type Suite } from './suites.ts';

/** What the test files of a run of `npm test` or `.ci/run` gave, in files of a folder that several processes share. */

/** One test file on one engine. */
export interface FileResult {
  readonly path: string;
  readonly engine: Engine;
  readonly passed: number;
  readonly failed: readonly FailedTest[];
}

export interface FailedTest {
  readonly title: string;
  /** What the test printed of its failure; `''` if unknown. */
  readonly reason: string;
}

/** The seconds that a test file took on one engine, and those of the processors in the process and its children. */
export interface FileSeconds {
  readonly path: string;
  readonly engine: string;
  readonly wall: number;
  readonly processor: number;
}

/** How many failed tests are printed again, and how many lines of each reason. */
const PRINTED_MAX = 20;
const REASON_LINES_MAX = 6;

/** Seconds of a quiet machine with two cores; `AUTHREALM_TEST_SECONDS=test/seconds.tsv npm run nightly` measures them again. */
export const MEASURED = 'test/seconds.tsv';
const RESULTS = 'results.jsonl';
/** test/support/file_seconds.ts writes it. */
export const SECONDS = 'seconds.tsv';

/** The results in a JUnit report of Bun. */
export function parseReport(report: string, engine: Engine): readonly FileResult[] {
  const files = report.split(/<testsuite name="([^"]+)" file="\1" tests="\d+"/);
  const results: FileResult[] = [];
  for (let index = 1; index < files.length; index += 2) {
    const cases = (files[index + 1] ?? '').split('<testcase ').slice(1);
    const failed = cases.filter((text) => /<(failure|error)\b/.test(text)).map(failedTest);
    const skipped = cases.filter((text) => text.includes('<skipped')).length;
    const passed = cases.length - failed.length - skipped;
    results.push({ path: files[index] ?? '', engine, passed, failed });
  }
  return results;
}

function failedTest(text: string): FailedTest {
  const [, title = ''] = /name="([^"]*)"/.exec(text) ?? [];
  const [, message = '', stack = message] =
    /<(?:failure|error)\b[^>]*? message="([^"]*)"[^>]*?(?:\/>|>([^<]*))/.exec(text) ?? [];
  return { title: title === '(unnamed)' ? '(a hook)' : decoded(title), reason: decoded(stack).trim() };
}

function decoded(text: string): string {
  const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' };
  return text.replace(/&(?:#(\d+)|(\w+));/g, (entity, code, word) =>
    code === undefined ? (entities[word] ?? entity) : String.fromCodePoint(Number(code)),
  );
}

/** The errors of modules and `describe` blocks, by file. `bun test` prints them and does not report them. */
export function errorsOutsideTests(output: string): ReadonlyMap<string, string> {
  const errors = new Map<string, string>();
  let path = '';
  for (const [, file, error] of output.matchAll(FILE_OR_ERROR)) {
    path = file ?? path;
    // After the lines of code.
    if (error !== undefined) errors.set(path, error.slice(Math.max(error.search(/^\w*[eE]rror: /m), 0)));
  }
  return errors;
}

const FILE_OR_ERROR = /^(test\/\S+):$|^# Unhandled error between tests\n-+\n([\s\S]*?)^-+$/gm;

export function appendResults(folder: string, results: readonly FileResult[]): void {
  appendFileSync(join(folder, RESULTS), results.map((result) => `${JSON.stringify(result)}\n`).join(''));
}

export function readResults(folder: string): readonly FileResult[] {
  const path = join(folder, RESULTS);
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/** Prints failed tests again where a reader looks first: at the end. */
export function printFailures(word: 'flaky' | 'failed', failures: readonly FileResult[]): void {
  const tests = failures.flatMap(({ path, failed }) => failed.map((test) => ({ path, ...test })));
  for (const { path, title, reason } of tests.slice(0, PRINTED_MAX)) {
    console.log(`${word}: ${path} › ${title}`);
    const lines = reason.split('\n').filter((line) => line.trim() !== '');
    for (const line of lines.slice(0, REASON_LINES_MAX)) console.log(`    ${line.slice(0, 200)}`);
  }
  if (tests.length > PRINTED_MAX) console.log(`${word}: ${tests.length - PRINTED_MAX} more`);
}

/** The rows of a file with seconds; none where it does not exist. */
export function readSeconds(path: string): readonly FileSeconds[] {
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [file = '', engine = '', wall, processor] = line.split('\t');
      return { path: file, engine, wall: Number(wall), processor: Number(processor) };
    });
}

/** Replaces the rows of the measured files in a file with seconds, and removes those of files that are gone. */
export function keepSeconds(path: string, measured: readonly FileSeconds[]): void {
  const all = [...readSeconds(path), ...measured].filter((row) => existsSync(join(ROOT, row.path)));
  const rows = new Map(all.map((row) => [`${row.path}\t${row.engine}`, row]));
  const lines = [...rows].map(
    ([key, { wall, processor }]) => `${key}\t${wall.toFixed(2)}\t${processor.toFixed(2)}\n`,
  );
  writeFileSync(path, lines.sort().join(''));
}

/** The paths of suites that did not run the same number of tests on SQLite and PostgreSQL. */
export function differingSuites(suites: readonly Suite[], results: readonly FileResult[]): readonly string[] {
  const shared = new Set(suites.filter(({ isShared }) => isShared).map(({ path }) => path));
  const counts = Map.groupBy(
    results.filter(({ path, engine }) => shared.has(path) && (engine === 'sqlite' || engine === 'postgres')),
    ({ path }) => path,
  );
  const sum = ({ passed, failed }: FileResult) => passed + failed.length;
  return [...counts].filter(([, each]) => new Set(each.map(sum)).size > 1).map(([path]) => path);
}
