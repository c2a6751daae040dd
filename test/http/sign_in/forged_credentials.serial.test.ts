import { expect, test } from 'bun:test';
import { passwordProfile, passwordProfileInfo, user } from '../../../src/model/resources.ts';
import { foldedKey } from '../../../src/model/text/folded_key.ts';
import { hashOf } from '../../../src/ops/workers/hasher.ts';
import { isCitusEngine } from '../../support/citus_cluster.ts';
import { runImport } from '../../support/import_fixtures.ts';
import { ofRecord, storedId, storedRealm } from '../../support/log_rows.ts';
import { createFixture, insertRecord, startService, userMembers } from '../../support/service.ts';
import { createSettingsRealms } from '../../support/settings_realms.ts';
import {
  ACCOUNT_TOKEN_HEADER,
  accountTokenOf,
  cheapHash,
  createPassword,
  type PasswordFixture,
  passwordBody,
  RENEWAL,
  requestTokens,
} from '../../support/sign_in.ts';

/** Credentials that were changed without the service, by a writer of the database: docs/guides/password-guessing.md#hashes. */

const service = await startService();
const { db, database } = service;
const { accounts } = await createSettingsRealms(db);
const { realm: elsewhere } = await createFixture(db);
const token = () => service.token('sign-in');

/** The status of a sign-in. */
async function signIn(as: PasswordFixture): Promise<number> {
  return (await requestTokens(service, await token(), passwordBody(as))).status;
}

async function renew(accountToken: string): Promise<number> {
  const headers = { [ACCOUNT_TOKEN_HEADER]: accountToken };
  return (await requestTokens(service, await token(), RENEWAL, headers)).status;
}

async function put({ user: person, info }: PasswordFixture, members: object): Promise<void> {
  const path = `/v2/authentication-realms/${accounts}/user-authentication-info/${person}/user-authentication-password-profile-info/${info}`;
  const data = { type: passwordProfileInfo.type, id: info, ...members };
  const { status } = await service.put(path, await service.token('password-profile-infos:write'), { data });
  expect(status).toBe(200);
}

/** SQL for an ID as it is stored. */
const stored = (id: string): string => storedId(database.address.engine, `'${id}'`);

/** Sets columns of a link in the database. */
async function edit({ info }: PasswordFixture, assignments: string): Promise<void> {
  expect(
    await database.tamper(
      `update password_profile_info set ${assignments} where ${ofRecord(database.address.engine)}`,
      info,
    ),
  ).toBe(1);
}

async function versionOf({ info }: PasswordFixture): Promise<string> {
  const text = `select credential_version from password_profile_info where ${ofRecord(database.address.engine)}`;
  const [row] = await database.query<{ credential_version: string }>(text, info);
  return row?.credential_version ?? '';
}

test('a stolen account token does not renew again when the version of its password is written back', async () => {
  const jane = await createPassword(db, accounts);
  const stolen = await accountTokenOf(service, await token(), jane);
  const version = await versionOf(jane);
  expect(await renew(stolen)).toBe(201);
  await put(jane, { password: 'another horse battery' });
  expect(await renew(stolen)).toBe(401);
  await edit(jane, `credential_version = '${version}'`);
  expect(await renew(stolen)).toBe(401);
});

test('a planted hash is none after its user was disabled and enabled', async () => {
  const jane = await createPassword(db, accounts);
  await edit(jane, `password_hash = '${cheapHash('planted password')}'`);
  const path = `/v2/authentication-realms/${accounts}/user-authentication-info/${jane.user}`;
  const writer = await service.token('users:write');
  for (const enabled of [false, true]) {
    const data = { type: user.type, enabled };
    expect((await service.put(path, writer, { data })).status).toBe(200);
  }
  expect(await signIn({ ...jane, password: 'planted password' })).toBe(400);
  await put(jane, { password: 'another horse battery' });
  expect(await signIn({ ...jane, password: 'another horse battery' })).toBe(201);
});

/** Edits of a link, each with what to sign in as afterwards. */
const EDITS: Readonly<Record<string, (own: PasswordFixture) => Promise<PasswordFixture>>> = {
  async 'another hash'(own) {
    await edit(own, `password_hash = '${cheapHash('planted password')}'`);
    return { ...own, password: 'planted password' };
  },
  async 'no MAC'(own) {
    await edit(own, 'password_hash_mac = null');
    return own;
  },
  async 'another version'(own) {
    await edit(own, `credential_version = '${'0'.repeat(32)}'`);
    return own;
  },
  async 'another user'(own) {
    const { user: victim } = await createPassword(db, accounts);
    await edit(own, `user_id = ${stored(victim)}`);
    return own;
  },
  async 'the key of another username'(own) {
    const { info, username } = await createPassword(db, accounts, { profile: own.profile });
    await database.tamper(
      `delete from password_profile_info where ${ofRecord(database.address.engine)}`,
      info,
    );
    await edit(own, `username_key = '${foldedKey(username)}'`);
    return { ...own, username };
  },
  async 'another profile'(own) {
    const { profile } = await createPassword(db, accounts);
    await edit(own, `password_profile_id = ${stored(profile)}`);
    return { ...own, profile };
  },
};

