import { afterAll, describe, expect, test } from 'bun:test';
import type { Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { realm } from '../../src/model/resources.ts';
import type { SignInAttempt } from '../../src/sign_in/budgets.ts';
import { createRealmFixture, removalOf, removeRecord } from '../records/contract/store_fixtures.ts';
import { freshDatabase } from '../support/database.ts';
import { checkedOf, deviceToken, freshAttempts, manualClock, openProcess } from './sign_in_fixtures.ts';

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
    for (const address of ['192.0.2.77', '2001:db8:77::1'])
      await one.guess(attemptOf('jane-the-secret-name', address));
    const rows = await db.query<{ name: string; source: string; kind: number }>(
      `select name, kind, source from sign_in_budget where realm_id = ? order by kind`,
      right.realmId,
    );
    expect(rows.map(({ kind }) => kind)).toEqual([1, 1, 2, 4, 4, 5]);
    for (const { name, source } of rows) expect(`${name}${source}`).toMatch(/^[\w-]{16,32}$/);
    expect(await db.findPlaintext(['jane-the-secret-name', '192.0.2.77', '2001:db8:77'])).toEqual([]);
  });

  const kindsOf = async (realmId: Uuid) => {
    const text = 'select kind from sign_in_budget where realm_id = ? order by kind';
    return (await db.query<{ kind: number }>(text, realmId)).map(({ kind }) => kind);
  };

  test('rows of budgets are deleted with their realm, 1,000 at most', async () => {
    const { records, budgets } = engine;
    const rows = LIMITS.cascadeRecordsMax + 1;
    const fill = async (realmId: Uuid, count: number) => {
      const take = { kind: 4, source: '', fullAt: 1e13, refillMs: 1, fullAtMax: 2e13 };
      const takes = Array.from({ length: count }, (_, at) => ({ ...take, name: `name${at}` }));
      for (let from = 0; from < count; from += 250)
        await budgets.take(realmId, takes.slice(from, from + 250));
    };
    const realms = await Promise.all(Array.from({ length: 4 }, () => createRealmFixture(records)));
    const [few, many, paged, other] = realms.map((each) => each.realm) as [Uuid, Uuid, Uuid, Uuid];
    await Promise.all([fill(few, 3), fill(many, rows), fill(paged, rows), fill(other, 3)]);
    for (const id of [few, many])
      expect(await removeRecord(records, removalOf(realm, [id]))).toEqual({ kind: 'removed' });
    expect(await records.removePage(removalOf(realm, [paged]))).toMatchObject({ isDone: true });
    const left = [few, many, paged, other].map(async (realmId) => (await kindsOf(realmId)).length);
    expect(await Promise.all(left)).toEqual([0, 1, 1, 3]);
  });

  test('rows of budgets are deleted once their bucket is full, and a full bucket takes as a new one', async () => {
    const clock = manualClock();
    const one = openProcess(engine.budgets, clock);
    const attemptOf = freshAttempts();
    const jane = attemptOf('jane', '192.0.2.1');
    const kindsAfter = async (ms: number) => {
      clock.pass(ms);
      while ((await engine.budgets.deleteFull(clock.now())) > 0);
      return kindsOf(jane.realmId);
    };
    await checkedOf(one.guess, new Array<SignInAttempt>(10).fill(jane));
    expect(await kindsAfter(2 * MINUTE_MS)).toEqual([1, 2]);
    expect(await kindsAfter(13 * MINUTE_MS)).toEqual([2]);
    expect(await checkedOf(one.guess, new Array<SignInAttempt>(12).fill(jane))).toBe(10);
    await one.countWrong({ ...jane, device: deviceToken() });
    expect(await kindsAfter(144 * MINUTE_MS - 1)).toEqual([2, 3]);
    expect(await kindsAfter(1)).toEqual([2]);
    expect(await kindsAfter(41 * MINUTE_MS)).toEqual([]);
  });
});
