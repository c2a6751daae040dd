import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { Uuid } from '../../../src/model/id.ts';
import { passwordProfile, user } from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { comparableResponse, errorsOf, insertRecord, startService } from '../../support/service.ts';
import { createSettingsRealms, createStorefront } from '../../support/settings_realms.ts';
import {
  ACCOUNT_TOKEN_HEADER,
  ACCOUNT_TOKENS,
  type AccountTokensAnswer,
  createPassword,
  DEVICE_HEADER,
  enableSelfSignup,
  from,
  manyOf,
  openGuesses,
  RENEWAL,
  requestTokens,
  selfSignupBody,
  signInTokenOf,
} from '../../support/sign_in.ts';

// Some tests hash a hundred passwords.
setDefaultTimeout(60_000);

/** The mechanism `self_signup` of the token call: docs/wire.md#account-tokens. */

const PASSWORD = 'correct horse battery';

const service = await startService({ trustedProxies: '127.0.0.1', tokenLifetime: '86400' });
const { db, clock } = service;
const { accounts, merchants } = await createSettingsRealms(db);
const token = await signInTokenOf(service, {
  scope: 'sign-in sign-up settings:write realms:write users:read password-profile-infos:read',
});
const { statusOf } = openGuesses(service, token);

async function createProfile(realm: Uuid, username_format: 'any' | 'email' = 'any'): Promise<Uuid> {
  const id = systemClock.mintId();
  const members = { name: 'Passwords', username_format, enable_one_time_password_token: false };
  await insertRecord(db, passwordProfile, [realm, id], members);
  return id;
}

const profile = await createProfile(accounts);

await enableSelfSignup(service, token);

let count = 0;
const uniqueName = () => `jill-${process.pid}-${++count}@example.com`;
/** An address that no other sign-up has. */
const elsewhere = () => from(`10.0.${++count >> 8}.${count & 255}`);

const bodyOf = (given: object = {}) =>
  selfSignupBody(profile, uniqueName(), { password: PASSWORD, ...given });
const signUp = (given: object = {}, headers = elsewhere()) =>
  requestTokens(service, token, bodyOf(given), headers);
const memberOf = async (answer: Response) =>
  ((await answer.json()) as AccountTokensAnswer).meta.account_member_id as Uuid;
const pointersOf = async (answer: Response) =>
  [...new Set((await errorsOf(answer)).map(({ source }) => source?.pointer))].sort();
const signInOf = (username: string, info: Uuid = profile) => ({
  ...{ realm: accounts, profile: info, user: accounts, info, username, password: PASSWORD },
});

describe('a self-signup', () => {
  test('is answered with an account token, as a sign-in is, which can be renewed', async () => {
    const answer = await signUp({ middle_name: null, family_name: 'Hill' });
    const { data, meta } = (await answer.json()) as AccountTokensAnswer;
    const id = meta.account_member_id;
    expect([answer.status, data]).toMatchObject([201, [{ account_id: id, account_name: 'Jill Hill' }]]);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const headers = { [ACCOUNT_TOKEN_HEADER]: data[0]?.token ?? '' };
    expect((await requestTokens(service, token, RENEWAL, headers)).status).toBe(201);
    const read = await service.get(
      `/v2/authentication-realms/${accounts}/user-authentication-info/${id}`,
      token,
    );
    expect(((await read.json()) as { data: object }).data).toMatchObject({
      ...{ id, name: 'Jill Hill', email: 'jill@example.com', family_name: 'Hill' },
      ...{ given_name: null, middle_name: null, meta: { creation_status: 'COMPLETE' } },
    });
  });

  test('creates the user and the link in one commit, and nobody vouches for the address', async () => {
    const id = await memberOf(await signUp({ email_vouched: true, meta: { email_vouched: true } }));
    const last = (await db.engine.records.changes(accounts, 0, 1_000)).slice(-2);
    expect(last.map(({ event, user: of }) => [event, of])).toEqual([
      ['user-authentication-info.created', id],
      ['user-authentication-password-profile-info.created', id],
    ]);
    expect(new Set(last.map(({ actor, at, requestId }) => `${actor} ${at} ${requestId}`)).size).toBe(1);
    expect(await db.engine.records.getStored(user, [accounts, id])).toMatchObject({ email_vouched: false });
  });

  test('has a device token, with which wrong passwords of others do not count for the user', async () => {
    const username = uniqueName();
    const device = (await signUp({ username })).headers.get(DEVICE_HEADER) ?? '';
    const of = signInOf(username);
    for (let wrong = 0; wrong < 10; wrong += 1)
      expect(await statusOf(of, 'wrong horse', from('192.0.2.10'))).toBe(400);
    expect(await statusOf(of, PASSWORD, from('192.0.2.10'))).toBe(429);
    expect(await statusOf(of, PASSWORD, from('192.0.2.10', { [DEVICE_HEADER]: device }))).toBe(201);
  });

  test.each([
    ['of 1,024 bytes', 'x'.repeat(1_024)],
    ['with a NUL', 'right\0horse'],
    ['of 8 characters', 'eightchr'],
  ])('accepts a password %s', async (_, password) => {
    const username = uniqueName();
    expect((await signUp({ username, password })).status).toBe(201);
    expect(await statusOf(signInOf(username), password, elsewhere())).toBe(201);
  });

  test('creates another user where somebody has the e-mail address, also if the API alone may repeat one', async () => {
    const path = `/v2/authentication-realms/${accounts}`;
    const data = { type: 'authentication-realm', duplicate_email_policy: 'api_only' };
    expect((await service.put(path, token, { data })).status).toBe(200);
    const ids = [await memberOf(await signUp()), await memberOf(await signUp())];
    expect(new Set(ids).size).toBe(2);
  });

  test('an Idempotency-Key has no effect', async () => {
    const given = { username: uniqueName() };
    const headers = { ...elsewhere(), 'Idempotency-Key': 'one' };
    expect([(await signUp(given, headers)).status, (await signUp(given, headers)).status]).toEqual([
      201, 422,
    ]);
  });
});

