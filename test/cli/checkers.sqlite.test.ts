import { Database } from 'bun:sqlite';
import { expect, setDefaultTimeout, test } from 'bun:test';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { openDatabase } from '../../src/app/open_database.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { sqliteAt } from '../support/database.ts';
import { freshFolder } from '../support/folder.ts';
import {
  AUTHREALM,
  AUTHREALM_UNPRIVILEGED,
  runAuthrealm,
  runCommand,
  startCommand,
} from '../support/processes.ts';
import { createFixture } from '../support/service.ts';

/** Checkers change nothing, and neither does a start that is refused. */

setDefaultTimeout(300_000);

const CHECKERS: readonly (readonly string[])[] = [
  ['audit', 'verify'],
  ['audit', 'verify', '--records'],
  ['doctor'],
];

const named = (commands: readonly (readonly string[])[]) =>
  commands.map((command) => [command.join(' '), command] as const);
const NAMED_CHECKERS = named(CHECKERS);

/** The path of a database with some records, which no process has open. */
async function createFolder() {
  const source = sqliteAt(join(freshFolder(), 'source.db'));
  const db = await openDatabase(source.settings(), systemClock);
  await createFixture(db);
  // This process may have the source open until its statements are collected.
  const path = join(freshFolder(), 'test.db');
  tamper(join(dirname(source.masterKeyFile), 'source.db'), `vacuum into '${path}'`);
  await db.engine.close();
  tamper(path, 'pragma journal_mode = wal');
  copyFileSync(source.masterKeyFile, `${path}.key`);
  return path;
}

/** The content of every file of the folder. A log without a byte and its index are no data. */
function digestsOf(path: string): Readonly<Record<string, string>> {
  const folder = dirname(path);
  return Object.fromEntries(
    readdirSync(folder)
      .sort()
      .map((name) => [name, readFileSync(join(folder, name))] as const)
      .filter(([name, bytes]) => !name.endsWith('-shm') && !(name.endsWith('-wal') && bytes.length === 0))
      .map(([name, bytes]) => [name, new Bun.CryptoHasher('sha256').update(bytes).digest('hex')]),
  );
}

function tamper(path: string, ...statements: readonly string[]): void {
  const db = new Database(path);
  for (const statement of statements) db.run(statement);
  db.close();
}

const run = (path: string, command: readonly string[]) =>
  runAuthrealm([...command, '--database', `sqlite:${path}`]);

const OTHER_KEY = () => Buffer.from(systemClock.randomBytes(32)).toString('hex');

const SENTENCE = /^[^\n]+\n$/;

test.each(NAMED_CHECKERS)('%s of an empty file fails and leaves it empty', async (_, command) => {
  const path = join(freshFolder(), 'empty.db');
  writeFileSync(path, '');
  writeFileSync(`${path}.key`, OTHER_KEY());
  const before = digestsOf(path);
  const { code, stdout, stderr } = await run(path, command);
  // doctor reports it as the result of a check.
  const [message, pattern] =
    command[0] === 'doctor' ? [stdout, /is empty: mount the volume/] : [stderr, SENTENCE];
  expect([code, message, digestsOf(path)]).toEqual([1, expect.stringMatching(pattern), before]);
});

test.each(NAMED_CHECKERS)('%s does not restore a removed proof of the master key', async (_, command) => {
  const path = await createFolder();
  tamper(path, 'delete from keyring');
  const before = digestsOf(path);
  const { stdout } = await run(path, command);
  expect([digestsOf(path), command[1] === 'key' || /proof of the master key/.test(stdout)]).toEqual([
    before,
    true,
  ]);
});

test.each(NAMED_CHECKERS)('%s changes no file of an installation', async (_, command) => {
  const path = await createFolder();
  const draft = `${path}.key.${systemClock.mintId()}`;
  if (command[0] === 'doctor') writeFileSync(draft, 'left by a killed start');
  const before = digestsOf(path);
  const { code, stderr } = await run(path, command);
  expect([code, stderr, digestsOf(path)]).toEqual([command[0] === 'doctor' ? 1 : 0, '', before]);
});

