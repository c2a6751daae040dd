import { describe, expect, test } from 'bun:test';
import { oidcProfileInfo } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { createOidcProfile } from '../support/oidc_sign_in.ts';
import { claimsIn, newPerson, signedInOf, startTokenCalls } from '../support/oidc_token_calls.ts';
import { errorsOf } from '../support/service.ts';
import {
  ACCOUNT_TOKEN_HEADER,
  accountTokenOf,
  createPassword,
  END_USER,
  RENEWAL,
  requestTokens,
} from '../support/sign_in.ts';
import { compact, type Json, openForge } from '../support/token_forge.ts';

/** Account tokens of sign-ins with codes of a provider, and their renewal: docs/wire.md#account-tokens. */

const DAY_MS = 86_400_000;
const calls = await startTokenCalls();
const { service, provider, realm, profile, signIn } = calls;
const { db, clock } = service;
const writer = () =>
  service.token('users:write oidc-profile-infos:read oidc-profile-infos:write profiles:write');
const BASE = `/v2/authentication-realms/${realm}`;
const seconds = () => Math.floor(clock.now() / 1000);

const access = () => service.grant(calls.client);
const renew = async (accountToken: string) =>
  requestTokens(service, await access(), RENEWAL, { [ACCOUNT_TOKEN_HEADER]: accountToken });
const linksOf = (userId: string) =>
  `${BASE}/user-authentication-info/${userId}/user-authentication-oidc-profile-info`;

/** Signs in a person, by default a new one. */
async function enter(claims: Json = newPerson(), sent?: Parameters<typeof signIn>[1]) {
  const signedIn = await signedInOf(await signIn(claims, { token: await access(), ...sent }));
  return { ...signedIn, claims: claimsIn(signedIn.token) };
}

async function linkOf(userId: string): Promise<Json> {
  const answer = await service.get(linksOf(userId), await writer());
  return ((await answer.json()) as { data: Json[] }).data[0] ?? {};
}

async function expectRefused(accountToken: string): Promise<void> {
  const answer = await renew(accountToken);
  const details = (await errorsOf(answer)).map(({ detail }) => detail);
  expect([answer.status, answer.headers.get('www-authenticate'), details]).toEqual([
    ...[401, null, ['Unable to validate access token: not valid or expired']],
  ]);
}

describe('the account token of a sign-in with a code', () => {
  test('names its mechanism, the link with its revision, and now as the time of the sign-in', async () => {
    const before = seconds();
    const { user, claims } = await enter(newPerson({ auth_time: before - DAY_MS / 1000 }));
    const { id } = await linkOf(user);
    const stored = await db.engine.records.get(oidcProfileInfo, [realm, user, id as typeof user]);
    expect(claims).toMatchObject({
      ...{ iss: service.url, aud: `${service.url}/v2/account-members`, sub: user, scope: user },
      ...{ realm_id: realm, mechanism: 'oidc', pid: id, cv: stored?.revision },
    });
    expect(Number(claims.auth_time)).toBeWithin(before, seconds() + 1);
    expect(Number(claims.exp) - Number(claims.iat)).toBe(86_400);
  });

  test.each<[string, unknown, unknown]>([
    ['the amr of the ID token', ['pwd', 'otp'], ['pwd', 'otp']],
    ['eight values of 32 characters', new Array(8).fill('x'.repeat(32)), new Array(8).fill('x'.repeat(32))],
    ['no amr where there is none', undefined, undefined],
    ['no amr of nine values', new Array(9).fill('otp'), undefined],
    ['no amr with a value of 33 characters', ['x'.repeat(33)], undefined],
    ['no amr that is text', 'pwd', undefined],
  ])('has %s, also after a renewal', async (_, amr, expected) => {
    const { token, claims } = await enter(newPerson({ amr }));
    const renewed = await signedInOf(await renew(token));
    expect([claims.amr, claimsIn(renewed.token).amr]).toEqual([expected, expected] as never);
  });

  test('that a password gave names that mechanism', async () => {
    const jane = await createPassword(db, realm);
    expect(claimsIn(await accountTokenOf(service, await access(), jane)).mechanism).toBe('password');
  });
});

