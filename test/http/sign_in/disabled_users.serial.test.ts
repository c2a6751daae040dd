import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { openLogReading } from '../../../src/log/reading.ts';
import { user } from '../../../src/model/resources.ts';
import { createKeyPair, issue, startIssuer } from '../../support/issuers.ts';
import { createOidcProfile } from '../../support/oidc_sign_in.ts';
import { verifyCleanRecords } from '../../support/record_verification.ts';
import { comparableResponse, startService } from '../../support/service.ts';
import { createSettingsRealms } from '../../support/settings_realms.ts';
import {
  ACCOUNT_TOKEN_HEADER,
  type AccountTokensAnswer,
  accountTokenOf,
  createPassword,
  DEVICE_HEADER,
  END_USER,
  enableSelfSignup,
  from,
  openGuesses,
  type PasswordFixture,
  passwordBody,
  RENEWAL,
  requestTokens,
  selfSignupBody,
  signInTokenOf,
} from '../../support/sign_in.ts';

setDefaultTimeout(120_000);

/** Users who cannot sign in: docs/wire.md#disabled-users. Sign-ins through providers are in test/compat/oidc_identities.test.ts. */

const flags = { trustedProxies: '127.0.0.1', tokenLifetime: '86400' };
const service = await startService({ ...flags, allowPrivate: 'localhost 127.0.0.0/8' });
const { db } = service;
const { accounts: realm } = await createSettingsRealms(db);
const token = await signInTokenOf(service, { scope: 'sign-in sign-up' });
const admin = await service.token('users:read users:write settings:write');
const { statusOf, guess } = openGuesses(service, token);
const WRONG = 'wrong horse battery staple';

const USERS = `/v2/authentication-realms/${realm}/${user.collection}`;
const pathOf = ({ user: id }: Person) => `${USERS}/${id}`;
type Person = Pick<PasswordFixture, 'user'>;
const put = (person: Person, data: object) =>
  service.put(pathOf(person), admin, { data: { type: user.type, ...data } });
async function setEnabled(person: Person, enabled: boolean): Promise<void> {
  expect((await put(person, { enabled })).status).toBe(200);
}
async function createDisabled(): Promise<PasswordFixture> {
  const person = await createPassword(db, realm);
  await setEnabled(person, false);
  return person;
}

async function dataOf<T = Record<string, unknown>>(answer: Response): Promise<T> {
  return ((await answer.json()) as { data: T }).data;
}

/** An address that no other attempt has. */
let addresses = 0;
const elsewhere = (more: Record<string, string> = {}) => {
  addresses += 1;
  return from(`10.7.${addresses >> 8}.${addresses & 255}`, more);
};
const signIn = (person: PasswordFixture, password = person.password, headers = elsewhere()) =>
  requestTokens(service, token, passwordBody(person, { password }), headers);
const renew = (accountToken: string) =>
  requestTokens(service, token, RENEWAL, { [ACCOUNT_TOKEN_HEADER]: accountToken });
const readSelf = (accountToken: string, { user: id }: PasswordFixture) =>
  service.get(`/v2/account-members/${id}`, token, { ...END_USER, [ACCOUNT_TOKEN_HEADER]: accountToken });

/** Responses that must be the same, byte for byte. */
async function expectSame(answer: Response, expected: Response): Promise<void> {
  expect(await comparableResponse(answer)).toBe(await comparableResponse(expected));
}

