import { describe, expect, test } from 'bun:test';
import { LIMITS } from '../../../src/model/limits.ts';
import { passwordProfileInfo } from '../../../src/model/resources.ts';
import { errorsOf, startService } from '../../support/service.ts';
import { createSettingsRealms, createStorefront } from '../../support/settings_realms.ts';
import {
  ACCOUNT_TOKEN_HEADER,
  type AccountTokensAnswer,
  accountTokenOf,
  createPassword,
  END_USER,
  RENEWAL,
  requestTokens,
  signInTokenOf,
} from '../../support/sign_in.ts';
import { compact, type Json, openForge } from '../../support/token_forge.ts';

/** Renewals of account tokens, and the member that one names: docs/wire.md#account-tokens. */

const DAY_MS = 86_400_000;
const service = await startService({ badTokenRate: '100/60' });
const { db, clock } = service;
const { accounts, member } = await createSettingsRealms(db);
const token = () => service.token('sign-in');
const writer = () => service.token('password-profile-infos:write users:write profiles:write');

const renew = async (accountToken: string) =>
  requestTokens(service, await token(), RENEWAL, { [ACCOUNT_TOKEN_HEADER]: accountToken });
const getAs = async (accountToken: string, path: string, scope = 'sign-in') =>
  service.get(path, await service.token(scope), { ...END_USER, [ACCOUNT_TOKEN_HEADER]: accountToken });
const member401 = (accountToken: string, id: string) => getAs(accountToken, `/v2/account-members/${id}`);

function claimsOf(accountToken: string): Json {
  return JSON.parse(Buffer.from(accountToken.split('.')[1] ?? '', 'base64url').toString());
}

async function expectRefused(accountToken: string, id: string): Promise<void> {
  const answers = [await renew(accountToken), await member401(accountToken, id)];
  for (const answer of answers) {
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, null]);
    expect((await errorsOf(answer)).map(({ detail }) => detail)).toEqual([
      'Unable to validate access token: not valid or expired',
    ]);
  }
}

describe('a renewal', () => {
  test('is answered with a token of a whole lifetime that keeps the time of the sign-in', async () => {
    const jane = await createPassword(db, accounts);
    const first = await accountTokenOf(service, await token(), jane);
    clock.advance(DAY_MS - 60_000);
    const answer = await renew(first);
    const { data, meta } = (await answer.json()) as AccountTokensAnswer;
    expect([answer.status, meta.account_member_id, data[0]?.account_id]).toEqual([201, jane.user, jane.user]);
    const [before, after] = [claimsOf(first), claimsOf(data[0]?.token ?? '')];
    expect(after.auth_time).toBe(before.auth_time);
    expect(Number(after.exp) - Number(after.iat)).toBe(86_400);
    expect(after.jti).not.toBe(before.jti);
    expect(answer.headers.get('authrealm-device')).toBeNull();
  });

  test('ends 30 days after the sign-in', async () => {
    const jane = await createPassword(db, accounts);
    let current = await accountTokenOf(service, await token(), jane);
    for (let day = 0; day < 30; day += 1) {
      clock.advance(DAY_MS - 60_000);
      const { data } = (await (await renew(current)).json()) as AccountTokensAnswer;
      current = data[0]?.token ?? '';
    }
    clock.advance(DAY_MS - 60_000);
    await expectRefused(current, jane.user);
  });

  test('without a token is 401, and so is one with a token that is no account token', async () => {
    const jane = await createPassword(db, accounts);
    const right = await accountTokenOf(service, await token(), jane);
    const bare = await requestTokens(service, await token(), RENEWAL);
    expect([bare.status, bare.headers.get('www-authenticate')]).toEqual([401, null]);
    const wrong = ['none', 'a.b.c', `${right}x`, await token(), 'x'.repeat(9_000)];
    for (const accountToken of wrong) await expectRefused(accountToken, jane.user);
  });

  test('of a forged token is 401, whatever differs from a right one', async () => {
    const jane = await createPassword(db, accounts);
    const right = claimsOf(await accountTokenOf(service, await token(), jane));
    const forge = await openForge(service);
    const header = { ...forge.header(), typ: 'account-member+jwt' };
    const forged = (claims: Json, more: Json = {}) =>
      compact(JSON.stringify({ ...header, ...more }), JSON.stringify({ ...right, ...claims }), forge.sign);
    expect((await renew(await forged({}))).status).toBe(201);
    const now = Math.floor(clock.now() / 1000);
    expect((await renew(await forged({ auth_time: now + 29 }))).status).toBe(201);
    const cases = [
      forged({ iss: 'https://other.example' }),
      forged({ aud: service.url }),
      forged({ exp: now - 31 }),
      forged({ realm_id: member }),
      forged({ sub: member }),
      forged({ pid: member }),
      forged({ cv: 'of an older password' }),
      forged({ cv: undefined }),
      forged({ auth_time: now - 31 * 86_400 }),
      forged({ auth_time: now + 90 }),
      forged({ name: 'x'.repeat(LIMITS.tokenBytesMax) }),
      forged({}, { typ: 'at+jwt' }),
      forged({}, { typ: 'JWT' }),
    ];
    for (const each of cases) await expectRefused(await each, jane.user);
  });

  test('of a token of another service with the same claims is 401, also where it names a key of this one', async () => {
    const jane = await createPassword(db, accounts);
    const right = await accountTokenOf(service, await token(), jane);
    const other = await startService();
    const kids = [(await openForge(service)).kid, (await openForge(other)).kid];
    const { sign } = await openForge(other);
    await other.stop();
    for (const kid of kids) {
      const header = JSON.stringify({ alg: 'Ed25519', typ: 'account-member+jwt', kid });
      await expectRefused(await compact(header, JSON.stringify(claimsOf(right)), sign), jane.user);
    }
  });

  test('is 401 from the next request on after the password, its profile or its user changed', async () => {
    const password = 'another horse battery';
    const base = `/v2/authentication-realms/${accounts}`;
    const infoPath = (of: { user: string; info: string }) =>
      `${base}/user-authentication-info/${of.user}/user-authentication-password-profile-info/${of.info}`;
    const changes = [
      async (of: { user: string; info: string }) =>
        service.put(infoPath(of), await writer(), {
          data: { type: passwordProfileInfo.type, id: of.info, password },
        }),
      async (of: { user: string; info: string }) => service.del(infoPath(of), await writer()),
      async (of: { user: string }) =>
        service.del(`${base}/user-authentication-info/${of.user}`, await writer()),
      async (of: { user: string }) => {
        const admin = await service.token('admin');
        const data = { realm_id: accounts, user_id: of.user };
        return service.post('/admin/v1/erasures', admin, { data });
      },
      async (of: { profile: string }) =>
        service.del(`${base}/password-profiles/${of.profile}`, await writer()),
    ];
    for (const change of changes) {
      const jane = await createPassword(db, accounts);
      const accountToken = await accountTokenOf(service, await token(), jane);
      expect((await renew(accountToken)).status).toBe(201);
      expect([200, 201, 204]).toContain((await change(jane)).status);
      await expectRefused(accountToken, jane.user);
    }
  });

  test('that is refused counts as no bad token of its address', async () => {
    const access = await token();
    for (let count = 0; count < 110; count += 1) {
      const { status } = await requestTokens(service, access, RENEWAL, { [ACCOUNT_TOKEN_HEADER]: 'none' });
      expect(status).toBe(401);
    }
    expect((await service.get('/v2/settings', 'none')).status).toBe(401);
  });
});

