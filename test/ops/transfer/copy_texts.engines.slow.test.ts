import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { PAGE_ROWS } from '../../../src/ops/store/copying/side.ts';
import { POSTGRES } from '../../../src/records/store/postgres/dialect.ts';
import { SQLITE } from '../../../src/records/store/sqlite/dialect.ts';
import {
  allRows,
  copiedRowCount,
  ENGINE_PAIRS,
  type Engine,
  freshDatabaseOf,
  newMasterKey,
  runCopy,
  startCopyService,
} from '../../support/copy_fixtures.ts';
import type { TestDatabase } from '../../support/database.ts';
import { mintId } from '../../support/import_fixtures.ts';

/** Values that engines could store or order differently. */

setDefaultTimeout(300_000);

/** Every character up to U+2100, in texts of a hundred, and other texts that are easily altered. */
function texts(): readonly string[] {
  const codes = Array.from({ length: 0x2100 }, (_, index) => index + 1);
  const plain = Array.from({ length: codes.length / 100 }, (_, at) =>
    String.fromCodePoint(...codes.slice(at * 100, (at + 1) * 100)),
  );
  return [...plain, '\ufeff\uffff', '👩‍👩‍👧🗝\u{10ffff}', 'e\u0301é', '"\\/\\n\\u0000', ' ', '', 'null', '{}'];
}

/** A database with a schema and nothing else. */
async function createSchema(engine: Engine, key: string): Promise<TestDatabase> {
  const database = await freshDatabaseOf(engine, key);
  await (await startCopyService(database)).stop();
  return database;
}

describe.each(ENGINE_PAIRS)('a copy from %s to %s', (from, to) => {
  test('a copy contains every character and empty bytes unchanged', async () => {
    const key = newMasterKey();
    const [source, target] = [await createSchema(from, key), await freshDatabaseOf(to, key)];
    const bytes = from === 'sqlite' ? "x''" : "''";
    const realm = (from === 'sqlite' ? SQLITE : POSTGRES).realm('?');
    for (const text of texts()) {
      const id = mintId();
      await source.tamper('insert into realm_clock (realm_id, seq) values (?, 1)', id);
      await source.tamper(
        `insert into log_entry (realm_id, seq, event, revision, actor, at)
         values (${realm}, 1, 1, ${bytes}, ?, 9007199254740991)`,
        id,
        text,
      );
    }
    await source.tamper(`update signing_key set private_sealed = ${bytes}`);
    const { stderr, code, stdout } = await runCopy(source, target);
    expect([stderr, code]).toEqual(['', 0]);
    const content = await allRows(source);
    expect(await allRows(target)).toEqual(content);
    expect(content.log_entry?.length).toBe(texts().length);
    expect(content.signing_key?.map(({ private_sealed }) => private_sealed)).toEqual(['']);
    expect(copiedRowCount(stdout)).toBeGreaterThan(texts().length);
  });
});

test('a copy contains each row once where another program lengthened the IDs in a SQLite file', async () => {
  const key = newMasterKey();
  const [source, target] = [await createSchema('sqlite', key), await freshDatabaseOf('sqlite', key)];
  await source.tamper(`insert into realm_clock (realm_id, seq) values ('${mintId()}', 0)`);
  await source.tamper(
    `insert into user_salt (realm_id, user_id, salt)
     with recursive counted (n) as (select 1 union all select n + 1 from counted where n <= ${PAGE_ROWS})
     select (select max(number) from realm_clock), randomblob(17), x'00' from counted`,
  );
  const { stderr, code } = await runCopy(source, target);
  expect([stderr, code]).toEqual(['', 0]);
  const count = 'select count(*) as n from user_salt where length(user_id) = 17';
  expect(await target.query<{ n: number }>(count)).toEqual([{ n: PAGE_ROWS + 1 }]);
});