describe('the member enabled', () => {
  test('enabled is shown only where it is false, kept by an update without it, and true again by an update', async () => {
    const person = await createPassword(db, realm);
    const read = async () => dataOf(await service.get(pathOf(person), admin));
    expect(await read()).not.toHaveProperty('enabled');
    const disabled = await put(person, { enabled: false });
    const [text, etag] = [await disabled.text(), disabled.headers.get('etag')];
    expect(text).toContain('"family_name":"Doering","enabled":false,"meta":{');
    expect([await (await service.get(pathOf(person), admin)).text(), typeof etag]).toEqual([text, 'string']);
    const renamed = await dataOf(await put(person, { name: 'Other' }));
    expect(renamed).toMatchObject({ name: 'Other', enabled: false });
    expect(await dataOf(await put(person, { enabled: true }))).not.toHaveProperty('enabled');
  });

  test('a user is created disabled, with a password that signs in once the user is enabled', async () => {
    const { profile } = await createPassword(db, realm);
    const writer = await service.token('users:write password-profile-infos:write');
    const link = { type: 'user_authentication_password_profile_info', password_profile_id: profile };
    const body = {
      data: { type: user.type, name: 'Jill', email: 'jill@example.com', enabled: false },
      included: [{ ...link, username: 'created-disabled', password: 'correct horse' }],
    };
    const created = await service.post(USERS, writer, body);
    const { id, enabled } = await dataOf<{ id: PasswordFixture['user']; enabled: unknown }>(created);
    expect([created.status, enabled]).toEqual([201, false]);
    const jill = { realm, profile, user: id, username: 'created-disabled', password: 'correct horse' };
    const person = { ...jill, info: id };
    expect((await signIn(person)).status).toBe(400);
    await setEnabled(person, true);
    expect((await signIn(person)).status).toBe(201);
  });

  test('a list of users, and one of account members, is filtered by enabled', async () => {
    const [disabled, other] = [await createDisabled(), await createPassword(db, realm)];
    const ids = async (path: string, filter: string) => {
      const query = new URLSearchParams({ filter: `${filter}:in(id,${disabled.user},${other.user})` });
      const data = await dataOf<{ id: string }[]>(await service.get(`${path}?${query}`, admin));
      return data.map(({ id }) => id);
    };
    for (const path of [USERS, '/v2/account-members']) {
      expect(await ids(path, 'eq(enabled,false)')).toEqual([disabled.user]);
      expect(await ids(path, 'eq(enabled,true)')).toEqual([other.user]);
    }
    for (const filter of ['eq(enabled,no)', 'eq(enabled,0)', 'in(enabled,true)', 'is_null(enabled)'])
      expect((await service.get(`${USERS}?filter=${filter}`, admin)).status).toBe(400);
  });

  test('the feed and the log report that a user was disabled, and that its links were touched', async () => {
    const person = await createPassword(db, realm);
    const { records } = db.engine;
    const changesSince = async (seq: number) => records.changes(realm, seq, 1_000);
    const before = (await changesSince(0)).at(-1)?.seq ?? 0;
    await setEnabled(person, false);
    const changes = await changesSince(before);
    expect(changes.map(({ event, id, members }) => [event, id, members])).toEqual([
      ['user-authentication-info.updated', person.user, ['enabled']],
      ['user-authentication-password-profile-info.updated', person.info, ['updated_at']],
    ]);
    expect(new Set(changes.map(({ actor, requestId, at }) => `${actor} ${requestId} ${at}`)).size).toBe(1);
    const reading = openLogReading(db.engine.log, db.logKeys);
    const [entry] = await reading.entries(realm, before, 1);
    expect(entry?.detail).toEqual({ before: { enabled: true }, after: { enabled: false } });
    const state = await changesSince(0);
    for (const data of [{ enabled: false }, { enabled: true }, { enabled: true }]) await put(person, data);
    const later = (await changesSince(0)).slice(state.length);
    expect(later.map(({ id }) => id)).toEqual([person.user, person.user, person.user]);
  });
});

