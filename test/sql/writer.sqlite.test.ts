import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { openAuditLog } from '../../src/log/store/log.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine } from '../../src/ops/store/open.ts';
import { SQLITE } from '../../src/records/store/sqlite/dialect.ts';
import { connectSqlite } from '../../src/sql/sqlite/connection.ts';
import { DatabaseFileMoved } from '../../src/sql/sqlite/database_files.ts';
import { openSharedReadTransaction } from '../../src/sql/sqlite/shared_read_transaction.ts';
import { openSqliteWriter } from '../../src/sql/sqlite/writer.ts';
import { execute } from '../../src/sql/transaction_work.ts';
import { freshFolder } from '../support/service.ts';

/** A write is acknowledged only after a check, after its commit, that the database file is in place. */

/** `isInPlace` returns the result of each check. */
async function database(isInPlace: () => boolean, workMs = 0) {
  const path = join(freshFolder(), 'writer.db');
  (await openEngine({ engine: 'sqlite', path }, 'auto', { version: 'test', clock: systemClock })).close();
  const db = connectSqlite(path);
  let checks = 0;
  const files = {
    assertInPlace() {
      checks += 1;
      if (!isInPlace()) throw new DatabaseFileMoved();
    },
  };
  const writer = openSqliteWriter(db, openSharedReadTransaction(db), files, openAuditLog(SQLITE));
  let executed = 0;
  const write = () =>
    writer.write([], function* () {
      executed += 1;
      yield* execute('insert into realm_clock (realm_id, seq) values (?, 1)', systemClock.mintId());
      for (const end = performance.now() + workMs; performance.now() < end; );
      return { value: 'done', keep: true };
    });
  const writeAll = async (count: number) =>
    (await Promise.allSettled(Array.from({ length: count }, write))).map(({ status }) => status);
  return { writeAll, checks: () => checks, executed: () => executed };
}

test('one write more than writesQueuedMax is refused, and those before it are committed', async () => {
  const { writeAll } = await database(() => true);
  const all = await writeAll(LIMITS.writesQueuedMax + 1);
  expect(all.indexOf('rejected')).toBe(LIMITS.writesQueuedMax);
}, 300_000);

test('work beyond commitWorkMsMax waits for the next commit, and the event loop runs in between', async () => {
  const { writeAll, checks } = await database(() => true, LIMITS.commitWorkMsMax + 1);
  let turns = 0;
  const turn = setInterval(() => {
    turns += 1;
  }, 1);
  expect(await writeAll(5)).toEqual(Array(5).fill('fulfilled'));
  clearInterval(turn);
  expect(checks()).toBe(5);
  expect(turns).toBeGreaterThan(0);
});

test('all writes of a commit share one check of the file', async () => {
  const { writeAll, checks } = await database(() => true);
  let shared = 0;
  // A busy machine may interrupt a commit for longer than commitWorkMsMax.
  for (let tries = 0; tries < 20 && shared !== 1; tries += 1) {
    const before = checks();
    expect(await writeAll(5)).toEqual(Array(5).fill('fulfilled'));
    shared = checks() - before;
  }
  expect(shared).toBe(1);
});

test('a commit to a missing file is not acknowledged; once the file is back, the next write succeeds', async () => {
  let isInPlace = true;
  const { writeAll, executed } = await database(() => isInPlace);
  // Warms up the code, so that three writes are one commit.
  await writeAll(100);
  isInPlace = false;
  expect(await writeAll(3)).toEqual(Array(3).fill('rejected'));
  expect(executed()).toBe(103);
  isInPlace = true;
  expect(await writeAll(1)).toEqual(['fulfilled']);
});
