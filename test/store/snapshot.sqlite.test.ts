import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { systemClock } from '../../src/platform/clock.ts';
import { openEngine } from '../../src/store/open.ts';
import { connectSqlite } from '../../src/store/sqlite/connection.ts';
import { openSharedReadTransaction } from '../../src/store/sqlite/shared_read_transaction.ts';
import { freshFolder } from '../support/service.ts';

const LOG_RESTART_PAGES = 1_000;

async function database() {
  const path = join(freshFolder(), 'snapshot.db');
  (await openEngine({ engine: 'sqlite', path }, 'auto', { version: 'test', clock: systemClock })).close();
  const [ours, theirs] = [connectSqlite(path), connectSqlite(path)];
  const snapshot = openSharedReadTransaction(ours);
  const count = ours.prepare<{ n: number }, []>('select count(*) as n from realm_clock');
  const commit = theirs.prepare('insert into realm_clock (realm_id, seq) values (?, 1)');
  return {
    ours,
    theirs,
    snapshot,
    seen: () => snapshot.read(() => count.get()?.n),
    commit: () => commit.run(systemClock.mintId()),
  };
}

describe('reads of one turn share a read transaction', () => {
  test('and end it with the turn, so that the log can be folded back', async () => {
    const { ours, theirs, seen } = await database();
    expect(seen()).toBe(0);
    expect(ours.inTransaction).toBe(true);
    expect(seen()).toBe(0);
    await new Promise(setImmediate);
    expect(ours.inTransaction).toBe(false);
    expect(theirs.query('pragma wal_checkpoint(truncate)').get()).toMatchObject({ busy: 0 });
  });

  test('but see every commit of anybody at once, within the same turn', async () => {
    const { seen, commit } = await database();
    for (let round = 0; round < 500; round += 1) {
      commit();
      expect(seen()).toBe(round + 1);
      expect(seen()).toBe(round + 1);
    }
  });

  test('also where the log was folded back and begun anew in between', async () => {
    const { theirs, seen, commit } = await database();
    let expected = 0;
    for (let round = 0; round < 20; round += 1) {
      expect(seen()).toBe(expected);
      await new Promise(setImmediate);
      theirs.query('pragma wal_checkpoint(restart)').get();
      for (let page = 0; page < LOG_RESTART_PAGES / 100; page += 1) commit();
      expected += LOG_RESTART_PAGES / 100;
      expect(seen()).toBe(expected);
    }
  });

  test('and survive an error that ends the transaction', async () => {
    const { ours, snapshot, seen, commit } = await database();
    const fail = () => {
      ours.run('rollback');
      throw new Error('as a full disk does');
    };
    expect(() => snapshot.read(fail)).toThrow('full disk');
    commit();
    expect(seen()).toBe(1);
    await new Promise(setImmediate);
    expect(seen()).toBe(1);
  });

  test('a database in memory shares nothing', () => {
    const db = connectSqlite(':memory:');
    const snapshot = openSharedReadTransaction(db);
    expect(snapshot.read(() => db.query('select 1 as one').get())).toEqual({ one: 1 });
    expect(db.inTransaction).toBe(false);
  });
});
