import { afterAll, describe, expect, test } from 'bun:test';
import { SIGN_IN_BUCKETS_MAX, type SignInAttempt } from '../../../src/auth/sign_in/budgets.ts';
import type { BudgetStore } from '../../../src/auth/sign_in/port.ts';
import type { Uuid } from '../../../src/domain/id.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { realm } from '../../../src/domain/resources.ts';
import { createRealmFixture, removalOf, removeRecord } from '../../store/contract/store_fixtures.ts';
import { freshDatabase } from '../../support/database.ts';
import { checkedOf, freshAttempts, manualClock, openProcess } from './sign_in_fixtures.ts';

/** The rows of budgets: what they hold, and when they are deleted. */

const db = await freshDatabase();
const engine = await db.open();
afterAll(() => engine.close());

const MINUTE_MS = 60_000;

describe('the rows of budgets', () => {
  test('rows of budgets hold neither a name nor an address, and nothing for a right password', async () => {
    const one = openProcess(engine.budgets, manualClock());
    const attemptOf = freshAttempts();
    const right = attemptOf('john', '192.0.2.7');
    await one.admit(right);
    one.countRight(right);
    for (const address of ['192.0.2.77', '2001:db8:77::1'])
      await one.guess(attemptOf('jane-the-secret-name', address));
    const rows = await db.query<{ name: string; source: string; kind: number }>(
      `select name, kind, source from sign_in_budget where realm_id = ? order by kind`,
      right.realmId,
    );
    expect(rows.map(({ kind }) => kind)).toEqual([1, 1, 2, 5, 5, 6]);
    for (const { name, source } of rows) expect(`${name}${source}`).toMatch(/^[\w-]{16,32}$/);
    expect(await db.findPlaintext(['jane-the-secret-name', '192.0.2.77', '2001:db8:77'])).toEqual([]);
  });

  const kindsOf = async (realmId: Uuid) =>
    (
      await db.query<{ kind: number }>(
        'select kind from sign_in_budget where realm_id = ? order by full_at',
        realmId,
      )
    ).map(({ kind }) => kind);

  test('rows of budgets beyond the limit lose the totals of device tokens first, then the rows that are full soonest', async () => {
    const { realmId } = freshAttempts()('x');
    const store = engine.budgets;
    const takes = [5, 1, 2, 4, 4].map((kind, at) => ({
      ...{ name: `name${at}`, kind, source: '' },
      ...{ fullAt: (kind === 4 ? 1e12 : 1e6) - at, refillMs: 1, fullAtMax: 2e12 },
    }));
    await store.take(realmId, takes);
    expect([await store.count(realmId, 9), await store.count(realmId, 3)]).toEqual([5, 3]);
    await store.trim(realmId, 1, 1e9);
    expect(await kindsOf(realmId)).toEqual([2, 1, 5, 4]);
    await store.trim(realmId, 2, 1e9);
    expect(await kindsOf(realmId)).toEqual([1, 5]);
  });

  /** Budgets whose rows are counted and trimmed, but not written; every realm has 1,500 too many. */
  function openCounted(more: Partial<BudgetStore> = {}) {
    const steps: (string | number)[] = [];
    const store: BudgetStore = {
      ...engine.budgets,
      take: async () => undefined,
      deleteFull: async () => 0,
      count(realmId) {
        steps.push(realmId);
        return SIGN_IN_BUCKETS_MAX + 1_500;
      },
      trim: async (_, count, late) => void steps.push(`${count} late from ${late}`),
      ...more,
    };
    return { one: openProcess(store, manualClock(), async () => void steps.push('turn')), steps };
  }

  test('rows of budgets are counted at the first sweep after a wrong password in a realm, and again after 10,000 more', async () => {
    const full = [1_000, 999];
    const { one, steps } = openCounted({ deleteFull: async () => full.shift() ?? 0 });
    const [jane, john] = [freshAttempts()('jane'), freshAttempts()('john')];
    const guessAndSweep = async (attempt: SignInAttempt, count: number) => {
      for (let at = 0; at < count; at += 1) await one.countWrong(attempt);
      return [await one.sweep(0), ...steps.splice(0)];
    };
    // The bucket of a name, which takes the longest, is full after 2,000 minutes at most.
    const trimmed = (count: number) => `${count} late from ${2_000 * 60_000}`;
    // Each statement waits for a turn, so that lookups keep their share of the event loop.
    const counted = ({ realmId }: SignInAttempt) => [
      'turn',
      realmId,
      'turn',
      trimmed(1_000),
      'turn',
      trimmed(500),
    ];
    expect(await guessAndSweep(jane, 1)).toEqual([1_000, 'turn']);
    expect(await guessAndSweep(john, 1)).toEqual([0, 'turn', ...counted(jane), ...counted(john)]);
    expect(await guessAndSweep(jane, 9_999)).toEqual([0, 'turn']);
    expect(await guessAndSweep(jane, 1)).toEqual([0, 'turn', ...counted(jane)]);
  });

  /** Every realm has as many rows as given; `counted` lists the realms in the order in which they were counted. */
  function openWithRows(rowsOfRealm: number) {
    const counted: Uuid[] = [];
    const count = (realmId: Uuid) => {
      counted.push(realmId);
      return rowsOfRealm;
    };
    return { one: openCounted({ count }).one, counted };
  }

  test.each([
    [1_000, 'at each', 3],
    [1_001, 'only at the first', 1],
  ])('%i rows of budgets are counted %s sweep after a wrong password', async (rowsOfRealm, _, times) => {
    const { one, counted } = openWithRows(rowsOfRealm);
    const jane = freshAttempts()('jane');
    for (let at = 0; at < 3; at += 1) {
      await one.countWrong(jane);
      await one.sweep(0);
      await one.sweep(0);
    }
    expect(counted).toEqual(new Array<Uuid>(times).fill(jane.realmId));
  });

  test('rows of budgets are counted in the 100,000 realms whose wrong passwords began last', async () => {
    const { one, counted } = openWithRows(0);
    const attempts = Array.from({ length: LIMITS.rateBucketsMax + 1 }, () => freshAttempts()('jane'));
    for (const attempt of attempts) await one.countWrong(attempt);
    await one.sweep(0);
    expect([counted.length, counted[0]]).toEqual([LIMITS.rateBucketsMax, attempts[1]?.realmId]);
  });

  test('rows of budgets are deleted with their realm: a commit deletes 1,000, a purge all of them', async () => {
    const { records, budgets } = engine;
    const rows = LIMITS.cascadeRecordsMax + 1;
    const fill = async (realmId: Uuid, count: number) => {
      const take = { kind: 5, source: '', fullAt: 1e13, refillMs: 1, fullAtMax: 2e13 };
      const takes = Array.from({ length: count }, (_, at) => ({ ...take, name: `name${at}` }));
      for (let from = 0; from < count; from += 250)
        await budgets.take(realmId, takes.slice(from, from + 250));
    };
    const realms = await Promise.all(Array.from({ length: 4 }, () => createRealmFixture(records)));
    const [few, many, purged, other] = realms.map((each) => each.realm) as [Uuid, Uuid, Uuid, Uuid];
    await Promise.all([fill(few, 3), fill(many, rows), fill(purged, rows), fill(other, 3)]);
    for (const id of [few, many])
      expect(await removeRecord(records, removalOf(realm, [id]))).toEqual({ kind: 'removed' });
    let steps = 0;
    for (let isDone = false; !isDone; steps += 1) {
      const step = await records.purge(removalOf(realm, [purged]));
      isDone = step.kind !== 'purged' || step.isDone;
    }
    expect(steps).toBe(2);
    const left = [few, many, purged, other].map((realmId) => budgets.count(realmId, rows));
    expect(await Promise.all(left)).toEqual([0, 1, 0, 3]);
  });

  test('are deleted once their bucket is full, and a full bucket takes as a new one', async () => {
    const clock = manualClock();
    const one = openProcess(engine.budgets, clock);
    const attemptOf = freshAttempts();
    const jane = attemptOf('jane', '192.0.2.1');
    await checkedOf(one.guess, new Array<SignInAttempt>(10).fill(jane));
    const kinds = async () => (await kindsOf(jane.realmId)).toSorted();
    clock.pass(2 * MINUTE_MS);
    while ((await one.sweep(clock.now())) > 0);
    expect(await kinds()).toEqual([1, 2]);
    clock.pass(13 * MINUTE_MS);
    while ((await one.sweep(clock.now())) > 0);
    expect(await kinds()).toEqual([2]);
    expect(await checkedOf(one.guess, new Array<SignInAttempt>(12).fill(jane))).toBe(10);
    clock.pass(200 * MINUTE_MS);
    while ((await one.sweep(clock.now())) > 0);
    expect(await kinds()).toEqual([]);
  });
});
