import { describe, expect, test } from 'bun:test';
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import { passwordProfile, passwordProfileInfo, realm, user } from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import {
  comparableResponse,
  errorsOf,
  insertRecord,
  realmMembers,
  startService,
} from '../../support/service.ts';
import { createSettingsRealms } from '../../support/settings_realms.ts';
import {
  ACCOUNT_TOKEN_HEADER,
  ACCOUNT_TOKENS,
  type AccountTokensAnswer,
  accountTokenOf,
  createPassword,
  DEVICE_HEADER,
  from,
  type PasswordFixture,
  passwordBody,
  RENEWAL,
  requestTokens,
  signInTokenOf,
} from '../../support/sign_in.ts';

/** The token call: docs/wire.md#account-tokens. */

const service = await startService();
const { accounts, buyers } = await createSettingsRealms(service.db);
const jane = await createPassword(service.db, accounts);
const token = await signInTokenOf(service, { scope: 'sign-in settings:write' });
const { clock, db } = service;

const signIn = (body: object, headers?: Record<string, string>) =>
  requestTokens(service, token, body, headers);
const renew = (accountToken: string) => signIn(RENEWAL, { [ACCOUNT_TOKEN_HEADER]: accountToken });
const WRONG = await comparableResponse(await signIn(passwordBody(jane, { password: 'wrong horse' })));

describe('a sign-in by password', () => {
  test('is answered with a token of the one account of the member, which is the member', async () => {
    const answer = await signIn(passwordBody(jane));
    const body = (await answer.json()) as AccountTokensAnswer;
    const url = `${service.url}${ACCOUNT_TOKENS}?page%5Blimit%5D=25&page%5Boffset%5D=0`;
    expect([answer.status, body as object]).toEqual([
      201,
      {
        data: [
          {
            type: 'account_management_authentication_token',
            account_id: jane.user,
            account_name: 'Jane Doe',
            token: expect.any(String),
            expires: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
          },
        ],
        meta: {
          account_member_id: jane.user,
          page: { limit: 25, offset: 0, current: 1, total: 1 },
          results: { total: 1 },
        },
        links: { current: url, first: url, last: url, next: null, prev: null },
      },
    ]);
    expect([answer.headers.get('cache-control'), answer.headers.get(DEVICE_HEADER)?.length]).toEqual([
      'no-store',
      86,
    ]);
  });

  test('the token is a JWT of the key set, of a type of its own', async () => {
    const accountToken = await accountTokenOf(service, token, jane);
    const keys = (await (await service.get('/.well-known/jwks.json')).json()) as JSONWebKeySet;
    const { payload, protectedHeader } = await jwtVerify(accountToken, createLocalJWKSet(keys), {
      issuer: service.url,
      audience: `${service.url}/v2/account-members`,
      typ: 'account-member+jwt',
      currentDate: new Date(clock.now()),
    });
    expect(protectedHeader.alg).toBe('Ed25519');
    const { iat = 0 } = payload;
    expect(payload).toEqual({
      ...{ iss: service.url, aud: `${service.url}/v2/account-members`, sub: jane.user, scope: jane.user },
      ...{ realm_id: accounts, store_id: await db.engine.access.storeId(), ancestors: '' },
      ...{ account_member_self_management: 'disabled', iat, exp: iat + 86_400, auth_time: iat },
      ...{ jti: expect.any(String), amr: ['pwd'], pid: jane.info, cv: expect.any(String) },
      mechanism: 'password',
    });
  });

  test('ignores the case of the username, an Idempotency-Key and unknown members', async () => {
    const body = passwordBody({ ...jane, username: jane.username.toUpperCase() }, { name: 'x' });
    const headers = { 'Idempotency-Key': 'one' };
    const [first, second] = [await signIn(body, headers), await signIn(body, headers)];
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(await first.text()).not.toBe(await second.text());
  });

  test.each([
    ['of 1,024 bytes', 'x'.repeat(1_024), 'x'.repeat(1_024)],
    ['with a NUL', 'right\0horse', 'right\0horse'],
    ['of 73 bytes', 'x'.repeat(73), 'x'.repeat(73)],
    // U+00E9 of one keyboard, e and U+0301 of another.
    ['in NFD that was stored in NFC', 'caf\u00e9 au lait', 'cafe\u0301 au lait'],
    ['in NFC that was stored in NFD', 'cafe\u0301 au lait', 'caf\u00e9 au lait'],
  ])('accepts a password %s, and a username in the other normalisation form', async (_, stored, typed) => {
    const username = `ren\u00e9-${systemClock.mintId()}`;
    const rene = await createPassword(db, accounts, { username, hash: undefined });
    const path = `/v2/authentication-realms/${accounts}/user-authentication-info/${rene.user}/user-authentication-password-profile-info/${rene.info}`;
    const data = { type: passwordProfileInfo.type, id: rene.info, password: stored };
    const writer = await service.token('password-profile-infos:write');
    expect((await service.put(path, writer, { data })).status).toBe(200);
    const of = { ...rene, username: username.normalize('NFD') };
    expect((await signIn(passwordBody(of, { password: typed }))).status).toBe(201);
    expect((await signIn(passwordBody(of, { password: `${typed.slice(0, -1)}y` }))).status).toBe(400);
  });

  test('pages of no account are empty, and a limit above 100 is 400', async () => {
    const send = (query: string) =>
      service.post(`${ACCOUNT_TOKENS}?${query}`, token, passwordBody(jane), {
        'Authrealm-End-User-Address': '192.0.2.2',
      });
    expect(await (await send('page[limit]=1&page[offset]=1')).json()).toMatchObject({
      data: [],
      meta: { account_member_id: jane.user, results: { total: 1 } },
    });
    expect((await send('page[limit]=101')).status).toBe(400);
  });

  test('has the lifetime of the settings, and no token if members have no accounts', async () => {
    const type = 'account_authentication_settings';
    const put = (data: object) =>
      service.put('/v2/settings/account-authentication', token, { data: { type, ...data } });
    const accountsOff = {
      account_management_authentication_token_timeout_secs: 60,
      auto_create_account_for_account_members: false,
    };
    const before = clock.now();
    await put({ account_management_authentication_token_timeout_secs: 60 });
    const { data } = (await (await signIn(passwordBody(jane))).json()) as AccountTokensAnswer;
    const lifetime = Date.parse(data[0]?.expires ?? '') - before;
    expect([lifetime > 55_000, lifetime < 65_000]).toEqual([true, true]);
    await put(accountsOff);
    const empty = await signIn(passwordBody(jane));
    expect([empty.status, await empty.json()]).toMatchObject([
      201,
      { data: [], meta: { account_member_id: jane.user, results: { total: 0 } } },
    ]);
    await put({
      account_management_authentication_token_timeout_secs: 86_400,
      auto_create_account_for_account_members: true,
    });
  });
});

