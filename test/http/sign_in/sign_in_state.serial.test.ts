import { expect, setDefaultTimeout, test } from 'bun:test';
import { createAuditEntry } from '../../../src/model/log/audit_entry.ts';
import { passwordProfileInfo } from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { createFixture, insertRecord, oidcPath, type Service, startService } from '../../support/service.ts';
import { createSettingsRealms } from '../../support/settings_realms.ts';
import {
  ACCOUNT_TOKEN_HEADER,
  accountTokenOf,
  cheapHash,
  createPassword,
  DEVICE_HEADER,
  from,
  openGuesses,
  type PasswordFixture,
  passwordBody,
  RENEWAL,
  requestTokens,
  signInTokenOf,
} from '../../support/sign_in.ts';

/** How a user can sign in, and did, and the end of all sign-ins: docs/wire.md#sign-ins-of-a-user. */

setDefaultTimeout(120_000);

const service = await startService({ logSignIns: 'true', tokenLifetime: '86400' });
const { db, clock } = service;
const { accounts: realm, member } = await createSettingsRealms(db);
const token = await signInTokenOf(service);
const { guess, statusOf } = openGuesses(service, token);

interface SignInState {
  readonly type: string;
  readonly usernames: readonly {
    readonly id: string;
    readonly has_password: boolean;
    readonly throttles: readonly object[];
  }[];
  readonly are_sign_ins_logged: boolean;
  readonly sign_ins: readonly { readonly at: string; readonly link_id: string; readonly mechanism: string }[];
}

type Person = Pick<PasswordFixture, 'realm' | 'user'>;
const pathOf = (of: Person) => `/v2/authentication-realms/${of.realm}/user-authentication-info/${of.user}`;

async function stateOf(of: Person, by: Service = service): Promise<SignInState> {
  const path = `${pathOf(of)}/sign-in-state`;
  const answer = await by.get(path, await by.token('history:read'));
  const { data, links } = (await answer.json()) as { data: SignInState; links: object };
  expect([answer.status, answer.headers.get('cache-control'), links]).toEqual([
    200,
    'no-store',
    { self: by.url + path },
  ]);
  return data;
}

const signOut = async (of: Person, by = service.token('users:write')) =>
  service.post(`${pathOf(of)}/sign-out`, await by, '');

test('the state of a user says of each username whether it has a password that a sign-in accepts', async () => {
  const jane = await createPassword(db, realm, { isDisabled: true });
  const addUsername = async (hash?: string) => {
    const id = systemClock.mintId();
    await insertRecord(db, passwordProfileInfo, [realm, jane.user, id], {
      ...{ username: `jane-${id}`, password_profile_id: jane.profile },
      ...(hash === undefined ? {} : { password_hash: hash }),
    });
    return id;
  };
  const without = await addUsername();
  // A check would take too long.
  const costly = await addUsername(cheapHash('secret').replace('$04$', '$15$'));
  const { type, usernames } = await stateOf(jane);
  expect(type).toBe('sign_in_state');
  const known = Object.fromEntries(usernames.map(({ id, has_password }) => [id, has_password]));
  expect(known).toEqual({ [jane.info]: true, [without]: false, [costly]: false });
});

test('the state of a user without usernames has none, and that of an unknown user is 404', async () => {
  expect(await stateOf({ realm, user: member })).toMatchObject({ usernames: [], sign_ins: [] });
  const unknown = { realm, user: systemClock.mintId() };
  const reader = await service.token('history:read');
  expect((await service.get(`${pathOf(unknown)}/sign-in-state`, reader)).status).toBe(404);
});

