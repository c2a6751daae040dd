import { Database } from 'bun:sqlite';
import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
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
import { EXIT } from '../../src/platform/exit.ts';
import {
  contentOf,
  copied,
  filesIn,
  flip,
  type Rehearsed,
  recordsIn,
  refusalOfRestoring,
  rehearsed,
  restoring,
  runOn,
} from '../support/archive.ts';
import { AUTHREALM, start } from '../support/processes.ts';
import { chanceOf } from '../support/random.ts';
import { freshFolder } from '../support/service.ts';

setDefaultTimeout(300_000);

const SENTENCE = /^authrealm: .*\n$/;

let whole: Rehearsed;
beforeAll(async () => {
  whole = await rehearsed(30);
});

describe('a restore', () => {
  test('puts the backup in the place of the database, and keeps the old one whole under the name it prints', async () => {
    const { path, backup, before, later } = await rehearsed();
    const [taken, old] = [contentOf(backup), contentOf(path)];
    const { code, stdout, stderr } = await runOn(path, 'restore', backup, '--replace');
    expect([code, stderr]).toEqual([EXIT.done, '']);
    const aside = /^the previous database is now (.+)$/m.exec(stdout)?.[1] ?? '';
    expect(contentOf(path)).toEqual(taken);
    expect(contentOf(aside)).toEqual(old);
    const files = [
      'stored.db',
      'stored.db.checkpoints',
      'stored.db.key',
      aside.slice(dirname(path).length + 1),
    ];
    expect(readdirSync(dirname(path)).sort()).toEqual(files);
    for (const file of [path, aside]) expect(statSync(file).mode & 0o777).toBe(0o600);
    const doctor = await runOn(path, 'doctor');
    expect([doctor.code, doctor.stdout]).toEqual([EXIT.done, expect.stringContaining('healthy')]);
    const there = recordsIn(path);
    expect(before.every(({ oidcLink }) => there.has(oidcLink))).toBe(true);
    expect(later.some(({ oidcLink }) => there.has(oidcLink))).toBe(false);
  });

  test('goes where no database is, given its key; a link to the place is followed', async () => {
    const { path, backup } = await rehearsed();
    const fresh = join(freshFolder(), 'fresh.db');
    const lost = await runOn(fresh, 'restore', backup);
    expect([lost.code, lost.stderr]).toEqual([
      EXIT.failed,
      expect.stringMatching(/fresh\.db\.key is missing/),
    ]);
    expect(readdirSync(dirname(fresh))).toEqual([]);
    const { code, stdout } = await runOn(
      fresh,
      'restore',
      backup,
      '--json',
      '--master-key-file',
      `${path}.key`,
    );
    expect(code).toBe(EXIT.done);
    const manifest = JSON.parse(readFileSync(`${backup}.json`, 'utf8'));
    const { taken_at, schema, store_id, rows } = manifest;
    expect(JSON.parse(stdout)).toMatchObject({
      path: fresh,
      taken_at,
      schema,
      store_id,
      rows,
      replaced: null,
    });
    const link = join(freshFolder(), 'link.db');
    symlinkSync(fresh, link);
    const again = await restoring({ backup, database: link });
    expect(dirname(again.aside ?? '')).toBe(dirname(fresh));
    expect(readdirSync(dirname(link))).toEqual(['link.db']);
  });

  test('of an older release is served, its schema brought up by the next start', async () => {
    const release = join(import.meta.dir, '../fixtures/releases/0.1.0/authrealm.db');
    const database = join(freshFolder(), 'older.db');
    copyFileSync(`${release}.key`, `${database}.key`);
    const { code, stderr } = await runOn(database, 'restore', release, '--no-manifest');
    expect([code, stderr]).toEqual([EXIT.done, '']);
    expect((await runOn(database, 'migrate')).code).toBe(EXIT.done);
    expect((await runOn(database, 'doctor')).stdout).toContain('healthy');
  });
});

