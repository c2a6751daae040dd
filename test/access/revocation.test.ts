import { describe, expect, test } from 'bun:test';
import { changeClient } from '../../src/access/clients/clients.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { createAuditEntry } from '../../src/model/log/audit_entry.ts';
import { checkedResponse, createFixture, errorsOf, LOOKUPS, startService } from '../support/service.ts';
import { compact, openForge } from '../support/token_forge.ts';

/** Revocation (RFC 7009) and introspection (RFC 7662) by clients, of their own tokens only. */

const { path } = LOOKUPS[0];
/** Within this time every process rejects a revoked token. */
const EFFECT_MS = 1_000;

const service = await startService();
const fixture = await createFixture(service.db);
const forge = await openForge(service);

interface TokenClient {
  readonly form: Readonly<Record<string, string>>;
  readonly token: string;
}

async function newClient(scope = 'oidc-profile-infos:read'): Promise<TokenClient> {
  const { clientId, secret } = await service.client(scope);
  const form = { client_id: clientId, client_secret: secret };
  return { form, token: await grantTo(form) };
}

async function grantTo(form: Readonly<Record<string, string>>): Promise<string> {
  const answer = await service.requestToken({ ...form, grant_type: 'client_credentials' });
  return ((await answer.json()) as { access_token: string }).access_token;
}

async function send(
  endpoint: 'revoke' | 'introspect',
  form: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const url = `${service.url}/oauth/${endpoint}`;
  const answer = await fetch(url, { method: 'POST', headers, body: new URLSearchParams(form) });
  return checkedResponse(answer, Object.values(form));
}

const statusOf = async (token: string) => (await service.get(path(fixture), token)).status;
const introspect = async (form: Readonly<Record<string, string>>, token: string) =>
  (await send('introspect', { ...form, token })).json();

/** A token of this client with these claims changed. */
function forged({ form }: TokenClient, claims: object): Promise<string> {
  const all = { ...forge.claims(form.client_id ?? ''), ...claims };
  return compact(JSON.stringify(forge.header()), JSON.stringify(all), forge.sign);
}

