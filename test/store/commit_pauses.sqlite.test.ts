import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { LIMITS } from '../../src/domain/limits.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openAuditLog } from '../../src/store/audit/log.ts';
import { openEngine } from '../../src/store/open.ts';
import { connectSqlite } from '../../src/store/sqlite/connection.ts';
import { trackDatabaseFiles } from '../../src/store/sqlite/database_files.ts';
import { SQLITE } from '../../src/store/sqlite/dialect.ts';
import { openSharedReadTransaction } from '../../src/store/sqlite/shared_read_transaction.ts';
import { openSqliteWriter } from '../../src/store/sqlite/writer.ts';
import { execute } from '../../src/store/transaction_work.ts';
import { freshFolder } from '../support/service.ts';

/** Commits pause while lookups are frequent (decision 0005). */

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
  const writer = openSqliteWriter(db, sharedReads, { assertInPlace }, openAuditLog(SQLITE));
  const done: string[] = [];
  return {
    done,
    /** Each commit checks once that the file is in place. */
    commits: () => checks,
    write: (name: string) =>
      writer.write(function* () {
        yield* execute('insert into realm_clock (realm_id, seq) values (?, 1)', systemClock.mintId());
        done.push(name);
        return { value: undefined, keep: true };
      }),
    /** Reads `perMillisecond` times a millisecond, for longer than a pause. */
    async readFor(perMillisecond: number) {
      const start = performance.now();
      let read = 0;
      for (let passed = 0; passed < 2 * LIMITS.commitPauseMs; passed = performance.now() - start) {
        for (; read < passed * perMillisecond; read += 1) sharedReads.read(() => undefined);
        await turns(1);
      }
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
/** The measured rate can differ from the rate of the reads: their clocks are read at different moments. */
const TOLERANCE = 2;

test.each([0, LIMITS.commitPauseReadsMin - TOLERANCE])(
  'a write commits in the next turn at %d reads a millisecond',
  async (rate) => {
    const { done, write, readFor, close } = await database();
    await write('first');
    await readFor(rate);
    await write('before');
    const later = write('later');
    await turns(FEW_TURNS);
    expect(done).toEqual(['first', 'before', 'later']);
    await later;
    close();
  },
);

test('under many reads a write waits for the end of the pause, and shares the next commit', async () => {
  const { done, write, commits, readFor, close } = await database();
  await write('start');
  let shared = 0;
  // The pause is missed when the machine stalls.
  for (let attempt = 0; attempt < 20 && shared === 0; attempt += 1) {
    await readFor(LIMITS.commitPauseReadsMin + TOLERANCE);
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
  const { done, write, readFor, close } = await database();
  await write('start');
  await readFor(10 * LIMITS.commitPauseReadsMin);
  await write('before');
  const all = Array.from({ length: 2 * LIMITS.writesGroupedMax }, (_, at) => write(`${at}`));
  await all[0];
  await turns(FEW_TURNS);
  expect(done.length).toBe(2 * LIMITS.writesGroupedMax + 2);
  await Promise.all(all);
  close();
});