describe('a backup that is not what it was', () => {
  test('cut at any page, or by a byte, it is refused with and without its manifest, and nothing is touched', async () => {
    const { database, backup } = copied(whole);
    const { size } = statSync(backup);
    const bytes = readFileSync(backup);
    for (const length of [size - 1, ...Array.from({ length: size / 4_096 }, (_, page) => page * 4_096)]) {
      writeFileSync(backup, bytes.subarray(0, length));
      expect(await refusalOfRestoring({ database, backup })).toMatch(/its manifest says .* it was cut/);
      const told = await refusalOfRestoring({ database, backup, hasManifest: false });
      expect(told).toMatch(length === 0 ? /no SQLite database/ : /its own header says .* it was cut/);
    }
  });

  test('with any byte turned over, it is refused', async () => {
    const { database, backup } = copied(whole);
    const { size } = statSync(backup);
    const chance = chanceOf(20_261_121);
    const places = Array.from(
      { length: size / 4_096 },
      (_, page) => page * 4_096 + Math.floor(chance() * 4_096),
    );
    for (const at of [0, 18, 24, 28, 96, ...places]) {
      flip(backup, at);
      expect(await refusalOfRestoring({ database, backup })).toMatch(/its SHA-256 is not the one/);
      flip(backup, at);
    }
    await restoring({ database, backup });
  });

  test('without its manifest, what the engine can tell of damage is refused', async () => {
    const { database, backup } = copied(whole);
    const pages = statSync(backup).size / 4_096;
    const damaged = readFileSync(backup);
    for (let page = 1; page < pages; page += 1) {
      const spoilt = Buffer.from(damaged);
      spoilt.fill(0xa5, page * 4_096, (page + 1) * 4_096);
      writeFileSync(backup, spoilt);
      expect(await refusalOfRestoring({ database, backup, hasManifest: false })).toMatch(/damaged/);
    }
  });

  test('without a manifest, or with one of another file, it is refused', async () => {
    const { database, backup } = copied(whole);
    const other = await rehearsed(1);
    const manifest = readFileSync(`${backup}.json`, 'utf8');
    const spoil = (change: Record<string, unknown>) =>
      writeFileSync(`${backup}.json`, JSON.stringify({ ...JSON.parse(manifest), ...change }));
    rmSync(`${backup}.json`);
    expect(await refusalOfRestoring({ database, backup })).toMatch(/there is no .*\.json.*--no-manifest/);
    for (const text of [
      '',
      '{}',
      manifest.slice(0, -40),
      '[]',
      manifest.replace('"version": 1', '"version": 2'),
    ]) {
      writeFileSync(`${backup}.json`, text);
      expect(await refusalOfRestoring({ database, backup })).toMatch(/not the manifest of a backup/);
    }
    copyFileSync(`${other.backup}.json`, `${backup}.json`);
    expect(await refusalOfRestoring({ database, backup })).toMatch(/manifest says|SHA-256/);
    for (const change of [{ schema: 7 }, { store_id: 'another' }, { rows: {} }]) {
      spoil(change);
      expect(await refusalOfRestoring({ database, backup })).toMatch(/does not hold what its manifest says/);
    }
  });

  const foreign: [string, RegExp, (db: Database) => void][] = [
    ['a newer schema', /install authrealm 9\.0\.0 or newer/, newerSchema],
    [
      'another program',
      /belongs to another program/,
      (db) => db.run('pragma foreign_keys = off; drop table migration; create table notes (a)'),
    ],
    ['a table more', /the table notes is none of this program/, (db) => db.run('create table notes (a)')],
    ['an index less', /the index user_info_name is missing/, (db) => db.run('drop index user_info_name')],
    [
      'a row that refers to nothing',
      /damaged: a row of \w+ refers to one that is not there/,
      (db) => db.run('pragma foreign_keys = off; delete from user_info'),
    ],
    [
      'an unfinished copy',
      /a copy into this database has not ended/,
      (db) => db.run(`update instance set store_id = 'unfinished copy of x by y'`),
    ],
  ];
  test.each(foreign)('of %s, it is refused', async (_name, sentence, change) => {
    const { database, backup } = copied(whole);
    const db = new Database(backup);
    change(db);
    db.close();
    expect(await refusalOfRestoring({ database, backup, hasManifest: false })).toMatch(sentence);
    // The same by the command.
    const { code, stdout, stderr } = await runOn(database, 'restore', backup, '--replace', '--no-manifest');
    expect([code, stdout, stderr]).toEqual([EXIT.failed, '', expect.stringMatching(SENTENCE)]);
    expect(stderr).toMatch(sentence);
  });

  function newerSchema(db: Database): void {
    db.run(
      `insert into migration (version, name, applied_at, program_version) values (900, 'far', 0, '9.0.0')`,
    );
  }

  test.each([
    ['text', 'no database at all', /no SQLite database/],
    ['nothing', '', /no SQLite database/],
  ])('that is %s, it is refused', async (_name, text, sentence) => {
    const { database, backup } = copied(whole);
    writeFileSync(backup, text);
    expect(await refusalOfRestoring({ database, backup, hasManifest: false })).toMatch(sentence);
  });

  test('of another master key, it is refused before anything is touched', async () => {
    const { database, backup } = copied(whole);
    writeFileSync(`${database}.key`, Buffer.alloc(32, 7).toString('hex'));
    const before = filesIn(dirname(database));
    const { code, stderr } = await runOn(database, 'restore', backup, '--replace');
    expect([code, stderr]).toEqual([EXIT.failed, expect.stringMatching(SENTENCE)]);
    expect(stderr).toMatch(/the master key does not match .*to the right key/);
    expect(filesIn(dirname(database))).toEqual(before);
  });

  test('that is the database itself, not there, or has a log beside it, it is refused', async () => {
    const { database, backup } = copied(whole);
    expect(await refusalOfRestoring({ database, backup: database })).toMatch(/is the database itself/);
    expect(await refusalOfRestoring({ database, backup: `${backup}.gone` })).toMatch(/there is no backup/);
    expect(await refusalOfRestoring({ database, backup: dirname(backup) })).toMatch(/is no file/);
    writeFileSync(`${backup}-wal`, 'commits');
    expect(await refusalOfRestoring({ database, backup })).toMatch(/-wal lies beside it and holds commits/);
  });
});