describe('revocation', () => {
  test('a revoked token is rejected within a second, cached or not, and no other token', async () => {
    const mine = await newClient();
    const other = await grantTo(mine.form);
    expect([await statusOf(mine.token), await statusOf(other)]).toEqual([200, 200]);
    const unseen = await grantTo(mine.form);
    for (const token of [mine.token, unseen]) {
      const answer = await send('revoke', { ...mine.form, token });
      expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store']);
    }
    service.clock.advance(EFFECT_MS);
    expect([await statusOf(mine.token), await statusOf(unseen), await statusOf(other)]).toEqual([
      401, 401, 200,
    ]);
  });

  test('a revocation is logged once with client, token and address', async () => {
    const { form, token } = await newClient();
    const { jti } = (await introspect(form, token)) as { jti: string };
    for (const id of ['first-time', 'once-more'])
      await send('revoke', { ...form, token }, { 'X-Request-Id': id });
    expect(
      await service.database.query(
        'select actor, object, address, request_id from act where action = ?',
        'token.revoked',
      ),
    ).toContainEqual({ actor: form.client_id, object: jti, address: '127.0.0.1', request_id: 'first-time' });
    expect(await service.database.query('select * from act where request_id = ?', 'once-more')).toEqual([]);
  });

  test('revoking a token twice has no further effect, and token_type_hint is ignored', async () => {
    const { form, token } = await newClient();
    for (const hint of ['access_token', 'refresh_token', 'nonsense']) {
      const answer = await send('revoke', { ...form, token, token_type_hint: hint });
      expect([answer.status, await answer.text()]).toEqual([200, '{}']);
    }
  });

  test('revoking a token that is not a valid token of the client is answered 200 without effect', async () => {
    const mine = await newClient();
    const other = await newClient();
    const stranger = { ...mine, form: { ...mine.form, client_id: 'nobody' } };
    const before = await service.database.query('select * from revoked_token');
    for (const token of [
      other.token,
      await forged(mine, { exp: Math.floor((service.clock.now() - LIMITS.clockLeewayMs) / 1000) }),
      await forged(mine, { aud: 'https://other.example' }),
      await forged(stranger, {}),
      'none',
      '',
      'x'.repeat(LIMITS.tokenBytesMax + 1),
    ]) {
      const answer = await send('revoke', { ...mine.form, token });
      expect([answer.status, await answer.text()]).toEqual([200, '{}']);
    }
    service.clock.advance(EFFECT_MS);
    expect(await statusOf(other.token)).toBe(200);
    expect(await service.database.query('select * from revoked_token')).toEqual(before);
  });

  test('a token that expired within the leeway can be introspected and revoked', async () => {
    const mine = await newClient();
    const exp = Math.floor(service.clock.now() / 1000) - 5;
    const jti = `late-${exp}`;
    const late = await forged(mine, { jti, exp });
    expect(await statusOf(late)).toBe(200);
    expect(await introspect(mine.form, late)).toMatchObject({ active: true, exp });
    expect((await send('revoke', { ...mine.form, token: late })).status).toBe(200);
    service.clock.advance(EFFECT_MS);
    expect([await statusOf(late), await introspect(mine.form, late)]).toEqual([401, { active: false }]);
    expect(
      await service.database.query('select 1 as one from revoked_token where jti = ?', jti),
    ).toHaveLength(1);
  });

  test('a revoked token is rejected by every service on the same database, and after a restart', async () => {
    const { form, token } = await newClient();
    const { baseUrl = service.url } = service.settings;
    const other = await startService({ ...service.database.flags, baseUrl });
    try {
      expect((await other.get(path(fixture), token)).status).toBe(200);
      await send('revoke', { ...form, token });
      other.clock.advance(EFFECT_MS);
      expect((await other.get(path(fixture), token)).status).toBe(401);
    } finally {
      await other.stop();
    }
    const later = await startService({ ...service.database.flags, baseUrl });
    expect((await later.get(path(fixture), token)).status).toBe(401);
  });

  test('a revocation is stored until the token has expired on every clock', async () => {
    const mine = await newClient();
    const until = Math.floor(service.clock.now() / 1000) + 60;
    const jti = `short-${until}`;
    const storedCount = async () => {
      // Each revocation deletes expired ones.
      await send('revoke', { ...mine.form, token: await grantTo(mine.form) });
      return (await service.database.query('select jti from revoked_token where jti = ?', jti)).length;
    };
    const token = await forged(mine, { jti, exp: until });
    await send('revoke', { ...mine.form, token });
    expect(await storedCount()).toBe(1);
    service.clock.advance(until * 1000 + LIMITS.clockLeewayMs - service.clock.now() - 10_000);
    expect([await storedCount(), await statusOf(token)]).toEqual([1, 401]);
    service.clock.advance(LIMITS.clockLeewayMs + 11_000);
    expect([await storedCount(), await statusOf(token)]).toEqual([0, 401]);
  });

  test(`a client can revoke ${LIMITS.revokedTokensPerClientMax} unexpired tokens; the next is 503`, async () => {
    const mine = await newClient();
    const other = await newClient();
    const { access } = service.db.engine;
    const now = service.clock.now();
    const clientId = mine.form.client_id ?? '';
    const actOn = (jti: string) =>
      createAuditEntry('token.revoked', { object: jti, detail: {} }, service.clock);
    const many = Array.from({ length: LIMITS.revokedTokensPerClientMax - 1 }, (_, place) => `many-${place}`);
    // A write may wait for 4 seconds, and every node of a cluster stores each revocation.
    for (let at = 0; at < many.length; at += 25) {
      const some = many.slice(at, at + 25);
      await Promise.all(
        some.map((jti) => access.revokeToken({ jti, clientId, expiresAt: now + 3_600_000 }, actOn(jti))),
      );
    }
    expect((await send('revoke', mine.form)).status).toBe(400);
    expect((await send('revoke', { ...mine.form, token: mine.token })).status).toBe(200);
    const excess = await grantTo(mine.form);
    const full = await send('revoke', { ...mine.form, token: excess });
    expect([full.status, full.headers.get('retry-after')]).toEqual([503, '1']);
    // A token that is revoked already does not count again.
    expect(
      await access.revokeToken({ jti: 'many-0', clientId, expiresAt: now + 3_600_000 }, actOn('many-0')),
    ).toBe('known');
    expect((await send('revoke', { ...other.form, token: other.token })).status).toBe(200);
    service.clock.advance(EFFECT_MS);
    expect([await statusOf(excess), await statusOf(other.token)]).toEqual([200, 401]);
  }, 300_000);
});

