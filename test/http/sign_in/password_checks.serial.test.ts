import { describe, expect, test } from 'bun:test';
import { passwordProfile, realm } from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { UNUSUAL_EMAILS } from '../../support/emails.ts';
import {
  comparableResponse,
  errorsOf,
  insertRecord,
  realmMembers,
  startService,
} from '../../support/service.ts';
import {
  cheapHash,
  createPassword,
  createSignInClient,
  END_USER,
  type PasswordFixture,
  signInTokenOf,
} from '../../support/sign_in.ts';

/** Checks of passwords: docs/wire.md#password-checks. */

const service = await startService();
const { db } = service;
const REALM = systemClock.mintId();
await insertRecord(db, realm, [REALM], realmMembers);
const jane = await createPassword(db, REALM);
const token = await signInTokenOf(service);

const pathOf = (profile: string, of: string = REALM) =>
  `/v2/authentication-realms/${of}/password-profiles/${profile}/check`;
const PATH = pathOf(jane.profile);
const bodyOf = (more: object = {}) => ({
  data: { type: 'password_check', username: jane.username, password: jane.password, ...more },
});
const check = (more: object = {}, headers: Record<string, string> = END_USER, path = PATH) =>
  service.post(path, token, bodyOf(more), headers);
const WRONG = await comparableResponse(await check({ password: 'wrong horse' }));

describe('a password check', () => {
  test('finds a username that was typed with other blanks or another sharp s', async () => {
    const { profile } = await createPassword(db, REALM, { username: 'Groß Schreiber' });
    for (const username of ['GROẞ SCHREIBER', 'groß schreiber ', '\u00a0gross  schreiber']) {
      const answer = await check({ username }, END_USER, pathOf(profile));
      expect(await answer.json()).toMatchObject({ data: { verified: true } });
    }
  });

  test('of a right password names the user, the password and a device token', async () => {
    const answer = await check();
    expect([answer.status, answer.headers.get('cache-control'), await answer.json()]).toEqual([
      200,
      'no-store',
      {
        data: {
          type: 'password_check',
          verified: true,
          device: expect.stringMatching(/^[\w-]{86}$/),
          relationships: {
            user_authentication_info: { data: { id: jane.user, type: 'user_authentication_info' } },
            user_authentication_password_profile_info: {
              data: { id: jane.info, type: 'user_authentication_password_profile_info' },
            },
          },
        },
      },
    ]);
  });

  test('of a wrong password is 200 and says only that', async () => {
    const answer = await check({ password: 'wrong horse' });
    expect([answer.status, await answer.json()]).toEqual([
      200,
      { data: { type: 'password_check', verified: false } },
    ]);
  });

  test.each([
    ['an unknown username', { username: 'nobody' }],
    ['a username with NUL', { username: `${jane.username}\0` }],
    ['an over-long password', { password: 'x'.repeat(1_025) }],
  ])('of %s is answered byte for byte as one of a wrong password', async (_, more) => {
    expect(await comparableResponse(await check(more))).toBe(WRONG);
  });

  test('finds a username that is an unusual e-mail address', async () => {
    const hash = cheapHash(jane.password);
    for (const username of UNUSUAL_EMAILS) {
      const owner = await createPassword(db, REALM, { profile: jane.profile, username, hash });
      expect(await (await check({ username })).json()).toMatchObject({
        data: { relationships: { user_authentication_info: { data: { id: owner.user } } } },
      });
    }
  });

  test('accepts the text as typed and after NFKC', async () => {
    // U+00E9 of one keyboard, e and U+0301 of another.
    const [nfc, nfd] = ['caf\u00e9 au lait', 'cafe\u0301 au lait'];
    const made = await createPassword(db, REALM, { password: nfc });
    const decomposed = await createPassword(db, REALM, { hash: cheapHash(nfd), password: nfd });
    for (const fixture of [made, { ...made, password: nfd }, decomposed]) {
      const { username, password } = fixture;
      const answer = await check({ username, password }, END_USER, pathOf(fixture.profile));
      expect(await answer.json()).toMatchObject({ data: { verified: true } });
    }
  });

  test('of a profile, user and username that exist in two realms is one of the realm in the path, as are its device tokens', async () => {
    const twin = await createTwin(jane);
    const own = await check({}, END_USER);
    const theirs = await check({ password: twin.password }, END_USER, pathOf(jane.profile, twin.realm));
    const devices: string[] = [];
    for (const answer of [own, theirs]) {
      const { data } = (await answer.json()) as { data: { verified: boolean; device: string } };
      expect(data.verified).toBe(true);
      devices.push(data.device);
    }
    expect(await comparableResponse(await check({ password: twin.password }))).toBe(WRONG);
    const there = await check({}, END_USER, pathOf(jane.profile, twin.realm));
    expect(await comparableResponse(there)).toBe(WRONG);
    const address = { 'Authrealm-End-User-Address': '192.0.2.50' };
    for (let count = 0; count < 10; count += 1) await check({ password: 'wrong horse' }, address);
    const statuses: number[] = [];
    for (const device of devices) {
      const { status } = await check({}, { ...address, 'Authrealm-Device': device });
      statuses.push(status);
    }
    expect(statuses).toEqual([200, 429]);
  });

  test('of a profile that the caller cannot reach is 404', async () => {
    const other = systemClock.mintId();
    await insertRecord(db, realm, [other], realmMembers);
    for (const path of [pathOf(systemClock.mintId()), pathOf('none'), pathOf(jane.profile, other)])
      expect([path, (await check({}, END_USER, path)).status]).toEqual([path, 404]);
    const outside = await service.token('sign-in', new Set([other]));
    expect((await service.post(PATH, outside, bodyOf(), END_USER)).status).toBe(404);
  });

  test.each([
    [{ type: 'password' }, '/data/type'],
    [{ username: 1 }, '/data/username'],
    [{ username: '' }, '/data/username'],
    [{ password: '' }, '/data/password'],
    [{ password: undefined }, '/data/password'],
  ])('%p is 400 with a source', async (more, pointer) => {
    const answer = await check(more);
    const errors = await errorsOf(answer);
    expect([answer.status, errors.map(({ source }) => source?.pointer)]).toEqual([400, [pointer]]);
  });

  test('of a name with ten wrong passwords from one address is 429', async () => {
    const { username, password, profile } = await createPassword(db, REALM);
    const headers = { 'Authrealm-End-User-Address': '192.0.2.9' };
    const send = (guess: string) => check({ username, password: guess }, headers, pathOf(profile));
    for (let count = 0; count < 10; count += 1) expect((await send('wrong horse')).status).toBe(200);
    const refused = await send(password);
    expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([429, true]);
  });

  test('needs the address of the end user', async () => {
    for (const profile of [jane.profile, systemClock.mintId()])
      expect((await check({}, {}, pathOf(profile))).status).toBe(400);
  });
});

