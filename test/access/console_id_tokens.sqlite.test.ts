import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { OVERLOAD_CAUSES } from '../../src/model/fault.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { type ConsoleSession, postConsoleToken, sameOrigin } from '../support/console_sign_in.ts';
import {
  createKeyPair,
  DISCOVERY,
  issue,
  issuerEntry,
  json,
  type RequestHandler,
  startIssuer,
  startTrustingService,
} from '../support/issuers.ts';
import { errorsOf } from '../support/service.ts';
import { compact, encode, type Json, openForge } from '../support/token_forge.ts';

/** Sign-in to the console by a provider: every wrong ID token, and every failure of the provider. */

setDefaultTimeout(300_000);

const CLIENT = { client_id: 'the console: of us', client_secret: 'a+b c&d' };
const BASIC = 'client_secret_basic';
const NONCE = 'n'.repeat(43);
const CODE = { grant: 'provider', name: 'acme', code: 'c', code_verifier: 'v'.repeat(43), nonce: NONCE };

const [acme, other] = await Promise.all([startIssuer(), startIssuer()]);
const rsa = await createKeyPair('one');
const stranger = await createKeyPair('one');
const rights = [
  { claim: 'groups', value: 'readers', scopes: 'users:read', realms: '*' },
  { claim: 'groups', value: 'here', scopes: 'users:read', realms: [crypto.randomUUID()] },
  { claim: 'groups', value: 'there', scopes: 'profiles:read', realms: [crypto.randomUUID()] },
];
const entry = {
  rights,
  console: { ...CLIENT, person: ['nickname', 'email'] },
  algorithms: ['RS256', 'RS512'],
};
const service = await startTrustingService(
  // The file names the URL of its keys, so only a sign-in fetches the discovery document.
  issuerEntry(acme, { ...entry, jwks_uri: `${acme.issuer}/keys` }),
  issuerEntry(other, { name: 'other' }),
);
other.publish(stranger.publicJwk);
publish();

/** The last request to the token endpoint. */
let received: { readonly form: URLSearchParams; readonly authorization: string | undefined };

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text;
}

/** Makes the token endpoint answer with this document, and records its requests. */
function answer(document: unknown, status = 200): void {
  const answering: RequestHandler = (request, response) => {
    bodyOf(request).then((text) => {
      received = { form: new URLSearchParams(text), authorization: request.headers.authorization };
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(document));
    });
  };
  acme.routes.set('/token', answering);
}

