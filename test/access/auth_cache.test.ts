import { expect, test } from 'bun:test';
import { openClientCredentials } from '../../src/access/clients/client_credentials.ts';
import { createClient, rotateSecret } from '../../src/access/clients/clients.ts';
import type { Keyring } from '../../src/access/keys/keyring.ts';
import { rotateSigningKey, withdrawSigningKey } from '../../src/access/keys/signing.ts';
import { openAuthCache } from '../../src/access/tokens/auth_cache.ts';
import { openOwnJwts } from '../../src/access/tokens/own_jwts.ts';
import { openTokens } from '../../src/access/tokens/token.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { startService } from '../support/service.ts';

/** The clients and keys that a process caches, and for how long. */

const service = await startService();

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

test('a client that was just created, or whose secret was rotated, gets a token within 50 ms', async () => {
  const { client, secret } = await createClient(
    service.db.engine.access,
    'new',
    { scopes: new Set(['users:read'] as const), realms: '*' },
    service.clock,
  );
  const statusOf = async (clientId: string, clientSecret: string) =>
    (await service.requestGrant({ clientId, secret: clientSecret })).status;
  // The table was read a moment ago.
  expect(await statusOf('nobody', secret)).toBe(401);
  service.clock.advance(LIMITS.accessTableRecheckMs);
  expect(await statusOf(client.clientId, secret)).toBe(200);
  const rotated = await rotateSecret(
    service.db.engine.access,
    client.clientId,
    { overlapMs: 0 },
    service.clock,
  );
  service.clock.advance(LIMITS.accessTableRecheckMs);
  expect(await statusOf(client.clientId, rotated.secret)).toBe(200);
});

test('a flood of unknown client IDs reads the access table once in accessTableRecheckMs', async () => {
  let now = 0;
  let reads = 0;
  const { access } = service.db.engine;
  const state = (version: number | undefined) => {
    reads += 1;
    return access.state(version);
  };
  const cache = openAuthCache({ ...access, state }, { ...service.clock, monotonic: () => now });
  const authenticate = openClientCredentials(cache, service.clock);
  const flood = async () => {
    for (let count = 0; count < 1_000; count += 1)
      expect(await authenticate({ clientId: `nobody-${count}`, clientSecret: 'x' })).toHaveProperty('code');
  };
  await flood();
  expect(reads).toBe(1);
  now = LIMITS.accessTableRecheckMs;
  await flood();
  expect(reads).toBe(2);
});

test('a wrong secret of an existing client takes as long as one of an unknown client', async () => {
  const { clientId } = await service.client('users:read');
  const authenticate = openClientCredentials(
    openAuthCache(service.db.engine.access, service.clock),
    service.clock,
  );
  // To digest a long secret takes most of the time.
  const clientSecret = 'x'.repeat(4_000_000);
  const timeOf = async (id: string) => {
    const began = performance.now();
    expect(await authenticate({ clientId: id, clientSecret })).toMatchObject({ code: 'invalid_client' });
    return performance.now() - began;
  };
  const existing: number[] = [];
  const unknown: number[] = [];
  // A busy machine interrupts most of them: more are needed until both have their least time.
  let apart = Number.POSITIVE_INFINITY;
  for (let count = 0; count < 15 || (count < 200 && apart >= 1.5); count += 1) {
    existing.push(await timeOf(clientId));
    unknown.push(await timeOf('nobody'));
    const ratio = Math.min(...existing) / Math.min(...unknown);
    apart = Math.max(ratio, 1 / ratio);
  }
  expect(apart).toBeLessThan(1.5);
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
  const jwts = openOwnJwts(observedKeyring, clock);
  const cache = openAuthCache(engine.access, clock);
  const tokens = openTokens(cache, jwts, { issuer, lifetimeSeconds: 60 }, clock);
  const usable = keys
    .filter(({ kid }) => kid !== withdrawn && kid !== withoutPrivateKey)
    .map(({ kid }) => kid);
  // A withdrawn key is not decrypted even if its private key still exists.
  jwts.loadSigningKeys([
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
  jwts.loadSigningKeys([]);
  await tokens.mint(client, client.scopes);
  expect(opened).toEqual([...usable, ...usable]);
});