test('sign-ins are logged before they are answered where the settings ask for it, and wrong passwords are not', async () => {
  const own = await startService({ logSignIns: 'true' });
  await insertRecord(own.db, realm, [REALM], realmMembers);
  const { profile, username, password, user, info } = await createPassword(own.db, REALM);
  const client = await createSignInClient(own);
  const access = await own.grant(client);
  const send = async (guess: string) => {
    const data = { type: 'password_check', username, password: guess };
    return (await own.post(pathOf(profile), access, { data }, END_USER)).json();
  };
  const entries = () =>
    own.database.query(
      `select actor, object, realm_id, user_id, address from act where action = 'sign-in.succeeded'`,
    );
  expect(await send('wrong horse')).toMatchObject({ data: { verified: false } });
  expect(await entries()).toEqual([]);
  expect(await send(password)).toMatchObject({ data: { verified: true } });
  expect(await entries()).toEqual([
    { actor: client.clientId, object: info, realm_id: REALM, user_id: user, address: null },
  ]);
});

/** Another password for the same IDs and username in a realm of its own. */
async function createTwin({ username, profile, user, info }: PasswordFixture): Promise<PasswordFixture> {
  const other = systemClock.mintId();
  await insertRecord(db, realm, [other], realmMembers);
  const members = { name: 'Passwords', username_format: 'any', enable_one_time_password_token: false };
  await insertRecord(db, passwordProfile, [other, profile], members);
  return createPassword(db, other, { username, profile, user, info, password: 'of the other realm' });
}
