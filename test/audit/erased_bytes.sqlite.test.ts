import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { eraseUser } from '../../src/audit/person_erasure.ts';
import { openLogReading } from '../../src/audit/reading.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { freshDatabase, type TestDatabase } from '../support/database.ts';
import { createErasureFixture, runErase, withDatabase } from '../support/erasure_fixtures.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { createFixture, freshFolder } from '../support/service.ts';

/** The texts that any file in the folder of a database contains. */
function textsFoundIn(folder: string, texts: readonly string[]): readonly string[] {
  const files = readdirSync(folder).map((name) => readFileSync(join(folder, name)));
  return texts.filter((text) => files.some((bytes) => bytes.includes(text)));
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
      /the write-ahead log is empty; text that other programs wrote .* is not searched for/,
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

  test('users erased among many others leave no byte, while pages are split, merged and reused', async () => {
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
      for (let round = 0; round < 300; round += 1) {
        const words = [systemClock.mintId(), systemClock.mintId()];
        const [subject = '', username = ''] = words.map((word) => `${'x'.repeat(chance() * 150)} ${word}`);
        const { user } = await createFixture(db, { realm, oidcProfile, passwordProfile, subject, username });
        users.push({ user, words });
        if (chance() < 0.6) continue;
        for (const one of users.splice(chance() * users.length, 1)) {
          await eraseUser(deps, { realm, user: one.user }, systemClock);
          erased.push(...one.words);
        }
      }
      present.push(...users.flatMap(({ words }) => words));
      expect(await engine.removeErasedBytes()).toBe('clean');
    });
    const found = textsFoundIn(folderOf(database), [...erased, ...present]);
    expect([seed, erased.length > 100, found.toSorted()]).toEqual([seed, true, present.toSorted()]);
  }, 300_000);
});
