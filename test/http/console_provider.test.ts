import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { Provider } from 'oidc-provider';
import { NIL_UUID } from '../../src/model/id.ts';
import { type ConsoleSession, postConsoleToken, sameOrigin } from '../support/console_sign_in.ts';
import { findPort } from '../support/daemons.ts';
import { issuersFile } from '../support/issuers.ts';
import { signInAtProvider } from '../support/provider_pages.ts';
import { createFixture, freshFolder, oidcPath, startService } from '../support/service.ts';

/** Sign-in to the console through a real provider, oidc-provider from npm on loopback, with the requests of its page. */

setDefaultTimeout(300_000);

const SECRET = 'a secret of the console: with +signs & colons';
const CLAIMS: Readonly<Record<string, object>> = {
  anna: { email: 'anna@example.com', email_verified: true, groups: ['support'] },
  berta: { email: 'berta@example.com', email_verified: false, name: 'Berta', groups: ['support', 'admins'] },
  carl: { groups: ['kitchen'] },
};

const server = createServer();
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const port = findPort();
const baseUrl = `http://127.0.0.1:${port}/sso`;
const clients = { console: SECRET, other: 'the secret of another client' };
const provider = new Provider(issuer, {
  clients: Object.entries(clients).map(([id, secret]) => ({
    ...{ client_id: id, client_secret: secret, redirect_uris: [`${baseUrl}/console`] },
  })),
  claims: { openid: ['sub', 'groups'], email: ['email', 'email_verified'], profile: ['name'] },
  conformIdTokenClaims: false,
  findAccount: (_: unknown, id: string) => ({
    accountId: id,
    claims: () => ({ sub: id, ...CLAIMS[id] }),
  }),
});
server.on('request', provider.callback());
const secretFile = join(freshFolder(), 'secret');
writeFileSync(secretFile, `${SECRET}\n`);
let service = await startService({ baseUrl, port: String(port) });
const fixture = await createFixture(service.db);
const otherFixture = await createFixture(service.db);
await service.stop();
const entry = {
  ...{ name: 'staff', issuer, audience: 'https://directory.example' },
  rights: [
    { claim: 'groups', value: 'support', scopes: 'oidc-profile-infos:read', realms: [fixture.realm] },
    { claim: 'groups', value: 'admins', scopes: 'admin', realms: '*' },
  ],
  console: { client_id: 'console', client_secret_file: secretFile },
};
service = await startService({
  ...service.database.flags,
  ...{ baseUrl, port: String(port), allowPrivate: 'localhost 127.0.0.0/8', badTokenRate: 'off' },
  issuersFile: issuersFile(entry),
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
});

interface AuthorizationResult {
  readonly codeVerifier: string;
  readonly nonce: string;
  readonly back: URL;
}

const random = () => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url');

/** The requests of the page until the provider redirects back. */
async function authorize(login: string): Promise<AuthorizationResult> {
  const answer = await fetch(`${service.url}/sso/console/provider`, {
    method: 'POST',
    headers: { ...sameOrigin(service), 'Content-Type': 'application/json' },
    body: JSON.stringify({ data: { name: 'staff' } }),
  });
  const { data } = (await answer.json()) as { data: Record<string, string> };
  const { authorization_endpoint: endpoint = '', issuer: _, ...providerParameters } = data;
  const [state, nonce, codeVerifier] = [random(), random(), random()];
  const challenge = createHash('sha256').update(codeVerifier).digest('base64url');
  const url = new URL(endpoint);
  const parameters = {
    ...providerParameters,
    response_type: 'code',
    state,
    nonce,
    code_challenge: challenge,
  };
  for (const [name, value] of Object.entries({ ...parameters, code_challenge_method: 'S256' }))
    url.searchParams.set(name, value);
  const isBack = (each: string) => each.startsWith(`${service.settings.baseUrl}/console?`);
  const back = await signInAtProvider(url.href, login, isBack);
  expect(back.searchParams.get('state')).toBe(state);
  return { codeVerifier, nonce, back };
}

function bodyOf({ codeVerifier, nonce, back }: AuthorizationResult, more: object = {}): object {
  const [code, iss] = ['code', 'iss'].map((name) => back.searchParams.get(name));
  return { grant: 'provider', name: 'staff', code, iss, code_verifier: codeVerifier, nonce, ...more };
}

async function exchangeCode(authorization: AuthorizationResult, more: object = {}): Promise<Response> {
  return postConsoleToken(service, bodyOf(authorization, more));
}

test('the sign-in methods of the console include the provider', async () => {
  const answer = await service.get('/sso/console/ways');
  expect(await answer.json()).toEqual({
    data: { link: expect.any(String), providers: [{ name: 'staff' }] },
  });
});

test('a page of another origin cannot get the authorization request parameters', async () => {
  const statusWith = async (headers: Record<string, string>) => {
    const body = JSON.stringify({ data: { name: 'staff' } });
    const answer = await fetch(`${service.url}/console/provider`, { method: 'POST', headers, body });
    return answer.status;
  };
  expect(await statusWith({ Origin: 'https://evil.example' })).toBe(403);
  expect(await statusWith(sameOrigin(service))).toBe(200);
});

