import { describe, expect, test } from 'bun:test';
import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openKeyring, purposeOf } from '../../src/auth/keys/keyring.ts';
import { parseMasterKey, replaceKeyFile } from '../../src/auth/keys/master_key.ts';
import { changeMasterKey } from '../../src/auth/keys/rewrap.ts';
import { rotateSigningKey } from '../../src/auth/keys/signing.ts';
import type { SealedStore } from '../../src/auth/port.ts';
import { readSettings, type Settings } from '../../src/config/parse.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { oidcProfile } from '../../src/domain/resources.ts';
import { ciphertextKeyId } from '../../src/domain/text/ciphertext.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { type OpenDatabase, openDatabase, rewrap } from '../../src/service/open_database.ts';
import { freshDatabase, type TestDatabase } from '../support/database.ts';
import { AUTHREALM, runAuthrealm, runClientCreate, runCommand, startCommand } from '../support/processes.ts';
import { createFixture, freshFolder, insertRecord, oidcPath, startService } from '../support/service.ts';

const SECRET = 'a client secret of a provider';
const newKeyFile = () => join(freshFolder(), 'new.key');

/** The settings of a database whose master key is given by value. */
function keyedBy({ flags: { masterKeyFile: _, ...flags } }: TestDatabase, key: string): Settings {
  return readSettings(flags, { AUTHREALM_MASTER_KEY: key });
}

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