describe('a sign-in that fails', () => {
  test('is 400 with the detail that clients know, and nothing else', async () => {
    const answer = await signIn(passwordBody(jane, { password: 'another horse' }));
    expect([answer.status, await answer.json()]).toEqual([
      400,
      {
        errors: [
          {
            status: '400',
            title: 'Bad Request',
            detail: 'authentication failed',
            code: 'authentication_failed',
          },
        ],
      },
    ]);
    expect([...answer.headers.keys()].sort()).toEqual([
      'cache-control',
      'content-length',
      'content-type',
      'date',
      'x-request-id',
    ]);
  });

  const long = 'x'.repeat(1_025);
  test.each([
    ['an unknown username', { username: 'nobody@example.com' }],
    ['an unknown profile', { password_profile_id: systemClock.mintId() }],
    ['a profile that is no ID', { password_profile_id: 'none' }],
    ['an over-long password', { password: long }],
    ['an over-long username', { username: long }],
    ['an empty password', { password: '' }],
    ['an empty username', { username: '' }],
    ['a username with NUL', { username: `${jane.username}\0` }],
    ['a username with a lone surrogate', { username: `${jane.username}\ud800` }],
    ['a password with NUL', { password: `${jane.password}\0` }],
    ['a password of 1,024 bytes', { password: 'x'.repeat(1_024) }],
    ['a lone surrogate', { password: `${jane.password}\ud800` }],
    ['another case of the password', { password: jane.password.toUpperCase() }],
  ])('%s is answered byte for byte as a wrong password', async (_, more) => {
    expect(await comparableResponse(await signIn(passwordBody(jane, more)))).toBe(WRONG);
  });

  test('sign-ins of an unknown profile are never throttled, because nothing is checked', async () => {
    const unknown = passwordBody(jane, { password_profile_id: systemClock.mintId() });
    for (let count = 0; count < 11; count += 1)
      expect(await comparableResponse(await signIn(unknown))).toBe(WRONG);
  });

  test('a user of another profile and one without a hash are answered as a wrong password', async () => {
    const other = await createPassword(db, accounts);
    const hashless = await createPassword(db, accounts, { profile: jane.profile, hash: undefined });
    // Of cost 13, which costs more than a check may.
    const costly = await createPassword(db, accounts, {
      profile: jane.profile,
      hash: `$2b$13$${'A'.repeat(53)}`,
    });
    for (const fixture of [{ ...other, profile: jane.profile }, hashless, costly])
      expect(await comparableResponse(await signIn(passwordBody(fixture)))).toBe(WRONG);
  });

  test('a profile and a user with the IDs of another realm are not signed in by that realm', async () => {
    const another = systemClock.mintId();
    await insertRecord(db, realm, [another], realmMembers);
    const members = { name: 'Passwords', username_format: 'any', enable_one_time_password_token: false };
    await insertRecord(db, passwordProfile, [another, jane.profile], members);
    const password = 'of the other realm';
    const copied = await createPassword(db, another, { ...jane, info: systemClock.mintId(), password });
    const elsewhere = await createPassword(db, another, { password });
    for (const of of [copied, elsewhere])
      expect(await comparableResponse(await signIn(passwordBody(of)))).toBe(WRONG);
    expect((await signIn(passwordBody(jane))).status).toBe(201);
  });

  test('the log has the reason of a sign-in to another realm than that of accounts, and no username', async () => {
    const shop = await service.client('sign-in');
    const body = passwordBody(await createPassword(db, buyers));
    const answer = await requestTokens(service, await service.grant(shop), body);
    expect(await comparableResponse(answer)).toBe(WRONG);
    const refusals = `select detail from act where action = 'access.refused' and actor = '${shop.clientId}'`;
    expect(await service.database.query<object>(refusals)).toEqual([
      { detail: '{"reason":"not the account realm"}' },
    ]);
  });

  test('a sign-in of a user that is deleted meanwhile is answered as a wrong password, and its renewal as without a token', async () => {
    let remove = async (): Promise<unknown> => undefined;
    const own = await startService({}, (engine) => {
      const get: typeof engine.records.get = async (...args) => {
        if (args[0].name === user.name) await remove();
        return engine.records.get(...args);
      };
      return { ...engine, records: { ...engine.records, get } };
    });
    const { accounts: realmId } = await createSettingsRealms(own.db);
    const access = await signInTokenOf(own);
    const writer = await own.token('users:write');
    const removing = async (of: PasswordFixture) => {
      const path = `/v2/authentication-realms/${realmId}/user-authentication-info/${of.user}`;
      expect((await own.del(path, writer)).status).toBe(204);
    };
    const [first, second] = [await createPassword(own.db, realmId), await createPassword(own.db, realmId)];
    const headers = { [ACCOUNT_TOKEN_HEADER]: await accountTokenOf(own, access, second) };
    remove = () => removing(first);
    expect(await comparableResponse(await requestTokens(own, access, passwordBody(first)))).toBe(WRONG);
    remove = () => removing(second);
    expect((await requestTokens(own, access, RENEWAL, headers)).status).toBe(401);
  });

  test.each([
    ['no data', {}, ['data: is missing']],
    ['no members', { data: {} }, 2],
    ['another type', { data: { ...dataOf(), type: 'account_member' } }, 1],
    ['another mechanism', { data: { ...dataOf(), authentication_mechanism: 'passwordless' } }, 1],
    ['self-signup', { data: { ...dataOf(), authentication_mechanism: 'self_signup' } }, 2],
    ['a password that is a number', { data: { ...dataOf(), password: 12_345_678 } }, 1],
    ['no username and no password', { data: { ...dataOf(), username: undefined, password: undefined } }, 2],
    ['a username that is null', { data: { ...dataOf(), username: null } }, 1],
  ])('%s is 400 with a source for each error', async (_, body, expected) => {
    const answer = await signIn(body);
    const errors = await errorsOf(answer);
    expect([answer.status, errors.every(({ source }) => source?.pointer !== undefined)]).toEqual([400, true]);
    if (typeof expected === 'number') expect(errors).toHaveLength(expected);
    else expect(errors.map(({ detail }) => detail)).toEqual(expected);
  });

  test('a body that is not JSON is 400', async () => {
    const answer = await requestTokens(service, token, '{');
    expect([answer.status, (await errorsOf(answer)).length]).toEqual([400, 1]);
  });
});

