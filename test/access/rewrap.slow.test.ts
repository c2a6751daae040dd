import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { openKeyring, purposeOf } from '../../src/access/keys/keyring.ts';
import { parseMasterKey } from '../../src/access/keys/master_key.ts';
import { changeMasterKey } from '../../src/access/keys/rewrap.ts';
import { openSignerKeys } from '../../src/access/keys/signer_keys.ts';
import { rotateSigningKey } from '../../src/access/keys/signing.ts';
import type { SealedStore } from '../../src/access/store/sealed.ts';
import { readSettings, type Settings } from '../../src/app/config/parse.ts';
import { type OpenDatabase, openDatabase, rewrap } from '../../src/app/open_database.ts';
import { NIL_UUID, type Uuid } from '../../src/model/id.ts';
import { signerKeyId } from '../../src/model/imported_hash.ts';
import { oidcProfile } from '../../src/model/resources.ts';
import { ciphertextKeyId } from '../../src/model/text/ciphertext.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { freshMasterKey, openFreshDatabase, type TestDatabase } from '../support/database.ts';
import { idText, ofRecord } from '../support/log_rows.ts';
import { AUTHREALM, runAuthrealm, runClientCreate, runCommand, startCommand } from '../support/processes.ts';
import { createFixture, insertRecord, oidcPath, startService } from '../support/service.ts';

const SECRET = 'a client secret of a provider';

/** The flags of a database with a new master key, and with the one before. */
interface Change {
  readonly next: string;
  /** With the new key alone, and with both. */
  readonly after: TestDatabase['flags'];
  readonly both: TestDatabase['flags'];
  readonly words: readonly string[];
}

function changeOf({ flags, args, masterKeyFile: before }: TestDatabase): Change {
  const next = freshMasterKey();
  return {
    next,
    after: { ...flags, masterKeyFile: next },
    both: { ...flags, masterKeyFile: next, previousMasterKeyFile: before },
    words: [...args, '--master-key-file', next, '--previous-master-key-file', before],
  };
}

const settingsOf = (flags: TestDatabase['flags']): Settings => readSettings(flags, {});

const keyIn = (file: string) => parseMasterKey(readFileSync(file, 'utf8')) as Uint8Array;

/** A profile whose client secret is sealed by the keyring of this database. */
async function insertSecret(db: OpenDatabase, realm: Uuid): Promise<Uuid> {
  const id = systemClock.mintId();
  const at = { table: 'oidc_profile', column: 'client_secret_sealed', realm, id };
  await insertRecord(db, oidcProfile, [realm, id], {
    name: 'Sealed',
    discovery_url: 'https://login.example.com/.well-known/openid-configuration',
    client_id: 'shop',
    client_secret: db.keyring.seal('oidc-client-secret', at, SECRET),
    issuer: 'https://login.example.com',
  });
  return id;
}

/** Decrypts every client secret and signing key with the master key of these settings. */
async function decryptAll(settings: Settings): Promise<{ secrets: number; keyId: string }> {
  const db = await openDatabase(settings, systemClock);
  const values = await db.engine.sealed.values(undefined, undefined, 1_000);
  for (const { location, sealed } of values) {
    const plain = db.keyring.open(purposeOf(location), location, sealed);
    if (location.table === 'oidc_profile') expect(plain).toBe(SECRET);
    if (location.table === 'signing_key') expect(JSON.parse(plain)).toHaveProperty('d');
    expect(ciphertextKeyId(sealed)).toBe(db.keyring.keyId);
  }
  const { keyId } = db.keyring;
  expect((await db.engine.access.keyChecks()).map((each) => each.keyId)).toEqual([keyId]);
  await db.engine.close();
  return { secrets: values.filter(({ location }) => location.table === 'oidc_profile').length, keyId };
}

async function databaseWithSecret(): Promise<{ database: TestDatabase; realm: Uuid }> {
  const { database, db } = await openFreshDatabase();
  const { realm } = await createFixture(db);
  await insertSecret(db, realm);
  await db.engine.close();
  return { database, realm };
}

