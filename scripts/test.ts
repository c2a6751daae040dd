import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';

/**
 * Runs the suite: most files side by side, then those that need the machine to themselves. What one engine passes the
 * other one has to pass. Without arguments it is what takes a few minutes: nothing of LONG, and on PostgreSQL those in
 * PROMPT alone. With `--rest` it is all that was left out by that, with `--engines` both together. Other arguments are
 * handed on, and then there is one run of what they name.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/**
 * What hashes passwords or searches without an index, which is done at the lowest priority and given up after two
 * seconds, or measures how long something takes.
 */
const ALONE = [
  'test/api/**',
  'test/backups_under_load.test.ts',
  'test/children.test.ts',
  'test/client*.test.ts',
  'test/console.test.ts',
  'test/concurrent_writes.test.ts',
  'test/copy.test.ts',
  'test/counted_beside.test.ts',
  'test/crowded.test.ts',
  'test/document*.test.ts',
  'test/erase_beside.test.ts',
  'test/filter.test.ts',
  'test/fuzz.test.ts',
  'test/guides.test.ts',
  'test/issuer_keys.test.ts',
  'test/jssdk.test.ts',
  'test/list*.test.ts',
  'test/log.test.ts',
  'test/matrix.test.ts',
  'test/metrics.test.ts',
  'test/model.test.ts',
  'test/paging.test.ts',
  'test/passwords.test.ts',
  'test/purge_command.test.ts',
  'test/records_command.test.ts',
  'test/releases.test.ts',
  'test/search_everywhere.test.ts',
  'test/seventh*.test.ts',
  'test/shopper.test.ts',
  'test/torture.test.ts',
  'test/wire*.test.ts',
] as const;

/** What runs once, with the reason: suites that choose their engine themselves, or to which it makes no difference. */
const ONCE: Readonly<Record<string, readonly string[]>> = {
  'is about the file of a SQLite database, beside it its key, or the copies of it': [
    'test/backup*.test.ts',
    'test/doctor*.test.ts',
    'test/durability.test.ts',
    'test/erase_beside.test.ts',
    'test/erased_bytes.test.ts',
    'test/faults_of_files.test.ts',
    'test/full_disk.test.ts',
    'test/import_rehearsal.test.ts',
    'test/keyring.test.ts',
    'test/launcher.test.ts',
    'test/releases.test.ts',
    'test/restore*.test.ts',
  ],
  'is about how the SQLite engine does it: its migrations, plans, slots, checksums, turns, readers beside': [
    'test/cascade_turns.test.ts',
    'test/counted_beside.test.ts',
    'test/finds.test.ts',
    'test/list_plans.test.ts',
    'test/memory_plans.test.ts',
    'test/migrate.test.ts',
    'test/pauses.test.ts',
    'test/slot.test.ts',
    'test/snapshot.test.ts',
    'test/store.sqlite.test.ts',
    'test/webhook_plans.test.ts',
    'test/wire_at_once.test.ts',
    'test/writer.test.ts',
  ],
  'serves a SQLite database that it makes itself': ['test/demo.test.ts'],
  'is about what a browser makes of pages, whichever engine is behind them': [
    'test/console/docs.test.ts',
    'test/console/health.test.ts',
    'test/console/keyboard.test.ts',
    'test/console/long_list.test.ts',
    'test/console/session.test.ts',
    'test/console/stored_scripts.test.ts',
    'test/console/unheard.test.ts',
  ],
  'pastes the documents, which begin with a SQLite database': ['test/docs.test.ts', 'test/guides.test.ts'],
};

/** The same, of those that take too long to run when a few minutes are all there is. */
const ONCE_AND_LONG: Readonly<Record<string, readonly string[]>> = {
  'is about PostgreSQL itself, its faults and its schema': [
    'test/citus.test.ts',
    'test/migrate_command.test.ts',
    'test/postgres_*.test.ts',
  ],
  'goes from one engine to the other, and back': ['test/copy*.test.ts'],
  'runs the suite of a release on each engine that the release has': ['test/previous_release.test.ts'],
};

