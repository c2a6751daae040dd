import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { user } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { TestDatabase } from '../support/database.ts';
import { createErasureFixture, runErase, withDatabase } from '../support/erasure_fixtures.ts';
import { freshFolder, insertRecord, userMembers } from '../support/service.ts';

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
    expect(stdout).toContain('no erased data is left in the database file; its write-ahead log is empty');
    expect(textsFoundIn(folder, texts)).toEqual([]);
    const [row] = await database.query<{ scrubbed_at: number }>('select scrubbed_at from erasure');
    expect(row?.scrubbed_at).toBeGreaterThan(0);
    const backups = freshFolder();
    await database.query(`vacuum into '${join(backups, 'backup.db')}'`);
    expect(textsFoundIn(backups, texts)).toEqual([]);
    const checkpointFile = readFileSync(join(folder, 'test.db.checkpoints'), 'utf8');
    expect(checkpointFile).toContain(
      `"kind":"erasure","realm_id":"${fixture.realm}","user_id":"${fixture.user}"`,
    );
  });

  test('an erasure needs no rewritten file where another user has the erased name with an accent', async () => {
    const { database, fixture } = await createErasureFixture();
    const id = systemClock.mintId();
    await withDatabase(database, async (db) => {
      const members = { ...userMembers, given_name: 'Zoë' };
      await insertRecord(db, user, [fixture.realm, systemClock.mintId()], members);
      await insertRecord(db, user, [fixture.realm, id], { ...members, given_name: 'zoe' });
    });
    const { stdout } = await runErase(database, fixture.realm, id);
    expect(stdout).toContain('no erased data is left in the database file; its write-ahead log is empty');
  });

  test('an erased user leaves no byte although another program deleted rows without overwriting them', async () => {
    const { database, fixture, texts } = await createErasureFixture();
    const folder = folderOf(database);
    const other = new Database(join(folder, 'test.db'));
    other.run('pragma secure_delete = off');
    other.run('create table left_over (text text)');
    const insert =
      other.prepare(`with recursive n (i) as (select 1 union all select i + 1 from n where i < 500)
      insert into left_over select ? || hex(randomblob(200)) from n`);
    for (const text of texts) insert.run(text);
    other.run('drop table left_over');
    other.run('pragma wal_checkpoint(truncate)');
    other.close();
    const { stdout } = await runErase(database, fixture.realm, fixture.user);
    expect(stdout).toContain('no erased data is left in the database file after it was rewritten');
    expect(textsFoundIn(folder, texts)).toEqual([]);
  });
});
