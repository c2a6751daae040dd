import { describe, expect, test } from 'bun:test';
import {
  assertOpensAll,
  type Keyring,
  keyCheckOf,
  openKeyring,
  opensKeyCheck,
} from '../../src/access/keys/keyring.ts';
import type { SecretLocation } from '../../src/access/store/sealed.ts';
import { Refusal } from '../../src/model/fault.ts';
import { ciphertextKeyId } from '../../src/model/text/ciphertext.ts';
import { systemClock } from '../../src/ops/process/clock.ts';

const master = systemClock.randomBytes(32);
const keyring = openKeyring([master], systemClock);
const location: SecretLocation = {
  table: 'oidc_profile',
  column: 'client_secret_sealed',
  realm: systemClock.mintId(),
  id: systemClock.mintId(),
};
const SECRET = 'a client secret';

describe('a sealed secret', () => {
  const sealed = keyring.seal('oidc-client-secret', location, SECRET);

  test('a sealed secret decrypts only in its location and with its master key', () => {
    expect(keyring.open('oidc-client-secret', location, sealed)).toBe(SECRET);
    expect(openKeyring([master], systemClock).open('oidc-client-secret', location, sealed)).toBe(SECRET);
    const stranger = openKeyring([systemClock.randomBytes(32)], systemClock);
    expect(() => stranger.open('oidc-client-secret', location, sealed)).toThrow();
    expect(stranger.keyId).not.toBe(keyring.keyId);
  });

  const elsewhere: [string, SecretLocation][] = [
    ['another row', { ...location, id: systemClock.mintId() }],
    ['another realm', { ...location, realm: systemClock.mintId() }],
    ['another column', { ...location, column: 'other' }],
    ['another table', { ...location, table: 'other' }],
    [
      'a table whose name joins to the same text',
      { ...location, table: 'oidc_profile","client_secret_sealed' },
    ],
  ];
  for (const [where, other] of elsewhere) {
    test(`a sealed secret does not decrypt in ${where}`, () => {
      expect(() => keyring.open('oidc-client-secret', other, sealed)).toThrow();
    });
  }

  test('a sealed secret does not decrypt for another purpose', () => {
    expect(() => keyring.open('signing-key', location, sealed)).toThrow();
  });

  test('a sealed secret does not decrypt with any bit changed, or truncated', () => {
    for (let index = 0; index < sealed.length; index += 1) {
      const changed = Buffer.from(sealed);
      changed[index] = (changed[index] ?? 0) ^ 1;
      expect(() => keyring.open('oidc-client-secret', location, changed)).toThrow();
      expect(() => keyring.open('oidc-client-secret', location, sealed.slice(0, index))).toThrow();
    }
  });

  test('an empty secret can be sealed', () => {
    expect(
      keyring.open('oidc-client-secret', location, keyring.seal('oidc-client-secret', location, '')),
    ).toBe('');
  });

  test('a sealed secret names its key, and sealing twice gives different bytes', () => {
    expect(Buffer.from(sealed).subarray(1, 9).toString('hex')).toBe(keyring.keyId);
    expect(keyring.seal('oidc-client-secret', location, SECRET)).not.toEqual(sealed);
  });
});

describe('a keyring of several keys', () => {
  const [one, two] = [systemClock.randomBytes(32), systemClock.randomBytes(32)];
  const ids = [one, two].map((key) => openKeyring([key], systemClock).keyId) as [string, string];

  test('a keyring of several keys decrypts values of each and seals with the newest that has a key check', () => {
    const keyring = openKeyring([one, two], systemClock);
    for (const keyId of ids) {
      keyring.activateNewest([...ids.filter((each) => each !== keyId), keyId]);
      const sealed = keyring.seal('oidc-client-secret', location, SECRET);
      expect(ciphertextKeyId(sealed)).toBe(keyId);
      keyring.activateNewest(ids);
      expect(keyring.open('oidc-client-secret', location, sealed)).toBe(SECRET);
      expect(() => keyring.open('oidc-client-secret', { ...location, id: 'j' }, sealed)).toThrow();
    }
  });

  test('a keyring does not seal with a key that is not configured', () => {
    const keyring = openKeyring([one], systemClock);
    const sealed = openKeyring([two], systemClock).seal('oidc-client-secret', location, SECRET);
    expect(() => keyring.open('oidc-client-secret', location, sealed)).toThrow('names another key');
    keyring.activateNewest(ids);
    expect(keyring.keyId).toBe(ids[0]);
  });
});

describe('the key checks of a database', () => {
  const [one, two, three] = [master, systemClock.randomBytes(32), systemClock.randomBytes(32)].map((key) =>
    openKeyring([key], systemClock),
  ) as [Keyring, Keyring, Keyring];
  const complaint = (keyrings: readonly Keyring[]): string => {
    try {
      assertOpensAll(one, keyrings.map(keyCheckOf));
    } catch (error) {
      if (error instanceof Refusal) return error.message;
      throw error;
    }
    return '';
  };

  test('a key check decrypts only with its own master key', () => {
    expect(opensKeyCheck(one, keyCheckOf(one))).toBe(true);
    expect(opensKeyCheck(one, keyCheckOf(two))).toBe(false);
    const elsewhere = { keyId: one.keyId, sealed: one.seal('key-check', location, 'authrealm') };
    expect(opensKeyCheck(one, elsewhere)).toBe(false);
  });

  test('a wrong master key and an incomplete key change are refused with different messages', () => {
    expect(complaint([one])).toBe('');
    expect(complaint([])).toBe('');
    expect(complaint([two, three])).toContain(`was given, and ${two.keyId}, ${three.keyId} is required`);
    expect(complaint([two])).toContain('the master key does not match this database');
    expect(complaint([one, two])).toContain(`is being changed, and key ${two.keyId} is also required`);
  });
});

test('a master key of another length throws, and so does a keyring without a key', () => {
  expect(() => openKeyring([new Uint8Array(31)], systemClock)).toThrow('32 bytes');
  expect(() => openKeyring([], systemClock)).toThrow('needs a master key');
});

test('each purpose has its own digests', () => {
  const digests = (['idempotency-key', 'request-body', 'external-subject'] as const).map((purpose) =>
    keyring.digest(purpose, 'a text'),
  );
  expect(new Set(digests).size).toBe(3);
  expect(openKeyring([master], systemClock).digest('request-body', 'a text')).toBe(digests[1] as string);
});
