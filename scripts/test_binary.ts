import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildBinary } from './release/binary.ts';
import { ROOT } from './release/build.ts';
import { TEST_MS_MAX } from './test/runs.ts';
import { groupOf } from './test/suites.ts';

/**
 * Runs the suites of the API, and a walk through the console in a browser, on the compiled single file: each suite starts it as a
 * process, on SQLite and then on PostgreSQL. Slow suites, and those that need a service in their process, are left out.
 */

/** The console is the same file on both engines. */
const BROWSER_SUITES = ['test/browser/walk.sqlite.test.ts', 'test/browser/session.sqlite.test.ts'];

/** Whole suites that need a service in their process. Single tests that do are skipped (`testInProcess`). */
const IN_PROCESS =
  /\/(batch_outcome|check_order|not_found|matrix|openapi_conformance|overload|overload_before_authentication|search_rights)\./;

function apiSuites(): readonly string[] {
  const paths = [...new Bun.Glob('test/{http,compat}/**/*.test.ts').scanSync(ROOT)].sort();
  return paths.filter((path) => !/\.(unit|slow)\./.test(path) && !IN_PROCESS.test(path));
}

async function runSuites(program: string, engine: string, paths: readonly string[]): Promise<boolean> {
  let isPassing = true;
  for (const [options, members] of [
    [['--parallel=2'], paths.filter((path) => groupOf(path) !== 'serial')],
    [['--parallel=1'], paths.filter((path) => groupOf(path) === 'serial')],
  ] as const) {
    const words = ['test', `--timeout=${TEST_MS_MAX}`, ...options, ...members.map((path) => `./${path}`)];
    const env = { ...process.env, AUTHREALM_TEST_PROGRAM: program, AUTHREALM_TEST_ENGINE: engine };
    const child = Bun.spawn([process.execPath, ...words], {
      cwd: ROOT,
      env,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    isPassing = (await child.exited) === 0 && isPassing;
  }
  return isPassing;
}

const folder = mkdtempSync(join(tmpdir(), 'authrealm-test-binary-'));
try {
  const program = await buildBinary('linux-x64-glibc', folder);
  const suites = apiSuites();
  const ofBoth = suites.filter((path) => !path.includes('.sqlite.'));
  const onSqlite = await runSuites(program, 'sqlite', [...suites, ...BROWSER_SUITES]);
  const onPostgres = await runSuites(program, 'postgres', ofBoth);
  process.exitCode = onSqlite && onPostgres ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
