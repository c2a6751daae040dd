import { fileURLToPath } from 'node:url';

/**
 * Runs the suite: most files side by side, then those that need the machine to themselves. What one engine passes the
 * other one has to pass: with `--engines` all of them run on PostgreSQL as well, without it those in PROMPT alone, and
 * nothing that takes long. Other arguments are handed on, and then there is one run of what they name.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/**
 * What hashes passwords, which is done at the lowest priority and given up after two seconds, or measures how long
 * something takes.
 */
const ALONE = [
  'test/api/**',
  'test/backups_under_load.test.ts',
  'test/children.test.ts',
  'test/client*.test.ts',
  'test/concurrent_writes.test.ts',
  'test/counted_beside.test.ts',
  'test/crowded.test.ts',
  'test/document*.test.ts',
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
  'test/seventh*.test.ts',
  'test/shopper.test.ts',
  'test/torture.test.ts',
  'test/wire*.test.ts',
] as const;

/** What runs once: the suites that choose their engine themselves, with the reason they do. */
const ONCE: Readonly<Record<string, readonly string[]>> = {
  'is about the file of a SQLite database, beside it its key, or the copies of it': [
    'test/backup*.test.ts',
    'test/doctor*.test.ts',
    'test/durability.test.ts',
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
    'test/wire_at_once.test.ts',
    'test/writer.test.ts',
  ],
  'pastes the documents, which begin with a SQLite database': ['test/docs.test.ts', 'test/guides.test.ts'],
};

/** The same, of those that take too long to run without `--engines`. */
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
  'test/children.test.ts',
  'test/config.test.ts',
  'test/deploy.test.ts',
  'test/filter.test.ts',
  'test/outbound*.test.ts',
  'test/passwords.test.ts',
  'test/plain_filter.test.ts',
  'test/query.test.ts',
  'test/scale.test.ts',
  'test/supply_chain.test.ts',
  'test/texts.test.ts',
  'test/tidy.test.ts',
] as const;

/** What runs on PostgreSQL even without `--engines`. */
const PROMPT = ['test/store.test.ts', 'test/api/**'] as const;

const isIn = (patterns: readonly string[]) => {
  const globs = patterns.map((pattern) => new Bun.Glob(pattern));
  return (path: string): boolean => globs.some((glob) => glob.match(path));
};

const files = [...new Bun.Glob('test/**/*.test.ts').scanSync(ROOT)].sort();
const without = files.filter(isIn(WITHOUT));
const once = files.filter(isIn(Object.values(ONCE).flat()));
const onceAndLong = files.filter(isIn(Object.values(ONCE_AND_LONG).flat()));
const single = new Set([...without, ...once, ...onceAndLong]);
const twice = files.filter((path) => !single.has(path));

interface Ran {
  readonly isGood: boolean;
  /** How many tests there were. */
  readonly count: number;
}

/** Bun's own closing line. */
const COUNT = /^Ran (\d+) tests? across/m;

/** Runs these words of `bun test`, on this engine where they ask for one. What is written is passed on. */
async function run(engine: string, ...words: readonly string[]): Promise<Ran> {
  const child = Bun.spawn([process.execPath, 'test', ...words], {
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

/** Side by side first, then one after the other. */
async function runAll(engine: string, paths: readonly string[]): Promise<Ran> {
  const isAlone = isIn(ALONE);
  const named = (chosen: readonly string[]) => chosen.map((path) => `./${path}`);
  const beside = named(paths.filter((path) => !isAlone(path)));
  const alone = named(paths.filter(isAlone));
  const ran = [];
  if (beside.length > 0) ran.push(await run(engine, '--parallel=2', ...beside));
  if (alone.length > 0) ran.push(await run(engine, ...alone));
  const count = ran.reduce((sum, each) => sum + each.count, 0);
  return { isGood: ran.every(({ isGood }) => isGood), count };
}

async function runSuite(isWhole: boolean): Promise<boolean> {
  const asked = isWhole ? twice : twice.filter(isIn(PROMPT));
  const ran = [
    await runAll('none', without),
    await runAll('sqlite', isWhole ? [...once, ...onceAndLong] : once),
  ];
  const sqlite = await runAll('sqlite', twice);
  const postgres = await runAll('postgres', asked);
  const others = ran.reduce((sum, each) => sum + each.count, 0);
  console.log(
    `${others} tests of one engine or none, ${sqlite.count} on SQLite, ${postgres.count} on PostgreSQL`,
  );
  const isSame = !isWhole || sqlite.count === postgres.count;
  if (!isSame) console.log('the engines did not run the same tests');
  return isSame && [...ran, sqlite, postgres].every(({ isGood }) => isGood);
}

const words = process.argv.slice(2);
const isWhole = words.length === 1 && words[0] === '--engines';
const isGood =
  words.length > 0 && !isWhole
    ? (await run(process.env.AUTHREALM_TEST_ENGINE ?? 'sqlite', ...words)).isGood
    : await runSuite(isWhole);
process.exitCode = isGood ? 0 : 1;