describe('keys rewrap', () => {
  test('keys rewrap changes the master key of a running service, which restarts with the new one alone', async () => {
    const { database } = await databaseWithSecret();
    const { after, both, words } = changeOf(database);
    const service = await startService(both);
    const fixture = await createFixture(service.db);
    // No process without the new key may meet a value that it seals.
    const { keyId } = service.db.keyring;
    expect(keyId).toBe(openKeyring([keyIn(database.masterKeyFile)], systemClock).keyId);
    const before = await service.token('profile-infos:read');
    const { stdout, stderr, code } = await runCommand([AUTHREALM, 'keys', 'rewrap', ...words]);
    expect([stderr, code]).toEqual(['', 0]);
    expect(stdout).toMatch(/^encrypted 3 values again/);
    service.clock.advance(1_000);
    expect((await service.get(oidcPath(fixture), before)).status).toBe(200);
    const later = await service.token('profile-infos:read');
    expect((await service.get(oidcPath(fixture), later)).status).toBe(200);
    // The running process encrypts with the new key, and its values decrypt after a restart.
    await insertSecret(service.db, fixture.realm);
    await rotateSigningKey(service.db.engine.access, service.db.keyring, service.clock);
    await service.stop();
    expect((await decryptAll(settingsOf(after))).secrets).toBe(2);
    await expect(openDatabase(database.settings(), systemClock)).rejects.toThrow(
      /does not match this database/,
    );
    const restarted = await startService({ ...after, baseUrl: service.url });
    expect((await restarted.get(oidcPath(fixture), later)).status).toBe(200);
    const fresh = await restarted.token('profile-infos:read');
    expect((await restarted.get(oidcPath(fixture), fresh)).status).toBe(200);
  }, 300_000);

  test('a service of several processes grants tokens and serves lookups during keys rewrap', async () => {
    const { database, db } = await openFreshDatabase();
    const fixture = await createFixture(db);
    for (let more = 0; more < 200; more += 1) await insertSecret(db, fixture.realm);
    await db.engine.close();
    const created = await runClientCreate(database, 'profile-infos:read', '--json');
    const client = JSON.parse(created.stdout) as { client_id: string; client_secret: string };
    const { words } = changeOf(database);
    const service = startCommand([
      ...[AUTHREALM, 'serve', '--port', '0', '--processes', '2', '--grant-rate', 'off'],
      ...words,
    ]);
    const url = (await service.line(/^listening on /)).slice('listening on '.length);
    const form = { grant_type: 'client_credentials', ...client };
    const round = async (): Promise<number[]> => {
      const granted = await fetch(`${url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) });
      const { access_token: token } = (await granted.json()) as { access_token: string };
      const lookup = await fetch(`${url}${oidcPath(fixture)}`, {
        headers: { Authorization: `Bearer ${token}` },
      });
      return [granted.status, lookup.status];
    };
    const result = runAuthrealm(['keys', 'rewrap', ...words]);
    let isDone = false;
    void result.then(() => {
      isDone = true;
    });
    while (!isDone) expect(await round()).toEqual([200, 200]);
    expect((await result).code).toBe(0);
    for (let more = 0; more < 20; more += 1) expect(await round()).toEqual([200, 200]);
    expect(await service.stop()).toBe(0);
  }, 300_000);

  test('a process with only the old master key keeps signing with its loaded signing key', async () => {
    const { database } = await databaseWithSecret();
    const { after, both } = changeOf(database);
    const service = await startService(database.flags);
    const client = await service.client('profile-infos:read');
    await service.grant(client);
    const { ended, keyId } = await rewrap(settingsOf(both), systemClock);
    expect(ended).toHaveLength(1);
    service.clock.advance(1_000);
    await service.grant(client);
    await service.stop();
    expect((await decryptAll(settingsOf(after))).keyId).toBe(keyId);
  });

  test('keys rewrap again changes nothing; without the key before it is refused', async () => {
    const { database } = await databaseWithSecret();
    const { after, both } = changeOf(database);
    await expect(rewrap(settingsOf(after), systemClock)).rejects.toThrow(
      /does not match this database.*pass the present one with --previous-master-key-file/,
    );
    const first = await rewrap(settingsOf(both), systemClock);
    const second = await rewrap(settingsOf(both), systemClock);
    expect([first.ended.length, second.ended.length, second.keyId]).toEqual([1, 0, first.keyId]);
    expect((await rewrap(settingsOf(after), systemClock)).ended).toEqual([]);
  });

  test('a sealed value that does not decrypt keeps the old master key in use next to the new one', async () => {
    const { database, realm } = await databaseWithSecret();
    const { after, both } = changeOf(database);
    const [{ id } = { id: '' }] = await database.query<{ id: string }>(
      `select ${idText(database.address.engine, 'id')} as id from oidc_profile where client_secret_sealed is not null`,
    );
    // A valid ciphertext of another row.
    const foreign = '(select private_sealed from signing_key)';
    await database.query(
      `update oidc_profile set client_secret_sealed = ${foreign} where ${ofRecord(database.address.engine)}`,
      id,
    );
    await expect(rewrap(settingsOf(both), systemClock)).rejects.toThrow(
      new RegExp(`cannot be decrypted.*${id}`),
    );
    const db = await openDatabase(settingsOf(both), systemClock);
    await insertSecret(db, realm);
    await db.engine.close();
    await database.query(
      `update oidc_profile set client_secret_sealed = null where ${ofRecord(database.address.engine)}`,
      id,
    );
    await rewrap(settingsOf(both), systemClock);
    expect((await decryptAll(settingsOf(after))).secrets).toBe(1);
  });

  test('a Firebase signer key is the same after keys rewrap', async () => {
    const { database } = await databaseWithSecret();
    const { both, after } = changeOf(database);
    const key = Uint8Array.from({ length: 64 }, (_, at) => 192 + at);
    const before = await openDatabase(database.settings(), systemClock);
    await openSignerKeys(before.engine.access, before.keyring, systemClock).add(key);
    await before.engine.close();
    await rewrap(settingsOf(both), systemClock);
    const { engine, keyring } = await openDatabase(settingsOf(after), systemClock);
    const location = { table: 'instance_secret', column: 'sealed', realm: NIL_UUID };
    const name = `firebase ${signerKeyId(key)}`;
    const sealed = await engine.access.secret(name);
    expect(keyring.open('instance-secret', { ...location, id: name }, sealed as Uint8Array, 'base64')).toBe(
      key.toBase64(),
    );
    await engine.close();
  });

  test('a value sealed by a retired master key is refused and not stored', async () => {
    const { database, realm } = await databaseWithSecret();
    const stale = await openDatabase(database.settings(), systemClock);
    await rewrap(settingsOf(changeOf(database).both), systemClock);
    await expect(insertSecret(stale, realm)).rejects.toThrow('unavailable');
    const signerKeys = openSignerKeys(stale.engine.access, stale.keyring, systemClock);
    await expect(signerKeys.add(Buffer.from('a signer key'))).rejects.toThrow('unavailable');
    const rotated = rotateSigningKey(stale.engine.access, stale.keyring, systemClock);
    await expect(rotated).rejects.toMatchObject({
      cause: {
        message:
          'the master key was changed, and nothing was written: run this again with the present master key',
      },
    });
    await stale.engine.close();
  });
});

describe('an interrupted change', () => {
  /** Changes the master key and fails before or after the `at`th step; resolves with whether it completed. */
  async function changeUntil({ both }: Change, at: number, when: 'before' | 'after'): Promise<boolean> {
    const settings = settingsOf(both);
    const { engine } = await openDatabase(settings, systemClock);
    let steps = 0;
    const step = <A extends unknown[], T>(work: (...args: A) => Promise<T>) => {
      return async (...args: A): Promise<T> => {
        steps += 1;
        if (steps === at && when === 'before') throw new Error('killed');
        const done = await work(...args);
        if (steps === at) throw new Error('killed');
        return done;
      };
    };
    const { sealed, access } = engine;
    const store: SealedStore = {
      values: sealed.values,
      replace: step(sealed.replace),
      addKeyCheck: step(sealed.addKeyCheck),
      retireOtherKeys: step(sealed.retireOtherKeys),
    };
    const keys = [both.masterKeyFile, both.previousMasterKeyFile].map((file) => keyIn(file ?? ''));
    try {
      await changeMasterKey({ keys, store: { ...store, keyChecks: access.keyChecks }, clock: systemClock });
      return true;
    } catch (error) {
      expect((error as Error).message).toBe('killed');
      return false;
    } finally {
      await engine.close();
    }
  }

  for (const when of ['before', 'after'] as const) {
    test(`a master key change stopped ${when} any step permits a start with both keys and completes when run again`, async () => {
      for (let at = 1; ; at += 1) {
        const { database } = await databaseWithSecret();
        const change = changeOf(database);
        if (await changeUntil(change, at, when)) {
          expect(at).toBe(4);
          return;
        }
        const between = await openDatabase(settingsOf(change.both), systemClock);
        const values = await between.engine.sealed.values(undefined, undefined, 10);
        expect(
          values.map(
            ({ location, sealed }) => between.keyring.open(purposeOf(location), location, sealed).length > 0,
          ),
        ).toEqual([true, true, true]);
        await between.engine.close();
        await rewrap(settingsOf(change.both), systemClock);
        const { secrets, keyId } = await decryptAll(settingsOf(change.after));
        expect([secrets, keyId]).toEqual([1, openKeyring([keyIn(change.next)], systemClock).keyId]);
      }
    }, 300_000);
  }

  test('during a master key change one key alone does not start a service, and another change is refused', async () => {
    const { database } = await databaseWithSecret();
    const change = changeOf(database);
    expect(await changeUntil(change, 2, 'before')).toBe(false);
    for (const flags of [database.flags, change.after])
      await expect(openDatabase(settingsOf(flags), systemClock)).rejects.toThrow(
        /being changed.*--previous-master-key-file.*keys rewrap" with both/,
      );
    const third = changeOf(database).both;
    await expect(rewrap(settingsOf(third), systemClock)).rejects.toThrow(
      /being changed, and key .* required/,
    );
    // The old key can be the new key of another change.
    const { masterKeyFile: old } = database;
    const back = { ...change.both, masterKeyFile: old, previousMasterKeyFile: change.next };
    await rewrap(settingsOf(back), systemClock);
    await decryptAll(database.settings());
  });

  test('keys rewrap with a wrong key is refused, and changes nothing', async () => {
    const { database } = await databaseWithSecret();
    const before = await database.query('select key_id from keyring');
    const wrong = { ...changeOf(database).both, previousMasterKeyFile: freshMasterKey() };
    await expect(rewrap(settingsOf(wrong), systemClock)).rejects.toThrow(
      /^the master key does not match this database/,
    );
    expect(await database.query('select key_id from keyring')).toEqual(before);
  });

  test('keys rewrap that is killed repeatedly completes when run again', async () => {
    const { database, realm } = await databaseWithSecret();
    const db = await openDatabase(database.settings(), systemClock);
    for (let more = 0; more < 40; more += 1) await insertSecret(db, realm);
    await db.engine.close();
    const { after, both, words } = changeOf(database);
    const command = [AUTHREALM, 'keys', 'rewrap', ...words];
    for (let wait = 60; wait < 200; wait += 20) {
      const child = startCommand(command);
      await Bun.sleep(wait);
      child.process.kill('SIGKILL');
      await child.process.exited;
      await (await openDatabase(settingsOf(both), systemClock)).engine.close();
    }
    const { code, stderr } = await runCommand(command);
    expect([code, stderr]).toEqual([0, '']);
    expect((await decryptAll(settingsOf(after))).secrets).toBe(41);
  }, 300_000);
});
