import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { Uuid } from '../../src/model/id.ts';
import { realm as realmResource, user } from '../../src/model/resources.ts';
import { createOidcProfile } from '../support/oidc_sign_in.ts';
import { newPerson, signedInOf, startTokenCalls } from '../support/oidc_token_calls.ts';
import { comparableResponse } from '../support/service.ts';
import {
  createPassword,
  enableSelfSignup,
  passwordBody,
  requestTokens,
  selfSignupBody,
  signInTokenOf,
} from '../support/sign_in.ts';
import type { Json } from '../support/token_forge.ts';

setDefaultTimeout(60_000);

/** Who becomes which user at a sign-in with a code of a provider: docs/guides/provider-sign-in.md#who-becomes-which-user. */

const calls = await startTokenCalls();
const { service, provider, realm, profile, signIn } = calls;
const { records } = service.db.engine;
const token = await service.token(
  'realms:write users:read users:write oidc-profile-infos:read oidc-profile-infos:write',
);
const USERS = `/v2/authentication-realms/${realm}/user-authentication-info`;
const linksOf = (userId: string) => `${USERS}/${userId}/user-authentication-oidc-profile-info`;

const jack = await createPassword(service.db, realm);
const wrong = passwordBody(jack, { password: 'wrong horse' });
const WRONG_PASSWORD = await comparableResponse(await requestTokens(service, calls.token, wrong));

async function setPolicy(duplicate_email_policy: 'allowed' | 'api_only'): Promise<void> {
  const data = { type: realmResource.type, duplicate_email_policy };
  const answer = await service.put(`/v2/authentication-realms/${realm}`, token, { data });
  expect(answer.status).toBe(200);
}

async function dataOf<T>(answer: Response): Promise<T> {
  expect([200, 201]).toContain(answer.status);
  return ((await answer.json()) as { data: T }).data;
}

async function createUser(email: unknown): Promise<string> {
  const data = { type: user.type, name: 'Mike', email };
  return (await dataOf<{ id: string }>(await service.post(USERS, token, { data }))).id;
}

const readUser = async (id: string) => dataOf<Json>(await service.get(`${USERS}/${id}`, token));
const readLinks = async (id: string) => dataOf<Json[]>(await service.get(linksOf(id), token));
const isVouched = async (id: string) => (await records.getStored(user, [realm, id as Uuid]))?.email_vouched;
const userOf = async (claims: Json) => (await signedInOf(await signIn(claims))).user;

const countChanges = async () => (await records.changes(realm, 0, 1_000)).length;

async function setEnabled(id: string, enabled: boolean): Promise<void> {
  const data = { type: user.type, enabled };
  expect((await service.put(`${USERS}/${id}`, token, { data })).status).toBe(200);
}

/** Signs in a person who is refused. Nothing is written. */
async function expectRefused(claims: Json): Promise<void> {
  const before = await countChanges();
  expect(await comparableResponse(await signIn(claims))).toBe(WRONG_PASSWORD);
  expect(await countChanges()).toEqual(before);
}

describe('an unknown identity becomes a user', () => {
  const names = { given_name: 'Jane', middle_name: 'Mary', family_name: 'Doering' };

  test('with its e-mail address, names and link, in one commit that the client of the call made', async () => {
    const jane = newPerson({ name: 'Jane Doe', ...names });
    const id = await userOf(jane);
    expect(await readUser(id)).toMatchObject({
      ...{ name: 'Jane Doe', email: jane.email, ...names, meta: { creation_status: 'COMPLETE' } },
    });
    const link = { subject: jane.sub, issuer: provider.issuer, oidc_profile_id: profile };
    expect(await readLinks(id)).toMatchObject([link]);
    const last = (await records.changes(realm, 0, 1_000)).slice(-2);
    expect(last.map(({ event, user: of }) => [event, of])).toEqual([
      ['user-authentication-info.created', id],
      ['user-authentication-oidc-profile-info.created', id],
    ]);
    expect(new Set(last.map(({ actor, at, requestId }) => `${actor} ${at} ${requestId}`)).size).toBe(1);
    expect(last[0]?.actor).toBe(calls.client.clientId);
  });

  test.each<[string, Json, Json]>([
    [
      'that of its parts',
      { given_name: 'Jane', family_name: 'Doe' },
      { name: 'Jane Doe', given_name: 'Jane' },
    ],
    ['its family name', { family_name: 'Doe' }, { name: 'Doe', given_name: null, family_name: 'Doe' }],
    ['that of its parts if name is of no use', { name: '', given_name: 'Jane' }, { name: 'Jane' }],
    [
      'no part that is of no use',
      { name: 'Jane', given_name: 7, family_name: 'x'.repeat(256) },
      { name: 'Jane', given_name: null, family_name: null },
    ],
  ])('with %s as its name', async (_, claims, expected) => {
    expect(await readUser(await userOf(newPerson(claims)))).toMatchObject(expected);
  });

  test('with its e-mail address as its name if it has no name', async () => {
    const jane = newPerson();
    expect(await readUser(await userOf(jane))).toMatchObject({ name: jane.email, email: jane.email });
  });

  test.each([
    [true, true],
    ['true', true],
    [false, false],
    ['false', false],
    [undefined, false],
  ])('for whose address email_verified %p vouches: %p', async (email_verified, expected) => {
    for (const policy of ['allowed', 'api_only'] as const) {
      await setPolicy(policy);
      expect(await isVouched(await userOf(newPerson({ email_verified })))).toBe(expected);
    }
  });

  test('next to one with the same e-mail address, if the policy is allowed', async () => {
    await setPolicy('allowed');
    const jane = newPerson();
    const first = await createUser(jane.email);
    const second = await userOf(jane);
    expect(second).not.toBe(first as Uuid);
    expect(await readLinks(first)).toEqual([]);
  });

  test('again after the user was deleted', async () => {
    const jane = newPerson();
    const first = await userOf(jane);
    expect((await service.del(`${USERS}/${first}`, token)).status).toBe(204);
    const second = await userOf(jane);
    expect(second).not.toBe(first);
  });
});

