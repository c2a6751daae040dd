import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { openAuditLog } from '../../src/log/store/log.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine } from '../../src/ops/store/open.ts';
import { SQLITE } from '../../src/records/store/sqlite/dialect.ts';
import { connectSqlite } from '../../src/sql/sqlite/connection.ts';
import { trackDatabaseFiles } from '../../src/sql/sqlite/database_files.ts';
import { openSharedReadTransaction } from '../../src/sql/sqlite/shared_read_transaction.ts';
import { openSqliteWriter } from '../../src/sql/sqlite/writer.ts';
import { execute } from '../../src/sql/transaction_work.ts';
import { freshFolder } from '../support/service.ts';

/** Commits pause while lookups are frequent (decision 0005). */

/**
 * A writer over a database. Its reads are counted by the clock that the writer measures their rate with: real reads would be too
 * few whenever the machine stalls.
 */
async function database() {
  const path = join(freshFolder(), 'pauses.db');
  (await openEngine({ engine: 'sqlite', path }, 'auto', { version: 'test', clock: systemClock })).close();
  const db = connectSqlite(path);
  const sharedReads = openSharedReadTransaction(db);
  const files = trackDatabaseFiles(path);
  let checks = 0;
  const assertInPlace = () => {
    checks += 1;
    files.assertInPlace();
  };
  let [counted, rate, since] = [0, 0, 0];
  const reads = () => counted + (performance.now() - since) * rate;
  const writer = openSqliteWriter(db, { ...sharedReads, reads }, { assertInPlace }, openAuditLog(SQLITE));
  const done: string[] = [];
  return {
    done,
    /** Each commit checks once that the file is in place. */
    commits: () => checks,
    /** A write that counts as so many rows. */
    write: (name: string, rows = 0) =>
      writer.write([], function* () {
        yield* execute('insert into realm_clock (realm_id, seq) values (?, 1)', systemClock.mintId());
        done.push(name);
        return { value: undefined, keep: true, rows };
      }),
    /** Reads `perMillisecond` times a millisecond from now on. Resolves after longer than a pause. */
    async readAt(perMillisecond: number) {
      [counted, rate, since] = [reads(), perMillisecond, performance.now()];
      await Bun.sleep(2 * LIMITS.commitPauseMs);
    },
    close() {
      sharedReads.close();
      db.close();
    },
  };
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise(setImmediate);
}

const FEW_TURNS = 5;
/** The clock is read for the time and for the reads, one after the other. */
const TOLERANCE = 2;

test.each([0, LIMITS.commitPauseReadsMin - TOLERANCE])(
  'a write commits in the next turn at %d reads a millisecond',
  async (rate) => {
    const { done, write, readAt, close } = await database();
    await readAt(rate);
    await write('first');
    await readAt(rate);
    await write('before');
    const later = write('later');
    await turns(FEW_TURNS);
    expect(done).toEqual(['first', 'before', 'later']);
    await later;
    close();
  },
);

test('under many reads a write waits for the end of the pause, and shares the next commit', async () => {
  const { done, write, commits, readAt, close } = await database();
  await write('start');
  await readAt(LIMITS.commitPauseReadsMin + TOLERANCE);
  let shared = 0;
  // The pause is over at once when the machine stalls for as long.
  for (let attempt = 0; attempt < 20 && shared === 0; attempt += 1) {
    await Bun.sleep(2 * LIMITS.commitPauseMs);
    await write('before');
    const before = commits();
    const first = write('first');
    await turns(FEW_TURNS);
    const hasWaited = done.at(-1) === 'before';
    await Promise.all([first, write('second')]);
    expect(done.slice(-2)).toEqual(['first', 'second']);
    if (hasWaited && commits() === before + 1) shared += 1;
  }
  expect(shared).toBe(1);
  close();
});

test('writes that exceed one commit do not wait for another pause', async () => {
  const { done, write, readAt, commits, close } = await database();
  await write('start');
  await readAt(10 * LIMITS.commitPauseReadsMin);
  await write('before');
  const before = commits();
  // Each of these fills a commit by its rows, however fast the machine is.
  const full = Array.from({ length: 3 }, (_, at) => write(`full ${at}`, LIMITS.cascadeRecordsMax));
  const rest = Array.from({ length: LIMITS.writesGroupedMax - 1 }, (_, at) => write(`${at}`));
  await full[0];
  await turns(FEW_TURNS);
  expect(done.filter((name) => name.startsWith('full'))).toHaveLength(full.length);
  expect(commits()).toBeGreaterThanOrEqual(before + full.length);
  await Promise.all([...full, ...rest]);
  close();
});
