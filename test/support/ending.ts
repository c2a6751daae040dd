import { onTestFinished } from 'bun:test';

type End = () => unknown;

const ofTest: End[] = [];
const ofFile: End[] = [];

/**
 * Ends what a fixture has started: after the test that called the fixture, or else after the file; what started last ends first. In a
 * `beforeAll` it would end with the hook: a module or a `describe` block starts what its tests share.
 */
export function atEnd(end: End): void {
  const ends = isInTest() ? ofTest : ofFile;
  ends.push(end);
}

/** Whether a test runs: only then can it get an end. */
function isInTest(): boolean {
  if (ofTest.length > 0) return true;
  try {
    onTestFinished(() => run(ofTest));
    return true;
  } catch {
    return false;
  }
}

/** Ends what was started outside of tests, or in concurrent ones. */
export const endFile = () => run(ofFile);

/** An end that fails does not keep the others from running. */
async function run(ends: End[]): Promise<void> {
  const end = ends.pop();
  if (end === undefined) return;
  try {
    await end();
  } finally {
    await run(ends);
  }
}