describe("a member's own record", () => {
  test('is answered to a client that can sign in, by the account token of the member alone', async () => {
    const jane = await createPassword(db, accounts);
    const accountToken = await accountTokenOf(service, await token(), jane);
    const own = await member401(accountToken, jane.user);
    expect(own.headers.get('cache-control')).toBe('no-store');
    expect([own.status, await own.json()]).toMatchObject([
      200,
      { data: { id: jane.user, type: 'account_member' } },
    ]);
    expect((await member401(accountToken, member)).status).toBe(404);
    expect((await member401(accountToken, 'none')).status).toBe(404);
    expect((await service.get(`/v2/account-members/${jane.user}`, await token(), END_USER)).status).toBe(401);
  });

  test.each(['sign-in', 'users:read', 'users:read sign-in'])(
    'is all that an account token lets a client with %s read, as member and as account',
    async (scope) => {
      const jane = await createPassword(db, accounts);
      const accountToken = await accountTokenOf(service, await token(), jane);
      for (const [path, type] of [
        ['/v2/account-members', 'account_member'],
        ['/v2/accounts', 'account'],
      ] as const) {
        const list = await getAs(accountToken, path, scope);
        expect([list.headers.get('cache-control'), await list.json()]).toMatchObject([
          'no-store',
          { data: [{ id: jane.user, type }], meta: { results: { total: 1 } } },
        ]);
        const others = await getAs(accountToken, `${path}?filter=eq(id,${member})`, scope);
        expect([others.status, await others.json()]).toMatchObject([200, { data: [] }]);
        expect((await getAs(accountToken, `${path}/${jane.user}`, scope)).status).toBe(200);
        expect((await getAs(accountToken, `${path}/${member}`, scope)).status).toBe(404);
        for (const invalid of ['', 'none']) expect((await getAs(invalid, path, scope)).status).toBe(401);
      }
      const memberships = (id: string) =>
        getAs(accountToken, `/v2/accounts/${id}/account-memberships`, scope);
      expect((await memberships(jane.user)).status).toBe(200);
      expect((await memberships(member)).status).toBe(404);
    },
  );

  test('is answered to the ID of a client alone', async () => {
    const jane = await createPassword(db, accounts);
    const accountToken = await accountTokenOf(service, await token(), jane);
    const { clientId } = await createStorefront(service, accounts);
    const granted = await service.requestToken({ grant_type: 'implicit', client_id: clientId });
    const { access_token: byIdAlone } = (await granted.json()) as { access_token: string };
    const own = await service.get('/v2/account-members', byIdAlone, { [ACCOUNT_TOKEN_HEADER]: accountToken });
    expect([own.status, await own.json()]).toMatchObject([200, { data: [{ id: jane.user }] }]);
    expect((await service.get('/v2/account-members', byIdAlone)).status).toBe(401);
  });

  test('is 400 without the address of the end user', async () => {
    const accountToken = await accountTokenOf(service, await token(), await createPassword(db, accounts));
    const headers = { [ACCOUNT_TOKEN_HEADER]: accountToken };
    const answer = await service.get(`/v2/account-members/${member}`, await signInTokenOf(service), headers);
    expect([answer.status, (await errorsOf(answer)).map(({ source }) => source?.parameter)]).toEqual([
      400,
      ['Authrealm-End-User-Address'],
    ]);
  });

  test('is answered to users:read without an account token, as before', async () => {
    const reader = await service.token('users:read');
    const answer = await service.get(`/v2/account-members/${member}`, reader);
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'private, no-cache']);
  });
});
