import { afterAll, beforeEach, expect, test } from 'bun:test';
import type { Uuid } from '../../src/domain/id.ts';
import { user } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openDatabase } from '../../src/service/open_database.ts';
import { COUNT_COLUMNS } from '../../src/store/audit/record_counts.ts';
import { freshDatabase } from '../support/database.ts';
import { createFixture, userMembers } from '../support/service.ts';
import { commitWrites, insert } from './contract/store_fixtures.ts';

/** When the totals of lists come from the clock of their realm, and when they are counted. */

const database = await freshDatabase();
let realm: Uuid;

const db = await openDatabase(database.settings(), systemClock);
beforeEach(async () => {
  ({ realm } = await createFixture(db));
  await createUsers(2);
});
afterAll(() => db.engine.close());

function createUsers(count: number) {
  return commitWrites(
    db.engine.records,
    ...Array.from({ length: count }, () => insert(user, [realm, systemClock.mintId()], userMembers)),
  );
}

async function totalOfUsers(): Promise<number | undefined> {
  const page = { kind: 'offset', offset: 0, limit: 1 } as const;
  const sort = { by: 'created_at', isDescending: true } as const;
  return (await db.engine.records.list(user, [realm], { filter: [], sort, page }))?.total;
}

const setClock = (assignments: string) =>
  database.tamper(`update realm_clock set ${assignments} where realm_id = ?`, realm);

/** As if no entry of the realm was counted: releases that do not count leave these values. */
const forgetCounts = () => setClock(COUNT_COLUMNS.map((name) => `${name} = 0`).join(', '));

async function clock(): Promise<{ readonly uncounted: number; readonly users: number }> {
  const [found] = await database.query<{ uncounted: number; users: number }>(
    'select seq - counted_seq as uncounted, user_info_count as users from realm_clock where realm_id = ?',
    realm,
  );
  if (!found) throw new Error('the realm has no clock');
  return { uncounted: Number(found.uncounted), users: Number(found.users) };
}

test('the total of a list comes from the clock of its realm, and the rows are not counted', async () => {
  expect([await totalOfUsers(), await clock()]).toEqual([3, { uncounted: 0, users: 3 }]);
  await setClock('user_info_count = 41');
  expect(await totalOfUsers()).toBe(41);
});

test('the rows are counted while the log has an entry that the clock did not count', async () => {
  await setClock('user_info_count = 41, counted_seq = counted_seq - 1');
  expect(await totalOfUsers()).toBe(3);
});

test('after entries that were not counted, totals are counted until the next start stores them', async () => {
  await forgetCounts();
  const uncounted = (await clock()).uncounted;
  expect(await totalOfUsers()).toBe(3);
  await createUsers(1);
  expect([await totalOfUsers(), (await clock()).uncounted]).toEqual([4, uncounted]);
  await db.engine.log.catchUp(systemClock.now());
  expect([await totalOfUsers(), await clock()]).toEqual([4, { uncounted: 0, users: 4 }]);
  await createUsers(1);
  expect([await totalOfUsers(), await clock()]).toEqual([5, { uncounted: 0, users: 5 }]);
});
