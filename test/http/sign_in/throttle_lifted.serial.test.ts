import { expect, setDefaultTimeout, test } from 'bun:test';
import type { Uuid } from '../../../src/model/id.ts';
import { realm } from '../../../src/model/resources.ts';
import { foldedKey } from '../../../src/model/text/folded_key.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { openSignInBudgets } from '../../../src/sign_in/budgets.ts';
import { insertRecord, realmMembers, startService } from '../../support/service.ts';
import { createPassword, type PasswordFixture } from '../../support/sign_in.ts';

/** What a support desk sees of exhausted budgets, and lifts: docs/wire.md#sign-ins-of-a-user. */

setDefaultTimeout(60_000);

const service = await startService({ tokenLifetime: '86400' });
const { db, clock } = service;
const REALM = systemClock.mintId();
await insertRecord(db, realm, [REALM], realmMembers);
const token = await service.token('history:read sign-in-throttles:write');

const pathOf = ({ user }: PasswordFixture, of: Uuid = REALM) =>
  `/v2/authentication-realms/${of}/user-authentication-info/${user}`;
const lift = (of: PasswordFixture) => {
  const link = `${pathOf(of)}/user-authentication-password-profile-info/${of.info}`;
  return service.post(`${link}/sign-in-throttle/lift`, token, '');
};

interface Throttle {
  readonly attempts: string;
  readonly throttled_until: string;
}

async function throttlesOf(of: PasswordFixture): Promise<readonly Throttle[]> {
  const answer = await service.get(`${pathOf(of)}/sign-in-state`, token);
  const { data } = (await answer.json()) as {
    data: { usernames: readonly { readonly id: string; readonly throttles: readonly Throttle[] }[] };
  };
  expect([answer.status, data.usernames.map(({ id }) => id)]).toEqual([200, [of.info]]);
  return data.usernames[0]?.throttles ?? [];
}

const liftsInLog = async ({ user }: PasswordFixture) =>
  (await db.engine.log.newestActsOf({ realm: REALM, user }, 'sign-in.throttle-lifted', 1_000)).map(
    ({ columns }) => columns.object,
  );

/** Exhausts the budget of a name from another process. */
async function exhaust({ profile: profileId, username }: PasswordFixture): Promise<void> {
  const budgets = openSignInBudgets(db.engine.budgets, db.logKeys, clock);
  const name = { realmId: REALM, profileId, usernameKey: foldedKey(username) };
  for (let count = 0; count < 100; count += 1)
    await budgets.countWrong({ ...name, clientId: 'shop', address: undefined, device: undefined });
}

test('a support desk sees until when sign-ins of a link are throttled, lifts it, and the log has an entry', async () => {
  const jane = await createPassword(db, REALM);
  const john = await createPassword(db, REALM, { profile: jane.profile });
  expect(await throttlesOf(jane)).toEqual([]);
  await exhaust(jane);
  const [throttle, ...others] = await throttlesOf(jane);
  expect([throttle?.attempts, others]).toEqual(['without_device', []]);
  const until = Date.parse(throttle?.throttled_until ?? '') - clock.now();
  expect(until).toBeGreaterThan(540_000);
  expect(until).toBeLessThanOrEqual(600_000);
  expect(await throttlesOf(john)).toEqual([]);
  expect((await lift(jane)).status).toBe(204);
  expect(await throttlesOf(jane)).toEqual([]);
  expect(await liftsInLog(jane)).toEqual([jane.info]);
  expect((await lift(jane)).status).toBe(204);
});

test('of 100 lifts of a name in a row three are done and logged, and an hour later three more', async () => {
  const jane = await createPassword(db, REALM);
  const john = await createPassword(db, REALM, { profile: jane.profile });
  const statuses: number[] = [];
  for (let count = 0; count < 100; count += 1) statuses.push((await lift(jane)).status);
  expect(statuses).toEqual([...new Array(3).fill(204), ...new Array(97).fill(429)]);
  const refused = await lift(jane);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3_500);
  expect(await liftsInLog(jane)).toHaveLength(3);
  expect((await lift(john)).status).toBe(204);
  clock.advance(3_600_000);
  expect((await lift(jane)).status).toBe(204);
  expect(await liftsInLog(jane)).toHaveLength(4);
});

test('a lift that is refused forgives no wrong password', async () => {
  const jane = await createPassword(db, REALM);
  for (let count = 0; count < 3; count += 1) expect((await lift(jane)).status).toBe(204);
  await exhaust(jane);
  expect((await lift(jane)).status).toBe(429);
  expect(await throttlesOf(jane)).toHaveLength(1);
});