describe('the answers to a disabled user', () => {
  test('a right password of a disabled user is answered as a wrong one by the token call, also with an earlier device token', async () => {
    const person = await createPassword(db, realm);
    const device = (await signIn(person)).headers.get(DEVICE_HEADER) ?? '';
    await setEnabled(person, false);
    const wrong = await comparableResponse(await signIn(person, WRONG));
    for (const headers of [elsewhere(), elsewhere({ [DEVICE_HEADER]: device })])
      expect(await comparableResponse(await signIn(person, person.password, headers))).toBe(wrong);
    const nobody = { ...person, username: 'nobody' };
    expect(await comparableResponse(await signIn(nobody))).toBe(wrong);
  });

  test('a right password of a disabled user is answered as a wrong one by a check', async () => {
    const person = await createDisabled();
    const path = `/v2/authentication-realms/${realm}/password-profiles/${person.profile}/check`;
    const check = (password: string) => {
      const data = { type: 'password_check', username: person.username, password };
      return service.post(path, token, { data }, elsewhere());
    };
    await expectSame(await check(person.password), await check(WRONG));
    await setEnabled(person, true);
    expect(await dataOf(await check(person.password))).toMatchObject({ verified: true });
  });

  test('an ID token of a disabled user is answered as an invalid one by a check, and makes and links no user', async () => {
    const provider = await startIssuer();
    const pair = await createKeyPair('one');
    provider.publish(pair.publicJwk);
    const profile = await createOidcProfile(db, realm, provider.issuer);
    const linker = await signInTokenOf(service, { scope: 'sign-in sign-up oidc-profile-infos:write' });
    const check = async (claims: object, more: object = {}) => {
      const now = Math.floor(service.clock.now() / 1000);
      const times = { iss: provider.issuer, aud: 'shop', iat: now, exp: now + 300 };
      const id_token = await issue(pair, { ...times, email_verified: true, ...claims }, { typ: 'JWT' });
      const path = `/v2/authentication-realms/${realm}/oidc-profiles/${profile}/check`;
      return service.post(path, linker, { data: { type: 'oidc_check', id_token, ...more } }, elsewhere());
    };
    const jane = { sub: 'jane', email: 'jane.of.a.provider@example.com' };
    const outcomeOf = async (answer: Response) => {
      const { outcome, relationships } = await dataOf<{
        outcome: string;
        relationships: Record<string, { data: { id: PasswordFixture['user'] } } | undefined>;
      }>(answer);
      return [outcome, relationships?.[user.type]?.data.id] as const;
    };
    const [created, id] = await outcomeOf(await check(jane));
    if (created !== 'created' || !id) throw new Error(`the check was answered ${created}`);
    const other = await createDisabled();
    await setEnabled({ user: id }, false);
    const invalid = await comparableResponse(await check({ ...jane, aud: 'another' }));
    const { length } = await db.engine.records.changes(realm, 0, 10_000);
    for (const [claims, more] of [
      [jane, {}],
      [{ ...jane, email: 'new@example.com' }, {}],
      [jane, { user_authentication_info_id: id }],
      [{ sub: 'joe' }, { user_authentication_info_id: other.user }],
    ] as const)
      expect(await comparableResponse(await check(claims, more))).toBe(invalid);
    expect(await db.engine.records.changes(realm, 0, 10_000)).toHaveLength(length);
    await setEnabled({ user: id }, true);
    expect(await outcomeOf(await check(jane))).toEqual(['known', id]);
  });

  test('an account token is answered as one that is not valid, while its user is disabled and after', async () => {
    const person = await createPassword(db, realm);
    const accountToken = await accountTokenOf(service, token, person);
    expect((await renew(accountToken)).status).toBe(201);
    expect((await readSelf(accountToken, person)).status).toBe(200);
    for (const enabled of [false, true]) {
      await setEnabled(person, enabled);
      await expectSame(await renew(accountToken), await renew('none'));
      await expectSame(await readSelf(accountToken, person), await readSelf('none', person));
    }
    const again = await accountTokenOf(service, token, person);
    expect((await renew(again)).status).toBe(201);
  });

  test('a self-signup with the username of a disabled user is answered as with any that is taken', async () => {
    await enableSelfSignup(service, admin);
    const enabled = await createPassword(db, realm);
    const disabled = await createPassword(db, realm, { profile: enabled.profile });
    await setEnabled(disabled, false);
    const signUp = ({ profile, username }: PasswordFixture) =>
      requestTokens(service, token, selfSignupBody(profile, username), elsewhere());
    const taken = await signUp(enabled);
    expect(taken.status).toBe(422);
    await expectSame(await signUp(disabled), taken);
    expect((await signIn(disabled, 'correct horse battery')).status).toBe(400);
  });
});