describe('a known identity', () => {
  test('is the user of its link, whatever name and e-mail address it has now, and none is updated', async () => {
    const jane = newPerson({ name: 'Jane Doe' });
    const id = await userOf(jane);
    const before = await readUser(id);
    for (const more of [
      { name: 'Another', email: 'another@example.com' },
      { email: undefined },
      { email_verified: false },
    ])
      expect(await userOf({ ...jane, ...more })).toBe(id);
    expect(await readUser(id)).toEqual(before);
  });

  test('is found whichever profile of the issuer its link has', async () => {
    const jane = newPerson();
    const id = await userOf(jane);
    const other = await createOidcProfile(service.db, realm, provider.issuer);
    const code = await calls.authorize(jane, { at: { profile: other } });
    expect((await signedInOf(await calls.send(code))).user).toBe(id);
    expect(await readLinks(id)).toHaveLength(1);
  });

  test('of a disabled user is refused as a wrong password, makes no user, and is known once the user is enabled', async () => {
    const jane = newPerson();
    const id = await userOf(jane);
    await setEnabled(id, false);
    for (const policy of ['allowed', 'api_only'] as const) {
      await setPolicy(policy);
      for (const email of [jane.email, 'another@example.com', undefined])
        await expectRefused({ ...jane, email });
    }
    await setEnabled(id, true);
    expect(await userOf(jane)).toBe(id);
  });

  test('whose link a caller created is found without the scope sign-up', async () => {
    const jane = newPerson();
    const id = await createUser('of-jane@example.com');
    const data = {
      type: 'user_authentication_oidc_profile_info',
      ...{ subject: jane.sub, issuer: provider.issuer, oidc_profile_id: profile },
    };
    expect((await service.post(linksOf(id), token, { data })).status).toBe(201);
    const signInAlone = await signInTokenOf(service, { scope: 'sign-in' });
    expect((await signedInOf(await signIn(jane, { token: signInAlone }))).user).toBe(id as Uuid);
  });
});

describe('with the policy api_only an identity', () => {
  test('with a verified address is linked to the one user whose address is vouched for, also with other capitals', async () => {
    await setPolicy('api_only');
    const [jane, john] = [newPerson(), newPerson()];
    const id = await createUser(jane.email);
    expect(await userOf(jane)).toBe(id as Uuid);
    expect(await readLinks(id)).toMatchObject([{ subject: jane.sub }]);
    const capitals = { ...john, email: String(john.email).toUpperCase() };
    const ofJohn = await createUser(john.email);
    expect(await userOf(capitals)).toBe(ofJohn as Uuid);
    expect(await readUser(ofJohn)).toMatchObject({ name: 'Mike', email: john.email });
    // A second time it is known.
    const before = await countChanges();
    expect(await userOf(jane)).toBe(id as Uuid);
    expect(await countChanges()).toEqual(before);
  });

  test.each([[false], ['false'], [undefined], [1]])(
    'with email_verified %p is refused where a user has its address',
    async (email_verified) => {
      await setPolicy('api_only');
      const jane = newPerson({ email_verified });
      await createUser(jane.email);
      await expectRefused(jane);
    },
  );

  test('is refused where the one user with its address is disabled', async () => {
    await setPolicy('api_only');
    const jane = newPerson();
    const id = await createUser(jane.email);
    await setEnabled(id, false);
    await expectRefused(jane);
    await setEnabled(id, true);
    expect(await userOf(jane)).toBe(id as Uuid);
  });

  test('is refused where two users have its address', async () => {
    await setPolicy('api_only');
    const jane = newPerson();
    await createUser(jane.email);
    await createUser(jane.email);
    await expectRefused(jane);
  });

  test.each([
    ['mike@gıthub.com', 'mike@github.com'],
    ['mike@ｅxample.com', 'mike@example.com'],
    ['mi\u00adke@example.net', 'mike@example.net'],
  ])('with the address %s is refused where a user has %s', async (email, stored) => {
    await setPolicy('api_only');
    await createUser(stored);
    await expectRefused(newPerson({ email }));
  });

  test('is refused where a stranger signed in first with the unverified address, also after a change of policy, until a caller writes the address', async () => {
    for (const policy of ['allowed', 'api_only'] as const) {
      await setPolicy(policy);
      const owner = newPerson();
      const stranger = newPerson({ email: owner.email, email_verified: false });
      const id = await userOf(stranger);
      await setPolicy('api_only');
      await expectRefused(owner);
      const data = { type: user.type, name: 'Owner' };
      expect((await service.put(`${USERS}/${id}`, token, { data })).status).toBe(200);
      await expectRefused(owner);
      const written = { type: user.type, email: owner.email };
      expect((await service.put(`${USERS}/${id}`, token, { data: written })).status).toBe(200);
      expect(await isVouched(id)).toBe(true);
      expect(await userOf(owner)).toBe(id);
    }
  });

  test('is refused where somebody signed up with its address', async () => {
    await setPolicy('api_only');
    await enableSelfSignup(service, await service.token('settings:write'));
    const owner = newPerson();
    const body = selfSignupBody(jack.profile, owner.email, { email: owner.email });
    expect((await requestTokens(service, calls.token, body)).status).toBe(201);
    await expectRefused(owner);
  });
});