test('the state of a user has the last ten sign-ins in the log with their ways, newest first', async () => {
  const jane = await createPassword(db, realm);
  const john = await createPassword(db, realm);
  const [idOf, at] = [systemClock.mintId(), clock.now()];
  for (let minute = 0; minute < 12; minute += 1) {
    const fields = { realm, user: jane.user, object: idOf, detail: { mechanism: 'oidc' } };
    const now = () => at + minute * 60_000;
    await db.engine.log.append([createAuditEntry('sign-in.succeeded', fields, { now })]);
  }
  clock.advance(3_600_000);
  await accountTokenOf(service, token, jane);
  await accountTokenOf(service, token, john);
  const { are_sign_ins_logged, sign_ins } = await stateOf(jane);
  expect(are_sign_ins_logged).toBe(true);
  expect(sign_ins.map(({ link_id, mechanism }) => [link_id, mechanism])).toEqual([
    [jane.info, 'password'],
    ...new Array(9).fill([idOf, 'oidc']),
  ]);
  expect(sign_ins[1]?.at).toBe(new Date(at + 11 * 60_000).toISOString());
  expect(sign_ins[9]?.at).toBe(new Date(at + 3 * 60_000).toISOString());
});

test('the state of a user says that sign-ins are not logged', async () => {
  const own = await startService();
  const { accounts } = await createSettingsRealms(own.db);
  const jane = await createPassword(own.db, accounts);
  await accountTokenOf(own, await signInTokenOf(own), jane);
  expect(await stateOf(jane, own)).toMatchObject({ are_sign_ins_logged: false, sign_ins: [] });
});

test('a sign-out ends account tokens and device tokens of a user, keeps the password, and is logged', async () => {
  const [jane, john] = [await createPassword(db, realm), await createPassword(db, realm)];
  const renew = async (accountToken: string) =>
    (await requestTokens(service, token, RENEWAL, { [ACCOUNT_TOKEN_HEADER]: accountToken })).status;
  const deviceOf = async (of: PasswordFixture) => {
    const answer = await requestTokens(service, token, passwordBody(of));
    return { [DEVICE_HEADER]: answer.headers.get(DEVICE_HEADER) ?? '' };
  };
  const [janes, johns] = [
    await accountTokenOf(service, token, jane),
    await accountTokenOf(service, token, john),
  ];
  const device = await deviceOf(jane);
  expect((await signOut(jane)).status).toBe(204);
  expect([await renew(janes), await renew(johns)]).toEqual([401, 201]);
  const later = await deviceOf(jane);
  expect(await renew(await accountTokenOf(service, token, jane))).toBe(201);
  await guess(jane, 100, (index) => `10.3.0.${index}`);
  const withDevice = (more: Record<string, string>, address: string) =>
    statusOf(jane, jane.password, from(address, more));
  expect([await withDevice(device, '10.4.0.1'), await withDevice(later, '10.4.0.2')]).toEqual([429, 201]);
  const acts = await db.engine.log.newestActsOf({ realm, user: jane.user }, 'sign-in.ended', 10);
  expect(acts).toHaveLength(1);
  expect((await stateOf(jane)).usernames[0]?.has_password).toBe(true);
});

test('a sign-out changes the revisions of a user and of each link, and no member', async () => {
  const fixture = await createFixture(db);
  const reader = await service.token('users:read profile-infos:read');
  const link = oidcPath(fixture);
  const read = async (path: string) => {
    const answer = await service.get(path, reader);
    const { data } = (await answer.json()) as { data: { meta: object } };
    return { etag: answer.headers.get('etag'), data: { ...data, meta: undefined } };
  };
  const paths = [pathOf(fixture), link];
  const before = await Promise.all(paths.map(read));
  expect((await signOut(fixture)).status).toBe(204);
  const after = await Promise.all(paths.map(read));
  expect(after.map(({ data }) => data)).toEqual(before.map(({ data }) => data));
  for (const [at, { etag }] of after.entries()) expect(etag).not.toBe(before[at]?.etag ?? '');
});

test('a sign-out of an unknown user is 404, and so is one by a client of another realm', async () => {
  const jane = await createPassword(db, realm);
  expect((await signOut({ realm, user: systemClock.mintId() })).status).toBe(404);
  const elsewhere = service.token('users:write', new Set([systemClock.mintId()]));
  expect((await signOut(jane, elsewhere)).status).toBe(404);
  expect(await db.engine.log.newestActsOf({ realm, user: jane.user }, 'sign-in.ended', 10)).toEqual([]);
});
