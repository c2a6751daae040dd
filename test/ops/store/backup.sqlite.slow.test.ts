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
import { parseMasterKey } from '../../../src/access/keys/master_key.ts';
import { EXIT } from '../../../src/ops/process/exit.ts';
import { backUp, backupName, hashFile } from '../../../src/ops/store/backups/backup.ts';
import { contentOf, createStoredDatabase, program, runOnFile } from '../../support/backup_fixtures.ts';
import { killAfter } from '../../support/killed_process.ts';
import { ofUser } from '../../support/log_rows.ts';
import { AUTHREALM, runCommand } from '../../support/processes.ts';
import { createFixture, databaseFile, freshFolder, oidcPath, startService } from '../../support/service.ts';

setDefaultTimeout(300_000);

const SENTENCE = /^authrealm: .*\n$/;

describe('a backup', () => {
  test('a backup of a running service holds the committed records, and has a manifest', async () => {
    const service = await startService();
    const created = await createFixture(service.db);
    const token = await service.token('profile-infos:read');
    const path = databaseFile(service);
    const to = join(freshFolder(), 'there.db');
    const { code, stdout, stderr } = await runOnFile(path, 'backup', '--to', to);
    expect([code, stderr]).toEqual([EXIT.done, '']);
    expect(stdout).toContain(`keep ${to} together with its manifest ${to}.json`);
    expect(stdout).toContain('the backup does not contain the master key');
    expect(contentOf(to)).toEqual(contentOf(path));
    const manifest = JSON.parse(readFileSync(`${to}.json`, 'utf8'));
    expect(manifest).toMatchObject({
      file: 'there.db',
      sha256: await hashFile(to),
      store_id: await service.db.engine.access.storeId(),
    });
    for (const file of [to, `${to}.json`]) expect(statSync(file).mode & 0o777).toBe(0o600);
    // Only these two: no draft, no log.
    expect(readdirSync(dirname(to)).sort()).toEqual(['there.db', 'there.db.json']);
    expect((await service.get(oidcPath(created), token)).status).toBe(200);
  });

  test('a backup does not contain the master key, and its manifest has no personal data', async () => {
    const { path, users } = await createStoredDatabase(2);
    const to = join(freshFolder(), 'there.db');
    expect((await runOnFile(path, 'backup', '--to', to)).code).toBe(EXIT.done);
    const encodedKey = readFileSync(`${path}.key`, 'utf8').trim();
    const key = Buffer.from(parseMasterKey(encodedKey) ?? []);
    const bytes = readFileSync(to);
    for (const secret of [key, encodedKey, key.toString('hex')]) expect(bytes.includes(secret)).toBe(false);
    expect(bytes.includes(users[0]?.subject ?? '')).toBe(true);
    const manifest = readFileSync(`${to}.json`, 'utf8');
    for (const { subject, username, user, realm } of users)
      for (const text of [subject, username, user, realm, 'jane@']) expect(manifest).not.toContain(text);
  });

  test('a backup does not contain deleted records', async () => {
    const { path, users } = await createStoredDatabase(40);
    const deleted = users.slice(0, 30);
    const db = new Database(path);
    db.run('pragma secure_delete = off');
    for (const { user } of deleted) {
      db.run(`delete from oidc_profile_info where ${ofUser('sqlite')}`, [user]);
      db.run(`delete from password_profile_info where ${ofUser('sqlite')}`, [user]);
    }
    db.run('pragma wal_checkpoint(truncate)');
    db.close();
    const subjectsIn = (bytes: Buffer) => deleted.filter(({ subject }) => bytes.includes(subject)).length;
    expect(subjectsIn(readFileSync(path))).toBeGreaterThan(0);
    const to = join(freshFolder(), 'there.db');
    await backUp(path, { file: to }, program);
    expect(subjectsIn(readFileSync(to))).toBe(0);
  });

  test('backup --json prints the path, the manifest, bytes, rows and the removed backups', async () => {
    const { path } = await createStoredDatabase(1);
    const to = join(freshFolder(), 'there.db');
    const { stdout } = await runOnFile(path, 'backup', '--to', to, '--json');
    const manifest = JSON.parse(readFileSync(`${to}.json`, 'utf8'));
    const rows = expect.objectContaining({ user_info: 1, oidc_profile_info: 1 });
    expect(JSON.parse(stdout)).toEqual({
      path: to,
      bytes: statSync(to).size,
      ...manifest,
      rows,
      removed: [],
    });
  });

  test('a backup of a closed database leaves only a copy of its manifest next to it', async () => {
    const { path } = await createStoredDatabase(1);
    const to = join(freshFolder(), 'there.db');
    await runOnFile(path, 'backup', '--to', to);
    const names = readdirSync(dirname(path)).sort();
    expect(names).toEqual(['stored.db', 'stored.db.key', 'stored.db.last-backup']);
    expect(readFileSync(`${path}.last-backup`, 'utf8')).toBe(readFileSync(`${to}.json`, 'utf8'));
  });

  test('a backup of a damaged database is refused, and no older backup is removed', async () => {
    const { path } = await createStoredDatabase(200);
    const folder = freshFolder();
    const { path: old } = await backUp(path, { folder, keepDays: undefined }, agoBy(9));
    truncateSync(path, Math.floor(statSync(path).size / 8_192) * 4_096);
    const { code, stderr } = await runOnFile(path, 'backup', '--into', folder, '--keep', '1');
    expect([code, stderr]).toEqual([EXIT.failed, expect.stringMatching(SENTENCE)]);
    expect(stderr).toMatch(/damaged/);
    expect(readdirSync(folder).sort()).toEqual([basename(old), `${basename(old)}.json`]);
  });
});