test.each(NAMED_CHECKERS)('%s works in a folder that it cannot write', async (_, command) => {
  const path = await createFolder();
  const before = digestsOf(path);
  const names = readdirSync(dirname(path));
  chmodSync(dirname(path), 0o500);
  chmodSync(path, 0o400);
  const { code, stderr } = await runCommand([
    ...AUTHREALM_UNPRIVILEGED,
    ...command,
    '--database',
    `sqlite:${path}`,
  ]);
  expect([code, stderr, readdirSync(dirname(path)), digestsOf(path)]).toEqual([0, '', names, before]);
});

test.each(
  named([
    ['audit', 'verify'],
    ['serve', '--port', '0'],
  ]),
)(
  '%s with a wrong key over a database without proof is refused in a sentence and leaves the database to the right key',
  async (_, command) => {
    const path = await createFolder();
    tamper(path, 'delete from keyring');
    const before = digestsOf(path);
    const wrong = join(freshFolder(), 'wrong.key');
    writeFileSync(wrong, OTHER_KEY());
    const { code, stderr } = await run(path, [...command, '--master-key-file', wrong]);
    expect([code, stderr, digestsOf(path)]).toEqual([1, expect.stringMatching(SENTENCE), before]);
    expect(stderr).toContain('does not open');
    const db = await openDatabase(sqliteAt(path).settings(), systemClock);
    expect(await db.engine.access.keyChecks()).toHaveLength(1);
    await db.engine.close();
  },
);

const COMMANDS = [['serve', '--port', '0'], ['import', '-'], ['migrate'], ['client', 'list']];

test.each(named(COMMANDS))(
  '%s refuses to replace a database that is missing while its key file is there',
  async (_, command) => {
    const path = await createFolder();
    for (const ending of ['', '-wal', '-shm']) rmSync(path + ending, { force: true });
    const before = digestsOf(path);
    const { code, stderr } = await run(path, command);
    expect([code, stderr, digestsOf(path)]).toEqual([1, expect.stringMatching(SENTENCE), before]);
    expect(stderr).toMatch(/authrealm init/);
  },
);

test.each(['the key file', 'checkpoints'])(
  'serve refuses to fill an empty file while %s of an earlier database exist',
  async (evidence) => {
    const path = join(freshFolder(), 'empty.db');
    writeFileSync(path, '');
    if (evidence === 'checkpoints') writeFileSync(`${path}.checkpoints`, '{"kind":"checkpoint"}\n');
    else writeFileSync(`${path}.key`, OTHER_KEY());
    const before = digestsOf(path);
    const { code, stderr } = await run(path, ['serve', '--port', '0']);
    expect([code, stderr, digestsOf(path)]).toEqual([1, expect.stringMatching(SENTENCE), before]);
  },
);

test('init creates a new database where an earlier one is missing', async () => {
  const path = await createFolder();
  const key = readFileSync(`${path}.key`, 'utf8');
  for (const ending of ['', '-wal', '-shm']) rmSync(path + ending, { force: true });
  const { code, stdout } = await run(path, ['init']);
  expect([code, stdout, readFileSync(`${path}.key`, 'utf8')]).toEqual([
    0,
    expect.stringContaining('1. Serve:'),
    key,
  ]);
});

test('a first start with a key that the operator provides creates the database', async () => {
  const path = join(freshFolder(), 'first.db');
  const key = join(freshFolder(), 'master.key');
  writeFileSync(key, OTHER_KEY());
  writeFileSync(`${path}.checkpoints`, '');
  const serving = startCommand([
    ...[AUTHREALM, 'serve', '--port', '0', '--database', `sqlite:${path}`],
    ...['--master-key-file', key],
  ]);
  await serving.line(/^listening on/);
  expect([await serving.stop(), existsSync(`${path}.key`)]).toEqual([0, false]);
});
