import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { EXIT } from '../../../src/ops/process/exit.ts';
import { type CompactionStep, compact } from '../../../src/ops/store/backups/compaction.ts';
import { COPIED_TABLES } from '../../../src/ops/store/copying/side.ts';
import { writeCompact } from '../../../src/sql/sqlite/file_copy.ts';
import {
  contentOf,
  copyDatabase,
  createStoredDatabase,
  flipBits,
  program,
  queryRows,
  runOnFile,
} from '../../support/backup_fixtures.ts';
import {
  createCopyFixture,
  fillRemainingTables,
  responsesOf,
  startCopyService,
} from '../../support/copy_fixtures.ts';
import { sqliteAt, type TestDatabase } from '../../support/database.ts';
import { tamperFile } from '../../support/doctor_report.ts';
import { freshFolder } from '../../support/folder.ts';
import { AUTHREALM, runCommand } from '../../support/processes.ts';

setDefaultTimeout(300_000);

const SENTENCE = /^authrealm: .*\n$/;

/** A copy, with its log, of the database of a stopped service: the engine closes files late. */
async function closedCopyOf(database: TestDatabase): Promise<string> {
  const { address } = await database.copy();
  if (address.engine !== 'sqlite') throw new Error('not a file');
  return address.path;
}
const stored = (await createStoredDatabase(60)).path;

/** The trees of a file of more than one page, in the order of their first pages after the roots. */
function trees(path: string): readonly string[] {
  const sql = `select name from dbstat where path <> '/' group by name order by min(pageno)`;
  return (queryRows(path, [sql])[0] ?? []).map(({ name }) => String(name));
}

