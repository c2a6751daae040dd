import { Database } from 'bun:sqlite';
import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { parseMasterKey } from '../../src/auth/keys/master_key.ts';
import { EXIT } from '../../src/platform/exit.ts';
import { backUp, backupName, hashFile } from '../../src/store/backups/backup.ts';
import { archiver, contentOf, plantMore, program, runOn, storedDatabase } from '../support/archive.ts';
import { AUTHREALM, runCommand, start } from '../support/processes.ts';
import { databaseFile, freshFolder, oidcPath, plant, startService } from '../support/service.ts';

setDefaultTimeout(300_000);

const SENTENCE = /^authrealm: .*\n$/;

describe('a backup', () => {
  test('of a running service holds what was committed, and is told in a manifest', async () => {
    const service = await startService();
    const planted = await plant(service.db);
    const token = await service.token('profile-infos:read');
    const path = databaseFile(service);
    const to = join(freshFolder(), 'there.db');
    const { code, stdout, stderr } = await runOn(path, 'backup', '--to', to);
    expect([code, stderr]).toEqual([EXIT.done, '']);
    expect(stdout).toContain('the backup does not contain the master key');
    expect(contentOf(to)).toEqual(contentOf(path));
    const manifest = JSON.parse(readFileSync(`${to}.json`, 'utf8'));
    expect(manifest).toMatchObject({
      file: 'there.db',
      bytes: statSync(to).size,
      sha256: await hashFile(to),
    });
    expect(manifest.rows).toMatchObject({ user_info: 1, oidc_profile_info: 1, client: 1 });
    expect(manifest.store_id).toBe(await service.db.engine.access.storeId());
    for (const file of [to, `${to}.json`]) expect(statSync(file).mode & 0o777).toBe(0o600);
    // Nothing but the two: no draft, no log.
    expect(readdirSync(dirname(to)).sort()).toEqual(['there.db', 'there.db.json']);
    expect((await service.get(oidcPath(planted), token)).status).toBe(200);
    await service.stop();
  });

  test('holds nothing of the master key, and its manifest nothing of a person', async () => {
    const { path, planted } = await storedDatabase(2);
    const to = join(freshFolder(), 'there.db');
    expect((await runOn(path, 'backup', '--to', to)).code).toBe(EXIT.done);
    const spelled = readFileSync(`${path}.key`, 'utf8').trim();
    const key = Buffer.from(parseMasterKey(spelled) ?? []);
    const bytes = readFileSync(to);
    for (const secret of [key, spelled, key.toString('hex')]) expect(bytes.includes(secret)).toBe(false);
    expect(bytes.includes(planted[0]?.subject ?? '')).toBe(true);
    const manifest = readFileSync(`${to}.json`, 'utf8');
    for (const { subject, username, user, realm } of planted)
      for (const text of [subject, username, user, realm, 'jane@']) expect(manifest).not.toContain(text);
  });

  test('carries nothing of what was deleted', async () => {
    const { path, planted } = await storedDatabase(40);
    const gone = planted.slice(0, 30);
    const db = new Database(path);
    db.run('pragma secure_delete = off');
    for (const { user } of gone) {
      db.run('delete from oidc_profile_info where user_id = ?', [user]);
      db.run('delete from password_profile_info where user_id = ?', [user]);
    }
    db.run('pragma wal_checkpoint(truncate)');
    db.close();
    const left = (bytes: Buffer) => gone.filter(({ subject }) => bytes.includes(subject)).length;
    expect(left(readFileSync(path))).toBeGreaterThan(0);
    const to = join(freshFolder(), 'there.db');
    await backUp(path, { file: to }, program, archiver);
    expect(left(readFileSync(to))).toBe(0);
  });

  test('is told as JSON', async () => {
    const { path } = await storedDatabase(1);
    const to = join(freshFolder(), 'there.db');
    const { stdout } = await runOn(path, 'backup', '--to', to, '--json');
    const manifest = JSON.parse(readFileSync(`${to}.json`, 'utf8'));
    expect(JSON.parse(stdout)).toEqual({ path: to, ...manifest, removed: [] });
  });

  test('leaves nothing beside a database that nobody has open', async () => {
    const { path } = await storedDatabase(1);
    await runOn(path, 'backup', '--to', join(freshFolder(), 'there.db'));
    expect(readdirSync(dirname(path)).sort()).toEqual(['stored.db', 'stored.db.key']);
  });

  test('of a damaged database is refused, and nothing older goes for it', async () => {
    const { path } = await storedDatabase(200);
    const folder = freshFolder();
    const { path: old } = await backUp(path, { folder, keepDays: undefined }, agoBy(9), archiver);
    truncateSync(path, Math.floor(statSync(path).size / 8_192) * 4_096);
    const { code, stderr } = await runOn(path, 'backup', '--into', folder, '--keep', '1');
    expect([code, stderr]).toEqual([EXIT.failed, expect.stringMatching(SENTENCE)]);
    expect(stderr).toMatch(/damaged/);
    expect(readdirSync(folder).sort()).toEqual([basename(old), `${basename(old)}.json`]);
  });
});

