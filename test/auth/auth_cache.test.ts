import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { Keyring } from '../../src/auth/keys/keyring.ts';
import { rotateSigningKey, withdrawSigningKey } from '../../src/auth/keys/signing.ts';
import { openAuthCache } from '../../src/auth/tokens/auth_cache.ts';
import { openTokens } from '../../src/auth/tokens/token.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { type Service, startService } from '../support/service.ts';

/** The clients and keys that a process caches, and for how long. */

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

test('the auth cache reads the tables once, and again at their maximum age', async () => {
  let now = 0;
  let reads = 0;
  const { access } = service.db.engine;
  const cache = openAuthCache(
    {
      ...access,
      state(version) {
        reads += 1;
        return access.state(version);
      },
    },
    { ...service.clock, monotonic: () => now },
  );
  expect(cache.ageMs()).toBeUndefined();
  for (const [at, expected] of [
    [0, 1],
    [LIMITS.accessTableAgeMsMax - 1, 1],
    [LIMITS.accessTableAgeMsMax, 2],
    [2 * LIMITS.accessTableAgeMsMax, 3],
  ] as const) {
    now = at;
    expect((await cache.fresh()).keys.signer).toBeDefined();
    expect([at, reads, cache.ageMs()]).toEqual([at, expected, expected === 1 ? at : 0]);
  }
});

test('signing keys are decrypted in advance, other keys are not, and unused ones are dropped', async () => {
  const { engine, keyring } = service.db;
  const { clock, settings } = service;
  const { kid: withdrawn } = await rotateSigningKey(engine.access, keyring, clock);
  await withdrawSigningKey(withdrawn, engine.access, keyring, clock);
  const { kid: withoutPrivateKey } = await rotateSigningKey(engine.access, keyring, clock);
  await engine.access.deletePrivateKeys([withoutPrivateKey]);
  const keys = await engine.access.signingKeys();
  expect(keys).toHaveLength(3);
  const opened: string[] = [];
  const observedKeyring: Keyring = {
    ...keyring,
    open(purpose, location, sealed) {
      opened.push(location.id);
      return keyring.open(purpose, location, sealed);
    },
  };
  const issuer = settings.baseUrl ?? service.url;
  const tokens = openTokens(
    openAuthCache(engine.access, clock),
    observedKeyring,
    { issuer, lifetimeSeconds: 60 },
    clock,
  );
  const usable = keys
    .filter(({ kid }) => kid !== withdrawn && kid !== withoutPrivateKey)
    .map(({ kid }) => kid);
  // A withdrawn key is not decrypted even if its private key still exists.
  tokens.loadSigningKeys([
    ...keys,
    ...keys.slice(0, 1).map((key) => ({ ...key, kid: 'late', withdrawnAt: 1 })),
  ]);
  expect(opened).toEqual(usable);
  const { clientId } = await service.client('users:read');
  const client = await engine.access.client(clientId);
  if (!client) throw new Error('no client');
  await tokens.mint(client, client.scopes);
  expect(opened).toEqual(usable);
  // A key that is no longer loaded is dropped, so it is decrypted again.
  tokens.loadSigningKeys([]);
  await tokens.mint(client, client.scopes);
  expect(opened).toEqual([...usable, ...usable]);
});
