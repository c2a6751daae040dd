import { afterAll, expect, test } from 'bun:test';
import bcrypt from 'bcryptjs';
import { NIL_UUID, type Uuid } from '../../src/model/id.ts';
import type { PasswordCost } from '../../src/model/password.ts';
import { passwordProfileInfo } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openChecker } from '../../src/ops/workers/checker.ts';
import { openHasher } from '../../src/ops/workers/hasher.ts';
import { openRehash } from '../../src/sign_in/credentials.ts';
import type { Credential } from '../../src/sign_in/store/credentials.ts';
import { openFreshDatabase } from '../support/database.ts';
import { ofRecord, storedId, storedRealm } from '../support/log_rows.ts';
import { verifyCleanRecords } from '../support/record_verification.ts';
import { createFixture, insertRecord } from '../support/service.ts';

/** Passwords that are rehashed after a right one, with the store and the workers of the service. */

/** Takes no time, and is far too weak. */
const COST: PasswordCost = { memoryKib: 64, passes: 1 };
const PASSWORD = 'Marked\ufb03 horse battery';

const checker = openChecker();
const hasher = openHasher(COST);

const { database, db } = await openFreshDatabase();
const ids = await createFixture(db);

afterAll(async () => {
  await Promise.all([checker.close(), hasher.close()]);
  await db.engine.close();
});

const rehashAt = (cost: PasswordCost) =>
  openRehash({
    credentials: db.engine.credentials,
    hashPassword: hasher.hash,
    cost,
    clock: systemClock,
  });

async function createCredential(members: { password_hash: string; password_normalised?: boolean }) {
  const id = systemClock.mintId();
  const key = [ids.realm, ids.user, id] as const;
  const username = `rehash-${id}`;
  await insertRecord(db, passwordProfileInfo, key, {
    ...{ username, password_profile_id: ids.passwordProfile },
    ...members,
  });
  return { id, key, username };
}

async function credentialOf(id: Uuid): Promise<Credential & { readonly hash: string }> {
  const found = await db.engine.credentials.get(ids.realm, ids.user, id);
  if (found?.hash === undefined) throw new Error('no hash');
  return { ...found, hash: found.hash };
}

async function rehashedObjects(): Promise<readonly unknown[]> {
  const entries = await db.engine.log.entries(NIL_UUID, 0, 1_000);
  return entries.filter(({ columns }) => columns.action === 'password.rehashed');
}

test('an imported hash is rehashed after a right password, with one log entry and no other change', async () => {
  const { id, key } = await createCredential({ password_hash: bcrypt.hashSync(PASSWORD, 4) });
  const credential = await credentialOf(id);
  const before = await db.engine.records.get(passwordProfileInfo, key);
  const changes = await db.engine.records.changes(ids.realm, 0, 1_000);
  const check = await checker.check({ ...credential, password: PASSWORD });
  expect(check.isRight).toBe(true);
  expect(await rehashAt(COST)({ credential, password: PASSWORD, check })).toBe(true);
  const made = await credentialOf(id);
  expect(made).toEqual({ ...credential, hash: made.hash, isNormalised: true });
  expect(made.hash).toStartWith('$argon2id$v=19$m=64,t=1,p=1$');
  expect((await checker.check({ ...made, password: PASSWORD.normalize('NFKC') })).isRight).toBe(true);
  expect((await checker.check({ ...made, password: `${PASSWORD}x` })).isRight).toBe(false);
  expect(await db.engine.records.get(passwordProfileInfo, key)).toEqual(before);
  expect(await db.engine.records.changes(ids.realm, 0, 1_000)).toEqual(changes);
  expect(await rehashedObjects()).toMatchObject([
    { columns: { object: id, realm_id: ids.realm, user_id: ids.user, actor: 'authrealm', detail: '{}' } },
  ]);
  // The hash is strong enough now.
  expect(await rehashAt(COST)({ credential: made, password: PASSWORD, check })).toBe(false);
  expect(await credentialOf(id)).toEqual(made);
  const known = await verifyCleanRecords(database);
  expect(known.covered).toBeGreaterThan(0);
});

test('a hash that was made here is rehashed where the settings are stronger now, and not after a wrong password', async () => {
  const made = await hasher.hash(PASSWORD);
  const { id } = await createCredential({ password_hash: made.hash, password_normalised: true });
  const credential = await credentialOf(id);
  const stronger = { memoryKib: 128, passes: 1 };
  const wrong = await checker.check({ ...credential, password: 'Marked horse battery' });
  expect(await rehashAt(stronger)({ credential, password: 'Marked horse battery', check: wrong })).toBe(
    false,
  );
  const check = await checker.check({ ...credential, password: PASSWORD });
  expect(await rehashAt(COST)({ credential, password: PASSWORD, check })).toBe(false);
  expect(await credentialOf(id)).toEqual(credential);
  expect(await rehashAt(stronger)({ credential, password: PASSWORD, check })).toBe(true);
  expect((await credentialOf(id)).hash).not.toBe(credential.hash);
});

test('a bcrypt hash stays where the password is right only when it is cut', async () => {
  const long = 'x'.repeat(73);
  const { id } = await createCredential({ password_hash: bcrypt.hashSync(long, 4) });
  const credential = await credentialOf(id);
  for (const password of [long, `${'x'.repeat(72)}typo`]) {
    const check = await checker.check({ ...credential, password });
    expect(check).toEqual({ isRight: true, isCut: true });
    expect(await rehashAt(COST)({ credential, password, check })).toBe(false);
  }
  expect(await credentialOf(id)).toEqual(credential);
});

test('a hash that another program wrote counts as none, and so does one without a MAC', async () => {
  const password_hash = bcrypt.hashSync(PASSWORD, 4);
  const [edited, unsigned] = [
    await createCredential({ password_hash }),
    await createCredential({ password_hash }),
  ];
  const other = bcrypt.hashSync('another password', 4);
  await database.tamper(
    `update password_profile_info set password_hash = '${other}' where ${ofRecord(database.address.engine)}`,
    edited.id,
  );
  await database.tamper(
    `update password_profile_info set password_hash_mac = null where ${ofRecord(database.address.engine)}`,
    unsigned.id,
  );
  for (const find of [
    ({ id }: typeof edited) => db.engine.credentials.get(ids.realm, ids.user, id),
    ({ username }: typeof edited) =>
      db.engine.credentials.find(ids.realm, ids.passwordProfile, username.toLowerCase()),
  ]) {
    expect((await find(edited))?.hash).toBeUndefined();
    expect((await find(unsigned))?.hash).toBeUndefined();
  }
  // A MAC belongs to the row: that of another link is none.
  const { engine } = database.address;
  const inRealm = storedRealm(engine, `'${ids.realm}'`);
  const otherId = storedId(engine, `'${ids.passwordLink}'`);
  const otherLink = `from password_profile_info where realm_id = ${inRealm} and id = ${otherId}`;
  const copied = await database.tamper(
    `update password_profile_info set password_hash = (select password_hash ${otherLink}),
       password_hash_mac = (select password_hash_mac ${otherLink}) where realm_id = ${inRealm} and ${ofRecord(engine)}`,
    edited.id,
  );
  expect(copied).toBe(1);
  expect((await db.engine.credentials.get(ids.realm, ids.user, edited.id))?.hash).toBeUndefined();
});

test('no file of the database contains a password that was hashed again', async () => {
  expect((await rehashedObjects()).length).toBe(2);
  const forms = [PASSWORD, PASSWORD.normalize('NFKC'), 'horse battery', 'another password'];
  expect(await database.findPlaintext([...forms, ids.username])).toEqual([ids.username]);
});
