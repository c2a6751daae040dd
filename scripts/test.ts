import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lookAtMachine } from './machine.ts';
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

/** A test ends so late where the machine has much else to do, which says nothing about what it tries. */
const TEST_MS_MAX = 60_000;

/** Runs these words of `bun test`, on this engine where they ask for one. What is written is passed on by whole lines. */
async function run(engine: string, ...words: readonly string[]): Promise<Ran> {
  const folder = mkdtempSync(join(tmpdir(), 'authrealm-counts-'));
  const report = join(folder, 'report.xml');
  const options = [`--timeout=${TEST_MS_MAX}`, '--reporter=junit', `--reporter-outfile=${report}`];
  try {
    const child = Bun.spawn([process.execPath, 'test', ...options, ...words], {
      cwd: ROOT,
      env: { ...process.env, AUTHREALM_TEST_ENGINE: engine },
      stdio: ['ignore', 'inherit', 'pipe'],
    });
    let begun = '';
    for await (const part of child.stderr.pipeThrough(new TextDecoderStream())) {
      const end = part.lastIndexOf('\n') + 1;
      if (end > 0) process.stderr.write(begun + part.slice(0, end));
      begun = end > 0 ? part.slice(end) : begun + part;
    }
    process.stderr.write(begun);
    return { isGood: (await child.exited) === 0, counts: countsOf(report) };
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

/** How long a calm machine is waited for at most, and how often it is looked at. */
const CALM_MS_MAX = 60_000;
const LOOK_MS = 1_000;

/** What all processors together did since the machine was started, in milliseconds. */
function spent(): { readonly idle: number; readonly whole: number } {
  const times = cpus().map((cpu) => cpu.times);
  const idle = times.reduce((sum, each) => sum + each.idle, 0);
  return {
    idle,
    whole: times.reduce((sum, { user, nice, sys, irq }) => sum + user + nice + sys + irq, idle),
  };
}

/** Resolves once the machine has been idle for half of a second: what ran before leaves servers and browsers that end by themselves. */
async function calm(): Promise<void> {
  const end = performance.now() + CALM_MS_MAX;
  for (let before = spent(); performance.now() < end; ) {
    await Bun.sleep(LOOK_MS);
    const now = spent();
    if (now.idle - before.idle >= (now.whole - before.whole) / 2) return;
    before = now;
  }
}

/** Runs these shares as files of a group are run. */
async function runGroup(group: Group, shares: readonly Share[]): Promise<ReadonlyMap<Share, Ran>> {
  const ran = new Map<Share, Ran>();
  const { words, isAbreast } = GROUPS[group];
  const inTurn = async (lane: readonly Share[]) => {
    for (const share of lane)
      ran.set(share, await run(share.engine, ...words, ...share.paths.map((path) => `./${path}`)));
  };
  const engines = shares.filter(({ engine }) => engine !== 'none');
  await inTurn(shares.filter(({ engine }) => engine === 'none'));
  if (isAbreast) await Promise.all(engines.map((share) => inTurn([share])));
  else await inTurn(engines);
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

/** How many tests ran on both engines, on each of them, and how many others. */
function countedOf(ran: readonly (readonly [Share, Ran])[]) {
  const counted = { others: 0, sqlite: 0, postgres: 0 };
  for (const [{ engine }, { counts }] of ran) {
    for (const [path, count] of counts) {
      counted[engine === 'none' || isOnce(path) ? 'others' : engine] += count;
    }
  }
  return counted;
}

async function runSuite(part: Part): Promise<boolean> {
  const shares = sharesOf(part);
  const ran: (readonly [Share, Ran])[] = [];
  for (const group of Object.keys(GROUPS) as Group[]) {
    const chosen = shares
      .map(({ engine, paths }) => ({ engine, paths: paths.filter((path) => groupOf(path) === group) }))
      .filter(({ paths }) => paths.length > 0);
    if (chosen.length === 0) continue;
    if (group === 'alone') await calm();
    const machine = await lookAtMachine();
    if (machine !== undefined) console.log(`before ${group}: ${machine}`);
    ran.push(...(await runGroup(group, chosen)));
  }
  const { others, sqlite, postgres } = countedOf(ran);
  console.log(`${others} tests of one engine or none, ${sqlite} on SQLite, ${postgres} on PostgreSQL`);
  const isSame = part !== 'whole' || sqlite === postgres;
  if (!isSame) console.log('the engines did not run the same tests');
  return isSame && ran.every(([, { isGood }]) => isGood);
}

const PARTS: Readonly<Record<string, Part>> = { '': 'prompt', '--rest': 'rest', '--engines': 'whole' };
const words = process.argv.slice(2);
const part = PARTS[words.join(' ')];
const isGood = part
  ? await runSuite(part)
  : (await run(process.env.AUTHREALM_TEST_ENGINE ?? 'sqlite', ...words)).isGood;
process.exitCode = isGood ? 0 : 1;