/** What opens no database: it runs once, and a database that it asked for would be refused. */
const WITHOUT = [
  'test/archiver.test.ts',
  'test/bare_engine.test.ts',
  'test/children.test.ts',
  'test/config.test.ts',
  'test/console_entry.test.ts',
  'test/console/characters.test.ts',
  'test/console/paged_rows.test.ts',
  'test/console/stretch.test.ts',
  'test/deploy.test.ts',
  'test/filter.test.ts',
  'test/fuzz_made.test.ts',
  'test/fuzz_meeting.test.ts',
  'test/imported_keys.test.ts',
  'test/issuer_key_sets.test.ts',
  'test/issuers_console.test.ts',
  'test/log_witness.test.ts',
  'test/master_key.test.ts',
  'test/outbound*.test.ts',
  'test/passwords.test.ts',
  'test/plain_filter.test.ts',
  'test/prepaid.test.ts',
  'test/query.test.ts',
  'test/scale.test.ts',
  'test/sealed_secrets.test.ts',
  'test/supply_chain.test.ts',
  'test/texts.test.ts',
  'test/tidy.test.ts',
  'test/verified.test.ts',
] as const;

/** What runs on PostgreSQL even when a few minutes are all there is. */
const PROMPT = ['test/store.test.ts', 'test/api/**'] as const;

/** What kills processes again and again, waits until something is given up, or is long for another reason. */
const LONG = [
  'test/backup.test.ts',
  'test/backups_under_load.test.ts',
  'test/change_streams.test.ts',
  'test/checkpoint_receiver.test.ts',
  'test/children.test.ts',
  'test/client_package.test.ts',
  'test/concurrency.test.ts',
  'test/console/**',
  'test/console_link_command.test.ts',
  'test/doctor_faults.test.ts',
  'test/durability.test.ts',
  'test/erasures_told.test.ts',
  'test/export.test.ts',
  'test/faults_of_files.test.ts',
  'test/fuzz.test.ts',
  'test/import_command.test.ts',
  'test/import_rehearsal.test.ts',
  'test/issuer_keys.test.ts',
  'test/model.test.ts',
  'test/presets.test.ts',
  'test/purge_beside.test.ts',
  'test/purge_command.test.ts',
  'test/records_command.test.ts',
  'test/restore.test.ts',
  'test/restore_checkpoints.test.ts',
  'test/restore_erasures.test.ts',
  'test/restore_killed.test.ts',
  'test/restore_ledger.test.ts',
  'test/retention.test.ts',
  'test/rewrap.test.ts',
  'test/rights_end.test.ts',
  'test/seventh_carried.test.ts',
  'test/torture.test.ts',
  'test/webhook_command.test.ts',
  'test/webhook_failures.test.ts',
  'test/webhook_guard.test.ts',
  'test/webhook_leases.test.ts',
  'test/webhook_metrics.test.ts',
] as const;

/** What mostly waits for a term or a deadline to end, so that several fit beside each other. */
const WAITING = [
  'test/change_streams.test.ts',
  'test/checkpoint_receiver.test.ts',
  'test/concurrency.test.ts',
  'test/erasures_told.test.ts',
  'test/retention.test.ts',
  'test/rights_end.test.ts',
  'test/webhook_failures.test.ts',
  'test/webhook_guard.test.ts',
  'test/webhook_leases.test.ts',
  'test/webhook_metrics.test.ts',
] as const;

/** What looks through a browser, which has processes of its own. */
const BROWSED = ['test/console/**'] as const;

/** How much is to run. */
type Part = 'prompt' | 'rest' | 'whole';

const files = [...new Bun.Glob('test/**/*.test.ts').scanSync(ROOT)].sort();
const isWithout = isIn(WITHOUT);
const isOnce = isIn([...Object.values(ONCE).flat(), ...Object.values(ONCE_AND_LONG).flat()]);
const isOnceAndLong = isIn(Object.values(ONCE_AND_LONG).flat());
const isLong = isIn(LONG);
const isPrompt = isIn(PROMPT);
const isAlone = isIn(ALONE);
const isWaiting = isIn(WAITING);
const isBrowsed = isIn(BROWSED);

