import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { Keyring } from '../../src/auth/keys/keyring.ts';
import { rotateSigningKey, withdrawSigningKey } from '../../src/auth/keys/signing.ts';
import { openAuthCache } from '../../src/auth/tokens/auth_cache.ts';
import { openTokens } from '../../src/auth/tokens/token.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { type Service, startService } from '../support/service.ts';

/** What a process keeps of clients and keys, and for how long. */

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

test('a view is read once, and again in the instant that it is as old as it may be', async () => {
  let now = 0;
  let readings = 0;
  const { access } = service.db.engine;
  const cache = openAuthCache(
    {
      ...access,
      state(version) {
        readings += 1;
        return access.state(version);
      },
    },
    { ...service.clock, monotonic: () => now },
  );
  expect(cache.ageMs()).toBeUndefined();
  for (const [at, read] of [
    [0, 1],
    [LIMITS.accessTableAgeMsMax - 1, 1],
    [LIMITS.accessTableAgeMsMax, 2],
    [2 * LIMITS.accessTableAgeMsMax, 3],
  ] as const) {
    now = at;
    expect((await cache.fresh()).keys.signer).toBeDefined();
    expect([at, readings, cache.ageMs()]).toEqual([at, read, read === 1 ? at : 0]);
  }
});

test('a key that may sign is opened before it is needed, no other one, and it is let go with its use', async () => {
  const { engine, keyring } = service.db;
  const { clock, settings } = service;
  const { kid: withdrawn } = await rotateSigningKey(engine.access, keyring, clock);
  await withdrawSigningKey(withdrawn, engine.access, keyring, clock);
  const { kid: forgotten } = await rotateSigningKey(engine.access, keyring, clock);
  await engine.access.deletePrivateKeys([forgotten]);
  const keys = await engine.access.signingKeys();
  expect(keys).toHaveLength(3);
  const opened: string[] = [];
  const watched: Keyring = {
    ...keyring,
    open(purpose, location, sealed) {
      opened.push(location.id);
      return keyring.open(purpose, location, sealed);
    },
  };
  const issuer = settings.baseUrl ?? service.url;
  const tokens = openTokens(
    openAuthCache(engine.access, clock),
    watched,
    { issuer, lifetimeSeconds: 60 },
    clock,
  );
  const rest = keys.filter(({ kid }) => kid !== withdrawn && kid !== forgotten).map(({ kid }) => kid);
  // A withdrawn key whose private half is still there is none either.
  tokens.loadSigningKeys([
    ...keys,
    ...keys.slice(0, 1).map((key) => ({ ...key, kid: 'late', withdrawnAt: 1 })),
  ]);
  expect(opened).toEqual(rest);
  const { clientId } = await service.client('users:read');
  const client = await engine.access.client(clientId);
  if (!client) throw new Error('there is no client');
  await tokens.mint(client, client.scopes);
  expect(opened).toEqual(rest);
  // Of what is used no more nothing stays: it would have to be opened again.
  tokens.loadSigningKeys([]);
  await tokens.mint(client, client.scopes);
  expect(opened).toEqual([...rest, ...rest]);
});