test('a person who signs in has the rights of their claims, under a stable name of their own', async () => {
  const answer = await exchangeCode(await authorize('anna'));
  expect(answer.status).toBe(200);
  const { data } = (await answer.json()) as { data: ConsoleSession };
  expect(data).toMatchObject({
    ...{
      expires_in: 900,
      scope: 'oidc-profile-infos:read',
      realms: [fixture.realm],
      label: 'anna@example.com',
    },
  });
  expect(data.actor).toMatch(/^staff:[\w-]{22}$/);
  const { access_token: token } = data;
  expect(decodeJwt(token)).toMatchObject({ sub: data.actor, client_id: data.actor });
  expect((await service.get(oidcPath(fixture), token)).status).toBe(200);
  expect((await service.get(oidcPath(otherFixture), token)).status).toBe(404);
  expect((await service.get('/admin/v1/clients', token)).status).toBe(403);
  expect((await service.del('/console/token', token, sameOrigin(service))).status).toBe(204);
  service.clock.advance(1_000);
  expect((await service.get(oidcPath(fixture), token)).status).toBe(401);
  const again = (await (await exchangeCode(await authorize('anna'))).json()) as { data: ConsoleSession };
  expect(again.data.actor).toBe(data.actor);
});

test('rights with different realms are limited to the common realms, without admin', async () => {
  const { data } = (await (await exchangeCode(await authorize('berta'))).json()) as { data: ConsoleSession };
  expect(data).toMatchObject({
    ...{ scope: 'oidc-profile-infos:read', realms: [fixture.realm] },
    label: 'Berta',
  });
});

test('a person whose claims give no right cannot sign in: 403', async () => {
  const answer = await exchangeCode(await authorize('carl'));
  expect([
    answer.status,
    ((await answer.json()) as { errors: { title: string }[] }).errors[0]?.title,
  ]).toEqual([403, 'Forbidden']);
});

test('the log shows the name of the person to administrators, and stores it encrypted only', async () => {
  const { data } = (await (await exchangeCode(await authorize('anna'))).json()) as { data: ConsoleSession };
  const { sid } = decodeJwt(data.access_token);
  const admin = await service.token('admin');
  const log = (await (await service.get('/admin/v1/log?page[limit]=100', admin)).json()) as {
    data: { what: string; object: string; actor: string; personal: object; detail: object }[];
  };
  const entry = log.data.find(({ object }) => object === sid);
  expect(entry).toMatchObject({
    ...{ what: 'session.begun', actor: data.actor },
    personal: { after: { name: 'anna@example.com', subject: 'anna' } },
  });
  expect(Object.keys(entry?.detail ?? {}).sort()).toEqual(['expires_at', 'realms', 'scope']);
  const rows = await service.db.engine.log.entries(NIL_UUID, 0, 1_000);
  const stored = JSON.stringify(rows.map(({ columns }) => columns));
  expect(stored).toContain(String(sid));
  expect(stored).not.toContain('anna@example.com');
  expect(stored).not.toContain('"anna"');
  expect(JSON.stringify(service.log)).not.toContain('anna');
});

describe('rejected codes', () => {
  const wrong: [string, (authorization: AuthorizationResult) => object][] = [
    ['another nonce than that of the request', () => ({ nonce: random() })],
    ['another verifier than that of the challenge', () => ({ code_verifier: random() })],
    ['another issuer', () => ({ iss: 'https://evil.example' })],
    ['no issuer, though the provider announces it', () => ({ iss: undefined })],
    ['a code that the provider did not issue', () => ({ code: 'nonsense' })],
    ['the grant of a link', () => ({ grant: 'link' })],
    ['an unknown provider', () => ({ name: 'strangers' })],
  ];
  test.each(wrong)('a sign-in with %s is 400 without a reason', async (_name, more) => {
    const authorization = await authorize('anna');
    const answer = await exchangeCode(authorization, more(authorization));
    expect([answer.status, await answer.text()]).toEqual([
      400,
      expect.stringContaining('The code is not valid'),
    ]);
  });

  test('a used code is 400', async () => {
    const authorization = await authorize('anna');
    expect([(await exchangeCode(authorization)).status, (await exchangeCode(authorization)).status]).toEqual([
      200, 400,
    ]);
  });

  test('at most one of two concurrent sign-ins with one code succeeds', async () => {
    const authorization = await authorize('anna');
    const statuses = (await Promise.all([exchangeCode(authorization), exchangeCode(authorization)])).map(
      ({ status }) => status,
    );
    expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(1);
  });

  test('the provider rejects a code that another client exchanges', async () => {
    const authorization = await authorize('anna');
    const code = authorization.back.searchParams.get('code') ?? '';
    // The request that a page of that client would send to the provider.
    const taken = await fetch(`${issuer}/token`, {
      method: 'POST',
      headers: { Authorization: `Basic ${btoa('other:the%20secret%20of%20another%20client')}` },
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        code,
        redirect_uri: 'https://evil.example',
      }),
    });
    expect(taken.status).toBe(400);
  });

  test('a sign-in from another origin is 403, before the code is sent to the provider', async () => {
    const authorization = await authorize('anna');
    const foreign = await postConsoleToken(service, bodyOf(authorization), {
      Origin: 'https://evil.example',
    });
    expect([foreign.status, (await exchangeCode(authorization)).status]).toEqual([403, 200]);
  });
});

test('a sign-in through a provider names every missing field', async () => {
  const answer = await postConsoleToken(service, { grant: 'provider', code: 'x' });
  const { errors } = (await answer.json()) as { errors: readonly { detail: string }[] };
  expect([answer.status, errors.map(({ detail }) => detail)]).toEqual([
    400,
    ['data.name: is missing', 'data.code_verifier: is missing', 'data.nonce: is missing'],
  ]);
});
