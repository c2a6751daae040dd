import { Database } from 'bun:sqlite';
import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import {
  copyFileSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { EXIT } from '../../../src/ops/process/exit.ts';
import {
  contentOf,
  copyBackupFixture,
  createBackupFixture,
  filesIn,
  flipBits,
  recordsIn,
  restoreInProcess,
  restoreRefusal,
  runOnFile,
} from '../../support/backup_fixtures.ts';
import { AUTHREALM, startCommand } from '../../support/processes.ts';
import { seededRandom } from '../../support/random.ts';
import { freshFolder } from '../../support/service.ts';

setDefaultTimeout(300_000);

const SENTENCE = /^authrealm: .*\n$/;
const fixture = await createBackupFixture(30);

describe('a restore', () => {
  test('a restore replaces the database, and keeps the previous one under the name that it prints', async () => {
    const { path, backup, before, later } = await createBackupFixture();
    const [backupContent, old] = [contentOf(backup), contentOf(path)];
    const { code, stdout, stderr } = await runOnFile(path, 'restore', backup, '--replace', '--yes');
    expect([code, stderr]).toEqual([EXIT.done, '']);
    const previous = /^replaced +(.+)$/m.exec(stdout)?.[1] ?? '';
    expect(contentOf(path)).toEqual(backupContent);
    expect(contentOf(previous)).toEqual(old);
    const files = [
      'stored.db',
      'stored.db.checkpoints',
      'stored.db.key',
      'stored.db.last-backup',
      previous.slice(dirname(path).length + 1),
    ];
    expect(readdirSync(dirname(path)).sort()).toEqual(files);
    for (const file of [path, previous]) expect(statSync(file).mode & 0o777).toBe(0o600);
    const doctor = await runOnFile(path, 'doctor');
    expect([doctor.code, doctor.stdout]).toEqual([EXIT.done, expect.stringContaining('healthy')]);
    const records = recordsIn(path);
    expect(before.every(({ oidcLink }) => records.has(oidcLink))).toBe(true);
    expect(later.some(({ oidcLink }) => records.has(oidcLink))).toBe(false);
  });

  test('a restore creates a missing database given its key, and follows a symbolic link', async () => {
    const { path, backup } = await createBackupFixture();
    const fresh = join(freshFolder(), 'fresh.db');
    const withoutKey = await runOnFile(fresh, 'restore', backup);
    expect([withoutKey.code, withoutKey.stderr]).toEqual([
      EXIT.failed,
      expect.stringMatching(/fresh\.db\.key is missing/),
    ]);
    expect(readdirSync(dirname(fresh))).toEqual([]);
    const { code, stdout } = await runOnFile(
      fresh,
      'restore',
      backup,
      '--json',
      '--master-key-file',
      `${path}.key`,
    );
    expect(code).toBe(EXIT.done);
    const manifest = JSON.parse(readFileSync(`${backup}.json`, 'utf8'));
    const { taken_at, schema, store_id } = manifest;
    const rows = { user_info: 5, client: 0 };
    const found = { path: fresh, taken_at, schema, store_id, rows };
    expect(JSON.parse(stdout)).toMatchObject({ ...found, replaced: null });
    const flags = ['--master-key-file', `${path}.key`, '--replace', '--dry-run'];
    const dryJson = JSON.parse((await runOnFile(fresh, 'restore', backup, '--json', ...flags)).stdout);
    expect(dryJson).toMatchObject(found);
    expect(Object.keys(dryJson)).toEqual(Object.keys(found));
    const dry = await runOnFile(fresh, 'restore', backup, ...flags);
    expect(dry.stdout).toMatch(
      new RegExp(`^path +${fresh}\ntaken_at +${taken_at}\nschema +${schema}\nstore_id +${store_id}\nrows +`),
    );
    expect(dry.stdout).toEndWith(
      `the backup is valid: would restore it as ${fresh}, and keep the database there under another name\n`,
    );
    expect(readdirSync(dirname(fresh)).some((name) => name.includes('replaced'))).toBe(false);
    const link = join(freshFolder(), 'link.db');
    symlinkSync(fresh, link);
    const again = await restoreInProcess({ backup, database: link });
    expect(dirname(again.replacedPath ?? '')).toBe(dirname(fresh));
    expect(readdirSync(dirname(link))).toEqual(['link.db']);
  });
});

describe('a damaged or foreign backup', () => {
  test('a backup truncated by a byte or at any page is refused, with and without its manifest', async () => {
    const { database, backup } = copyBackupFixture(fixture);
    const { size } = statSync(backup);
    const bytes = readFileSync(backup);
    for (const length of [size - 1, ...Array.from({ length: size / 4_096 }, (_, page) => page * 4_096)]) {
      writeFileSync(backup, bytes.subarray(0, length));
      expect(await restoreRefusal({ database, backup })).toMatch(/is damaged or another file/);
      const message = await restoreRefusal({ database, backup, hasManifest: false });
      expect(message).toMatch(
        length === 0 ? /it is empty/ : /it is damaged: |its pages have .* it is truncated/,
      );
    }
  });

  test('a backup with any changed byte is refused', async () => {
    const { database, backup } = copyBackupFixture(fixture);
    const { size } = statSync(backup);
    const chance = seededRandom(20_261_121);
    const offsets = Array.from(
      { length: size / 4_096 },
      (_, page) => page * 4_096 + Math.floor(chance() * 4_096),
    );
    for (const at of [0, 18, 24, 28, 96, ...offsets]) {
      flipBits(backup, at);
      expect(await restoreRefusal({ database, backup })).toMatch(/its SHA-256 is not the one/);
      flipBits(backup, at);
    }
    await restoreInProcess({ database, backup });
  });

  test('a backup without its manifest is refused when the engine detects a damaged page', async () => {
    const { database, backup } = copyBackupFixture(fixture);
    const pages = statSync(backup).size / 4_096;
    const original = readFileSync(backup);
    for (let page = 1; page < pages; page += 1) {
      const damaged = Buffer.from(original);
      damaged.fill(0xa5, page * 4_096, (page + 1) * 4_096);
      writeFileSync(backup, damaged);
      expect(await restoreRefusal({ database, backup, hasManifest: false })).toMatch(/damaged/);
    }
  });

  test('a backup without a manifest, or with the manifest of another file, is refused', async () => {
    const { database, backup } = copyBackupFixture(fixture);
    const other = await createBackupFixture(1);
    const manifest = readFileSync(`${backup}.json`, 'utf8');
    rmSync(`${backup}.json`);
    expect(await restoreRefusal({ database, backup })).toMatch(
      /the manifest .*\.json does not exist.*--no-manifest/,
    );
    for (const text of ['', '{}', manifest.slice(0, -40), '[]', manifest.replace('"sha256"', '"md5"')]) {
      writeFileSync(`${backup}.json`, text);
      expect(await restoreRefusal({ database, backup })).toMatch(/is not a valid manifest of a backup/);
    }
    copyFileSync(`${other.backup}.json`, `${backup}.json`);
    expect(await restoreRefusal({ database, backup })).toMatch(/its SHA-256 is not the one in its manifest/);
  });

  const foreign: [string, RegExp, (db: Database) => void][] = [
    ['a newer schema', /install authrealm 9\.0\.0 or newer/, newerSchema],
    [
      'another program',
      /belongs to another program/,
      (db) => db.run('pragma foreign_keys = off; drop table migration; create table notes (a)'),
    ],
    [
      'an extra table',
      /the table notes is not part of the schema of this program/,
      (db) => db.run('create table notes (a)'),
    ],
    [
      'a missing index',
      /the index user_info_by_name is missing/,
      (db) => db.run('drop index user_info_by_name'),
    ],
    [
      'a dangling reference',
      /damaged: \d+ rows of \w+ reference a row of \w+ that does not exist/,
      (db) => db.run('pragma foreign_keys = off; delete from user_info'),
    ],
  ];
  test.each(foreign)('a foreign or inconsistent backup is refused: %s', async (_name, sentence, change) => {
    const { database, backup } = copyBackupFixture(fixture);
    const db = new Database(backup);
    change(db);
    db.close();
    expect(await restoreRefusal({ database, backup, hasManifest: false })).toMatch(sentence);
    // The command refuses it as well.
    const { code, stdout, stderr } = await runOnFile(
      database,
      'restore',
      backup,
      '--replace',
      '--yes',
      '--no-manifest',
    );
    expect([code, stdout, stderr]).toEqual([EXIT.failed, '', expect.stringMatching(SENTENCE)]);
    expect(stderr).toMatch(sentence);
  });

  function newerSchema(db: Database): void {
    db.run(
      `insert into migration (version, name, applied_at, program_version, serves_from) values (900, 'far', 0, '9.0.0', 900)`,
    );
  }

  test.each([
    ['a text file', 'no database at all', /it is damaged: file is not a database/],
    ['an empty file', '', /it is empty/],
  ])('a backup that is %s is refused', async (_name, text, sentence) => {
    const { database, backup } = copyBackupFixture(fixture);
    writeFileSync(backup, text);
    expect(await restoreRefusal({ database, backup, hasManifest: false })).toMatch(sentence);
  });

  test('a backup of another master key is refused before any file is changed', async () => {
    const { database, backup } = copyBackupFixture(fixture);
    writeFileSync(`${database}.key`, Buffer.alloc(32, 7).toString('hex'));
    const before = filesIn(dirname(database));
    const { code, stderr } = await runOnFile(database, 'restore', backup, '--replace', '--yes');
    expect([code, stderr]).toEqual([EXIT.failed, expect.stringMatching(SENTENCE)]);
    expect(stderr).toMatch(/the master key does not match .*to the right key/);
    expect(filesIn(dirname(database))).toEqual(before);
  });

  test('a backup that is missing, has a write-ahead log, or is the database itself is refused', async () => {
    const { database, backup } = copyBackupFixture(fixture);
    expect(await restoreRefusal({ database, backup: database })).toMatch(/is the database itself/);
    expect(await restoreRefusal({ database, backup: `${backup}.missing` })).toMatch(
      /the backup .* does not exist/,
    );
    expect(await restoreRefusal({ database, backup: dirname(backup) })).toMatch(/is not a file/);
    writeFileSync(`${backup}-wal`, 'commits');
    expect(await restoreRefusal({ database, backup })).toMatch(/-wal holds commits/);
  });
});

describe('an existing database', () => {
  test('an existing database is not overwritten without --replace', async () => {
    const { database, backup } = copyBackupFixture(fixture);
    const replaces = false;
    expect(await restoreRefusal({ database, backup, replaces })).toMatch(
      /never overwrites a database.*--replace/,
    );
  });

  test('an existing database is not changed while a service has it open', async () => {
    const { database, backup } = copyBackupFixture(fixture);
    const running = startCommand([AUTHREALM, 'serve', '--port', '0', '--database', `sqlite:${database}`]);
    await running.line(/^listening on /);
    // The running service may write its checkpoint file at any time.
    const filesInFolder = () =>
      readdirSync(dirname(database)).filter((name) => !name.endsWith('.checkpoints'));
    const names = filesInFolder();
    const { code, stderr } = await runOnFile(database, 'restore', backup, '--replace', '--yes');
    expect([code, stderr]).toEqual([EXIT.failed, expect.stringMatching(SENTENCE)]);
    expect(stderr).toContain('is in use: stop every process that has it open');
    expect(filesInFolder()).toEqual(names);
    expect(await running.stop()).toBe(0);
    expect((await runOnFile(database, 'restore', backup, '--replace', '--yes')).code).toBe(EXIT.done);
  });

  test.each(['delete', 'wal'])(
    'an existing database is not changed while another process holds a lock on it (%s)',
    async (mode) => {
      const { database, backup } = copyBackupFixture(fixture);
      const other = new Database(database);
      other.run(`pragma journal_mode = ${mode}`);
      other.run('begin');
      other.query('select count(*) from realm').get();
      const before = recordsIn(database);
      expect(await refusalMessage({ database, backup })).toMatch(/is in use: stop every process/);
      other.run('commit');
      other.close();
      expect(recordsIn(database)).toEqual(before);
      await restoreInProcess({ database, backup });
    },
    300_000,
  );

  test.each(['-wal', '-shm', '-journal'])(
    'a restore does not create a database next to the %s of another database',
    async (ending) => {
      const { database, backup } = copyBackupFixture(fixture);
      rmSync(database);
      writeFileSync(database + ending, 'of another database');
      expect(await restoreRefusal({ database, backup })).toMatch(
        new RegExp(`${ending} belongs to another database`),
      );
    },
  );

  test('a database too damaged to be locked is not replaced, and is restored once it is moved away', async () => {
    const { database, backup } = copyBackupFixture(fixture);
    writeFileSync(`${database}-wal`, 'commits');
    for (const at of [0, 1, 2, 3]) flipBits(database, at);
    expect(await restoreRefusal({ database, backup })).toMatch(
      /is damaged and cannot be locked.* stop every process, move it .* restore a backup without --replace/,
    );
    for (const ending of ['', '-wal']) renameSync(database + ending, `${database}.damaged${ending}`);
    await restoreInProcess({ database, backup, replaces: false });
    expect(contentOf(database)).toEqual(contentOf(backup));
  });

  test('a truncated database is not replaced', async () => {
    const { database, backup } = copyBackupFixture(fixture);
    truncateSync(database, Math.floor(statSync(database).size / 8_192) * 4_096);
    expect(await restoreRefusal({ database, backup })).toMatch(/is damaged and cannot be locked/);
  });

  test('a database of another program is not replaced', async () => {
    const { database, backup } = copyBackupFixture(fixture);
    rmSync(database);
    const db = new Database(database);
    db.run('create table notes (a)');
    db.close();
    expect(await restoreRefusal({ database, backup })).toMatch(/belongs to another program/);
  });
});

async function refusalMessage(options: Parameters<typeof restoreInProcess>[0]): Promise<string> {
  const outcome = await restoreInProcess(options).catch((error: Error) => error);
  return outcome instanceof Error ? outcome.message : 'restored';
}
