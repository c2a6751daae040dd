import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { calm, lookAtMachine } from './machine.ts';
import { runAndSay, say } from './say.ts';
import { GROUPS, type Group, groupOf, isLong, isOnce, isOnceAndLong, isPrompt, isWithout } from './suites.ts';

/**
 * Runs the suite, a group of it after the other (suites.ts). What one engine passes the other one has to pass. Without
 * arguments it is what takes a few minutes: nothing that is long, and on PostgreSQL little. With `--rest` it is all that was
 * left out by that, with `--engines` both together. Other arguments are handed on, and then there is one run of what they
 * name.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** How much is to run. */
type Part = 'prompt' | 'rest' | 'whole';

type Engine = 'none' | 'sqlite' | 'postgres';

/** Files that run on one engine. */
interface Share {
  readonly engine: Engine;
  readonly paths: readonly string[];
}

interface Ran {
  readonly isGood: boolean;
  /** How many tests each file had. */
  readonly counts: ReadonlyMap<string, number>;
}

type Hear = (part: string) => unknown;

/** A test ends so late where the machine has much else to do, which says nothing about what it tries. */
const TEST_MS_MAX = 300_000;

/** Runs these words of `bun test`, on this engine where they ask for one. What it says is passed on as it comes. */
async function run(engine: string, words: readonly string[], hear: Hear = say): Promise<Ran> {
  const folder = mkdtempSync(join(tmpdir(), 'authrealm-counts-'));
  const report = join(folder, 'report.xml');
  const options = [`--timeout=${TEST_MS_MAX}`, '--reporter=junit', `--reporter-outfile=${report}`];
  try {
    const where = { cwd: ROOT, env: { ...process.env, AUTHREALM_TEST_ENGINE: engine } };
    const exit = await runAndSay([process.execPath, 'test', ...options, ...words], where, hear);
    return { isGood: exit === 0, counts: countsOf(report) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The suite that a file is, in a report as JUnit has it: named as the file. */
const FILE = /<testsuite name="([^"]+)" file="\1" tests="(\d+)"/g;

function countsOf(report: string): Ran['counts'] {
  const text = existsSync(report) ? readFileSync(report, 'utf8') : '';
  return new Map([...text.matchAll(FILE)].map(([, path = '', count]) => [path, Number(count)]));
}

/** Runs these shares as files of a group are run. Of two at once, what the second one says is told behind the first one. */
async function runGroup(group: Group, shares: readonly Share[]): Promise<readonly (readonly [Share, Ran])[]> {
  const { words, isAbreast } = GROUPS[group];
  const runShare = async (share: Share, hear?: Hear) =>
    [share, await run(share.engine, [...words, ...share.paths.map((path) => `./${path}`)], hear)] as const;
  const ran: (readonly [Share, Ran])[] = [];
  const second = isAbreast ? shares.find(({ engine }) => engine === 'postgres') : undefined;
  const said: string[] = [];
  let running: ReturnType<typeof runShare> | undefined;
  for (const share of shares.filter((each) => each !== second)) {
    // What opens no database goes before: there is what measures by itself.
    if (share.engine === 'sqlite' && second) running = runShare(second, (part) => said.push(part));
    ran.push(await runShare(share));
  }
  if (second) ran.push(await (running ?? runShare(second)));
  if (said.length > 0) await say(`\non PostgreSQL, at the same time:\n${said.join('')}`);
  return ran;
}

/** What runs of each engine. */
function sharesOf(part: Part): readonly Share[] {
  const files = [...new Bun.Glob('test/**/*.test.ts').scanSync(ROOT)].sort();
  const chosen = (isLate: (path: string) => boolean) => (path: string) =>
    part === 'whole' || (part === 'rest') === isLate(path);
  const isTwice = (path: string) => !isWithout(path) && !isOnce(path);
  return [
    { engine: 'none', paths: files.filter(isWithout).filter(chosen(isLong)) },
    {
      engine: 'sqlite',
      paths: files
        .filter((path) => !isWithout(path))
        .filter(chosen((path) => isLong(path) || isOnceAndLong(path))),
    },
    {
      engine: 'postgres',
      paths: files.filter(isTwice).filter(chosen((path) => isLong(path) || !isPrompt(path))),
    },
  ];
}

/** How many tests each file had on an engine, of those that run on both. */
function countsOn(wanted: Engine, ran: readonly (readonly [Share, Ran])[]): ReadonlyMap<string, number> {
  const counts = ran.filter(([{ engine }]) => engine === wanted).flatMap(([, each]) => [...each.counts]);
  return new Map(counts.filter(([path]) => !isOnce(path)));
}

const sum = (counts: Iterable<number>) => [...counts].reduce((total, count) => total + count, 0);

async function runSuite(part: Part): Promise<boolean> {
  const shares = sharesOf(part);
  const ran: (readonly [Share, Ran])[] = [];
  for (const group of Object.keys(GROUPS) as Group[]) {
    const chosen = shares
      .map(({ engine, paths }) => ({ engine, paths: paths.filter((path) => groupOf(path) === group) }))
      .filter(({ paths }) => paths.length > 0);
    if (chosen.length === 0) continue;
    if (group === 'quiet') await calm();
    const machine = await lookAtMachine();
    if (machine !== undefined) await say(`before ${group}: ${machine}\n`);
    ran.push(...(await runGroup(group, chosen)));
  }
  const [sqlite, postgres] = [countsOn('sqlite', ran), countsOn('postgres', ran)];
  const both = sum(sqlite.values()) + sum(postgres.values());
  const others = sum(ran.flatMap(([, { counts }]) => [...counts.values()])) - both;
  await say(
    `${others} tests of one engine or none, ${sum(sqlite.values())} on SQLite, ${sum(postgres.values())} on PostgreSQL\n`,
  );
  const differing = [...new Set([...sqlite.keys(), ...postgres.keys()])].filter(
    (path) => part === 'whole' && sqlite.get(path) !== postgres.get(path),
  );
  if (differing.length > 0) await say(`the engines did not run the same tests: ${differing.join(', ')}\n`);
  return differing.length === 0 && ran.every(([, { isGood }]) => isGood);
}

const PARTS: Readonly<Record<string, Part>> = { '': 'prompt', '--rest': 'rest', '--engines': 'whole' };
const words = process.argv.slice(2);
const part = PARTS[words.join(' ')];
const isGood = part
  ? await runSuite(part)
  : (await run(process.env.AUTHREALM_TEST_ENGINE ?? 'sqlite', words)).isGood;
process.exitCode = isGood ? 0 : 1;