describe('introspection', () => {
  test('introspection returns the claims and current rights of a token', async () => {
    const { form, token } = await newClient('profile-infos:read');
    const iat = expect.any(Number);
    const active = {
      active: true,
      scope: 'oidc-profile-infos:read password-profile-infos:read',
      client_id: form.client_id,
      token_type: 'Bearer',
      ...{ exp: expect.any(Number), iat, nbf: iat },
      ...{
        sub: form.client_id,
        aud: service.url,
        iss: service.url,
        jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
      },
    };
    expect(await introspect(form, token)).toEqual(active);
    const { exp, iat: issued } = (await introspect(form, token)) as { exp: number; iat: number };
    expect(exp - issued).toBe(3600);
    const scopes = new Set(['oidc-profile-infos:read']);
    await changeClient(service.db.engine.access, form.client_id ?? '', { scopes }, service.clock);
    service.clock.advance(EFFECT_MS);
    expect(await introspect(form, token)).toEqual({ ...active, scope: 'oidc-profile-infos:read' });
  });

  test('introspection of a foreign, revoked, expired or invalid token returns only that it is not active', async () => {
    const mine = await newClient();
    const other = await newClient();
    const ended = await forged(mine, {
      exp: Math.floor((service.clock.now() - LIMITS.clockLeewayMs) / 1000),
    });
    expect(await statusOf(ended)).toBe(401);
    for (const token of [
      other.token,
      ended,
      await forged(mine, { iss: 'https://other.example' }),
      'none',
      '',
    ]) {
      expect(await introspect(mine.form, token)).toEqual({ active: false });
    }
    await send('revoke', { ...mine.form, token: mine.token });
    service.clock.advance(EFFECT_MS);
    expect(await introspect(mine.form, mine.token)).toEqual({ active: false });
    // Its own client still sees it as active.
    expect(await introspect(other.form, other.token)).toMatchObject({ active: true });
  });
});

describe.each(['revoke', 'introspect'] as const)('the endpoint %s', (endpoint) => {
  const basic = ({ client_id: id, client_secret: secret }: TokenClient['form']) => ({
    Authorization: `Basic ${btoa(`${id}:${secret}`)}`,
  });

  test(`${endpoint} accepts client credentials in the body or in the header, not in both`, async () => {
    const { form, token } = await newClient();
    expect((await send(endpoint, { token }, basic(form))).status).toBe(200);
    const twice = await send(endpoint, { ...form, token }, basic(form));
    expect([twice.status, (await errorsOf(twice))[0]?.detail]).toEqual([
      400,
      'send the client credentials once: in the header or in the body',
    ]);
  });

  test(`${endpoint} is 401 for an unknown or disabled client or a wrong secret, without effect`, async () => {
    const { form, token } = await newClient();
    const other = await newClient();
    await changeClient(
      service.db.engine.access,
      other.form.client_id ?? '',
      { disabledAt: 1 },
      service.clock,
    );
    service.clock.advance(EFFECT_MS);
    for (const credentials of [
      { ...form, client_secret: 'another secret than theirs' },
      { ...form, client_id: 'nobody' },
      { client_id: form.client_id ?? '' },
      {},
      other.form,
    ]) {
      const answer = await send(endpoint, { ...credentials, token });
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
        401,
        'Basic realm="authrealm"',
      ]);
      expect(((await answer.json()) as { error: string }).error).toBe('invalid_client');
    }
    for (const half of ['client_id', 'client_secret']) {
      const answer = await send(endpoint, { [half]: form[half] ?? '', token });
      expect((await errorsOf(answer))[0]?.detail).toBe('client_id and client_secret are both needed');
    }
    // A bearer token does not authenticate a client.
    expect((await send(endpoint, { token }, { Authorization: `Bearer ${token}` })).status).toBe(401);
    expect(await statusOf(token)).toBe(200);
  });

  test(`${endpoint} is 400 without a token, with two, or with one in the query`, async () => {
    const { form, token } = await newClient();
    const missing = await send(endpoint, form);
    expect([missing.status, (await errorsOf(missing))[0]?.detail]).toEqual([400, 'token is missing']);
    const url = `${service.url}/oauth/${endpoint}`;
    const body = new URLSearchParams(form);
    body.append('token', token);
    expect(
      (await fetch(`${url}?token=${token}`, { method: 'POST', body: new URLSearchParams(form) })).status,
    ).toBe(400);
    body.append('token', token);
    expect((await fetch(url, { method: 'POST', body })).status).toBe(400);
    expect(await statusOf(token)).toBe(200);
  });
});

test('the metadata lists both endpoints and their client authentication methods (RFC 8414)', async () => {
  const metadata = await (await service.get('/.well-known/oauth-authorization-server')).json();
  const methods = ['client_secret_basic', 'client_secret_post'];
  expect(metadata).toMatchObject({
    revocation_endpoint: `${service.url}/oauth/revoke`,
    introspection_endpoint: `${service.url}/oauth/introspect`,
    revocation_endpoint_auth_methods_supported: methods,
    introspection_endpoint_auth_methods_supported: methods,
  });
});
