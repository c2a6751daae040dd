import { differingSuites, type FileResult, printFailures, readResults } from './results.ts';
import { runSuites } from './runs.ts';
import type { Suite } from './suites.ts';

/** Repeats the test files of `.ci/run` that failed, each once and alone (CONTRIBUTING.md, "A test that fails"). */

const FILES_MAX = 5;
/** A failure of these may be a lost write or a missing check, and shows itself seldom: it is never repeated. */
const NEVER = /^test\/(durability\/|soak\/torture)|\/(concurrent_|integrity\.|matrix\.)/;

/** Prints the flaky tests and the closing line of a run. Returns whether it passes; each broken step counts as a failed test. */
export async function closeRun(
  all: readonly Suite[],
  folder: string,
  broken: readonly string[],
): Promise<boolean> {
  const first = readResults(folder);
  const failures = first.filter(({ failed }) => failed.length > 0);
  const isRepeated = failures.length <= FILES_MAX && !failures.some(({ path }) => NEVER.test(path));
  const passing = isRepeated ? await passingAgain(all, failures, folder) : [];
  const again = readResults(folder).slice(first.length);
  const isAgain = ({ path, engine }: FileResult) =>
    again.some((each) => each.path === path && each.engine === engine);
  const results = [...first.filter((each) => !isAgain(each)), ...again];
  const failing = failures.filter((failure) => !passing.includes(failure));
  const red = failing.flatMap(({ failed }) => failed);
  const differing = red.length > 0 ? [] : differingSuites(all, results);
  if (differing.length > 0) console.log(`the engines did not run the same tests: ${differing.join(', ')}`);
  printFailures('flaky', passing);
  printFailures('failed', failing);
  for (const step of broken) console.log(`failed: ${step}`);
  const passed = results.reduce((sum, each) => sum + each.passed, 0);
  const failed = red.length + differing.length + broken.length;
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 && passed > 0;
}

/** The failures whose file passes when it runs again, alone. */
async function passingAgain(
  all: readonly Suite[],
  failures: readonly FileResult[],
  folder: string,
): Promise<readonly FileResult[]> {
  const passing: FileResult[] = [];
  for (const failure of failures) {
    const { path, engine } = failure;
    const suite = all.filter((each) => each.path === path && each.engine === engine);
    if (suite.length > 0 && (await runSuites(suite, folder)) === 'passed') passing.push(failure);
  }
  return passing;
}