/** The program with a clock `days` behind. */
function agoBy(days: number) {
  const { clock } = program;
  return { ...program, clock: { ...clock, now: () => clock.now() - days * 86_400_000 } };
}

describe('a folder of backups', () => {
  test('backup --into names the backup by its time; --keep removes only old backups of the same database', async () => {
    const { path } = await createStoredDatabase(1);
    const { path: otherInstallation } = await createStoredDatabase(1);
    const folder = freshFolder();
    const into = { folder, keepDays: undefined };
    const backUpAgo = async (from: string, days: number) =>
      (await backUp(from, into, agoBy(days))).path.slice(folder.length + 1);
    const [older, old, recent] = [
      await backUpAgo(path, 40),
      await backUpAgo(path, 8),
      await backUpAgo(path, 6),
    ];
    // One of another installation under the same name, and one of this installation under another name.
    const foreign = await backUpAgo(otherInstallation, 41);
    const alias = join(dirname(path), 'alias.db');
    copyFileSync(path, alias);
    const other = await backUpAgo(alias, 40);
    // A file with the name of a backup, a manifest of another file, and an unrelated file.
    const mismatched = backupName(path, program.clock.now() - 42 * 86_400_000);
    copyFileSync(path, join(folder, mismatched));
    copyFileSync(join(folder, `${older}.json`), join(folder, `${mismatched}.json`));
    writeFileSync(join(folder, 'notes.db.json'), '{}');
    // The manifest that a removal leaves when it is killed after its first step.
    const halfRemoved = await backUpAgo(path, 30);
    await Bun.file(join(folder, halfRemoved)).delete();
    // Partial backups, an old one and a recent one.
    const [killed, running] = [9, 1].map((days) => {
      const name = backupName(path, program.clock.now() - days * 86_400_000);
      return `${name}.${program.clock.mintId()}.partial`;
    }) as [string, string];
    for (const name of [killed, running]) mkdirSync(join(folder, name));
    writeFileSync(join(folder, killed, 'draft.db'), 'half');
    const before = new Set(readdirSync(folder));
    const { code, stdout } = await runOnFile(path, 'backup', '--into', folder, '--keep', '7', '--json');
    expect(code).toBe(EXIT.done);
    const made = JSON.parse(stdout);
    expect(made.removed).toEqual([older, halfRemoved, old, killed].sort());
    const after = new Set(readdirSync(folder));
    const removed = [...before].filter((name) => !after.has(name));
    expect(removed.sort()).toEqual(
      [older, `${older}.json`, old, `${old}.json`, `${halfRemoved}.json`, killed].sort(),
    );
    const added = [...after].filter((name) => !before.has(name));
    expect(added.sort()).toEqual([made.file, `${made.file}.json`]);
    for (const name of [recent, foreign, other, mismatched, running]) expect(after.has(name)).toBe(true);
  });
});

