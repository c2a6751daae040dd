import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Runs the suites, and checks that both engines ran the same tests. A file's name says where it runs
 * (CONTRIBUTING.md, "Tests"):
 *
 * - `x.unit.test.ts` opens no database; `x.sqlite.test.ts` and `x.postgres.test.ts` are about one engine and
 *   `x.engines.test.ts` chooses engines itself: these run once. All others run on SQLite and on PostgreSQL.
 * - `x.slow.test.ts` is left out of `npm test`.
 * - `x.serial.test.ts` measures time or hashes passwords: nothing else runs next to it but the same suites on the
 *   other engine.
 *
 * Without arguments: what a few minutes are enough for. `--rest`: what that leaves out. `--engines`: everything. Other
 * arguments are passed to one `bun test`.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Bounds a hanging test; on a busy machine a healthy one may take minutes. */
const TEST_MS_MAX = 300_000;

/** What runs on PostgreSQL in `npm test` as well. */
const PROMPT_ON_POSTGRES = /^test\/(store\/store|http\/api\/.*)\.test\.ts$/;

type Engine = 'none' | 'sqlite' | 'postgres';
type Tests = ReadonlyMap<string, number>;

interface Suite {
  readonly path: string;
  readonly engine: Engine;
  /** It runs on both engines. */
  readonly isShared: boolean;
  readonly isLate: boolean;
}

interface Result {
  readonly isGood: boolean;
  readonly output: string;
  /** How many tests each file had. */
  readonly tests: Tests;
}

/** Groups run one after the other. */
const GROUPS: readonly { readonly words: readonly string[]; isMember(path: string): boolean }[] = [
  { words: ['--parallel=2'], isMember: (path) => !isSerial(path) && !isBrowser(path) },
  { words: ['--parallel=3'], isMember: isBrowser },
  { words: [], isMember: isSerial },
];

function isBrowser(path: string): boolean {
  return path.startsWith('test/browser/');
}

function isSerial(path: string): boolean {
  return path.includes('.serial.');
}

function suites(): readonly Suite[] {
  const paths = [...new Bun.Glob('test/**/*.test.ts').scanSync(ROOT)]
    .filter((path) => !/^test\/(durability|distro)\//.test(path))
    .sort();
  return paths.flatMap((path): Suite[] => {
    const isSlow = path.includes('.slow.') || isBrowser(path);
    const kind = /\.(unit|sqlite|postgres|engines)\./.exec(path)?.[1];
    if (kind === 'unit') return [{ path, engine: 'none', isShared: false, isLate: isSlow }];
    if (kind !== undefined) return [{ path, engine: 'sqlite', isShared: false, isLate: isSlow }];
    const isPrompt = PROMPT_ON_POSTGRES.test(path.replace('.serial', ''));
    return [
      { path, engine: 'sqlite', isShared: true, isLate: isSlow },
      { path, engine: 'postgres', isShared: true, isLate: isSlow || !isPrompt },
    ];
  });
}

/** Runs `bun test` with these words. Its output is printed as it comes, or returned where another run prints. */
async function run(engine: Engine, words: readonly string[], isPrinting: boolean): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'authrealm-report-'));
  const report = join(folder, 'report.xml');
  const options = [`--timeout=${TEST_MS_MAX}`, '--reporter=junit', `--reporter-outfile=${report}`];
  try {
    const child = Bun.spawn(
      ['sh', '-c', 'exec "$@" 2>&1', 'sh', process.execPath, 'test', ...options, ...words],
      {
        cwd: ROOT,
        env: { ...process.env, AUTHREALM_TEST_ENGINE: engine },
        stdio: ['ignore', isPrinting ? 'inherit' : 'pipe', 'inherit'],
      },
    );
    const output = child.stdout ? await new Response(child.stdout).text() : '';
    return { isGood: (await child.exited) === 0, output, tests: testsOf(report) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The tests of each file in a JUnit report. */
function testsOf(report: string): Tests {
  const text = existsSync(report) ? readFileSync(report, 'utf8') : '';
  const found = text.matchAll(/<testsuite name="([^"]+)" file="\1" tests="(\d+)"/g);
  return new Map([...found].map(([, path = '', count]) => [path, Number(count)]));
}

/** Runs the files of one group, those of PostgreSQL at the same time as those of SQLite where the group is serial. */
async function runGroup(
  chosen: readonly Suite[],
  words: readonly string[],
): Promise<ReadonlyMap<Engine, Result>> {
  const results = new Map<Engine, Result>();
  const runEngine = async (engine: Engine, isPrinting: boolean) => {
    const paths = chosen.filter((suite) => suite.engine === engine).map(({ path }) => `./${path}`);
    if (paths.length > 0) results.set(engine, await run(engine, [...words, ...paths], isPrinting));
  };
  await runEngine('none', true);
  if (words.length > 0) {
    await runEngine('sqlite', true);
    await runEngine('postgres', true);
  } else {
    await Promise.all([runEngine('sqlite', true), runEngine('postgres', false)]);
    process.stdout.write(results.get('postgres')?.output ?? '');
  }
  return results;
}

async function runSuites(isChosen: (suite: Suite) => boolean): Promise<boolean> {
  const all = suites().filter(isChosen);
  const shared = new Set(all.filter(({ isShared }) => isShared).map(({ path }) => path));
  const counted = { none: new Map<string, number>(), sqlite: new Map(), postgres: new Map() };
  let isGood = true;
  for (const { words, isMember } of GROUPS) {
    const results = await runGroup(
      all.filter(({ path }) => isMember(path)),
      words,
    );
    for (const [engine, result] of results) {
      isGood &&= result.isGood;
      for (const [path, count] of result.tests) counted[shared.has(path) ? engine : 'none'].set(path, count);
    }
  }
  const sum = (tests: Tests) => [...tests.values()].reduce((total, count) => total + count, 0);
  const { none, sqlite, postgres } = counted;
  console.log(
    `${sum(none)} tests of one engine or none, ${sum(sqlite)} on SQLite, ${sum(postgres)} on PostgreSQL`,
  );
  const isOnBoth = (path: string) => all.filter((suite) => suite.path === path).length === 2;
  const differing = [...shared].filter((path) => isOnBoth(path) && sqlite.get(path) !== postgres.get(path));
  if (differing.length > 0) console.log(`the engines did not run the same tests: ${differing.join(', ')}`);
  return isGood && differing.length === 0;
}

const PARTS: Readonly<Record<string, (suite: Suite) => boolean>> = {
  '': ({ isLate }) => !isLate,
  '--rest': ({ isLate }) => isLate,
  '--engines': () => true,
};
const words = process.argv.slice(2);
const part = PARTS[words.join(' ')];
const engine = (process.env.AUTHREALM_TEST_ENGINE ?? 'sqlite') as Engine;
const isGood = part ? await runSuites(part) : (await run(engine, words, true)).isGood;
process.exitCode = isGood ? 0 : 1;