/** Publishes the discovery document with these changes, and advances the clock. */
function publish(changes: Json = {}, elapsedMs: number = LIMITS.issuerKeysFreshMs): void {
  const { issuer } = acme;
  acme.publish(rsa.publicJwk);
  const document = {
    ...{ issuer, jwks_uri: `${issuer}/keys` },
    ...{ authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` },
  };
  acme.routes.set(DISCOVERY, json({ ...document, ...changes }));
  service.clock.advance(elapsedMs);
}

const now = () => Math.floor(service.clock.now() / 1000);
const claims = (more: Json = {}): Json => ({
  ...{ iss: acme.issuer, aud: CLIENT.client_id, sub: 'auth0|jane', iat: now(), exp: now() + 300 },
  ...{ nonce: NONCE, groups: ['readers'], email: 'jane@example.com' },
  ...more,
});
const mint = (more: Json = {}, header: Json = {}) => issue(rsa, claims(more), { typ: 'JWT', ...header });

async function statusWith(token: unknown, more: object = {}): Promise<number> {
  answer({ access_token: 'of no interest', token_type: 'Bearer', id_token: token });
  return (await postConsoleToken(service, { ...CODE, ...more })).status;
}

/** The logged outcomes. */
const outcomes = () =>
  service.log.flatMap((record) => (record.event === 'console_provider' ? [record.outcome] : []));

const RIGHT: [string, () => Promise<string>, string][] = [
  ['a complete token', () => mint(), 'jane@example.com'],
  ['without typ', () => mint({}, { typ: undefined }), 'jane@example.com'],
  ['expired within the leeway', () => mint({ iat: now() - 300, exp: now() - 20 }), 'jane@example.com'],
  ['of a lifetime that the provider chose', () => mint({ exp: now() + 864_000 }), 'jane@example.com'],
  ['without kid, by the only key', () => mint({}, { kid: undefined }), 'jane@example.com'],
  ['an audience in a list', () => mint({ aud: [CLIENT.client_id] }), 'jane@example.com'],
  ['azp', () => mint({ azp: CLIENT.client_id }), 'jane@example.com'],
  ['a claim with precedence over the e-mail address', () => mint({ nickname: 'Жанна 🙂' }), 'Жанна 🙂'],
  ['an unverified e-mail address', () => mint({ email_verified: false }), 'auth0|jane'],
  ['invalid names', () => mint({ nickname: 'a\nb', email: 7 }), 'auth0|jane'],
];
test.each(RIGHT)('a valid ID token is 200: %s', async (_name, make, label) => {
  answer({ id_token: await make() });
  const response = await postConsoleToken(service, CODE);
  expect(response.status).toBe(200);
  expect(((await response.json()) as { data: ConsoleSession }).data.label).toBe(label);
});

const hmac = (secret: string) => async (input: string) => createHmac('sha256', secret).update(input).digest();
const mintBySecret = (secret: string) => issue(rsa, claims(), { alg: 'HS256', typ: 'JWT' }, hmac(secret));
const signedToken = (header: string, body: string) => compact(header, body, rsa.sign);
const headerText = () => JSON.stringify({ alg: 'RS256', typ: 'JWT', kid: 'one' });

const WRONG: [string, () => unknown][] = [
  ['iss of another issuer', () => mint({ iss: other.issuer })],
  ['iss of this service', () => mint({ iss: service.url })],
  ['iss missing', () => mint({ iss: undefined })],
  ['aud of another client', () => mint({ aud: 'another' })],
  ['aud of another client in addition to ours', () => mint({ aud: [CLIENT.client_id, 'another'] })],
  ['an empty aud', () => mint({ aud: [] })],
  ['aud missing', () => mint({ aud: undefined })],
  ['aud of our access tokens', () => mint({ aud: 'https://directory.example' })],
  ['azp of another client', () => mint({ azp: 'another' })],
  ['azp null', () => mint({ azp: null })],
  ['nonce of another request', () => mint({ nonce: 'm'.repeat(43) })],
  ['nonce missing', () => mint({ nonce: undefined })],
  ['expired', () => mint({ iat: now() - 400, exp: now() - 31 })],
  ['exp missing', () => mint({ exp: undefined })],
  ['exp a text', () => mint({ exp: '9999999999' })],
  ['iat in the future', () => mint({ iat: now() + 60 })],
  ['iat missing', () => mint({ iat: undefined })],
  ['not yet valid', () => mint({ nbf: now() + 60 })],
  ['sub missing', () => mint({ sub: undefined })],
  ['sub a number', () => mint({ sub: 1 })],
  ['sub too long', () => mint({ sub: 'x'.repeat(256) })],
  ['alg none', async () => (await mint({}, { alg: 'none' })).replace(/[^.]*$/, '')],
  ['HS256 by the secret of the client', () => mintBySecret(CLIENT.client_secret)],
  ['HS256 by the public key', () => mintBySecret(JSON.stringify(rsa.publicJwk))],
  ['another algorithm than the key’s', () => issue(rsa, claims(), { alg: 'RS512' }, rsa.signWith('SHA-512'))],
  ['an algorithm that the entry does not list', () => mint({}, { alg: 'RS384' })],
  ['the key of another issuer with the same kid', () => issue(stranger, claims(), { typ: 'JWT' })],
  ['our own key', async () => issue(rsa, claims(), { typ: 'JWT' }, (await openForge(service)).sign)],
  ['an unpublished key', () => mint({}, { kid: 'two' })],
  ['a key in the header', () => mint({}, { jwk: rsa.publicJwk })],
  ['jku', () => mint({}, { jku: `${other.issuer}/keys` })],
  ['crit', () => mint({}, { crit: ['exp'] })],
  ['typ of an access token', () => mint({}, { typ: 'at+jwt' })],
  ['typ of a logout token', () => mint({}, { typ: 'logout+jwt' })],
  ['an invalid signature', async () => (await mint()).replace(/[^.]*$/, 'AAAA')],
  [
    'changed claims',
    async () => (await mint()).replace(/\.[^.]+\./, `.${encode(JSON.stringify(claims({ sub: 'root' })))}.`),
  ],
  ['sub twice', () => signedToken(headerText(), JSON.stringify(claims()).replace('{', '{"sub":"root",'))],
  ['not a JWT', () => 'nonsense'],
  ['more bytes than the limit', () => mint({ padding: 'x'.repeat(LIMITS.idTokenBytesMax) })],
];
test.each(WRONG)('an invalid ID token is 400: %s', async (_name, make) => {
  expect(await statusWith(await make())).toBe(400);
});

test('repeated invalid ID tokens are logged once', async () => {
  expect(await statusWith(await mint())).toBe(200);
  const logged = outcomes().length;
  expect(await statusWith(await mint({}, { alg: 'RS384' }))).toBe(400);
  expect(await statusWith(await mint({ aud: 'another' }))).toBe(400);
  expect(await statusWith(await mint())).toBe(200);
  expect(outcomes().slice(logged)).toEqual(['id_token_refused', 'answered']);
});

test('a code of 8,192 characters is accepted, a longer one is 400', async () => {
  const code = 'c'.repeat(8_192);
  expect(await statusWith(await mint(), { code })).toBe(200);
  expect(received.form.get('code')).toBe(code);
  expect(await statusWith(await mint(), { code: `${code}c` })).toBe(400);
});

test('ID tokens are checked by the clock of the service', async () => {
  service.clock.advance(3_600_000);
  publish();
  expect(await statusWith(await mint({ nbf: now() }))).toBe(200);
});

test('a code that the provider rejects is 400 and not logged as a failure of the provider', async () => {
  expect(await statusWith(await mint())).toBe(200);
  const logged = outcomes().length;
  answer({ error: 'invalid_grant' }, 400);
  expect([(await postConsoleToken(service, CODE)).status, outcomes().length]).toEqual([400, logged]);
});

test('sign-ins beyond the concurrent requests to a slow provider are answered 503', async () => {
  const waiting: ServerResponse[] = [];
  const isFull = Promise.withResolvers<void>();
  acme.routes.set('/token', (_request, response) => {
    if (waiting.push(response) === LIMITS.providerCodesAtOnceMax) isFull.resolve();
  });
  const calls = Array.from({ length: LIMITS.providerCodesAtOnceMax }, () => postConsoleToken(service, CODE));
  await isFull.promise;
  const [fault] = await errorsOf(await postConsoleToken(service, CODE));
  // Answered before any check: waiting requests would fail the tests after this one.
  const answer = JSON.stringify({ id_token: await mint() });
  for (const response of waiting) response.writeHead(200, { 'Content-Type': 'application/json' }).end(answer);
  const statuses = (await Promise.all(calls)).map(({ status }) => status);
  expect([fault?.status, fault?.detail]).toEqual(['503', OVERLOAD_CAUSES.CONCURRENCY_LIMIT]);
  expect([waiting.length, new Set(statuses)]).toEqual([LIMITS.providerCodesAtOnceMax, new Set([200])]);
  expect(await statusWith(await mint())).toBe(200);
});

test('sign-in is 403 if no claim gives a right, or those that do have no realm in common', async () => {
  for (const groups of [['kitchen'], ['here', 'there']])
    expect(await statusWith(await mint({ groups }))).toBe(403);
  expect(await statusWith(await mint({ groups: ['here'] }))).toBe(200);
});

test('the token request has client, code, verifier and redirect URI, and the page never receives the secret', async () => {
  await statusWith(await mint());
  const { form, authorization } = received;
  expect(Object.fromEntries(form)).toEqual({
    ...{ grant_type: 'authorization_code', code: 'c', code_verifier: 'v'.repeat(43) },
    redirect_uri: `${service.url}/console`,
  });
  expect(atob(authorization?.slice('Basic '.length) ?? '')).toBe('the+console%3A+of+us:a%2Bb+c%26d');
  const redirection = await fetch(`${service.url}/console/provider`, {
    method: 'POST',
    headers: sameOrigin(service),
    body: JSON.stringify({ data: { name: 'acme' } }),
  });
  expect(await redirection.json()).toEqual({
    data: {
      ...{ authorization_endpoint: `${acme.issuer}/authorize`, client_id: CLIENT.client_id },
      ...{ issuer: acme.issuer, scope: 'openid profile email', redirect_uri: `${service.url}/console` },
    },
  });
});

test('a provider has 4.5 seconds for all requests of a sign-in together', async () => {
  publish();
  const read = acme.routes.get(DISCOVERY);
  acme.routes.set(DISCOVERY, (request, response) => {
    service.clock.advance(LIMITS.outboundMsMax - 100);
    read?.(request, response);
  });
  acme.routes.set('/token', () => undefined);
  const began = performance.now();
  expect((await postConsoleToken(service, CODE)).status).toBe(503);
  expect(performance.now() - began).toBeLessThan(2_000);
  publish();
});

test('the way to an unknown provider is 400, and to an unreachable one 503', async () => {
  const start = async (name: string) => {
    const answer = await fetch(`${service.url}/console/provider`, {
      method: 'POST',
      headers: sameOrigin(service),
      body: JSON.stringify({ data: { name } }),
    });
    return [answer.status, await answer.text()];
  };
  expect(await start('strangers')).toEqual([400, expect.stringContaining('is no provider of the console')]);
  // Its entry has no console.
  expect((await start('other'))[0]).toBe(400);
  expect(await statusWith(await mint())).toBe(200);
  const logged = outcomes().length;
  expect((await start('acme'))[0]).toBe(200);
  expect(outcomes().length).toBe(logged);
  publish({ issuer: other.issuer });
  expect((await start('acme'))[0]).toBe(503);
  expect(outcomes().slice(logged)).toEqual(['metadata_unusable']);
  publish();
  expect((await start('acme'))[0]).toBe(200);
});

test('a secret is not sent to a private token endpoint on another host than that of the discovery document', async () => {
  const before = acme.requestCounts.get('/token') ?? 0;
  publish({ token_endpoint: `${acme.issuer.replace('127.0.0.1', 'localhost')}/token` });
  expect([await statusWith(await mint()), outcomes().at(-1)]).toEqual([503, 'token_endpoint_failed']);
  expect(acme.requestCounts.get('/token') ?? 0).toBe(before);
  publish();
});

test('sign-in is 503 while the keys of the provider cannot be read', async () => {
  const alone = await startIssuer();
  const { issuer } = alone;
  const endpoints = { authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` };
  alone.routes.set(DISCOVERY, json({ issuer, jwks_uri: `${issuer}/nowhere`, ...endpoints }));
  const believer = await startTrustingService(issuerEntry(alone, { console: CLIENT }));
  const iat = Math.floor(believer.clock.now() / 1000);
  const token = await issue(rsa, claims({ iss: issuer, iat, exp: iat + 300 }), { typ: 'JWT' });
  alone.routes.set('/token', json({ id_token: token }));
  expect((await postConsoleToken(believer, CODE)).status).toBe(503);
});

