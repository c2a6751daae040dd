import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Runs the suites, and checks that both engines ran the same tests. The file name determines where a suite runs
 * (CONTRIBUTING.md, "Tests"):
 *
 * - `x.unit.test.ts` opens no database; `x.postgres.test.ts` and `x.citus.test.ts` test one engine, `x.sqlite.test.ts` also what is
 *   the same on all, and
 *   `x.engines.test.ts` chooses its engines: these run once, and COPY_SUITES once more with a cluster. All others run on
 *   SQLite, on PostgreSQL and on Citus.
 * - `x.slow.test.ts` is left out of `npm test`.
 * - `x.serial.test.ts` measures time or hashes passwords: nothing else runs at the same time but one other serial suite.
 *
 * Without arguments: the suites that finish within a few minutes. `--rest`: all others. `--engines`: all. `--citus`: those of
 * CITUS_SUITES, on a Citus cluster; `--citus-all`: all that run there. Any other arguments are passed to one `bun test`.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Bounds a hanging test; on a busy machine a healthy one may take minutes. */
export const TEST_MS_MAX = 300_000;

/** The shared suites that `npm test` runs on PostgreSQL as well. */
const POSTGRES_IN_NPM_TEST = /^test\/(http\/api\/|store\/store\.)/;

/** The contract of the store, and lookups, writes, lists and the feed, but not what is about the form of requests alone. */
const CITUS_SUITES =
  /^test\/(store\/(store\.serial|concurrent_writes|cascade|\w+\.citus)\.|http\/(api\/(?!(base_url|bodies|cors|invalid_members|large_bodies|slow_normalization)\.)|lookup\.|reverse_lookup\.|list\.|paging\.|readiness\.)|events\/change_feed)/;

/** Suites that choose their engines, and include a cluster where they run on Citus. */
const COPY_SUITES = /^test\/transfer\/copy\w*\.engines\./;

type Engine = 'none' | 'sqlite' | 'postgres' | 'citus';
type Tests = ReadonlyMap<string, number>;

interface Suite {
  readonly path: string;
  readonly engine: Engine;
  /** Runs on both engines. */
  readonly isShared: boolean;
  /** Not in `npm test`. */
  readonly isRest: boolean;
}

interface Result {
  readonly engine: Engine;
  readonly isPassing: boolean;
  readonly output: string;
  /** The number of tests by file. */
  readonly tests: Tests;
}

interface Group {
  readonly args: readonly string[];
  /** Whether two processes run at the same time: one begins with the suites on SQLite, one with those on PostgreSQL. */
  readonly hasTwoProcesses: boolean;
  isMember(path: string): boolean;
}

/** Groups run one after the other. */
const GROUPS: readonly Group[] = [
  { args: ['--parallel=3'], hasTwoProcesses: false, isMember: (path) => !isSerial(path) && !isBrowser(path) },
  { args: ['--parallel=4'], hasTwoProcesses: false, isMember: isBrowser },
  { args: [], hasTwoProcesses: true, isMember: isSerial },
];

function isBrowser(path: string): boolean {
  return path.startsWith('test/browser/');
}

export function isSerial(path: string): boolean {
  return path.includes('.serial.');
}