describe('keys rewrap', () => {
  test('keys rewrap changes the master key of a running service, which restarts with the new one', async () => {
    const service = await startService();
    const fixture = await createFixture(service.db);
    await insertSecret(service.db, fixture.realm);
    const before = await service.token('profile-infos:read');
    const { database } = service;
    const { masterKeyFile } = database;
    const file = newKeyFile();
    const old = readFileSync(masterKeyFile, 'utf8');
    chmodSync(masterKeyFile, 0o640);

    const { stdout, stderr, code } = await runCommand([
      ...[AUTHREALM, 'keys', 'rewrap', '--new-master-key-file', file, ...database.args],
    ]);
    expect([stderr, code]).toEqual(['', 0]);
    expect(stdout).toContain('encrypted 3 values again');
    const oldId = openKeyring(parseMasterKey(old) ?? new Uint8Array(), systemClock).keyId;
    expect(readFileSync(`${masterKeyFile}.old-${oldId}`, 'utf8').trim()).toBe(old.trim());
    expect(readFileSync(masterKeyFile, 'utf8')).toBe(readFileSync(file, 'utf8'));
    const modes = [file, masterKeyFile, `${masterKeyFile}.old-${oldId}`].map(
      (each) => statSync(each).mode & 0o777,
    );
    expect(modes).toEqual([0o600, 0o640, 0o600]);

    service.clock.advance(1_000);
    expect((await service.get(oidcPath(fixture), before)).status).toBe(200);
    const after = await service.token('profile-infos:read');
    expect((await service.get(oidcPath(fixture), after)).status).toBe(200);
    // The running process encrypts with the new key, and its values decrypt after a restart.
    await insertSecret(service.db, fixture.realm);
    await rotateSigningKey(service.db.engine.access, service.db.keyring, service.clock);
    await service.stop();
    expect((await decryptAll(database.settings())).secrets).toBe(2);

    expect(openDatabase(keyedBy(database, old.trim()), systemClock)).rejects.toThrow(
      /does not match this database/,
    );
    const restarted = await startService({ ...database.flags, baseUrl: service.url });
    expect((await restarted.get(oidcPath(fixture), after)).status).toBe(200);
    const fresh = await restarted.token('profile-infos:read');
    expect((await restarted.get(oidcPath(fixture), fresh)).status).toBe(200);
  }, 300_000);

  test('a service of several processes grants tokens and serves lookups during keys rewrap', async () => {
    const database = await freshDatabase();
    const db = await openDatabase(database.settings(), systemClock);
    const fixture = await createFixture(db);
    await db.engine.close();
    const created = await runClientCreate(database, 'profile-infos:read', '--json');
    const client = JSON.parse(created.stdout) as { client_id: string; client_secret: string };
    const service = startCommand([
      ...[AUTHREALM, 'serve', '--port', '0', '--processes', '2', '--grant-rate', 'off'],
      ...database.args,
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
    for (let change = 0; change < 3; change += 1) {
      const result = runAuthrealm([
        'keys',
        'rewrap',
        '--new-master-key-file',
        newKeyFile(),
        ...database.args,
      ]);
      let isDone = false;
      void result.then(() => {
        isDone = true;
      });
      while (!isDone) expect(await round()).toEqual([200, 200]);
      expect((await result).code).toBe(0);
    }
    for (let more = 0; more < 20; more += 1) expect(await round()).toEqual([200, 200]);
    expect(await service.stop()).toBe(0);
  }, 300_000);

  test('a process with only the old master key keeps signing with its loaded signing key', async () => {
    const key = Buffer.from(systemClock.randomBytes(32)).toString('hex');
    const database = await freshDatabase();
    const settings = keyedBy(database, key);
    const db = await openDatabase(settings, systemClock);
    await db.engine.close();
    const file = join(freshFolder(), 'old.key');
    writeFileSync(file, key);
    // The running service cannot read its file again.
    const service = await startService({ ...database.flags, masterKeyFile: file });
    const { clientId, secret } = await service.client('profile-infos:read');
    const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
    expect((await service.requestToken(form)).status).toBe(200);
    rmSync(file);
    const next = newKeyFile();
    const done = await rewrap(settings, next, systemClock);
    expect([done.ended.length, done.source.from]).toEqual([1, 'value']);
    service.clock.advance(1_000);
    expect((await service.requestToken(form)).status).toBe(200);
    await service.stop();
    expect(openDatabase(settings, systemClock)).rejects.toThrow(/does not match this database/);
    const renewed = keyedBy(database, readFileSync(next, 'utf8').trim());
    expect((await decryptAll(renewed)).keyId).toBe(done.keyId);
  });

  test('keys rewrap with the same file again changes nothing; with the current or a third key file it is refused', async () => {
    const { database } = await databaseWithSecret();
    const file = newKeyFile();
    const first = await rewrap(database.settings(), file, systemClock);
    const second = await rewrap(database.settings(), file, systemClock);
    expect([first.ended.length, second.ended.length, second.keyId]).toEqual([1, 0, first.keyId]);
    expect(rewrap(database.settings(), database.masterKeyFile, systemClock)).rejects.toThrow(
      /is the current key file: name another file/,
    );
    const empty = newKeyFile();
    writeFileSync(empty, 'no key');
    expect(rewrap(database.settings(), empty, systemClock)).rejects.toThrow(/32 bytes/);
  });

  test('a sealed value that does not decrypt keeps the old master key in use next to the new one', async () => {
    const { database, realm } = await databaseWithSecret();
    const [{ id } = { id: '' }] = await database.query<{ id: string }>(
      'select id from oidc_profile where client_secret_sealed is not null',
    );
    // A valid ciphertext of another row.
    const foreign = '(select private_sealed from signing_key)';
    await database.query(`update oidc_profile set client_secret_sealed = ${foreign} where id = ?`, id);
    const file = newKeyFile();
    expect(rewrap(database.settings(), file, systemClock)).rejects.toThrow(
      new RegExp(`cannot be decrypted.*${id}`),
    );
    const db = await openDatabase(database.settings(), systemClock);
    await insertSecret(db, realm);
    await db.engine.close();
    await database.query('update oidc_profile set client_secret_sealed = null where id = ?', id);
    await rewrap(database.settings(), file, systemClock);
    expect((await decryptAll(database.settings())).secrets).toBe(1);
  });

  test('a value sealed by a retired master key is refused and not stored', async () => {
    const { database, realm } = await databaseWithSecret();
    const stale = await openDatabase(database.settings(), systemClock);
    await rewrap(database.settings(), newKeyFile(), systemClock);
    expect(insertSecret(stale, realm)).rejects.toThrow('unavailable');
    expect(rotateSigningKey(stale.engine.access, stale.keyring, systemClock)).rejects.toThrow(
      /master key was changed/,
    );
    await stale.engine.close();
  });
});

async function databaseWithSecret(): Promise<{ database: TestDatabase; realm: Uuid }> {
  const database = await freshDatabase();
  const db = await openDatabase(database.settings(), systemClock);
  const { realm } = await createFixture(db);
  await insertSecret(db, realm);
  await db.engine.close();
  return { database, realm };
}

describe('an interrupted change', () => {
  /** Changes the master key and fails before or after the `at`th step; resolves with whether it completed. */
  async function changeUntil(database: TestDatabase, next: Uint8Array, at: number, when: 'before' | 'after') {
    const db = await openDatabase(database.settings(), systemClock);
    let steps = 0;
    const step = <A extends unknown[], T>(work: (...args: A) => T) => {
      return (...args: A): T => {
        steps += 1;
        if (steps === at && when === 'before') throw new Error('killed');
        const done = work(...args);
        if (steps === at) {
          if (!(done instanceof Promise)) throw new Error('killed');
          return done.then(() => Promise.reject(new Error('killed'))) as T;
        }
        return done;
      };
    };
    const { sealed, access } = db.engine;
    const store: SealedStore = {
      values: sealed.values,
      replace: step(sealed.replace),
      addKeyCheck: step(sealed.addKeyCheck),
      retireOtherKeys: step(sealed.retireOtherKeys),
    };
    const keyFile = database.masterKeyFile;
    const currentKeys = readFileSync(keyFile, 'utf8')
      .trim()
      .split('\n')
      .map((line) => parseMasterKey(line) as Uint8Array);
    const change = {
      currentKeys,
      nextKey: next,
      saveKeys: step((keys: readonly Uint8Array[]) => replaceKeyFile(keyFile, keys, systemClock)),
      store: { ...store, keyChecks: access.keyChecks },
      clock: systemClock,
    };
    try {
      await changeMasterKey(change);
      return true;
    } catch (error) {
      expect((error as Error).message).toBe('killed');
      return false;
    } finally {
      await db.engine.close();
    }
  }

  for (const when of ['before', 'after'] as const) {
    test(`a master key change changeUntil ${when} any step permits a start and completes when run again`, async () => {
      for (let at = 1; ; at += 1) {
        const { database } = await databaseWithSecret();
        const next = systemClock.randomBytes(32);
        if (await changeUntil(database, next, at, when)) {
          expect(at).toBe(6);
          return;
        }
        const between = await openDatabase(database.settings(), systemClock);
        const values = await between.engine.sealed.values(undefined, undefined, 10);
        expect(
          values.map(
            ({ location, sealed }) => between.keyring.open(purposeOf(location), location, sealed).length > 0,
          ),
        ).toEqual([true, true, true]);
        await between.engine.close();
        const file = newKeyFile();
        writeFileSync(file, Buffer.from(next).toString('base64url'));
        await rewrap(database.settings(), file, systemClock);
        const { secrets, keyId } = await decryptAll(database.settings());
        expect([secrets, keyId]).toEqual([1, openKeyring(next, systemClock).keyId]);
        expect(readFileSync(database.masterKeyFile, 'utf8').trim().split('\n')).toHaveLength(1);
      }
    }, 300_000);
  }

  test('during a master key change one key alone does not start a service, and another change is refused', async () => {
    const { database } = await databaseWithSecret();
    const before = readFileSync(database.masterKeyFile, 'utf8').trim();
    const next = systemClock.randomBytes(32);
    expect(await changeUntil(database, next, 3, 'before')).toBe(false);
    for (const key of [before, Buffer.from(next).toString('hex')]) {
      expect(openDatabase(keyedBy(database, key), systemClock)).rejects.toThrow(
        /being changed.*keys rewrap" again/,
      );
    }
    const both = readFileSync(database.masterKeyFile, 'utf8');
    expect(rewrap(database.settings(), newKeyFile(), systemClock)).rejects.toThrow(/already being changed/);
    expect(readFileSync(database.masterKeyFile, 'utf8').split('\n').sort()).toEqual(both.split('\n').sort());
    // The old key can be the new key of another change.
    const file = newKeyFile();
    writeFileSync(file, before);
    await rewrap(database.settings(), file, systemClock);
    expect(readFileSync(database.masterKeyFile, 'utf8').trim()).toBe(before);
    await decryptAll(database.settings());
  });

  test('keys rewrap without a required master key changes nothing', async () => {
    const { database } = await databaseWithSecret();
    const current = parseMasterKey(readFileSync(database.masterKeyFile, 'utf8')) as Uint8Array;
    const { keyId } = openKeyring(current, systemClock);
    const engine = await database.open();
    const saved: unknown[] = [];
    const change = changeMasterKey({
      currentKeys: [systemClock.randomBytes(32)],
      nextKey: systemClock.randomBytes(32),
      saveKeys: (keys) => saved.push(keys),
      store: { ...engine.sealed, keyChecks: engine.access.keyChecks },
      clock: systemClock,
    });
    const refused = await change.catch((error: Error) => error.message);
    expect(refused).toContain(`the database requires master key ${keyId}, which was not given`);
    expect([saved, (await engine.access.keyChecks()).map((proof) => proof.keyId)]).toEqual([[], [keyId]]);
    await engine.close();
  });

  test('keys rewrap with a wrong key is refused as such, and creates no file of a new key', async () => {
    const { database } = await databaseWithSecret();
    const before = await database.query('select key_id from keyring');
    const file = newKeyFile();
    const wrong = keyedBy(database, Buffer.from(systemClock.randomBytes(32)).toString('hex'));
    const refused = await rewrap(wrong, file, systemClock).catch((error: Error) => error.message);
    expect(refused).toMatch(/^the master key does not match this database/);
    expect(existsSync(file)).toBe(false);
    expect(await database.query('select key_id from keyring')).toEqual(before);
  });

  test('an interrupted change of a key that is given by value completes when run again with the same value', async () => {
    const { database } = await databaseWithSecret();
    const current = readFileSync(database.masterKeyFile, 'utf8').trim();
    const file = newKeyFile();
    writeFileSync(file, Buffer.from(systemClock.randomBytes(32)).toString('hex'));
    const engine = await database.open();
    const store = {
      ...engine.sealed,
      keyChecks: engine.access.keyChecks,
      retireOtherKeys: () => Promise.reject(new Error('interrupted')),
    };
    const [currentKeys, nextKey] = [
      [parseMasterKey(current) as Uint8Array],
      parseMasterKey(readFileSync(file, 'utf8')) as Uint8Array,
    ];
    const change = changeMasterKey({
      ...{ currentKeys, nextKey, store, clock: systemClock },
      saveKeys: () => undefined,
    });
    expect(await change.catch((error: Error) => error.message)).toBe('interrupted');
    await engine.close();
    const { ended } = await rewrap(keyedBy(database, current), file, systemClock);
    expect(ended).toHaveLength(1);
    await decryptAll(keyedBy(database, readFileSync(file, 'utf8')));
  });

  test('keys rewrap that is killed repeatedly completes when run again', async () => {
    const { database, realm } = await databaseWithSecret();
    const db = await openDatabase(database.settings(), systemClock);
    for (let more = 0; more < 40; more += 1) await insertSecret(db, realm);
    await db.engine.close();
    const file = newKeyFile();
    const command = [AUTHREALM, 'keys', 'rewrap', '--new-master-key-file', file, ...database.args];
    for (let wait = 60; wait < 200; wait += 20) {
      const child = startCommand(command);
      await Bun.sleep(wait);
      child.process.kill('SIGKILL');
      await child.process.exited;
      await (await openDatabase(database.settings(), systemClock)).engine.close();
    }
    const { code, stderr } = await runCommand(command);
    expect([code, stderr]).toEqual([0, '']);
    expect((await decryptAll(database.settings())).secrets).toBe(41);
    expect(existsSync(file)).toBe(true);
  }, 300_000);
});