test('the token request has the secret in the body if the provider supports only client_secret_post', async () => {
  publish({ token_endpoint_auth_methods_supported: ['client_secret_post'] });
  expect(await statusWith(await mint())).toBe(200);
  const { form, authorization } = received;
  expect([form.get('client_secret'), form.get('client_id'), authorization]).toEqual([
    CLIENT.client_secret,
    CLIENT.client_id,
    undefined,
  ]);
  publish();
});

test('an issuer entry without a console does not permit sign-in', async () => {
  expect(await statusWith(await mint(), { name: 'other' })).toBe(400);
});

test('iss of the authorization response must be right, and present if the provider supports it', async () => {
  const token = await mint();
  expect(await statusWith(token, { iss: acme.issuer })).toBe(200);
  expect(await statusWith(token, { iss: other.issuer })).toBe(400);
  publish({ authorization_response_iss_parameter_supported: true });
  expect(await statusWith(await mint())).toBe(400);
  expect(await statusWith(await mint(), { iss: acme.issuer })).toBe(200);
  publish();
});

test('with a wrong iss the code is not sent to the provider', async () => {
  const before = acme.requestCounts.get('/token') ?? 0;
  await statusWith(await mint(), { iss: other.issuer });
  expect(acme.requestCounts.get('/token') ?? 0).toBe(before);
});

