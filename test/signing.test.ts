import { describe, expect, test } from 'bun:test';
import { rotateSigningKey, withdrawSigningKey } from '../src/access/signing.ts';
import { startService } from './kit.ts';

describe('withdrawing a signing key', () => {
  test('that does not sign leaves the one that does, and forgets its private half', async () => {
    const service = await startService();
    const { access } = service.vault.engine;
    const keys = async () => (await access.table(undefined))?.signingKeys ?? [];
    const [signer] = await keys();
    const { kid } = await rotateSigningKey(access, service.vault.keyring, service.ambient);
    expect(await withdrawSigningKey(kid, access, service.vault.keyring, service.ambient)).toBe(true);
    expect((await keys()).map((key) => [key.kid, key.privateSealed.length > 0])).toEqual([
      [signer?.kid ?? '', true],
      [kid, false],
    ]);
    await withdrawSigningKey(signer?.kid ?? '', access, service.vault.keyring, service.ambient);
    expect(await keys()).toHaveLength(3);
    expect(await service.token('users:read')).toBeString();
    await service.stop();
  });

  test('keys that are outlived lose their private half at the next rotation', async () => {
    const service = await startService();
    const { engine, keyring } = service.vault;
    await rotateSigningKey(engine.access, keyring, service.ambient);
    service.ambient.advance(2 * 86_400_000);
    await rotateSigningKey(engine.access, keyring, service.ambient);
    const keys = (await engine.access.table(undefined))?.signingKeys ?? [];
    expect(keys.map(({ privateSealed }) => privateSealed.length > 0)).toEqual([false, true, true]);
    expect(await service.token('users:read')).toBeString();
    await service.stop();
  });
});
