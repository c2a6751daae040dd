import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { eraseUser } from '../../src/log/person_erasure.ts';
import { openLogReading } from '../../src/log/reading.ts';
import type { Uuid } from '../../src/model/id.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { EXIT } from '../../src/ops/process/exit.ts';
import { copyDatabase, createStoredDatabase, runOnFile } from '../support/backup_fixtures.ts';
import { freshDatabase, type TestDatabase } from '../support/database.ts';
import { createErasureFixture, runErase, withDatabase } from '../support/erasure_fixtures.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { createFixture, freshFolder } from '../support/service.ts';

/** The texts that any file in the folder of a database contains; `bytesOf` reads a file. */
function textsFoundIn(folder: string, texts: readonly string[], bytesOf = readWhole): readonly string[] {
  const files = readdirSync(folder).map((name) => bytesOf(join(folder, name)));
  return texts.filter((text) => files.some((bytes) => bytes.includes(text)));
}

const readWhole = (path: string): Buffer => readFileSync(path);

/** A file without the unallocated parts of the pages of a database. */
function readAllocated(path: string): Buffer {
  const bytes = readWhole(path);
  for (const part of unallocatedParts(bytes)) part.fill(0);
  return bytes;
}

const MAGIC = Buffer.from('SQLite format 3\0');
const FILE_HEADER_BYTES = 100;
/** Header bytes by the kind of a page that has cells (sqlite.org/fileformat2.html, 1.6). Other pages begin with a zero. */
const PAGE_HEADER_BYTES: Readonly<Record<number, number>> = { 2: 12, 5: 12, 10: 8, 13: 8 };

/** What is between the cell pointers and the cells of each page: SQLite leaves copies of cells there that it moved. */
function unallocatedParts(file: Buffer): readonly Buffer[] {
  if (!file.subarray(0, MAGIC.length).equals(MAGIC)) return [];
  const parts: Buffer[] = [];
  const pageBytes = file.readUInt16BE(MAGIC.length);
  const free = freePages(file, pageBytes);
  for (let page = 0; page < file.length; page += pageBytes) {
    if (free.has(page)) continue;
    const header = page + (page === 0 ? FILE_HEADER_BYTES : 0);
    const headerBytes = PAGE_HEADER_BYTES[file[header] ?? 0];
    if (headerBytes === undefined) continue;
    const pointersEnd = header + headerBytes + 2 * file.readUInt16BE(header + 3);
    parts.push(file.subarray(pointersEnd, page + file.readUInt16BE(header + 5)));
  }
  return parts;
}

/** The offsets of free pages, whose bytes are never masked, however they begin (sqlite.org/fileformat2.html, 1.5). */
function freePages(file: Buffer, pageBytes: number): ReadonlySet<number> {
  const beginning = (at: number) => (file.readUInt32BE(at) - 1) * pageBytes;
  const free = new Set<number>();
  for (let trunk = beginning(32); trunk >= 0; trunk = beginning(trunk)) {
    free.add(trunk);
    const leaves = file.readUInt32BE(trunk + 4);
    for (let leaf = 0; leaf < leaves; leaf += 1) free.add(beginning(trunk + 8 + 4 * leaf));
  }
  return free;
}

function folderOf({ address }: TestDatabase): string {
  if (address.engine !== 'sqlite') throw new Error('this suite needs a SQLite file');
  return dirname(address.path);
}

describe('an erasure in a SQLite file', () => {
  test('an erased user leaves no byte in the files of a SQLite database, nor in a later backup', async () => {
    const { database, fixture, texts } = await createErasureFixture();
    const folder = folderOf(database);
    expect(textsFoundIn(folder, texts).length).toBeGreaterThan(4);
    const { stdout } = await runErase(database, fixture.realm, fixture.user);
    expect(stdout).toMatch(
      /the write-ahead log is empty; .*"authrealm compact".* text that other programs wrote .* is not searched for/,
    );
    expect(textsFoundIn(folder, texts)).toEqual([]);
    const backups = freshFolder();
    await database.query(`vacuum into '${join(backups, 'backup.db')}'`);
    expect(textsFoundIn(backups, texts)).toEqual([]);
    const checkpointFile = readFileSync(join(folder, 'test.db.checkpoints'), 'utf8');
    expect(checkpointFile).toContain(
      `"kind":"erasure","realm_id":"${fixture.realm}","user_id":"${fixture.user}"`,
    );
  });

  test('users erased among many others are in no cell, free page or log, while pages are split, merged and reused', async () => {
    const seed = freshSeed();
    const chance = seededRandom(seed);
    const database = await freshDatabase();
    const [erased, present]: [string[], string[]] = [[], []];
    await withDatabase(database, async (db) => {
      const { engine, logKeys } = db;
      const nothing = async () => undefined;
      const reading = openLogReading(engine.log, logKeys);
      const deps = { records: engine.records, reading, report: nothing, removeBuckets: nothing };
      const { realm, oidcProfile, passwordProfile } = await createFixture(db);
      const users: { readonly user: Uuid; readonly words: readonly string[] }[] = [];
      const eraseAll = async (chosen: typeof users) => {
        for (const { user, words } of chosen) {
          await eraseUser(deps, { realm, user }, systemClock);
          erased.push(...words);
        }
      };
      for (let round = 0; round < 300; round += 1) {
        const words = [systemClock.mintId(), systemClock.mintId()];
        const [subject = '', username = ''] = words.map((word) => `${'x'.repeat(chance() * 150)} ${word}`);
        const { user } = await createFixture(db, { realm, oidcProfile, passwordProfile, subject, username });
        users.push({ user, words });
        if (chance() < 0.6) continue;
        await eraseAll(users.splice(chance() * users.length, 1));
      }
      // Pages become free.
      await eraseAll(users.splice(20));
      present.push(...users.flatMap(({ words }) => words));
      expect(await engine.removeErasedBytes()).toBe('overwritten');
    });
    const found = textsFoundIn(folderOf(database), [...erased, ...present], readAllocated);
    expect([seed, found.toSorted()]).toEqual([seed, present.toSorted()]);
    const [free] = await database.query<{ freelist_count: number }>('pragma freelist_count');
    expect([seed, erased.length > 100, (free?.freelist_count ?? 0) > 10]).toEqual([seed, true, true]);
  }, 300_000);

  test('compact removes what unallocated parts of pages hold of erased users', async () => {
    const path = copyDatabase((await createStoredDatabase(60)).path);
    const file = readFileSync(path);
    const text = `Josefine ${systemClock.mintId()}`;
    // As SQLite leaves a copy when it splits a page.
    for (const part of unallocatedParts(file)) part.write(text);
    writeFileSync(path, file);
    expect(textsFoundIn(dirname(path), [text])).toEqual([text]);
    expect(textsFoundIn(dirname(path), [text], readAllocated)).toEqual([]);
    const { code, stderr } = await runOnFile(path, 'compact');
    expect([code, stderr]).toEqual([EXIT.done, '']);
    expect(textsFoundIn(dirname(path), [text])).toEqual([]);
  }, 300_000);
});
