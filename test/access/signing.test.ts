import { describe, expect, test } from 'bun:test';
import {
  ensureSigningKey,
  keySetAt,
  rotateSigningKey,
  withdrawSigningKey,
} from '../../src/access/keys/signing.ts';
import type { SigningKey } from '../../src/access/store/access.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { startService } from '../support/service.ts';

describe('withdrawing a signing key', () => {
  test('withdrawing a key that does not sign keeps the signing key and deletes the private key', async () => {
    const service = await startService();
    const { access } = service.db.engine;
    const keys = async () => access.signingKeys();
    const [signer] = await keys();
    const { kid } = await rotateSigningKey(access, service.db.keyring, service.clock);
    expect(await withdrawSigningKey(kid, access, service.db.keyring, service.clock)).toBe(true);
    expect((await keys()).map((key) => [key.kid, key.privateSealed.length > 0])).toEqual([
      [signer?.kid ?? '', true],
      [kid, false],
    ]);
    await withdrawSigningKey(signer?.kid ?? '', access, service.db.keyring, service.clock);
    expect(await keys()).toHaveLength(3);
    expect(await service.token('users:read')).toBeString();
  });

  test('expired signing keys lose their private key at the next rotation', async () => {
    const service = await startService();
    const { engine, keyring } = service.db;
    await rotateSigningKey(engine.access, keyring, service.clock);
    service.clock.advance(2 * 86_400_000);
    await rotateSigningKey(engine.access, keyring, service.clock);
    const keys = (await engine.access.state(undefined))?.signingKeys ?? [];
    expect(keys.map(({ privateSealed }) => privateSealed.length > 0)).toEqual([false, true, true]);
    expect(await service.token('users:read')).toBeString();
  });
});

describe('a first signing key', () => {
  test('a first signing key is created only if none is in use, and once', async () => {
    const service = await startService();
    const { engine, keyring } = service.db;
    const live = async () => {
      const keys = (await engine.access.state(undefined))?.signingKeys ?? [];
      return keys.filter(({ withdrawnAt }) => withdrawnAt === undefined).map(({ kid }) => kid);
    };
    const [first] = await live();
    await ensureSigningKey(engine.access, keyring, service.clock);
    expect(await live()).toEqual([first as string]);
    await service.database.tamper('update signing_key set withdrawn_at = 1');
    const ensured = Array.from({ length: 4 }, () => ensureSigningKey(engine.access, keyring, service.clock));
    await Promise.all(ensured);
    const [replacement, ...more] = await live();
    expect([replacement === first, more]).toEqual([false, []]);
    service.clock.advance(1_000);
    expect(await service.token('users:read')).toBeString();
  });
});

test('of signing keys with the same start every process chooses the same one', () => {
  const key = (kid: string, signsFrom: number, withdrawnAt?: number): SigningKey => ({
    kid,
    publicJwk: '',
    privateSealed: new Uint8Array(1),
    createdAt: 0,
    signsFrom,
    withdrawnAt,
  });
  const [one, two, withdrawn] = [key('a', 10), key('b', 10), key('c', 10, 11)];
  for (const keys of [
    [one, two, withdrawn],
    [withdrawn, two, one],
  ]) {
    const { signer, accepted } = keySetAt(keys, 10);
    expect([signer?.kid, [...accepted.keys()]]).toEqual(['b', ['b', 'a']]);
  }
  expect(keySetAt([key('later', 12), key('next', 11)], 10).signer?.kid).toBe('next');
});

test('earlier signing keys are accepted until their tokens have expired on every clock', () => {
  const key = (kid: string, signsFrom: number): SigningKey => ({
    ...{ kid, publicJwk: '', privateSealed: new Uint8Array(1), createdAt: 0, signsFrom },
    withdrawnAt: undefined,
  });
  const keys = [key('old', 0), key('new', 1_000)];
  const until = 1_000 + LIMITS.tokenLifetimeSecondsMax * 1_000 + LIMITS.clockLeewayMs;
  expect([...keySetAt(keys, until - 1).accepted.keys()]).toEqual(['new', 'old']);
  expect([...keySetAt(keys, until).accepted.keys()]).toEqual(['new']);
});

test('a rotation with no private key to delete succeeds where a further write would be refused', async () => {
  const service = await startService();
  const { engine, keyring } = service.db;
  const refusing = { ...engine.access, deletePrivateKeys: () => Promise.reject(new Error('refused')) };
  const rotate = async (access = engine.access) =>
    (await rotateSigningKey(access, keyring, service.clock)).kid;
  const added = [await rotate(refusing)];
  service.clock.advance(2 * 86_400_000);
  await expect(rotate(refusing)).rejects.toThrow('refused');
  // From now on the private key of the first one is deleted.
  added.push(await rotate(), await rotate(refusing));
  const stored = (await engine.access.signingKeys()).map(({ kid }) => kid);
  expect(stored).toEqual(expect.arrayContaining(added));
});