describe('failures of the provider', () => {
  const FAILED = 'token_endpoint_failed';
  const answers: [string, () => void, string][] = [
    ['the error unauthorized_client', () => answer({ error: 'unauthorized_client' }, 400), FAILED],
    ['the error invalid_client', () => answer({ error: 'invalid_client' }, 401), FAILED],
    ['a redirect', () => answer({}, 302), FAILED],
    ['status 500', () => answer({}, 500), FAILED],
    ['an OAuth error with 500', () => answer({ error: 'invalid_grant' }, 500), FAILED],
    ['a closed connection', () => acme.routes.set('/token', (request) => request.destroy()), FAILED],
    ['no ID token', () => answer({ access_token: 'x' }), 'no_id_token'],
    ['an ID token that is not a string', () => answer({ id_token: { a: 1 } }), 'no_id_token'],
    ['an answer that is not an object', () => answer(['id_token']), 'no_id_token'],
  ];
  test.each(answers)('a failing provider is 503 and logged: %s', async (_name, prepare, outcome) => {
    prepare();
    const { status, headers } = await postConsoleToken(service, CODE);
    expect([status, headers.get('retry-after'), outcomes().at(-1)]).toEqual([503, '1', outcome]);
  });

  test.each([
    ['another issuer', () => ({ issuer: other.issuer })],
    ['a token endpoint that is not a URL', () => ({ token_endpoint: 7 })],
    ['token endpoints in a list', () => ({ token_endpoint: [`${acme.issuer}/token`] })],
    ['a token endpoint over http', () => ({ token_endpoint: 'http://login.example/token' })],
    ['a javascript: endpoint', () => ({ authorization_endpoint: 'javascript:alert(1)' })],
    ['an endpoint with a fragment', () => ({ authorization_endpoint: `${acme.issuer}/a#b` })],
    ['no known authentication', () => ({ token_endpoint_auth_methods_supported: ['private_key_jwt'] })],
    ['no PKCE with S256', () => ({ code_challenge_methods_supported: ['plain'] })],
    ['authentication outside a list', () => ({ token_endpoint_auth_methods_supported: BASIC })],
    ['PKCE methods outside a list', () => ({ code_challenge_methods_supported: 'S256' })],
  ] as [string, () => Json][])('sign-in is 503 with a discovery document with %s', async (_name, changes) => {
    publish(changes());
    expect([await statusWith(await mint()), outcomes().at(-1)]).toEqual([503, 'metadata_unusable']);
    publish();
  });

  test.each([
    [500, 'unreachable'],
    [302, 'redirect'],
  ])('sign-in is 503 and logged if the discovery document is %p', async (status, outcome) => {
    acme.routes.set(DISCOVERY, (_request, response) => response.writeHead(status, { Location: '/' }).end());
    service.clock.advance(LIMITS.issuerKeysFreshMs);
    expect([await statusWith(await mint()), outcomes().at(-1)]).toEqual([503, outcome]);
    publish();
  });

  test('a failed discovery document is fetched again after ten seconds, a valid one when it is stale', async () => {
    expect(await statusWith(await mint())).toBe(200);
    publish({ issuer: 'https://other.example' });
    const before = acme.requestCounts.get(DISCOVERY) ?? 0;
    const logged = outcomes().length;
    for (let count = 0; count < 3; count += 1) await statusWith(await mint());
    expect(outcomes().slice(logged)).toEqual(['metadata_unusable']);
    expect(acme.requestCounts.get(DISCOVERY) ?? 0).toBe(before + 1);
    publish({}, LIMITS.issuerKeysPauseMs - 5_000);
    expect(await statusWith(await mint())).toBe(503);
    publish({}, 5_000);
    expect(await statusWith(await mint())).toBe(200);
    const requests = acme.requestCounts.get(DISCOVERY);
    service.clock.advance(LIMITS.issuerKeysPauseMs);
    expect([await statusWith(await mint()), acme.requestCounts.get(DISCOVERY)]).toEqual([200, requests]);
    expect(outcomes().at(-1)).toBe('answered');
  });
});