describe('the database in place', () => {
  test('is not overwritten unless it is said', async () => {
    const { database, backup } = copied(whole);
    const replaces = false;
    expect(await refusalOfRestoring({ database, backup, replaces })).toMatch(
      /nothing is overwritten.*--replace/,
    );
  });

  test('is not touched while a service has it open', async () => {
    const { database, backup } = copied(whole);
    const running = start([AUTHREALM, 'serve', '--port', '0', '--database', `sqlite:${database}`]);
    await running.line(/^listening on /);
    // The service tells beside it how far its logs are, whenever it does.
    const filesBeside = () => readdirSync(dirname(database)).filter((name) => !name.endsWith('.checkpoints'));
    const names = filesBeside();
    const { code, stderr } = await runOn(database, 'restore', backup, '--replace');
    expect([code, stderr]).toEqual([EXIT.failed, expect.stringMatching(SENTENCE)]);
    expect(stderr).toContain('is in use: stop every process that has it open');
    expect(filesBeside()).toEqual(names);
    expect(await running.stop()).toBe(0);
    expect((await runOn(database, 'restore', backup, '--replace')).code).toBe(EXIT.done);
  });

  test.each(['delete', 'wal'])(
    'is not touched while a lock is held on it (%s), whoever holds it',
    async (mode) => {
      const { database, backup } = copied(whole);
      const other = new Database(database);
      other.run(`pragma journal_mode = ${mode}`);
      other.run('begin');
      other.query('select count(*) from realm').get();
      const before = recordsIn(database);
      expect(await refusalMessage({ database, backup })).toMatch(/is in use: stop every process/);
      other.run('commit');
      other.close();
      expect(recordsIn(database)).toEqual(before);
      await restoring({ database, backup });
    },
    300_000,
  );

  test.each(['-wal', '-shm', '-journal'])('is not made beside the %s of another one', async (ending) => {
    const { database, backup } = copied(whole);
    rmSync(database);
    writeFileSync(database + ending, 'of another database');
    expect(await refusalOfRestoring({ database, backup })).toMatch(
      new RegExp(`${ending} belongs to another database`),
    );
  });

  test('is refused where it is too damaged to be locked, and restored once it was moved away', async () => {
    const { database, backup } = copied(whole);
    writeFileSync(`${database}-wal`, 'a log');
    for (const at of [0, 1, 2, 3]) flip(database, at);
    expect(await refusalOfRestoring({ database, backup })).toMatch(
      /is damaged and cannot be locked.* stop every process, move it .* restore without --replace/,
    );
    for (const ending of ['', '-wal']) renameSync(database + ending, `${database}.damaged${ending}`);
    await restoring({ database, backup, replaces: false });
    expect(contentOf(database)).toEqual(contentOf(backup));
  });

  test('is refused where a part of it is missing', async () => {
    const { database, backup } = copied(whole);
    truncateSync(database, Math.floor(statSync(database).size / 8_192) * 4_096);
    expect(await refusalOfRestoring({ database, backup })).toMatch(/is damaged and cannot be locked/);
  });

  test('of another program it is not replaced', async () => {
    const { database, backup } = copied(whole);
    rmSync(database);
    const db = new Database(database);
    db.run('create table notes (a)');
    db.close();
    expect(await refusalOfRestoring({ database, backup })).toMatch(/belongs to another program/);
  });
});

async function refusalMessage(order: Parameters<typeof restoring>[0]): Promise<string> {
  const outcome = await restoring(order).catch((error: Error) => error);
  return outcome instanceof Error ? outcome.message : 'restored';
}
