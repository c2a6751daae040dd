import { afterAll, beforeEach, expect, test } from 'bun:test';
import { openDatabase } from '../../src/app/open_database.ts';
import type { Uuid } from '../../src/model/id.ts';
import { user } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { freshDatabase } from '../support/database.ts';
import { createFixture, userMembers } from '../support/service.ts';
import { commitWrites, insert } from './contract/store_fixtures.ts';

/** The totals of lists, which come from the clock of their realm. */

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

test('the total of a list comes from the clock of its realm, and the rows are not counted', async () => {
  expect(await totalOfUsers()).toBe(3);
  await createUsers(1);
  expect(await totalOfUsers()).toBe(4);
  await database.tamper('update realm_clock set user_info_count = 41 where realm_id = ?', realm);
  expect(await totalOfUsers()).toBe(41);
});
