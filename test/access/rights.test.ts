import { afterEach, describe, expect, test } from 'bun:test';
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose';
import { changeClient } from '../../src/access/clients/clients.ts';
import { rotateSigningKey, withdrawSigningKey } from '../../src/access/keys/signing.ts';
import type { AuthState } from '../../src/access/store/access.ts';
import { type AuthView, openAuthCache } from '../../src/access/tokens/auth_cache.ts';
import { openOwnJwts } from '../../src/access/tokens/own_jwts.ts';
import { openTokens } from '../../src/access/tokens/token.ts';
import { Fault } from '../../src/model/fault.ts';
import type { Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import type { Engine } from '../../src/ops/store/open.ts';
import { createFixture, LOOKUPS, startService } from '../support/service.ts';
import { compact, openForge } from '../support/token_forge.ts';

const [{ path }, { path: passwordPath }] = LOOKUPS;
/** Within this time every process applies a change of rights. */
const EFFECT_MS = 1_000;

let isTableBroken = false;

function breakable(engine: Engine): Engine {
  const table = (known: number | undefined): AuthState | undefined | Promise<AuthState | undefined> => {
    if (isTableBroken) throw new Fault('unavailable');
    return engine.access.state(known);
  };
  return { ...engine, access: { ...engine.access, state: table } };
}

const service = await startService({}, breakable);
const fixture = await createFixture(service.db);
afterEach(() => {
  isTableBroken = false;
});

async function grantToken(scope: string, realms: '*' | Set<Uuid> = '*') {
  const { clientId, secret } = await service.client(scope, realms);
  const token = await service.grant({ clientId, secret });
  return { clientId, token };
}

async function statusOf(token: string, address = path(fixture)): Promise<number> {
  return (await service.get(address, token)).status;
}

function change(clientId: string, patch: Parameters<typeof changeClient>[2]) {
  return changeClient(service.db.engine.access, clientId, patch, service.clock);
}

test('a token does not gain the realms of another token of its client', async () => {
  const other = await createFixture(service.db);
  const { clientId, secret } = await service.client('oidc-profile-infos:read', new Set([fixture.realm]));
  const grant = () => service.grant({ clientId, secret });
  const narrow = await grant();
  await change(clientId, { realms: new Set([fixture.realm, other.realm]) });
  service.clock.advance(EFFECT_MS);
  const wide = await grant();
  for (const [token, status] of [
    [wide, 200],
    [narrow, 404],
    [wide, 200],
    [narrow, 404],
  ] as const) {
    expect([await statusOf(token), await statusOf(token, path(other))]).toEqual([200, status]);
  }
});

describe('published metadata and keys', () => {
  test('a resource server can validate a token by RFC 9068 with the published keys', async () => {
    const { clientId, token } = await grantToken('profile-infos:read', new Set([fixture.realm]));
    const metadata = await service.get('/.well-known/oauth-authorization-server');
    const { issuer, jwks_uri } = (await metadata.json()) as { issuer: string; jwks_uri: string };
    const { payload, protectedHeader } = await jwtVerify(token, createRemoteJWKSet(new URL(jwks_uri)), {
      issuer,
      audience: issuer,
      typ: 'at+jwt',
      algorithms: ['Ed25519'],
      currentDate: new Date(service.clock.now()),
    });
    const iat = payload.iat as number;
    expect(payload).toEqual({
      ...{ iss: service.url, aud: service.url, sub: clientId, client_id: clientId },
      ...{ iat, nbf: iat, exp: iat + 3600, jti: expect.stringMatching(/^[0-9a-f-]{36}$/) },
      scope: 'oidc-profile-infos:read password-profile-infos:read',
      realms: [fixture.realm],
    });
    expect(Object.keys(protectedHeader).sort()).toEqual(['alg', 'kid', 'typ']);
    expect(Math.abs(iat * 1000 - service.clock.now())).toBeLessThan(5_000);
  });

  test('the published key set has only public keys', async () => {
    const answer = await service.get('/.well-known/jwks.json');
    const { keys } = (await answer.json()) as { keys: object[] };
    expect(keys.length).toBeGreaterThan(0);
    for (const key of keys) {
      expect(Object.keys(key).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x']);
    }
  });

  test('concurrent grants return different tokens', async () => {
    const { clientId, secret } = await service.client('profile-infos:read');
    const tokens = await Promise.all([1, 2, 3].map(() => service.grant({ clientId, secret })));
    expect(new Set(tokens).size).toBe(3);
  });
});

describe('the realms claim', () => {
  test('the realms claim is * for a client with all realms', async () => {
    const { token } = await grantToken('profile-infos:read');
    expect(JSON.parse(atob(token.split('.')[1] as string))).toMatchObject({ realms: ['*'] });
  });

  test.each([
    [1, true],
    [LIMITS.tokenRealmsMax, true],
    [LIMITS.tokenRealmsMax + 1, false],
  ])('a token for %i realms lists them: %p; the client table decides either way', async (count, isListed) => {
    const others = Array.from({ length: count - 1 }, () => systemClock.mintId());
    const { clientId, token } = await grantToken('profile-infos:read', new Set([fixture.realm, ...others]));
    const { realms } = JSON.parse(atob(token.split('.')[1] as string)) as { realms?: string[] };
    expect(realms?.length).toBe(isListed ? count : (undefined as never));
    expect(await statusOf(token)).toBe(200);
    const neighbour = await createFixture(service.db);
    expect(await statusOf(token, path(neighbour))).toBe(404);
    await change(clientId, { realms: new Set(others) });
    service.clock.advance(EFFECT_MS);
    expect(await statusOf(token)).toBe(404);
  });
});

describe('changes of rights', () => {
  const CHANGES: [string, (clientId: string) => Promise<unknown>, number, number][] = [
    ['a disabled client', (id) => change(id, { disabledAt: service.clock.now() }), 401, 401],
    ['a narrowed scope', (id) => change(id, { scopes: new Set(['password-profile-infos:read']) }), 403, 200],
    ['narrowed realms', (id) => change(id, { realms: new Set([systemClock.mintId()]) }), 404, 404],
  ];
  test.each(CHANGES)(
    '%s applies to a verified token within a second',
    async (_name, apply, oidc, password) => {
      const { clientId, token } = await grantToken('profile-infos:read');
      expect([await statusOf(token), await statusOf(token, passwordPath(fixture))]).toEqual([200, 200]);
      await apply(clientId);
      service.clock.advance(EFFECT_MS);
      expect([await statusOf(token), await statusOf(token, passwordPath(fixture))]).toEqual([oidc, password]);
    },
  );

  test('a restored right applies within a second, but never beyond the claims of the token', async () => {
    const { clientId, token } = await grantToken('oidc-profile-infos:read', new Set([fixture.realm]));
    const neighbour = await createFixture(service.db);
    const more = new Set(['oidc-profile-infos:read', 'password-profile-infos:read']);
    await change(clientId, { scopes: more, realms: '*', disabledAt: service.clock.now() });
    service.clock.advance(EFFECT_MS);
    expect(await statusOf(token)).toBe(401);
    await change(clientId, { disabledAt: undefined });
    service.clock.advance(EFFECT_MS);
    expect(await statusOf(token)).toBe(200);
    expect(await statusOf(token, passwordPath(fixture))).toBe(403);
    expect(await statusOf(token, path(neighbour))).toBe(404);
  });

  test('tokens of a withdrawn key are 401 within a second, and the key is no longer published', async () => {
    const { clientId, token } = await grantToken('profile-infos:read');
    const { kid } = decodeProtectedHeader(token) as { kid: string };
    expect(await statusOf(token)).toBe(200);
    const { engine, keyring } = service.db;
    expect(await withdrawSigningKey(kid, engine.access, keyring, service.clock)).toBe(true);
    service.clock.advance(EFFECT_MS);
    expect(await statusOf(token)).toBe(401);
    expect(await (await service.get('/.well-known/jwks.json')).text()).not.toContain(kid);
    const next = await grantToken('profile-infos:read');
    expect(next.clientId).not.toBe(clientId);
    expect(await statusOf(next.token)).toBe(200);
    expect(decodeProtectedHeader(next.token).kid).not.toBe(kid);
  });
});

test('a new signing key is published before it signs, and the old one is accepted while its tokens live', async () => {
  const before = await grantToken('profile-infos:read');
  const { engine, keyring } = service.db;
  const { kid } = await rotateSigningKey(engine.access, keyring, service.clock);
  service.clock.advance(EFFECT_MS);
  expect(await (await service.get('/.well-known/jwks.json')).text()).toContain(kid);
  const early = await grantToken('profile-infos:read');
  expect(decodeProtectedHeader(early.token).kid).not.toBe(kid);
  // Caches of the table and of the key set, and clock skew, may add up.
  service.clock.advance(LIMITS.keySetAgeMsMax + LIMITS.clockLeewayMs - 15_000);
  const late = await grantToken('profile-infos:read');
  expect(decodeProtectedHeader(late.token).kid).not.toBe(kid);
  service.clock.advance(LIMITS.accessTableAgeMsMax + 15_000);
  const after = await grantToken('profile-infos:read');
  expect(decodeProtectedHeader(after.token).kid).toBe(kid);
  for (const { token } of [before, early, after]) expect(await statusOf(token)).toBe(200);
});

test('a token is rejected after its expiry and the leeway, verified before or not', async () => {
  const known = await grantToken('profile-infos:read');
  const unknown = await grantToken('profile-infos:read');
  const idle = await grantToken('profile-infos:read');
  expect(await statusOf(known.token)).toBe(200);
  expect(await statusOf(idle.token)).toBe(200);
  // The last token expires a few seconds after the first.
  const { exp } = JSON.parse(atob(idle.token.split('.')[1] as string)) as { exp: number };
  service.clock.advance(exp * 1000 - service.clock.now() + LIMITS.clockLeewayMs - 15_000);
  expect(await statusOf(known.token)).toBe(200);
  expect(await statusOf(unknown.token)).toBe(200);
  service.clock.advance(17_000);
  expect(await statusOf(known.token)).toBe(401);
  expect(await statusOf(unknown.token)).toBe(401);
  expect(await statusOf(idle.token)).toBe(401);
});

describe('an unreadable client table', () => {
  test('a verified token is 503 once the cached client table is older than a second', async () => {
    const { token } = await grantToken('profile-infos:read');
    expect(await statusOf(token)).toBe(200);
    isTableBroken = true;
    service.clock.advance(EFFECT_MS);
    for (const address of [path(fixture), `${path(fixture)}/`, passwordPath(fixture)]) {
      const answer = await service.get(address, token);
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
    }
    isTableBroken = false;
    expect(await statusOf(token)).toBe(200);
  });

  test('token endpoint, key set and readiness are 503 without the client table, and liveness is 200', async () => {
    const { clientId, secret } = await service.client('profile-infos:read');
    isTableBroken = true;
    service.clock.advance(EFFECT_MS);
    expect((await service.requestGrant({ clientId, secret })).status).toBe(503);
    expect((await service.get('/.well-known/jwks.json')).status).toBe(503);
    expect((await service.get('/readyz')).status).toBe(503);
    expect((await service.get('/healthz')).status).toBe(200);
  });

  test('a request without a token is 401 without the client table', async () => {
    isTableBroken = true;
    service.clock.advance(EFFECT_MS);
    expect((await service.get(path(fixture))).status).toBe(401);
  });
});

describe('verified tokens', () => {
  /** Verifies tokens and reports whether the signature was checked. */
  async function observedVerification() {
    const { engine, keyring } = service.db;
    const cache = openAuthCache(engine.access, service.clock);
    let lookups = 0;
    const fresh = async (): Promise<AuthView> => {
      const view = await cache.fresh();
      const accepted = new Map(view.keys.accepted);
      const get = accepted.get.bind(accepted);
      accepted.get = (kid) => {
        lookups += 1;
        return get(kid);
      };
      return { ...view, keys: { ...view.keys, accepted } };
    };
    const settings = { issuer: service.url, lifetimeSeconds: 3600 };
    const tokens = openTokens(
      { fresh, recent: fresh },
      openOwnJwts(keyring, service.clock),
      settings,
      service.clock,
    );
    return async (token: string) => {
      lookups = 0;
      return { opens: (await tokens.verify(token)) !== undefined, isChecked: lookups > 0 };
    };
  }

  test('the signature of a token is checked once, and each time after its expiry', async () => {
    const verify = await observedVerification();
    const { token } = await grantToken('profile-infos:read');
    expect(await verify(token)).toEqual({ opens: true, isChecked: true });
    expect(await verify(token)).toEqual({ opens: true, isChecked: false });
    service.clock.advance(3_600_000 + 5_000);
    await verify(token);
    expect(await verify(token)).toEqual({ opens: true, isChecked: true });
    expect(await verify(token)).toEqual({ opens: true, isChecked: true });
  });

  test('an obviously invalid token is refused before its signature is verified', async () => {
    const verify = await observedVerification();
    const { clientId } = await service.client('profile-infos:read');
    const { header, claims, sign } = await openForge(service);
    const make = (head: object, body: object) =>
      compact(
        JSON.stringify({ ...header(), ...head }),
        JSON.stringify({ ...claims(clientId), ...body }),
        sign,
      );
    expect(await verify(await make({}, {}))).toEqual({ opens: true, isChecked: true });
    for (const token of [
      await make({ alg: 'EdDSA' }, {}),
      await make({ typ: 'JWT' }, {}),
      await make({ crit: [] }, {}),
      await make({ kid: 1 }, {}),
      await make({}, { iss: 'https://other.example' }),
      await make({}, { exp: 1 }),
      await make({}, { exp: undefined }),
      await make({}, { exp: 'later' }),
      await make({}, { padding: 'x'.repeat(LIMITS.tokenBytesMax) }),
      `${await make({}, {})}.`,
    ]) {
      expect(await verify(token)).toEqual({ opens: false, isChecked: false });
    }
  });

  test('an invalid token is never cached', async () => {
    const verify = await observedVerification();
    const { token } = await grantToken('profile-infos:read');
    const wrong = `${token.slice(0, -86)}${'A'.repeat(86)}`;
    expect(await verify(wrong)).toEqual({ opens: false, isChecked: true });
    expect(await verify(wrong)).toEqual({ opens: false, isChecked: true });
  });

  /** Creates tokens that differ only in their `jti`. */
  async function tokenFactory() {
    const { clientId } = await service.client('profile-infos:read');
    const { header, claims, sign } = await openForge(service);
    const shared = { ...claims(clientId) };
    return (jti: number) =>
      compact(JSON.stringify(header()), JSON.stringify({ ...shared, jti: String(jti) }), sign);
  }

  test('after verifiedTokensMax other tokens a token is verified again, and a later one is still cached', async () => {
    const verify = await observedVerification();
    const make = await tokenFactory();
    for (let count = 0; count < LIMITS.verifiedTokensMax; count += 1) await verify(await make(count));
    expect(await verify(await make(0))).toEqual({ opens: true, isChecked: false });
    await verify(await make(-1));
    expect(await verify(await make(1))).toEqual({ opens: true, isChecked: false });
    expect(await verify(await make(0))).toEqual({ opens: true, isChecked: true });
  }, 300_000);
});
