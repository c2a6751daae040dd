import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import {
  allRows,
  changedRowCounts,
  ENGINE_PAIRS,
  type Engine,
  freshDatabaseOf,
  newMasterKey,
  runCopy,
  runCopyPrepare,
  startCopyService,
} from '../support/copy_fixtures.ts';
import type { TestDatabase } from '../support/database.ts';
import { mintId } from '../support/import_fixtures.ts';

/** What engines could write down, or count, in different ways. */

setDefaultTimeout(300_000);

/** Every character up to U+2100, a hundred to a text, and what else is easily lost. */
function texts(): readonly string[] {
  const codes = Array.from({ length: 0x2100 }, (_, index) => index + 1);
  const plain = Array.from({ length: codes.length / 100 }, (_, at) =>
    String.fromCodePoint(...codes.slice(at * 100, (at + 1) * 100)),
  );
  return [...plain, '\ufeff\uffff', '👩‍👩‍👧🗝\u{10ffff}', 'e\u0301é', '"\\/\\n\\u0000', ' ', '', 'null', '{}'];
}

/** A database with a schema and nothing else. */
async function schemaIn(engine: Engine, key: string): Promise<TestDatabase> {
  const database = await freshDatabaseOf(engine, key);
  await (await startCopyService(database)).stop();
  return database;
}

describe.each(ENGINE_PAIRS)('from %s to %s', (from, to) => {
  test('every character arrives, and bytes, and their absence', async () => {
    const key = newMasterKey();
    const [source, target] = [await schemaIn(from, key), await freshDatabaseOf(to, key)];
    for (const text of texts()) {
      await source.tamper(
        `insert into change (realm_id, seq, event, record_id, revision, members, actor, at)
         values (?, 1, 'noted', ?, 'r', '', ?, 9007199254740991)`,
        mintId(),
        mintId(),
        text,
      );
    }
    const bytes = from === 'sqlite' ? "x''" : "''";
    await source.tamper(`update signing_key set private_sealed = ${bytes}`);
    const { stderr, code, stdout } = await runCopy(source, target);
    expect([stderr, code]).toEqual(['', 0]);
    const there = await allRows(source);
    expect(await allRows(target)).toEqual(there);
    expect(there.change?.length).toBe(texts().length);
    expect(there.signing_key?.map(({ private_sealed }) => private_sealed)).toEqual(['']);
    expect(changedRowCounts(stdout)[0]).toBeGreaterThan(texts().length);
  });
});

test('two answers with one place in the order of forgetting both arrive, as the engine can have them', async () => {
  const key = newMasterKey();
  const [source, target] = [await schemaIn('postgres', key), await freshDatabaseOf('sqlite', key)];
  for (const [name, ordinal] of Object.entries({ a: '1', b: '1', c: '2', d: '2' })) {
    await source.tamper(
      `insert into idempotency
         (realm_id, client_id, key, ordinal, body, status, answer_sealed, at, expires_at)
       values (?, 'shop', ?, ?, 'b', 201, 'sealed', 1, 2)`,
      mintId(),
      name,
      ordinal,
    );
  }
  const { stderr, code } = await runCopyPrepare(source, target);
  expect([stderr, code]).toEqual(['', 0]);
  const kept = await target.query<{ key: string; ordinal: number }>('select key, ordinal from idempotency');
  expect(kept.map((row) => row.key).sort()).toEqual(['a', 'b', 'c', 'd']);
  expect(new Set(kept.map(({ ordinal }) => ordinal)).size).toBe(4);
  expect(changedRowCounts((await runCopy(source, target)).stdout)).toEqual([0, 0]);
});
