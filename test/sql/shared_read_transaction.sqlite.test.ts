import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine } from '../../src/ops/store/open.ts';
import { connectSqlite } from '../../src/sql/sqlite/connection.ts';
import { openSharedReadTransaction } from '../../src/sql/sqlite/shared_read_transaction.ts';
import { freshFolder } from '../support/service.ts';

const LOG_RESTART_PAGES = 1_000;

async function database() {
  const path = join(freshFolder(), 'reads.db');
  (await openEngine({ engine: 'sqlite', path }, 'auto', { version: 'test', clock: systemClock })).close();
  const [reader, writer] = [connectSqlite(path), connectSqlite(path)];
  const sharedReads = openSharedReadTransaction(reader);
  const count = reader.prepare<{ n: number }, []>('select count(*) as n from realm_clock');
  const commit = writer.prepare('insert into realm_clock (realm_id, seq) values (?, 1)');
  return {
    reader,
    writer,
    sharedReads,
    seen: () => sharedReads.read(() => count.get()?.n),
    commit: () => commit.run(systemClock.mintId()),
  };
}

describe('the shared read transaction', () => {
  test('the shared read transaction ends with the event loop turn, so that the log can be checkpointed', async () => {
    const { reader, writer, seen } = await database();
    expect(seen()).toBe(0);
    expect(reader.inTransaction).toBe(true);
    expect(seen()).toBe(0);
    await new Promise(setImmediate);
    expect(reader.inTransaction).toBe(false);
    expect(writer.query('pragma wal_checkpoint(truncate)').get()).toMatchObject({ busy: 0 });
  });

  test('every read is counted, also those that share a transaction', async () => {
    const { sharedReads, seen } = await database();
    for (let count = 0; count < 3; count += 1) seen();
    await new Promise(setImmediate);
    seen();
    expect(sharedReads.reads()).toBe(4);
  });

  test('reads of one turn see every commit of another connection at once', async () => {
    const { seen, commit } = await database();
    for (let round = 0; round < 500; round += 1) {
      commit();
      expect(seen()).toBe(round + 1);
      expect(seen()).toBe(round + 1);
    }
  });

  test('reads see every commit after the log was checkpointed and restarted', async () => {
    const { writer, seen, commit } = await database();
    let expected = 0;
    for (let round = 0; round < 20; round += 1) {
      expect(seen()).toBe(expected);
      await new Promise(setImmediate);
      writer.query('pragma wal_checkpoint(restart)').get();
      for (let page = 0; page < LOG_RESTART_PAGES / 100; page += 1) commit();
      expected += LOG_RESTART_PAGES / 100;
      expect(seen()).toBe(expected);
    }
  });

  test('reads continue after an error that ends the shared transaction', async () => {
    const { reader, sharedReads, seen, commit } = await database();
    const fail = () => {
      reader.run('rollback');
      throw new Error('as a full disk does');
    };
    expect(() => sharedReads.read(fail)).toThrow('full disk');
    commit();
    expect(seen()).toBe(1);
    await new Promise(setImmediate);
    expect(seen()).toBe(1);
  });

  test('reads of a database in memory have no shared transaction', () => {
    const db = connectSqlite(':memory:');
    const sharedReads = openSharedReadTransaction(db);
    expect(sharedReads.read(() => db.query('select 1 as one').get())).toEqual({ one: 1 });
    expect(db.inTransaction).toBe(false);
  });
});
