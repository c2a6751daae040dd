import { expect, test } from 'bun:test';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { errorsOutsideTests, parseReport } from '../../scripts/test/results.ts';
import { freshFolder } from '../support/folder.ts';
import { runCommand } from '../support/processes.ts';

/** How `.ci/run` ends: which failures it repeats, and what it prints (CONTRIBUTING.md, "A test that fails"). */

const TEST = fileURLToPath(new URL('../../scripts/test.ts', import.meta.url));
/** A suite that passes. */
const SOUND = 'test/http/loop_use.unit.test.ts';

/** Ends a run with these results. */
async function close(
  results: readonly (readonly [path: string, ...failed: string[]])[],
  ...broken: string[]
) {
  const folder = freshFolder();
  const lines = results.map(([path, ...titles]) => {
    const failed = titles.map((title) => ({ title, reason: '' }));
    return JSON.stringify({ path, engine: 'sqlite', passed: 3, failed });
  });
  writeFileSync(join(folder, 'results.jsonl'), lines.map((line) => `${line}\n`).join(''));
  const command = [process.execPath, TEST, '--close', ...broken];
  const { code, stdout } = await runCommand(command, { AUTHREALM_TEST_ARTEFACTS: folder });
  return { code, printed: stdout.split('\n').filter((line) => /^(flaky|failed): |passed, /.test(line)) };
}

test('a failed test whose file passes alone is reported as flaky, and the run passes', async () => {
  const { code, printed } = await close([[SOUND, 'a title'], ['test/http/lookup.test.ts']]);
  expect(printed).toEqual([`flaky: ${SOUND} › a title`, expect.stringMatching(/^\d+ passed, 0 failed$/)]);
  expect(code).toBe(0);
});

test('a failed test whose file fails again fails the run', async () => {
  const path = 'test/http/none.unit.test.ts';
  const { code, printed } = await close([[path, 'one', 'two'], [SOUND]]);
  expect(printed).toEqual([`failed: ${path} › one`, `failed: ${path} › two`, '6 passed, 2 failed']);
  expect(code).toBe(1);
});

test.each([
  'test/durability/sync.test.ts',
  'test/soak/torture.slow.serial.test.ts',
  'test/records/concurrent_writes.test.ts',
  'test/http/api/integrity.serial.test.ts',
  'test/http/matrix.serial.test.ts',
])('a failed test of %s fails the run at once', async (path) => {
  const { code, printed } = await close([[path, 'a title'], [SOUND, 'another'], [SOUND]]);
  expect([code, printed.at(-1)]).toEqual([1, '9 passed, 2 failed']);
});

test('the closing line comes after each failed test with its reason', async () => {
  const folder = freshFolder();
  const [path, report] = [join(folder, 'a.test.ts'), join(folder, 'report.xml')];
  writeFileSync(path, `import { expect, test } from 'bun:test'; test('1 < 2', () => expect(1).toBe(2));`);
  const reporter = ['--reporter=junit', `--reporter-outfile=${report}`];
  await runCommand([process.execPath, 'test', ...reporter, path], {});
  const [result] = parseReport(readFileSync(report, 'utf8'), 'sqlite');
  expect(result?.failed).toEqual([{ title: '1 < 2', reason: expect.stringContaining('Expected: 2') }]);
  writeFileSync(join(folder, 'results.jsonl'), JSON.stringify({ ...result, path: 'test/none.test.ts' }));
  const { stdout } = await runCommand([process.execPath, TEST, '--close'], {
    AUTHREALM_TEST_ARTEFACTS: folder,
  });
  expect(stdout).toMatch(
    /failed: test\/none\.test\.ts › 1 < 2\n[\s\S]* Expected: 2\n[\s\S]*\n0 passed, 1 failed\n$/,
  );
});

test('an error of a describe block fails its file, although bun test reports only the other tests', async () => {
  const folder = freshFolder();
  mkdirSync(join(folder, 'test'));
  const block = `describe('d', async () => { await 1; throw new TypeError('of a block'); });`;
  const path = join(folder, 'test/a.test.ts');
  writeFileSync(path, `import { describe, test } from 'bun:test'; test('a', () => undefined); ${block}`);
  const command = `cd ${folder} && exec ${process.execPath} test --parallel=2 ./test/a.test.ts 2>&1`;
  const { stdout, code } = await runCommand(['sh', '-c', command]);
  expect([code, ...errorsOutsideTests(stdout)]).toEqual([
    1,
    ['test/a.test.ts', expect.stringMatching(/^TypeError: of a block\n/)],
  ]);
});

test('six failed files are not repeated', async () => {
  const failures = Array.from({ length: 6 }, () => [SOUND, 'a title'] as const);
  const { code, printed } = await close([...failures, [SOUND]]);
  expect([code, printed.at(-1)]).toEqual([1, '21 passed, 6 failed']);
});

test('a broken step fails the run, also without a failed test', async () => {
  const { code, printed } = await close([[SOUND]], 'npm ci');
  expect([code, printed]).toEqual([1, ['failed: npm ci', '3 passed, 1 failed']]);
});

test('a run without a result fails', async () => {
  const { code, printed } = await close([]);
  expect([code, printed]).toEqual([1, ['0 passed, 0 failed']]);
});