describe('a renewal of a sign-in with a code', () => {
  test('keeps what the token says of the sign-in, and asks the provider nothing', async () => {
    const { user, token, claims } = await enter(newPerson({ amr: ['mfa'] }));
    const before = [...provider.requestCounts];
    clock.advance(DAY_MS - 60_000);
    const answer = await renew(token);
    const renewed = await signedInOf(answer);
    expect([...provider.requestCounts]).toEqual(before);
    expect(renewed.user).toBe(user);
    const { iat: _, exp: __, jti: ___, ...kept } = claims;
    const after = claimsIn(renewed.token);
    expect(after).toMatchObject(kept);
    expect(after.jti).not.toBe(claims.jti);
    expect(Number(after.exp) - Number(after.iat)).toBe(86_400);
  });

  test('works while the provider is away and after its profile changed', async () => {
    const { token } = await enter();
    const data = { type: 'oidc-profile', name: 'Another', client_secret: 'another' };
    const path = `${BASE}/oidc-profiles/${profile}`;
    expect((await service.put(path, await writer(), { data })).status).toBe(200);
    expect((await renew(token)).status).toBe(201);
    const restored = { type: 'oidc-profile', client_secret: 'a secret: of the shop' };
    expect((await service.put(path, await writer(), { data: restored })).status).toBe(200);
  });

  test('ends 30 days after the sign-in', async () => {
    let { token } = await enter();
    for (let day = 0; day < 30; day += 1) {
      clock.advance(DAY_MS - 60_000);
      token = (await signedInOf(await renew(token))).token;
    }
    clock.advance(DAY_MS - 60_000);
    await expectRefused(token);
  });

  test('is 401 from the next request on after the link changed or was deleted, or its user or profile was deleted', async () => {
    const admin = await service.token('admin');
    const changes: ((user: string, link: Json, at: string) => Promise<Response>)[] = [
      async (user, link) => {
        const data = {
          type: oidcProfileInfo.type,
          id: link.id,
          subject: newPerson().sub,
          issuer: link.issuer,
        };
        return service.put(`${linksOf(user)}/${link.id}`, await writer(), { data });
      },
      async (user, link) => service.del(`${linksOf(user)}/${link.id}`, await writer()),
      async (user) => service.del(`${BASE}/user-authentication-info/${user}`, await writer()),
      async (user) => {
        const data = { realm_id: realm, user_id: user };
        return service.post('/admin/v1/erasures', admin, { data });
      },
      async (_user, _link, at) => service.del(`${BASE}/oidc-profiles/${at}`, await writer()),
    ];
    for (const change of changes) {
      const at = await createOidcProfile(db, realm, provider.issuer);
      const code = await calls.authorize(newPerson(), { at: { profile: at } });
      const { user, token } = await signedInOf(await calls.send(code, { token: await access() }));
      expect((await renew(token)).status).toBe(201);
      expect([200, 201, 204]).toContain((await change(user, await linkOf(user), at)).status);
      await expectRefused(token);
    }
  });

  test('is 401 while its user is disabled, and after the user was enabled again', async () => {
    const jane = newPerson();
    const { user, token } = await enter(jane);
    for (const enabled of [false, true]) {
      const data = { type: 'user_authentication_info', enabled };
      const path = `${BASE}/user-authentication-info/${user}`;
      expect((await service.put(path, await writer(), { data })).status).toBe(200);
      await expectRefused(token);
      const headers = { ...END_USER, [ACCOUNT_TOKEN_HEADER]: token };
      expect((await service.get(`/v2/account-members/${user}`, await access(), headers)).status).toBe(401);
    }
    const again = await enter(jane);
    expect(again.user).toBe(user);
    expect((await renew(again.token)).status).toBe(201);
  });

  test('is 401 after the identity was linked to another user', async () => {
    const jane = newPerson();
    const { user, token } = await enter(jane);
    const { id } = await linkOf(user);
    expect((await service.del(`${linksOf(user)}/${id}`, await writer())).status).toBe(204);
    const again = await enter({ ...jane, email: newPerson().email });
    expect(again.user).not.toBe(user);
    await expectRefused(token);
    expect((await renew(again.token)).status).toBe(201);
  });

  test('of a forged token is 401, whatever differs from a right one', async () => {
    const [jane, john] = [await enter(), await enter()];
    const password = await createPassword(db, realm);
    const forge = await openForge(service);
    const header = JSON.stringify({ ...forge.header(), typ: 'account-member+jwt' });
    const forged = (claims: Json) =>
      compact(header, JSON.stringify({ ...jane.claims, ...claims }), forge.sign);
    expect((await renew(await forged({}))).status).toBe(201);
    const cases: Json[] = [
      { mechanism: 'password' },
      { mechanism: undefined },
      { mechanism: 'self_signup' },
      { pid: john.claims.pid },
      { pid: password.info },
      { sub: john.user },
      { cv: john.claims.cv },
      { cv: systemClock.mintRevision() },
    ];
    for (const each of cases) await expectRefused(await forged(each));
  });

  test('of a token without a mechanism is that of a password', async () => {
    const jane = await createPassword(db, realm);
    const claims = claimsIn(await accountTokenOf(service, await access(), jane));
    const forge = await openForge(service);
    const header = JSON.stringify({ ...forge.header(), typ: 'account-member+jwt' });
    const older = await compact(header, JSON.stringify({ ...claims, mechanism: undefined }), forge.sign);
    expect(claimsIn((await signedInOf(await renew(older))).token).mechanism).toBe('password');
  });
});
