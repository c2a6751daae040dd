import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { TestDatabase } from '../support/database.ts';
import { erasable, erase, withDatabase } from '../support/erasure_fixtures.ts';
import { freshFolder } from '../support/service.ts';

/** Which of the texts stand in any file beside the database, whatever it is. */
function leftIn(folder: string, texts: readonly string[]): readonly string[] {
  const files = readdirSync(folder).map((name) => readFileSync(join(folder, name)));
  return texts.filter((text) => files.some((bytes) => bytes.includes(text)));
}

function folderOf({ address }: TestDatabase): string {
  if (address.engine !== 'sqlite') throw new Error('these are about the file of a database');
  return dirname(address.path);
}

describe('a user who is erased from a file', () => {
  test('an erased user leaves no byte in the files of a SQLite database, nor in a later backup', async () => {
    const { database, planted, texts } = await erasable();
    const folder = folderOf(database);
    expect(leftIn(folder, texts).length).toBeGreaterThan(4);
    const { stdout } = await erase(database, planted.realm, planted.user);
    expect(stdout).toContain('no erased data is left in the database file; its write-ahead log is empty');
    expect(leftIn(folder, texts)).toEqual([]);
    const [row] = await database.ask<{ scrubbed_at: number }>('select scrubbed_at from erasure');
    expect(row?.scrubbed_at).toBeGreaterThan(0);
    const backups = freshFolder();
    await withDatabase(database, async ({ engine }) => engine.embedded?.copyTo(join(backups, 'backup.db')));
    expect(leftIn(backups, texts)).toEqual([]);
    const ledger = readFileSync(join(folder, 'test.db.checkpoints'), 'utf8');
    expect(ledger).toContain(`"kind":"erasure","realm_id":"${planted.realm}","user_id":"${planted.user}"`);
  });

  test('leaves none either where another program wrote the file without overwriting what it deleted', async () => {
    const { database, planted, texts } = await erasable();
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
    const { stdout } = await erase(database, planted.realm, planted.user);
    expect(stdout).toContain('no erased data is left in the database file after it was rewritten');
    expect(leftIn(folder, texts)).toEqual([]);
  });
});
