import { appendFileSync, chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { git } from './test/imports.ts';
import { closeRun } from './test/repetition.ts';
import {
  differingSuites,
  type FileSeconds,
  keepSeconds,
  printFailures,
  readResults,
  readSeconds,
  SECONDS,
} from './test/results.ts';
import { type Outcome, runSuites } from './test/runs.ts';
import { changedSuites, mergeSuites, partOf } from './test/selection.ts';
import { findSuites, ROOT, type Suite } from './test/suites.ts';

/**
 * Runs the suites of a tier (CONTRIBUTING.md, "Tests"). Without arguments those of `npm test`; `--merge` the others of `.ci/run`;
 * `--close` repeats what failed in both, and prints the closing line; `--nightly` runs all, or with `--part N/4` a part; `--changed
 * REVISION` those next to a change. AUTHREALM_TEST_ARTEFACTS is the folder that the steps of a `.ci/run` share; the seconds of each file are
 * kept in the file AUTHREALM_TEST_SECONDS.
 */

/** The exit code of a run that failed by tests alone, which `--close` repeats. */
const TESTS_FAILED = 10;
const SLOWEST = 15;
const NIGHTLY = 'test/nightly.tsv';

const all = findSuites().filter(
  ({ engine }) => engine !== 'citus' || process.env.AUTHREALM_TEST_CITUS !== undefined,
);

async function run(suites: readonly Suite[], folder: string): Promise<Outcome> {
  const before = readResults(folder).length;
  const outcome = await runSuites(suites, folder);
  printSeconds(readSeconds(join(folder, SECONDS)));
  // `--close` does the rest at the end of a `.ci/run`.
  if (process.env.AUTHREALM_TEST_ARTEFACTS !== undefined) return outcome;
  const results = readResults(folder).slice(before);
  printFailures('failed', results);
  const differing = outcome === 'passed' ? differingSuites(all, results) : [];
  if (differing.length > 0) console.log(`the engines did not run the same tests: ${differing.join(', ')}`);
  return differing.length > 0 ? 'broken' : outcome;
}

/** Prints the seconds of each engine and of the slowest files. */
function printSeconds(rows: readonly FileSeconds[]): void {
  const line = (name: string, { wall, processor }: Pick<FileSeconds, 'wall' | 'processor'>) =>
    console.log(
      `${processor.toFixed(1).padStart(8)} s of processor, ${wall.toFixed(1).padStart(7)} s: ${name}`,
    );
  for (const [engine, each = []] of Map.groupBy(rows, (row) => row.engine)) {
    const sum = (name: 'wall' | 'processor') => each.reduce((total, row) => total + row[name], 0);
    line(`${each.length} files on ${engine}`, { wall: sum('wall'), processor: sum('processor') });
  }
  const slowest = rows.toSorted((left, right) => right.processor - left.processor).slice(0, SLOWEST);
  for (const row of slowest) line(`${row.path} on ${row.engine}`, row);
}

/** Notes in a file of the repository that a part of all suites passed on this commit, if nothing else has changed since. */
function notePassed(part: string): void {
  if (git('status', '--porcelain', '--', '.', `:!${NIGHTLY}`, ':!test/seconds.tsv') !== '') return;
  const words = [new Date().toISOString().slice(0, 10), part, git('rev-parse', 'HEAD')];
  appendFileSync(join(ROOT, NIGHTLY), `${words.join('\t')}\n`);
}

async function runNightly(part: string, folder: string): Promise<Outcome> {
  const [index = 0, count = 0] = part.split('/').map(Number);
  if (!/^[1-9]\/[1-9]$/.test(part) || index > count)
    throw new Error(`--part is ${part}: pass a part such as 1/4`);
  const outcome = await run(partOf(all, index - 1, count), folder);
  if (outcome === 'passed') notePassed(part);
  return outcome;
}

async function runChanged(revision: string, folder: string): Promise<Outcome> {
  const { suites, leftOut } = changedSuites(all, revision);
  const outcome = await run(suites, folder);
  console.log(`${suites.length} suites next to the change; npm test runs ${leftOut} others that import it`);
  return outcome;
}

async function runSelected([word = '', ...words]: readonly string[], folder: string): Promise<Outcome> {
  if (word === '--nightly' && words.length > 0 && words[0] !== '--part')
    throw new Error(`unknown argument ${words[0]}: pass --part 1/4`);
  switch (word) {
    case '':
      return run(
        all.filter(({ tier }) => tier === 'commit'),
        folder,
      );
    case '--merge':
      return run(mergeSuites(all), folder);
    case '--close':
      return (await closeRun(all, folder, words)) ? 'passed' : 'broken';
    case '--nightly':
      return runNightly(words[1] ?? '1/1', folder);
    case '--changed':
      return runChanged(words[0] ?? 'HEAD', folder);
    default:
      throw new Error(`unknown argument ${word}: see scripts/test.ts`);
  }
}

/** Runs in the folder that the caller names, or in one that is removed. Servers of the tests are other users. */
async function runInFolder(words: readonly string[]): Promise<Outcome> {
  const given = process.env.AUTHREALM_TEST_ARTEFACTS;
  const folder = given ?? mkdtempSync(join(tmpdir(), 'authrealm-run-'));
  chmodSync(folder, 0o755);
  const kept = process.env.AUTHREALM_TEST_SECONDS;
  try {
    const outcome = await runSelected(words, folder);
    if (kept !== undefined) keepSeconds(kept, readSeconds(join(folder, SECONDS)));
    return outcome;
  } finally {
    if (given === undefined) rmSync(folder, { recursive: true });
  }
}

process.exitCode = { passed: 0, failed: TESTS_FAILED, broken: 1 }[await runInFolder(process.argv.slice(2))];