test.each(Object.entries(EDITS))(
  'nobody signs in by a link that got %s in the database',
  async (_, change) => {
    const own = await createPassword(db, accounts);
    expect(await signIn(await change(own))).toBe(400);
  },
);

test('nobody signs in by a link that another realm got in the database', async () => {
  const own = await createPassword(db, elsewhere);
  await insertRecord(db, user, [accounts, own.user], userMembers);
  await insertRecord(db, passwordProfile, [accounts, own.profile], {
    ...{ name: 'Passwords', username_format: 'any', enable_one_time_password_token: false },
  });
  const isMoved = await edit(own, `realm_id = ${storedRealm(database.address.engine, `'${accounts}'`)}`).then(
    () => true,
    () => false,
  );
  // Citus refuses such an update.
  expect(isMoved).toBe(!isCitusEngine);
  expect(await signIn(own)).toBe(400);
});

/** Imports the line of a link again, with another time. */
async function importAgain(own: PasswordFixture): Promise<void> {
  const text = `select password_hash from password_profile_info where ${ofRecord(database.address.engine)}`;
  const [row] = await database.query<{ password_hash: string }>(text, own.info);
  const line = {
    ...{ type: passwordProfileInfo.type, id: own.info, realm_id: accounts },
    ...{ user_authentication_info_id: own.user, password_profile_id: own.profile, username: own.username },
    password_hash: row?.password_hash,
    meta: { created_at: '2021-02-03T04:05:06.007Z', updated_at: '2022-03-04T05:06:07.890Z' },
  };
  expect((await runImport(db, [line], { isUpsert: true })).counts.replaced).toBe(1);
}

const PASSWORD = 'correct horse battery staple';
const RENAMED = 'renamed@example.com';

/** Writes of a covered column without the password, each with the username afterwards. */
const WRITES: Readonly<Record<string, (own: PasswordFixture) => Promise<string>>> = {
  async 'a new username'(own) {
    await put(own, { username: RENAMED });
    return RENAMED;
  },
  async 'its old username'(own) {
    await put(own, { username: own.username });
    return own.username;
  },
  async 'an import of its line'(own) {
    await importAgain(own);
    return own.username;
  },
};

test.each(Object.entries(WRITES))('a link keeps its password and version after %s', async (_, write) => {
  // Not weaker than the settings: a rehash after the first sign-in would let the import set an older hash.
  const hash = hashOf({ password: PASSWORD, ...service.settings.passwordCost });
  const own = await createPassword(db, accounts, { password: PASSWORD, hash, isNormalised: true });
  const [stolen, version] = [await accountTokenOf(service, await token(), own), await versionOf(own)];
  const username = await write(own);
  expect([await signIn({ ...own, username }), await renew(stolen), await versionOf(own)]).toEqual([
    ...[201, 201],
    version,
  ]);
});

const PLANTED = 'planted password';
const FORGERIES = [
  ['a planted hash', `password_hash = '${cheapHash(PLANTED)}'`],
  ['a planted hash without a MAC', `password_hash = '${cheapHash(PLANTED)}', password_hash_mac = null`],
  [
    'a planted hash and a key of an older Unicode version',
    `password_hash = '${cheapHash(PLANTED)}', username_key = 'older', unicode_version = '1.0'`,
  ],
] as const;
const REPAIRS = FORGERIES.flatMap(([forged, edits]) =>
  Object.entries(WRITES).map(([written, write]) => ({ forged, edits, written, write })),
);

test.each(REPAIRS)('$forged counts as none after $written, until the password is set', async (row) => {
  const own = await createPassword(db, accounts);
  await edit(own, row.edits);
  const username = await row.write(own);
  expect(await signIn({ ...own, username, password: PLANTED })).toBe(400);
  await put(own, { password: 'another horse battery' });
  expect(await signIn({ ...own, username, password: 'another horse battery' })).toBe(201);
});

test('a hash is not made again over a link that was changed since its password was checked', async () => {
  const { credentials } = db.engine;
  for (const change of ['another version', 'another user', 'no MAC']) {
    const own = await createPassword(db, accounts);
    const credential = await credentials.get(accounts, own.user, own.info);
    if (credential?.hash === undefined) throw new Error('no hash');
    await EDITS[change]?.(own);
    const caller = { actor: 'authrealm', address: undefined, requestId: undefined };
    const fields = { object: own.info, realm: accounts, user: own.user, detail: {}, at: 1 };
    const made = { hash: cheapHash(own.password), isNormalised: true } as const;
    const entry = { action: 'password.rehashed', ...fields, ...caller } as const;
    expect([change, await credentials.rehash(credential, made, entry)]).toEqual([change, false]);
  }
});