describe('the budgets of a disabled user', () => {
  test('right passwords of a disabled user exhaust the budgets as wrong ones of another user do', async () => {
    const [disabled, other] = [await createDisabled(), await createPassword(db, realm)];
    const attempts = async (person: PasswordFixture, password: string, network: string) => {
      const statuses: number[] = [];
      for (let count = 0; count < 20; count += 1)
        statuses.push(await statusOf(person, password, from(`${network}.0.1`)));
      for (let count = 0; count < 100; count += 1)
        statuses.push(await statusOf(person, password, from(`${network}.1.${count}`)));
      return statuses;
    };
    const right = await attempts(disabled, disabled.password, '10.8');
    expect(right).toEqual(await attempts(other, WRONG, '10.9'));
    // Of a name and network ten are checked, and of a name a hundred.
    expect(right.slice(0, 20)).toEqual([...new Array(10).fill(400), ...new Array(10).fill(429)]);
    expect(right.filter((status) => status === 400)).toHaveLength(100);
  });

  test('a device token from before a user was disabled is not valid after the user is enabled, and a later one is', async () => {
    const [person, other] = [await createPassword(db, realm), await createPassword(db, realm)];
    const deviceOf = async (of: PasswordFixture) => ({
      [DEVICE_HEADER]: (await signIn(of)).headers.get(DEVICE_HEADER) ?? '',
    });
    const [before, control] = [await deviceOf(person), await deviceOf(other)];
    for (const enabled of [false, true]) await setEnabled(person, enabled);
    const after = await deviceOf(person);
    let network = 0;
    for (const each of [person, other]) {
      network += 1;
      await guess(each, 101, (index) => `10.1${network}.0.${index}`);
    }
    const statuses: number[] = [];
    for (const [owner, device] of [
      [person, before],
      [person, after],
      [other, control],
    ] as const)
      statuses.push((await signIn(owner, owner.password, elsewhere(device))).status);
    expect(statuses).toEqual([429, 201, 201]);
  });
});

/** Disables a user while a request runs. Resolves to the account token that its answer has, if it has one. */
async function disableDuring(person: PasswordFixture, request: () => Promise<Response>) {
  const [answer] = await Promise.all([request(), setEnabled(person, false)]);
  if (answer.status !== 201) return { status: answer.status, token: undefined };
  const { data } = (await answer.json()) as AccountTokensAnswer;
  return { status: 201, token: data[0]?.token };
}

const ROUNDS = 20;

test('a sign-in while its user is disabled is refused, or gives a token that does not renew', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const person = await createPassword(db, realm);
    const { status, token: made } = await disableDuring(person, () => signIn(person));
    expect([201, 400]).toContain(status);
    await setEnabled(person, true);
    if (made) expect((await renew(made)).status).toBe(401);
  }
});

test('a renewal while its user is disabled is refused, or gives a token that does not renew', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const person = await createPassword(db, realm);
    const accountToken = await accountTokenOf(service, token, person);
    const { status, token: made } = await disableDuring(person, () => renew(accountToken));
    expect([201, 401]).toContain(status);
    await setEnabled(person, true);
    if (made) expect((await renew(made)).status).toBe(401);
    expect((await renew(accountToken)).status).toBe(401);
  }
});

test('the records match the log after users were disabled and enabled', async () => {
  await verifyCleanRecords(service.database);
});
