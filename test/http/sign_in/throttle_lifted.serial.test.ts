import { expect, test } from 'bun:test';
import type { Uuid } from '../../../src/model/id.ts';
import { realm } from '../../../src/model/resources.ts';
import { foldedKey } from '../../../src/model/text/folded_key.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { openSignInBudgets } from '../../../src/sign_in/budgets.ts';
import { insertRecord, realmMembers, startService } from '../../support/service.ts';
import { createPassword, type PasswordFixture } from '../../support/sign_in.ts';

/** What an administrator sees of exhausted budgets, and lifts: docs/wire.md#password-checks. */

const service = await startService();
const { db, clock } = service;
const REALM = systemClock.mintId();
await insertRecord(db, realm, [REALM], realmMembers);
const token = await service.token('users:write');

const pathOf = ({ user, info }: PasswordFixture, of: Uuid = REALM) =>
  `/v2/authentication-realms/${of}/user-authentication-info/${user}/user-authentication-password-profile-info/${info}/sign-in-throttle`;
const lift = (of: PasswordFixture, by = token) => service.post(`${pathOf(of)}/lift`, by, '');
const throttledUntil = async (of: PasswordFixture) => {
  const answer = await service.get(pathOf(of), token);
  const { data, links } = (await answer.json()) as {
    data: { type: string; throttled_until: string | null };
    links: object;
  };
  expect([answer.status, answer.headers.get('cache-control'), data.type, links]).toEqual([
    200,
    'no-store',
    'sign_in_throttle',
    { self: service.url + pathOf(of) },
  ]);
  return data.throttled_until;
};

/** Exhausts the budget of a name from another process. */
async function exhaust({ profile: profileId, username }: PasswordFixture): Promise<void> {
  const budgets = openSignInBudgets(db.engine.budgets, db.logKeys, clock);
  const name = { realmId: REALM, profileId, usernameKey: foldedKey(username) };
  for (let count = 0; count < 100; count += 1)
    await budgets.countWrong({ ...name, clientId: 'shop', address: undefined, device: undefined });
}

test('an administrator sees until when sign-ins of a link are throttled, lifts it, and the log has an entry', async () => {
  const jane = await createPassword(db, REALM);
  const john = await createPassword(db, REALM, { profile: jane.profile });
  expect(await throttledUntil(jane)).toBeNull();
  await exhaust(jane);
  const until = Date.parse((await throttledUntil(jane)) ?? '') - clock.now();
  expect(until).toBeGreaterThan(540_000);
  expect(until).toBeLessThanOrEqual(600_000);
  expect(await throttledUntil(john)).toBeNull();
  expect((await lift(jane)).status).toBe(204);
  expect(await throttledUntil(jane)).toBeNull();
  const acts = await service.database.query<{ action: string; object: string }>(
    `select action, object from act where action = 'sign-in.throttle-lifted'`,
  );
  expect(acts).toEqual([{ action: 'sign-in.throttle-lifted', object: jane.info }]);
  expect((await lift(jane)).status).toBe(204);
});