describe('a compaction', () => {
  test('a compacted database has the same rows, row IDs, ETags and responses, and is healthy', async () => {
    const database = sqliteAt(join(freshFolder(), 'busy.db'));
    const service = await startCopyService(database);
    const fixture = await createCopyFixture(service);
    const responses = await responsesOf(service, fixture);
    await service.stop();
    await fillRemainingTables(database);
    const path = await closedCopyOf(database);
    const before = contentOf(path);
    const names = COPIED_TABLES.map(({ name }) => name);
    expect(names.filter((name) => !before[name]?.length)).toEqual([]);
    const { code, stdout, stderr } = await runOnFile(path, 'compact');
    expect([code, stderr]).toEqual([EXIT.done, '']);
    expect(stdout).toMatch(
      /^verifying the database\n(.*\n)+path +\S+\nbytes +\d+\nbytes_before +\d+\nschema +1\nrows +\{/,
    );
    expect(readdirSync(dirname(path)).sort()).toEqual(['copy.db', 'copy.db.key']);
    expect(contentOf(path)).toEqual(before);
    const again = await startCopyService(sqliteAt(path));
    expect(await responsesOf(again, fixture)).toEqual(responses);
    await again.stop();
    const { findings } = JSON.parse((await runOnFile(path, 'doctor', '--json')).stdout).checks.find(
      ({ check }: { check: string }) => check === 'integrity',
    );
    expect(findings).toEqual([]);
  });

  test('a compacted file begins with the rows of both tables of links', async () => {
    const path = copyDatabase(stored);
    expect((await runOnFile(path, 'compact')).code).toBe(EXIT.done);
    expect(trees(path).slice(0, 4)).toEqual([
      'sqlite_schema',
      'oidc_profile_info',
      'oidc_profile_info_subject',
      'password_profile_info',
    ]);
    const doctor = await runOnFile(path, 'doctor');
    expect([doctor.code, doctor.stdout]).toEqual([EXIT.done, expect.stringMatching(/^healthy\n/)]);
  });

  test('a compact copy has every table, index, view and trigger of its source', () => {
    const path = copyDatabase(stored);
    const copy = join(freshFolder(), 'compacted.db');
    tamperFile(path, (db) => {
      db.run('create view of_clients as select client_id from client');
      db.run('create trigger client_removal instead of delete on of_clients begin delete from client; end');
      db.run('create trigger user_creation after insert on user_info begin delete from user_info; end');
    });
    writeCompact(path, copy);
    const select = 'select type, name, tbl_name, sql from sqlite_schema order by type, name';
    expect(queryRows(copy, [select])).toEqual(queryRows(path, [select]));
    expect(contentOf(copy)).toEqual(contentOf(path));
  });

  test('a compaction keeps mode, page size and version numbers, and removes free pages', async () => {
    const path = copyDatabase(stored);
    tamperFile(path, (db) => {
      db.run('pragma journal_mode = delete');
      for (const pragma of ['page_size = 8192', 'auto_vacuum = incremental', 'application_id = 7'])
        db.run(`pragma ${pragma}`);
      db.run('vacuum');
      db.run('pragma user_version = 9');
      db.run('pragma secure_delete = off');
      db.run('create table filler (bytes blob)');
      db.run('insert into filler values (zeroblob(3000000))');
      db.run('drop table filler');
    });
    const pragmas = ['page_size', 'auto_vacuum', 'application_id', 'user_version'].map(
      (name) => `pragma ${name}`,
    );
    const [before, content] = [queryRows(path, pragmas), contentOf(path)];
    expect(statSync(path).size).toBeGreaterThan(3_000_000);
    const uid = statSync(path).uid;
    expect((await runOnFile(path, 'compact')).code).toBe(EXIT.done);
    const { size, mode, uid: owner } = statSync(path);
    expect([size < 3_000_000, mode & 0o777, owner]).toEqual([true, 0o600, uid]);
    expect(queryRows(path, pragmas)).toEqual(before);
    expect(queryRows(path, ['pragma freelist_count'])).toEqual([[{ freelist_count: 0 }]]);
    expect(contentOf(path)).toEqual(content);
  });

  test('a symbolic link to a database is followed, and remains', async () => {
    const path = copyDatabase(stored);
    const link = join(freshFolder(), 'link.db');
    symlinkSync(path, link);
    const { ino } = statSync(path);
    const { code } = await runOnFile(link, 'compact');
    expect([code, readdirSync(dirname(link))]).toEqual([EXIT.done, ['link.db']]);
    expect(readdirSync(dirname(path)).sort()).toEqual(['stored.db', 'stored.db.key']);
    expect([statSync(path).ino === ino, statSync(link).ino === statSync(path).ino]).toEqual([false, true]);
    expect(contentOf(path)).toEqual(contentOf(stored));
  });
});

describe('a refused compaction', () => {
  test.each([
    [
      'PostgreSQL',
      ['--database', 'postgres://nobody@127.0.0.1:1/none'],
      /PostgreSQL, which reuses its space/,
    ],
    ['a database in memory', ['--database', 'sqlite::memory:'], /an in-memory database cannot be compacted/],
    ['a missing file', ['--database', 'sqlite:/nowhere/none.db'], /\/nowhere\/none\.db is missing or empty/],
    ['a folder', ['--database', 'sqlite:/tmp'], /\/tmp is not a file/],
  ])('a compaction of %s is refused', async (_name, args, sentence) => {
    const { code, stdout, stderr } = await runCommand([AUTHREALM, 'compact', ...args]);
    expect([code, stdout, stderr]).toEqual([EXIT.failed, '', expect.stringMatching(SENTENCE)]);
    expect(stderr).toMatch(sentence);
  });

  const foreign: [string, RegExp, (path: string) => void][] = [
    ['a text file', /is damaged and cannot be locked/, (path) => writeFileSync(path, 'no database at all')],
    ['an empty file', /it is empty/, (path) => writeFileSync(path, '')],
    [
      'a newer schema',
      /install authrealm 9\.0\.0 or newer/,
      (path) =>
        tamperFile(path, (db) =>
          db.run(
            `insert into migration (version, name, applied_at, program_version, serves_from) values (900, 'far', 0, '9.0.0', 900)`,
          ),
        ),
    ],
    [
      'an extra table',
      /the table notes is not part/,
      (path) => tamperFile(path, (db) => db.run('create table notes (a)')),
    ],
    [
      'an extra view',
      /the view v is not part/,
      (path) => tamperFile(path, (db) => db.run('create view v as select 1')),
    ],
    [
      'a dangling reference',
      /damaged: \d+ rows of \w+ reference a row of \w+ that does not exist/,
      (path) => tamperFile(path, (db) => db.run('delete from user_info')),
    ],
  ];
  test.each(foreign)(
    'a compaction of %s is refused, and nothing is changed',
    async (_name, sentence, change) => {
      const path = copyDatabase(stored);
      change(path);
      const before = pagesOf(path);
      const { code, stderr } = await runOnFile(path, 'compact');
      expect([code, stderr]).toEqual([EXIT.failed, expect.stringMatching(SENTENCE)]);
      expect(stderr).toMatch(sentence);
      expect(Buffer.compare(pagesOf(path), before)).toBe(0);
      expect(readdirSync(dirname(path)).sort()).toEqual(['stored.db', 'stored.db.key']);
    },
  );

  test('a compaction of a database with a damaged page is refused, and does not replace the file', async () => {
    const path = copyDatabase(stored);
    // Without free pages, in which no damage would be noticed.
    await compactInProcess(path);
    const bytes = readFileSync(path);
    for (let page = 1; page < bytes.length / PAGE_BYTES; page += 1) {
      const damaged = Buffer.from(bytes);
      damaged.fill(0xa5, page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
      writeFileSync(path, damaged);
      const { ino } = statSync(path);
      const outcome = await compactInProcess(path).catch((error: Error) => error);
      expect([outcome instanceof Error && /damaged/.test(outcome.message), statSync(path).ino]).toEqual([
        true,
        ino,
      ]);
    }
  });

  test('a new file that lacks a row, or is damaged, does not replace the database', async () => {
    const path = copyDatabase(stored);
    const before = contentOf(path);
    const tamper = (change: (copy: string) => void) => (step: CompactionStep) => {
      const [folder = ''] = readdirSync(dirname(path)).filter((name) => name.endsWith('.partial'));
      if (step === 'verifying the new file') change(join(dirname(path), folder, 'compact.db'));
    };
    const lacking = tamper((copy) =>
      tamperFile(copy, (db) => {
        db.run('delete from realm_clock');
        db.run('pragma journal_mode = delete');
      }),
    );
    expect(await refusalOf(path, lacking)).toMatch(/was not changed.* its rows differ/);
    const damaged = tamper((copy) => flipBits(copy, statSync(copy).size - PAGE_BYTES));
    expect(await refusalOf(path, damaged)).toMatch(/was not changed.* it is damaged/);
    expect(contentOf(path)).toEqual(before);
    expect(readdirSync(dirname(path)).sort()).toEqual(['stored.db', 'stored.db.key']);
  });
});

const PAGE_BYTES = 4_096;

/** A file without its first page, whose journal mode the lock changes. */
function pagesOf(path: string): Buffer {
  return readFileSync(path).subarray(PAGE_BYTES);
}

function compactInProcess(path: string, onStep: (step: CompactionStep) => void = () => undefined) {
  return compact(path, program, onStep);
}

async function refusalOf(path: string, onStep: (step: CompactionStep) => void): Promise<string> {
  const outcome = await compactInProcess(path, onStep).catch((error: Error) => error);
  return outcome instanceof Error ? outcome.message : 'compacted';
}