/** The program some days ago. */
function agoBy(days: number) {
  const { clock } = program;
  return { ...program, clock: { ...clock, now: () => clock.now() - days * 86_400_000 } };
}

describe('a folder of backups', () => {
  test('gets one under each instant; --keep takes the old ones that this program made of this database, and no other', async () => {
    const { path } = await storedDatabase(1);
    const { path: elsewhere } = await storedDatabase(1);
    const folder = freshFolder();
    const into = { folder, keepDays: undefined };
    const takenAgo = async (from: string, days: number) =>
      (await backUp(from, into, agoBy(days), archiver)).path.slice(folder.length + 1);
    const [older, old, recent] = [await takenAgo(path, 40), await takenAgo(path, 8), await takenAgo(path, 6)];
    // Of another installation, under the same name; and of this one, under another name.
    const stranger = await takenAgo(elsewhere, 41);
    const alias = join(dirname(path), 'alias.db');
    copyFileSync(path, alias);
    const other = await takenAgo(alias, 40);
    // A file that is called like one, a manifest that speaks of another file, and somebody's own.
    const called = backupName(path, program.clock.now() - 42 * 86_400_000);
    copyFileSync(path, join(folder, called));
    copyFileSync(join(folder, `${older}.json`), join(folder, `${called}.json`));
    writeFileSync(join(folder, 'notes.db.json'), '{}');
    // What a removal left that was killed after its first step.
    const half = await takenAgo(path, 30);
    await Bun.file(join(folder, half)).delete();
    // Backups that were killed, a long time ago and just now.
    const [killed, busy] = [9, 1].map((days) => {
      const name = backupName(path, program.clock.now() - days * 86_400_000);
      return `${name}.${program.clock.mintId()}.partial`;
    }) as [string, string];
    for (const name of [killed, busy]) mkdirSync(join(folder, name));
    writeFileSync(join(folder, killed, 'draft.db'), 'half');
    const before = new Set(readdirSync(folder));
    const { code, stdout } = await runOn(path, 'backup', '--into', folder, '--keep', '7', '--json');
    expect(code).toBe(EXIT.done);
    const made = JSON.parse(stdout);
    expect(made.removed).toEqual([older, half, old, killed].sort());
    const after = new Set(readdirSync(folder));
    const gone = [...before].filter((name) => !after.has(name));
    expect(gone.sort()).toEqual([older, `${older}.json`, old, `${old}.json`, `${half}.json`, killed].sort());
    const added = [...after].filter((name) => !before.has(name));
    expect(added.sort()).toEqual([made.file, `${made.file}.json`]);
    for (const kept of [recent, stranger, other, called, busy]) expect(after.has(kept)).toBe(true);
  });
});