describe('a self-signup that breaks a rule', () => {
  const long = 'x'.repeat(256);
  const MEMBERS = ['email', 'name', 'password', 'password_profile_id', 'username'];
  const nothing = Object.fromEntries(MEMBERS.map((name) => [name, undefined]));

  test.each([
    ['without members', nothing, MEMBERS],
    ['of another type', { type: 'account_member' }, ['type']],
    ['with a profile that is null', { password_profile_id: null }, ['password_profile_id']],
    ['with a username that is blank', { username: ' ' }, ['username']],
    ['with a username that is a number', { username: 1 }, ['username']],
    ['with a password of 7 characters', { password: 'seven c' }, ['password']],
    ['with a password of 1,025 bytes', { password: 'x'.repeat(1_025) }, ['password']],
    ['with an e-mail address that is none', { email: 'jill' }, ['email']],
    ['with long names', { name: long, given_name: long }, ['given_name', 'name']],
    ['with a family name that is a number', { family_name: 1 }, ['family_name']],
    ['with several errors', { name: '', email: 'jill', password: 'short' }, ['email', 'name', 'password']],
  ])('%s, is 400 with a source for each error', async (_, given, members) => {
    const answer = await signUp(given);
    expect([answer.status, await pointersOf(answer)]).toEqual([400, members.map((name) => `/data/${name}`)]);
  });

  test('of a username that is taken, or differs by what folding removes, is 422 as a create is', async () => {
    const username = uniqueName();
    expect((await signUp({ username })).status).toBe(201);
    const folded = username.toUpperCase().replace('JILL', '\uff2a\uff29\uff2c\u00ad\uff2c');
    for (const taken of [username, username.toUpperCase(), folded]) {
      const answer = await signUp({ username: taken });
      expect([answer.status, await pointersOf(answer)]).toEqual([
        422,
        ['/data/password_profile_id', '/data/username'],
      ]);
    }
  });

  test('of a username that is no e-mail address, is 422 where the profile requires one', async () => {
    const emails = await createProfile(accounts, 'email');
    const answer = await signUp({ username: 'jill', password_profile_id: emails });
    expect([answer.status, await pointersOf(answer)]).toEqual([422, ['/data/username']]);
    expect((await signUp({ password_profile_id: emails })).status).toBe(201);
  });

  test('of an unknown profile, one of another realm, or a realm outside of the list, is as a wrong password', async () => {
    const jane = await createPassword(db, accounts);
    const wrong = { ...jane, password: 'wrong horse' };
    const expected = await comparableResponse(
      await openGuesses(service, token).signIn(wrong, 'x', elsewhere()),
    );
    const foreign = await createProfile(merchants);
    for (const password_profile_id of ['nowhere', systemClock.mintId(), foreign])
      expect(await comparableResponse(await signUp({ password_profile_id }))).toBe(expected);
    const outside = await service.token('sign-in sign-up', new Set([merchants]));
    expect(await comparableResponse(await requestTokens(service, outside, bodyOf()))).toBe(expected);
  });

  test('needs the scope sign-up and the setting, which ends self-signup at the next request', async () => {
    const others = await signInTokenOf(service);
    const refused = await requestTokens(service, others, bodyOf(), elsewhere());
    expect([refused.status, (await errorsOf(refused))[0]?.detail]).toEqual([
      403,
      'forbidden: needs the scope sign-up',
    ]);
    const alone = await service.token('sign-up');
    expect((await requestTokens(service, alone, bodyOf(), elsewhere())).status).toBe(403);
    await enableSelfSignup(service, token, false);
    const off = await signUp();
    await enableSelfSignup(service, token);
    expect([off.status, (await errorsOf(off))[0]?.detail]).toEqual([
      403,
      'forbidden: enable_self_signup is false in the account settings',
    ]);
    expect((await signUp()).status).toBe(201);
  });
});

