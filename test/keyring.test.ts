import { describe, expect, test } from 'bun:test';
import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openKeyring, type Place } from '../src/access/keyring.ts';
import { parseMasterKey } from '../src/access/master_key.ts';
import { systemAmbient } from '../src/ambient.ts';
import { openVault } from '../src/app.ts';
import { readSettings } from '../src/config.ts';
import { Refusal } from '../src/domain/fault.ts';
import { freshFolder } from './kit.ts';
import { AUTHREALM, runCommand } from './processes.ts';

const master = systemAmbient.randomBytes(32);
const keyring = openKeyring(master, systemAmbient);
const place: Place = {
  table: 'oidc_profile',
  column: 'client_secret_sealed',
  realm: systemAmbient.mintId(),
  id: systemAmbient.mintId(),
};
const SECRET = 'a client secret';

describe('a sealed secret', () => {
  const sealed = keyring.seal('oidc-client-secret', place, SECRET);

  test('opens where it belongs, and with the same master key only', () => {
    expect(keyring.open('oidc-client-secret', place, sealed)).toBe(SECRET);
    expect(openKeyring(master, systemAmbient).open('oidc-client-secret', place, sealed)).toBe(SECRET);
    const stranger = openKeyring(systemAmbient.randomBytes(32), systemAmbient);
    expect(() => stranger.open('oidc-client-secret', place, sealed)).toThrow();
    expect(stranger.keyId).not.toBe(keyring.keyId);
  });

  const elsewhere: [string, Place][] = [
    ['another row', { ...place, id: systemAmbient.mintId() }],
    ['another realm', { ...place, realm: systemAmbient.mintId() }],
    ['another column', { ...place, column: 'other' }],
    ['another table', { ...place, table: 'other' }],
    ['names that join alike', { ...place, table: 'oidc_profile","client_secret_sealed' }],
  ];
  for (const [where, other] of elsewhere) {
    test(`does not open in ${where}`, () => {
      expect(() => keyring.open('oidc-client-secret', other, sealed)).toThrow();
    });
  }

  test('does not open for another purpose', () => {
    expect(() => keyring.open('signing-key', place, sealed)).toThrow();
  });

  test('does not open with any one bit changed, or cut', () => {
    for (let index = 0; index < sealed.length; index += 1) {
      const changed = Buffer.from(sealed);
      changed[index] = (changed[index] ?? 0) ^ 1;
      expect(() => keyring.open('oidc-client-secret', place, changed)).toThrow();
      expect(() => keyring.open('oidc-client-secret', place, sealed.slice(0, index))).toThrow();
    }
  });

  test('names its key and never looks the same twice', () => {
    expect(Buffer.from(sealed).subarray(1, 9).toString('hex')).toBe(keyring.keyId);
    expect(keyring.seal('oidc-client-secret', place, SECRET)).not.toEqual(sealed);
  });
});

test('a master key is 32 bytes as base64url, base64 or hex, and nothing else', () => {
  const bytes = Buffer.from(master);
  for (const spelling of ['hex', 'base64', 'base64url'] as const) {
    expect(parseMasterKey(`${bytes.toString(spelling)}\n`)).toEqual(bytes);
  }
  const wrong = ['', 'x', bytes.toString('hex').slice(1), `${bytes.toString('hex')}00`, 'é'.repeat(43)];
  for (const raw of wrong) expect(parseMasterKey(raw)).toBeUndefined();
});

describe('the key file beside a database', () => {
  const open = (database: string, environment: Record<string, string> = {}) =>
    openVault(readSettings({ database: `sqlite:${database}` }, environment), systemAmbient);

  async function made() {
    const database = join(freshFolder(), 'keyed.db');
    const vault = await open(database);
    vault.engine.close();
    return { database, keyFile: `${database}.key`, vault };
  }

  test('is made once, 0600, and said so once', async () => {
    const { database, keyFile, vault } = await made();
    expect(vault.keyFileMade).toBe(keyFile);
    for (const file of [database, keyFile]) expect(statSync(file).mode & 0o777).toBe(0o600);
    const again = await open(database);
    expect(again.keyFileMade).toBeUndefined();
    expect(again.keyring.keyId).toBe(vault.keyring.keyId);
    again.engine.close();
  });

  test('is made by one of twenty starts at once, and used by all', async () => {
    const database = join(freshFolder(), 'first.db');
    const start = () => runCommand([AUTHREALM, 'import', '-', '--database', `sqlite:${database}`]);
    const ended = await Promise.all(Array.from({ length: 20 }, start));
    expect(ended.map(({ code }) => code)).toEqual(Array(20).fill(0));
    expect(ended.filter(({ stdout, stderr }) => /made the master key/.test(stdout + stderr))).toHaveLength(1);
  }, 30_000);

  test('takes the drafts of killed starts away, and nothing else', async () => {
    const { database, keyFile } = await made();
    const others = [
      `${keyFile}.old-0123456789abcdef`,
      `${keyFile}.next-${systemAmbient.mintId()}`,
      `${keyFile}.mine`,
    ];
    const draft = `${keyFile}.${systemAmbient.mintId()}`;
    for (const file of [draft, ...others]) writeFileSync(file, 'x');
    (await open(database)).engine.close();
    expect([draft, ...others].map((file) => existsSync(file))).toEqual([false, true, true, true]);
  });

  test('is told, not replaced, when it is lost', async () => {
    const { database, keyFile } = await made();
    rmSync(keyFile);
    expect(open(database)).rejects.toThrow(/is missing.*put it back/);
  });

  test("is refused when it is a stranger's, or no key", async () => {
    const { database, keyFile, vault } = await made();
    writeFileSync(keyFile, Buffer.from(systemAmbient.randomBytes(32)).toString('hex'));
    const refusal = await open(database).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(Refusal);
    expect(String(refusal)).toContain(vault.keyring.keyId);
    writeFileSync(keyFile, 'not a key');
    expect(open(database)).rejects.toThrow(/32 bytes/);
  });

  test('gives way to the environment, which must hold the same key', async () => {
    const { database, keyFile } = await made();
    const key = readFileSync(keyFile, 'utf8').trim();
    rmSync(keyFile);
    (await open(database, { AUTHREALM_MASTER_KEY: key })).engine.close();
    const moved = join(freshFolder(), 'moved.key');
    writeFileSync(moved, key);
    chmodSync(moved, 0o400);
    (await open(database, { AUTHREALM_MASTER_KEY_FILE: moved })).engine.close();
    const other = Buffer.from(systemAmbient.randomBytes(32)).toString('hex');
    expect(open(database, { AUTHREALM_MASTER_KEY: other })).rejects.toThrow(/not the one/);
    expect(open(database, { AUTHREALM_MASTER_KEY: 'short' })).rejects.toThrow(/32 bytes/);
    expect(open(database, { AUTHREALM_MASTER_KEY_FILE: '/nowhere/key' })).rejects.toThrow(/cannot be read/);
  });

  test('is never inside the database', async () => {
    const { database, keyFile } = await made();
    const key = Buffer.from(readFileSync(keyFile, 'utf8').trim(), 'base64url');
    const bytes = readFileSync(database);
    for (const spelling of ['hex', 'base64', 'base64url'] as const) {
      expect(bytes.includes(key.toString(spelling))).toBe(false);
    }
    expect(bytes.includes(key)).toBe(false);
  });
});