describe('is refused in a sentence', () => {
  const folder = freshFolder();
  const there = join(folder, 'there.db');
  writeFileSync(there, 'mine');
  writeFileSync(join(folder, 'told.db.json'), 'mine');
  const cases: [string, readonly string[], number, RegExp][] = [
    ['a file that is there', ['--to', there], EXIT.failed, /is there already, and nothing is overwritten/],
    [
      'a manifest that is there',
      ['--to', join(folder, 'told.db')],
      EXIT.failed,
      /told\.db\.json is there already/,
    ],
    ['no place', [], EXIT.usage, /either --to FILE or --into FOLDER/],
    ['two places', ['--to', 'a', '--into', 'b'], EXIT.usage, /either --to FILE or --into FOLDER/],
    ['--keep of a file', ['--to', join(folder, 'x.db'), '--keep', '3'], EXIT.usage, /--keep requires --into/],
    [
      'a folder that is not there',
      ['--into', join(folder, 'none')],
      EXIT.failed,
      /there is no folder .*make it/,
    ],
  ];
  test.each(cases)('%s', async (_name, words, expected, sentence) => {
    const { path } = await storedDatabase(1);
    const { code, stderr, stdout } = await runOn(path, 'backup', ...words);
    expect([code, stdout, stderr]).toEqual([expected, '', expect.stringMatching(SENTENCE)]);
    expect(stderr).toMatch(sentence);
    expect(readFileSync(there, 'utf8')).toBe('mine');
    expect(readdirSync(folder).sort()).toEqual(['there.db', 'told.db.json']);
  });

  test.each(['0', '-1', '1.5', 'week', '100000'])('--keep %s', async (days) => {
    const { code } = await runOn('/nowhere.db', 'backup', '--into', folder, '--keep', days);
    expect(code).toBe(EXIT.usage);
  });

  test.each([
    ['a database that is not there', 'sqlite:/nowhere/a.db', /database .* does not exist/],
    ['one in memory', 'sqlite::memory:', /ends with its process/],
    ['one of PostgreSQL', 'postgres://a@localhost/a', /pg_dump, or pg_basebackup/],
  ])('%s', async (_name, database, sentence) => {
    const command = [AUTHREALM, 'backup', '--to', join(folder, 'x.db'), '--database', database];
    const { code, stderr } = await runCommand(command);
    expect([code, stderr]).toEqual([EXIT.failed, expect.stringMatching(sentence)]);
  });
});

describe('interrupted', () => {
  test('by a signal, it ends with a sentence and leaves nothing', async () => {
    const { path } = await storedDatabase(1);
    await plantMore(path, 300);
    const folder = freshFolder();
    const running = start([AUTHREALM, 'backup', '--database', `sqlite:${path}`, '--into', folder]);
    while (readdirSync(folder).length === 0) await Bun.sleep(1);
    running.process.kill('SIGINT');
    const code = await running.process.exited;
    const left = readdirSync(folder);
    // It may have been done by then.
    if (code === EXIT.done) expect(left).toHaveLength(2);
    else expect([code, left]).toEqual([EXIT.failed, []]);
  });

  test('by force at any moment, there is a complete backup or none', async () => {
    const { path } = await storedDatabase(20);
    const folder = join(freshFolder(), 'backups');
    mkdirSync(folder);
    let killed = 0;
    for (let wait = 40; wait < 400; wait += 25) {
      const before = new Set(readdirSync(folder));
      const child = Bun.spawn([AUTHREALM, 'backup', '--database', `sqlite:${path}`, '--into', folder], {
        stdio: ['ignore', 'ignore', 'ignore'],
        env: { PATH: process.env.PATH ?? '' },
      });
      const timer = setTimeout(() => child.kill('SIGKILL'), wait);
      await child.exited;
      clearTimeout(timer);
      if (child.signalCode === 'SIGKILL') killed += 1;
      // Its own process ends with it.
      await Bun.sleep(100);
      for (const name of readdirSync(folder).filter((each) => !before.has(each) && each.endsWith('.db'))) {
        expect(contentOf(join(folder, name))).toEqual(contentOf(path));
        expect(readdirSync(folder)).toContain(`${name}.json`);
      }
    }
    expect(killed).toBeGreaterThan(0);
  });
});