describe('many self-signups', () => {
  test('of one name at once: one wins, and one user exists', async () => {
    const username = uniqueName();
    const send = () => requestTokens(service.withoutRetry, token, bodyOf({ username }), elsewhere());
    const answers = await Promise.all(Array.from({ length: 64 }, send));
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 201)).toHaveLength(1);
    expect(new Set(statuses)).toEqual(new Set([201, 422, 503]));
    const filter = `filter=eq(username,${username}):eq(password_profile_id,${profile})`;
    const path = `/v2/authentication-realms/${accounts}/user-authentication-password-profile-info?${filter}`;
    expect(await (await service.get(path, token)).json()).toMatchObject({ data: [{ username }] });
  });

  test.each([
    ['an address', () => '192.0.2.40', '192.0.2.41'],
    ['a /64', (at: number) => `2001:db8:40:1::${at}`, '2001:db8:40:2::1'],
  ])(
    'from %s are 429 after ten in 15 minutes, whether or not the username is taken',
    async (_, addressOf, other) => {
      const taken = { username: uniqueName() };
      const statuses: number[] = [];
      for (let at = 1; at <= 12; at += 1)
        statuses.push((await signUp(at % 2 ? {} : taken, from(addressOf(at)))).status);
      expect(statuses).toEqual([201, 201, ...[201, 422, 201, 422, 201, 422, 201, 422], 429, 429]);
      const refused = await signUp({}, from(addressOf(1)));
      expect([refused.status, Number(refused.headers.get('retry-after')) <= 90]).toEqual([429, true]);
      expect((await signUp({}, from(other))).status).toBe(201);
      clock.advance(90_000);
      expect([
        (await signUp({}, from(addressOf(1)))).status,
        (await signUp({}, from(addressOf(1)))).status,
      ]).toEqual([201, 429]);
    },
  );

  test('of a client that reports no addresses are 429 after 60 in a minute', async () => {
    const unaddressed = await signInTokenOf(service, { scope: 'sign-in sign-up', endUserAddress: 'none' });
    const statuses: number[] = [];
    const startedAt = clock.now();
    for (let sent = 0; sent < 60; sent += 1)
      statuses.push((await requestTokens(service, unaddressed, bodyOf(), elsewhere())).status);
    expect(statuses).toEqual(manyOf(201, 60));
    // One more for each second that this took.
    const more = Math.ceil((clock.now() - startedAt) / 1_000) + 2;
    for (let sent = 0; sent < more; sent += 1)
      statuses.push((await requestTokens(service, unaddressed, bodyOf(), elsewhere())).status);
    expect(statuses).toContain(429);
  });

  test('by the ID of a client alone count for the address of the connection, but not in a network of the storefront', async () => {
    const rate = { requests: 1_000, seconds: 60 };
    const { clientId } = await createStorefront(service, accounts, rate, ['203.0.113.64/28']);
    const granted = await service.requestToken({ grant_type: 'implicit', client_id: clientId });
    const { access_token } = (await granted.json()) as { access_token: string };
    const statusesFrom = async (connection: string) => {
      const statuses: number[] = [];
      for (let sent = 0; sent < 11; sent += 1) {
        const headers = { ...elsewhere(), 'X-Forwarded-For': connection };
        statuses.push((await service.post(ACCOUNT_TOKENS, access_token, bodyOf(), headers)).status);
      }
      return statuses;
    };
    expect(await statusesFrom('203.0.113.50')).toEqual([...manyOf(201, 10), 429]);
    expect(await statusesFrom('203.0.113.70')).toEqual(manyOf(201, 11));
  });
});

test('metrics count self-signups by outcome, and the log has their sign-ins without names', async () => {
  const own = await startService({ logSignIns: 'true' });
  const realms = await createSettingsRealms(own.db);
  const { profile: id } = await createPassword(own.db, realms.accounts);
  const access = await signInTokenOf(own, { scope: 'sign-in sign-up settings:write' });
  await enableSelfSignup(own, access);
  const body = bodyOf({ password_profile_id: id });
  const statuses: number[] = [];
  for (let sent = 0; sent < 11; sent += 1)
    statuses.push((await requestTokens(own, access, body, from('192.0.2.50'))).status);
  expect(statuses).toEqual([201, ...manyOf(422, 9), 429]);
  const families = await own.server.metrics.own();
  const counter = families.find(({ name }) => name === 'authrealm_sign_ins_total');
  const all = counter && 'samples' in counter ? counter.samples : [];
  const samples = all.filter(({ labels }) => labels.mechanism === 'self_signup');
  expect(Object.fromEntries(samples.map(({ labels, value }) => [labels.outcome, value]))).toEqual({
    ...{ known: 0, linked: 0, created: 1, refused: 9, unavailable: 0, throttled: 1, overloaded: 0 },
  });
  await own.stop();
  const entries = await own.database.query<{ action: string; detail: string; address: string | null }>(
    `select action, detail, address from act where action like 'sign-in.%' order by seq`,
  );
  expect(entries.map(({ action, address }) => [action, address])).toEqual([
    ['sign-in.succeeded', null],
    ['sign-in.throttled', '192.0.2.50'],
  ]);
  expect(JSON.stringify([own.log, entries])).not.toContain(body.data.username);
});