function dataOf(): object {
  return (passwordBody(jane) as { readonly data: object }).data;
}

describe('the caller of the token call', () => {
  test('needs the scope sign-in, which no other scope includes', async () => {
    const other = await service.token('admin settings:write users:write password-profile-infos:write');
    expect((await requestTokens(service, other, passwordBody(jane))).status).toBe(403);
  });

  test.each([
    ['a sign-in', passwordBody(jane)],
    ['a renewal', RENEWAL],
    ['a sign-in of an unknown profile', passwordBody({ ...jane, profile: systemClock.mintId() })],
  ])('must report the address of the end user for %s', async (_, body) => {
    for (const headers of [{}, { 'Authrealm-End-User-Address': 'nowhere' }]) {
      const answer = await service.post(ACCOUNT_TOKENS, token, body, headers);
      expect([answer.status, (await errorsOf(answer))[0]?.source?.parameter]).toEqual([
        400,
        'Authrealm-End-User-Address',
      ]);
    }
  });

  test.each(['192.0.2.1:5000', '[2001:db8::1]', '[2001:db8::1]:5000', ' 192.0.2.1 '])(
    'may report the address of the end user as proxies write it: %p',
    async (address) => {
      const answer = await service.post(ACCOUNT_TOKENS, token, passwordBody(jane), from(address));
      expect(answer.status).toBe(201);
    },
  );

  test('of other realms gets the answer to a wrong password, and its renewal 401', async () => {
    const accountToken = await accountTokenOf(service, token, jane);
    const other = await service.token('sign-in', new Set([systemClock.mintId()]));
    expect(await comparableResponse(await requestTokens(service, other, passwordBody(jane)))).toBe(WRONG);
    const headers = { [ACCOUNT_TOKEN_HEADER]: accountToken };
    expect((await requestTokens(service, other, RENEWAL, headers)).status).toBe(401);
  });

  test('cannot use an account token as its access token', async () => {
    const accountToken = await accountTokenOf(service, token, jane);
    expect((await service.get('/v2/settings', accountToken)).status).toBe(401);
    expect((await renew(token)).status).toBe(401);
  });
});