describe('a backup is refused with one sentence', () => {
  const folder = freshFolder();
  const existing = join(folder, 'existing.db');
  writeFileSync(existing, 'mine');
  writeFileSync(join(folder, 'described.db.json'), 'mine');
  const cases: [string, readonly string[], number, RegExp][] = [
    [
      'to an existing file',
      ['--to', existing],
      EXIT.failed,
      /already exists, and a backup never overwrites a file/,
    ],
    [
      'with an existing manifest',
      ['--to', join(folder, 'described.db')],
      EXIT.failed,
      /described\.db\.json already exists/,
    ],
    ['without --to and --into', [], EXIT.usage, /either --to FILE or --into FOLDER/],
    [
      'with both --to and --into',
      ['--to', 'a', '--into', 'b'],
      EXIT.usage,
      /'--to <FILE>' cannot be used with option '--into <FOLDER>'/,
    ],
    [
      'with --to and --keep',
      ['--to', join(folder, 'x.db'), '--keep', '3'],
      EXIT.usage,
      /'--to <FILE>' cannot be used with option '--keep <DAYS>'/,
    ],
    [
      'into a missing folder',
      ['--into', join(folder, 'none')],
      EXIT.failed,
      /folder .* does not exist: create it/,
    ],
  ];
  test.each(cases)('a backup %s is refused and writes nothing', async (_name, args, expected, sentence) => {
    const { path } = await createStoredDatabase(1);
    const { code, stderr, stdout } = await runOnFile(path, 'backup', ...args);
    expect([code, stdout, stderr]).toEqual([expected, '', expect.stringMatching(SENTENCE)]);
    expect(stderr).toMatch(sentence);
    expect(readFileSync(existing, 'utf8')).toBe('mine');
    expect(readdirSync(folder).sort()).toEqual(['described.db.json', 'existing.db']);
  });

  test.each(['0', '-1', '1.5', 'week', '100000'])('backup --keep %s is a usage error', async (days) => {
    const { code } = await runOnFile('/nowhere.db', 'backup', '--into', folder, '--keep', days);
    expect(code).toBe(EXIT.usage);
  });

  test.each([
    ['a missing database', 'sqlite:/nowhere/a.db', /database .* is missing or empty/],
    ['a database in memory', 'sqlite::memory:', /in-memory database cannot be backed up/],
    ['a PostgreSQL database', 'postgres://a@localhost/a', /pg_dump .+ or pg_basebackup/],
  ])('a backup of %s is refused', async (_name, database, sentence) => {
    const command = [AUTHREALM, 'backup', '--to', join(folder, 'x.db'), '--database', database];
    const { code, stderr } = await runCommand(command);
    expect([code, stderr]).toEqual([EXIT.failed, expect.stringMatching(sentence)]);
  });
});

describe('a killed backup', () => {
  test('a backup killed at any moment is complete or absent', async () => {
    const { path } = await createStoredDatabase(20);
    const folder = join(freshFolder(), 'backups');
    mkdirSync(folder);
    let killed = 0;
    for (let wait = 40; wait < 400; wait += 25) {
      const before = new Set(readdirSync(folder));
      const backup = await killAfter(
        [AUTHREALM, 'backup', '--database', `sqlite:${path}`, '--into', folder],
        wait,
      );
      if (backup.isKilled) killed += 1;
      for (const name of readdirSync(folder).filter((each) => !before.has(each) && each.endsWith('.db'))) {
        expect(contentOf(join(folder, name))).toEqual(contentOf(path));
        expect(readdirSync(folder)).toContain(`${name}.json`);
      }
    }
    expect(killed).toBeGreaterThan(0);
  });
});
