import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { LIMITS } from '../../src/domain/limits.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openAuditLog } from '../../src/store/audit/log.ts';
import { openEngine } from '../../src/store/open.ts';
import { connectSqlite } from '../../src/store/sqlite/connection.ts';
import { DatabaseFileMoved } from '../../src/store/sqlite/database_files.ts';
import { SQLITE } from '../../src/store/sqlite/dialect.ts';
import { openSharedReadTransaction } from '../../src/store/sqlite/shared_read_transaction.ts';
import { openSqliteWriter } from '../../src/store/sqlite/writer.ts';
import { execute } from '../../src/store/transaction_work.ts';
import { freshFolder } from '../support/service.ts';

/** No write is acknowledged unless its file is proven to be where it was, after its commit. */

/** `isThere` answers for each proof, counted from 1. */
async function database(isThere: (proof: number) => boolean, workMs = 0) {
  const path = join(freshFolder(), 'writer.db');
  (await openEngine({ engine: 'sqlite', path }, 'auto', { version: 'test', clock: systemClock })).close();
  const db = connectSqlite(path);
  let proofs = 0;
  const place = {
    assertInPlace() {
      proofs += 1;
      if (!isThere(proofs)) throw new DatabaseFileMoved();
    },
  };
  const writer = openSqliteWriter(db, openSharedReadTransaction(db), place, openAuditLog(SQLITE));
  let worked = 0;
  const write = () =>
    writer.write(function* () {
      worked += 1;
      yield* execute('insert into realm_clock (realm_id, seq) values (?, 1)', systemClock.mintId());
      for (const end = performance.now() + workMs; performance.now() < end; );
      return { value: 'done', keep: true };
    });
  const settled = async (count: number) =>
    (await Promise.allSettled(Array.from({ length: count }, write))).map(({ status }) => status);
  return { settled, proofs: () => proofs, worked: () => worked };
}

test('writesQueuedMax: one more write is refused, and those before it are committed', async () => {
  const { settled } = await database(() => true);
  const all = await settled(LIMITS.writesQueuedMax + 1);
  expect(all.indexOf('rejected')).toBe(LIMITS.writesQueuedMax);
}, 300_000);

test('commitWorkMsMax: what takes longer waits for the next commit, and others run in between', async () => {
  const { settled, proofs } = await database(() => true, LIMITS.commitWorkMsMax + 1);
  let turns = 0;
  const turn = setInterval(() => {
    turns += 1;
  }, 1);
  expect(await settled(5)).toEqual(Array(5).fill('fulfilled'));
  clearInterval(turn);
  expect(proofs()).toBe(5);
  expect(turns).toBeGreaterThan(0);
});

test('all jobs of a commit share one check of the file', async () => {
  const { settled, proofs } = await database(() => true);
  expect(await settled(5)).toEqual(Array(5).fill('fulfilled'));
  expect(proofs()).toBe(1);
});

test('a commit to a file that is gone is not acknowledged; once the file is back, the next write succeeds', async () => {
  const { settled, worked } = await database((proof) => proof !== 1);
  expect(await settled(3)).toEqual(Array(3).fill('rejected'));
  expect(worked()).toBe(3);
  expect(await settled(1)).toEqual(['fulfilled']);
});