function findSuites(): readonly Suite[] {
  const paths = [...new Bun.Glob('test/**/*.test.ts').scanSync(ROOT)]
    .filter((path) => !/^test\/(durability|distro|bench)\//.test(path))
    .sort();
  return paths.flatMap((path): Suite[] => {
    const isSlow = path.includes('.slow.') || isBrowser(path);
    const kind = /\.(unit|sqlite|postgres|engines|citus)\./.exec(path)?.[1];
    if (kind === 'citus') return [{ path, engine: 'citus', isShared: false, isRest: isSlow }];
    if (kind === 'unit') return [{ path, engine: 'none', isShared: false, isRest: isSlow }];
    if (kind !== undefined) {
      const engines = COPY_SUITES.test(path) ? (['sqlite', 'citus'] as const) : (['sqlite'] as const);
      return engines.map((engine) => ({ path, engine, isShared: false, isRest: isSlow }));
    }
    return [
      { path, engine: 'sqlite', isShared: true, isRest: isSlow },
      { path, engine: 'postgres', isShared: true, isRest: isSlow || !POSTGRES_IN_NPM_TEST.test(path) },
      { path, engine: 'citus', isShared: true, isRest: isSlow },
    ];
  });
}

/** Runs `bun test` with these arguments. Its output is either printed directly or returned. */
async function run(engine: Engine, args: readonly string[], isPrinting: boolean): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'authrealm-report-'));
  const report = join(folder, 'report.xml');
  const options = [`--timeout=${TEST_MS_MAX}`, '--reporter=junit', `--reporter-outfile=${report}`];
  try {
    const child = Bun.spawn(
      ['sh', '-c', 'exec "$@" 2>&1', 'sh', process.execPath, 'test', ...options, ...args],
      {
        cwd: ROOT,
        env: { ...process.env, AUTHREALM_TEST_ENGINE: engine },
        stdio: ['ignore', isPrinting ? 'inherit' : 'pipe', 'inherit'],
      },
    );
    const output = child.stdout ? await new Response(child.stdout).text() : '';
    return { engine, isPassing: (await child.exited) === 0, output, tests: parseReport(report) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The number of tests by file in a JUnit report. */
function parseReport(report: string): Tests {
  const text = existsSync(report) ? readFileSync(report, 'utf8') : '';
  const found = text.matchAll(/<testsuite name="([^"]+)" file="\1" tests="(\d+)"/g);
  return new Map([...found].map(([, path = '', count]) => [path, Number(count)]));
}

/**
 * Prints a text to the end. `console.log` does not wait for a slow reader, and the output of the next process would land in the
 * middle of the text.
 */
function print(text: string): Promise<void> {
  return new Promise((done) => process.stdout.write(text, () => done()));
}

/** Runs the files of one group. The output of the process that begins on PostgreSQL comes last. */
async function runGroup(
  suites: readonly Suite[],
  { args, hasTwoProcesses }: Group,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  const runOn = async (engine: Engine, members: readonly Suite[], isPrinting = true) => {
    if (members.length === 0) return '';
    const result = await run(engine, [...args, ...members.map(({ path }) => `./${path}`)], isPrinting);
    results.push(result);
    return result.output;
  };
  const membersOn = (engine: Engine) => suites.filter((suite) => suite.engine === engine);
  await runOn('none', membersOn('none'));
  if (!hasTwoProcesses) {
    await runOn('sqlite', membersOn('sqlite'));
    await runOn('postgres', membersOn('postgres'));
    return results;
  }
  const queue = membersOn('sqlite');
  const runQueue = async (isPrinting: boolean) => {
    let output = '';
    // Half of the remaining suites each time: few processes load the modules again, and the last two end at about the same time.
    while (queue.length > 0)
      output += await runOn('sqlite', queue.splice(0, Math.ceil(queue.length / 2)), isPrinting);
    return output;
  };
  const runFromPostgres = async () =>
    (await runOn('postgres', membersOn('postgres'), false)) + (await runQueue(false));
  const [output] = await Promise.all([runFromPostgres(), runQueue(true)]);
  await print(output);
  return results;
}

/** Runs suites on a Citus cluster: serial ones one by one, two of the others at a time. */
async function runOnCitus(isIncluded: (suite: Suite) => boolean): Promise<boolean> {
  if (process.env.AUTHREALM_TEST_CITUS === undefined) {
    await print(
      'the suites on Citus did not run: set AUTHREALM_TEST_CITUS to a folder with a build of Citus\n',
    );
    return true;
  }
  const paths = findSuites()
    .filter((suite) => suite.engine === 'citus' && isIncluded(suite))
    .map(({ path }) => path);
  let isPassing = true;
  let count = 0;
  for (const [args, isMember] of [
    [['--parallel=2'], (path: string) => !isSerial(path)],
    [[], isSerial],
  ] as const) {
    const members = paths.filter((path) => isMember(path) && !isBrowser(path)).map((path) => `./${path}`);
    if (members.length === 0) continue;
    const result = await run('citus', [...args, ...members], true);
    isPassing &&= result.isPassing;
    for (const tests of result.tests.values()) count += tests;
  }
  await print(`${count} tests on Citus\n`);
  return isPassing;
}

async function runSuites(includes: (suite: Suite) => boolean): Promise<boolean> {
  const all = findSuites().filter((suite) => suite.engine !== 'citus' && includes(suite));
  const shared = new Set(all.filter(({ isShared }) => isShared).map(({ path }) => path));
  const counts = {
    none: new Map<string, number>(),
    sqlite: new Map<string, number>(),
    postgres: new Map<string, number>(),
    citus: new Map<string, number>(),
  };
  let isPassing = true;
  for (const group of GROUPS) {
    const results = await runGroup(
      all.filter(({ path }) => group.isMember(path)),
      group,
    );
    for (const result of results) {
      isPassing &&= result.isPassing;
      for (const [path, count] of result.tests)
        counts[shared.has(path) ? result.engine : 'none'].set(path, count);
    }
  }
  const sum = (tests: Tests) => [...tests.values()].reduce((total, count) => total + count, 0);
  const { none, sqlite, postgres } = counts;
  await print(
    `${sum(none)} tests of one engine or none, ${sum(sqlite)} on SQLite, ${sum(postgres)} on PostgreSQL\n`,
  );
  const isOnBoth = (path: string) => all.filter((suite) => suite.path === path).length === 2;
  const differing = [...shared].filter((path) => isOnBoth(path) && sqlite.get(path) !== postgres.get(path));
  if (differing.length > 0) await print(`the engines did not run the same tests: ${differing.join(', ')}\n`);
  return isPassing && differing.length === 0;
}

const SELECTIONS: Readonly<Record<string, (suite: Suite) => boolean>> = {
  '': ({ isRest }) => !isRest,
  '--rest': ({ isRest }) => isRest,
  '--engines': () => true,
};
const args = process.argv.slice(2);
const selection = SELECTIONS[args.join(' ')];
const engine = (process.env.AUTHREALM_TEST_ENGINE ?? 'sqlite') as Engine;
const citusSelections: typeof SELECTIONS = {
  '--citus': ({ path }) => CITUS_SUITES.test(path) && !path.includes('.slow.'),
  '--citus-all': () => true,
};
const citusSelection = citusSelections[args.join(' ')];
async function runSelected(): Promise<boolean> {
  if (citusSelection) return runOnCitus(citusSelection);
  return selection ? runSuites(selection) : (await run(engine, args, true)).isPassing;
}
if (import.meta.main) process.exitCode = (await runSelected()) ? 0 : 1;