/** How many of its files each group runs at once, as words of `bun test`. */
const GROUPS = {
  waiting: ['--parallel=4'],
  beside: ['--parallel=2'],
  browsed: ['--parallel=2'],
  alone: [],
} as const;

interface Ran {
  readonly isGood: boolean;
  /** How many tests there were. */
  readonly count: number;
}

/** Whether a path is of these patterns. */
function isIn(patterns: readonly string[]): (path: string) => boolean {
  const globs = patterns.map((pattern) => new Bun.Glob(pattern));
  return (path) => globs.some((glob) => glob.match(path));
}

/** A test ends so late where the machine has much else to do, which says nothing about what it tries. */
const TEST_MS_MAX = 60_000;

/** Bun's own closing line. */
const COUNT = /^Ran (\d+) tests? across/m;

/** Runs these words of `bun test`, on this engine where they ask for one. What is written is passed on. */
async function run(engine: string, ...words: readonly string[]): Promise<Ran> {
  const child = Bun.spawn([process.execPath, 'test', `--timeout=${TEST_MS_MAX}`, ...words], {
    cwd: ROOT,
    env: { ...process.env, AUTHREALM_TEST_ENGINE: engine },
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  let said = '';
  for await (const part of child.stderr.pipeThrough(new TextDecoderStream())) {
    process.stderr.write(part);
    said = (said + part).slice(-1_000);
  }
  return { isGood: (await child.exited) === 0, count: Number(COUNT.exec(said)?.[1] ?? 0) };
}

function groupOf(path: string): keyof typeof GROUPS {
  if (isAlone(path)) return 'alone';
  if (isWaiting(path)) return 'waiting';
  return isBrowsed(path) ? 'browsed' : 'beside';
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

/** Those that wait first, then the others side by side, then one after the other. */
async function runAll(engine: string, paths: readonly string[]): Promise<Ran> {
  const ran = [];
  const groups = Object.groupBy(paths, groupOf);
  for (const [group, words] of Object.entries(GROUPS)) {
    const chosen = groups[group as keyof typeof GROUPS] ?? [];
    if (chosen.length === 0) continue;
    if (group === 'alone') await calm();
    ran.push(await run(engine, ...words, ...chosen.map((path) => `./${path}`)));
  }
  const count = ran.reduce((sum, each) => sum + each.count, 0);
  return { isGood: ran.every(({ isGood }) => isGood), count };
}

async function runSuite(part: Part): Promise<boolean> {
  const chosen = (isLate: (path: string) => boolean) => (path: string) =>
    part === 'whole' || (part === 'rest') === isLate(path);
  const none = files.filter(isWithout).filter(chosen(isLong));
  const once = files.filter((path) => !isWithout(path) && isOnce(path));
  const twice = files.filter((path) => !isWithout(path) && !isOnce(path));
  const ran = [
    await runAll('none', none),
    await runAll('sqlite', once.filter(chosen((path) => isLong(path) || isOnceAndLong(path)))),
  ];
  const sqlite = await runAll('sqlite', twice.filter(chosen(isLong)));
  const postgres = await runAll('postgres', twice.filter(chosen((path) => isLong(path) || !isPrompt(path))));
  const others = ran.reduce((sum, each) => sum + each.count, 0);
  console.log(
    `${others} tests of one engine or none, ${sqlite.count} on SQLite, ${postgres.count} on PostgreSQL`,
  );
  const isSame = part !== 'whole' || sqlite.count === postgres.count;
  if (!isSame) console.log('the engines did not run the same tests');
  return isSame && [...ran, sqlite, postgres].every(({ isGood }) => isGood);
}

const PARTS: Readonly<Record<string, Part>> = { '': 'prompt', '--rest': 'rest', '--engines': 'whole' };
const words = process.argv.slice(2);
const part = PARTS[words.join(' ')];
const isGood = part
  ? await runSuite(part)
  : (await run(process.env.AUTHREALM_TEST_ENGINE ?? 'sqlite', ...words)).isGood;
process.exitCode = isGood ? 0 : 1;
