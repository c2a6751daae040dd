import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { FAULTS } from '../../src/domain/fault.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { type ConsoleSession, postConsoleToken, sameOrigin } from '../support/console_sign_in.ts';
import {
  createKeyPair,
  DISCOVERY,
  type IssuerKeyPair,
  type IssuerServer,
  issue,
  issuerEntry,
  json,
  type RequestHandler,
  startIssuer,
  startTrustingService,
} from '../support/issuers.ts';
import { errorsOf, type Service } from '../support/service.ts';
import { compact, encode, type Json, openForge } from '../support/token_forge.ts';

/** What a provider can answer that is wrong: an ID token with each respect of it turned round, and every other trouble. */

setDefaultTimeout(300_000);

const CLIENT = { client_id: 'the console: of us', client_secret: 'a+b c&d' };
const BASIC = 'client_secret_basic';
const NONCE = 'n'.repeat(43);
const CODE = { grant: 'provider', name: 'acme', code: 'c', code_verifier: 'v'.repeat(43), nonce: NONCE };

let acme: IssuerServer;
let other: IssuerServer;
let rsa: IssuerKeyPair;
let stranger: IssuerKeyPair;
let service: Service;
/** What the token endpoint was asked last. */
let asked: { readonly form: URLSearchParams; readonly authorization: string | undefined };

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text;
}

/** Answers the token endpoint with this, and keeps what it was asked. */
function answer(document: unknown, status = 200): void {
  const answering: RequestHandler = (request, response) => {
    bodyOf(request).then((text) => {
      asked = { form: new URLSearchParams(text), authorization: request.headers.authorization };
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(document));
    });
  };
  acme.routes.set('/token', answering);
}

/** Publishes a discovery document, and lets this time go by; what is named differs from a right one. */
function publish(more: Json = {}, passing: number = LIMITS.issuerKeysFreshMs): void {
  const { issuer } = acme;
  acme.publish(rsa.publicJwk);
  const document = {
    ...{ issuer, jwks_uri: `${issuer}/keys` },
    ...{ authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` },
  };
  acme.routes.set(DISCOVERY, json({ ...document, ...more }));
  service?.clock.advance(passing);
}

beforeAll(async () => {
  [acme, other] = await Promise.all([startIssuer(), startIssuer()]);
  rsa = await createKeyPair('one');
  stranger = await createKeyPair('one');
  publish();
  other.publish(stranger.publicJwk);
  const rights = [
    { claim: 'groups', value: 'readers', scopes: 'users:read', realms: '*' },
    { claim: 'groups', value: 'here', scopes: 'users:read', realms: [crypto.randomUUID()] },
    { claim: 'groups', value: 'there', scopes: 'profiles:read', realms: [crypto.randomUUID()] },
  ];
  const console = { ...CLIENT, person: ['nickname', 'email'] };
  service = await startTrustingService(
    // Its keys are where the file says: whoever asks for the discovery document then asks for how to sign in.
    issuerEntry(acme, { rights, console, algorithms: ['RS256', 'RS512'], jwks_uri: `${acme.issuer}/keys` }),
    issuerEntry(other, { name: 'other' }),
  );
});
afterAll(async () => {
  await service.stop();
  acme.stop();
  other.stop();
});

const now = () => Math.floor(service.clock.now() / 1000);
const claims = (more: Json = {}): Json => ({
  ...{ iss: acme.issuer, aud: CLIENT.client_id, sub: 'auth0|jane', iat: now(), exp: now() + 300 },
  ...{ nonce: NONCE, groups: ['readers'], email: 'jane@example.com' },
  ...more,
});
const by = (more: Json = {}, header: Json = {}) => issue(rsa, claims(more), { typ: 'JWT', ...header });

async function statusWith(token: unknown, more: object = {}): Promise<number> {
  answer({ access_token: 'of no interest', token_type: 'Bearer', id_token: token });
  return (await postConsoleToken(service, { ...CODE, ...more })).status;
}

/** What the operator was told. */
const outcomes = () =>
  service.log.flatMap((record) => (record.event === 'console_provider' ? [record.outcome] : []));

const RIGHT: [string, () => Promise<string>, string][] = [
  ['as it should be', () => by(), 'jane@example.com'],
  ['without typ', () => by({}, { typ: undefined }), 'jane@example.com'],
  ['ended within the leeway', () => by({ iat: now() - 300, exp: now() - 20 }), 'jane@example.com'],
  ['an audience in a list', () => by({ aud: [CLIENT.client_id] }), 'jane@example.com'],
  ['azp', () => by({ azp: CLIENT.client_id }), 'jane@example.com'],
  ['a claim that goes before', () => by({ nickname: 'Жанна 🙂' }), 'Жанна 🙂'],
  ['an address that nobody verified', () => by({ email_verified: false }), 'auth0|jane'],
  ['a name that is none', () => by({ nickname: 'a\nb', email: 7 }), 'auth0|jane'],
];
test.each(RIGHT)('200 %s', async (_name, make, label) => {
  answer({ id_token: await make() });
  const got = await postConsoleToken(service, CODE);
  expect(got.status).toBe(200);
  expect(((await got.json()) as { data: ConsoleSession }).data.label).toBe(label);
});

const hmac = (secret: string) => async (input: string) => createHmac('sha256', secret).update(input).digest();
const written = (header: string, body: string) => compact(header, body, rsa.sign);
const headerText = () => JSON.stringify({ alg: 'RS256', typ: 'JWT', kid: 'one' });

const WRONG: [string, () => unknown][] = [
  ['iss of another issuer', () => by({ iss: other.issuer })],
  ['iss of ours', () => by({ iss: service.url })],
  ['iss missing', () => by({ iss: undefined })],
  ['aud of another client', () => by({ aud: 'another' })],
  ['aud of another client beside ours', () => by({ aud: [CLIENT.client_id, 'another'] })],
  ['aud of nobody', () => by({ aud: [] })],
  ['aud missing', () => by({ aud: undefined })],
  ['aud of our access tokens', () => by({ aud: 'https://directory.example' })],
  ['azp of another client', () => by({ azp: 'another' })],
  ['azp null', () => by({ azp: null })],
  ['nonce of another request', () => by({ nonce: 'm'.repeat(43) })],
  ['nonce missing', () => by({ nonce: undefined })],
  ['expired', () => by({ iat: now() - 400, exp: now() - 31 })],
  ['exp missing', () => by({ exp: undefined })],
  ['exp a text', () => by({ exp: '9999999999' })],
  ['a life that is too long', () => by({ exp: now() + LIMITS.tokenLifetimeSecondsMax + 1 })],
  ['iat to come', () => by({ iat: now() + 60 })],
  ['iat missing', () => by({ iat: undefined })],
  ['not yet valid', () => by({ nbf: now() + 60 })],
  ['sub missing', () => by({ sub: undefined })],
  ['sub a number', () => by({ sub: 1 })],
  ['sub too long', () => by({ sub: 'x'.repeat(256) })],
  ['alg none', async () => (await by({}, { alg: 'none' })).replace(/[^.]*$/, '')],
  [
    'HS256 by the secret of the client',
    () => issue(rsa, claims(), { alg: 'HS256', typ: 'JWT' }, hmac(CLIENT.client_secret)),
  ],
  [
    'HS256 by the public key',
    () => issue(rsa, claims(), { alg: 'HS256', typ: 'JWT' }, hmac(JSON.stringify(rsa.publicJwk))),
  ],
  ['another algorithm than the key’s', () => issue(rsa, claims(), { alg: 'RS512' }, rsa.signWith('SHA-512'))],
  ['an algorithm that is not listed', () => by({}, { alg: 'RS384' })],
  ['the key of another issuer, of the same name', () => issue(stranger, claims(), { typ: 'JWT' })],
  ['our own key', async () => issue(rsa, claims(), { typ: 'JWT' }, (await openForge(service)).sign)],
  ['a key that is not published', () => by({}, { kid: 'two' })],
  ['kid missing', () => by({}, { kid: undefined })],
  ['a key of its own', () => by({}, { jwk: rsa.publicJwk })],
  ['jku', () => by({}, { jku: `${other.issuer}/keys` })],
  ['crit', () => by({}, { crit: ['exp'] })],
  ['typ of an access token', () => by({}, { typ: 'at+jwt' })],
  ['typ of a logout token', () => by({}, { typ: 'logout+jwt' })],
  ['a signature of nobody', async () => (await by()).replace(/[^.]*$/, 'AAAA')],
  [
    'claims that were changed',
    async () => (await by()).replace(/\.[^.]+\./, `.${encode(JSON.stringify(claims({ sub: 'root' })))}.`),
  ],
  ['sub twice', () => written(headerText(), JSON.stringify(claims()).replace('{', '{"sub":"root",'))],
  ['no token', () => 'nonsense'],
  ['more than it may have', () => by({ padding: 'x'.repeat(LIMITS.idTokenBytesMax) })],
];
test.each(WRONG)('400 %s', async (_name, make) => {
  expect(await statusWith(await make())).toBe(400);
});

test('an ID token that does not hold is told to the operator, once', async () => {
  expect(await statusWith(await by())).toBe(200);
  const told = outcomes().length;
  expect(await statusWith(await by({}, { alg: 'RS384' }))).toBe(400);
  expect(await statusWith(await by({ aud: 'another' }))).toBe(400);
  expect(await statusWith(await by())).toBe(200);
  expect(outcomes().slice(told)).toEqual(['id_token_refused', 'answered']);
});

test('a code may be as long as providers make them', async () => {
  const code = 'c'.repeat(8_192);
  expect(await statusWith(await by(), { code })).toBe(200);
  expect(asked.form.get('code')).toBe(code);
  expect(await statusWith(await by(), { code: `${code}c` })).toBe(400);
});

test('ID tokens are checked by the clock of the service', async () => {
  service.clock.advance(3_600_000);
  publish();
  expect(await statusWith(await by({ nbf: now() }))).toBe(200);
});

test('a code that the provider refuses is no trouble of the provider', async () => {
  expect(await statusWith(await by())).toBe(200);
  const told = outcomes().length;
  answer({ error: 'invalid_grant' }, 400);
  expect([(await postConsoleToken(service, CODE)).status, outcomes().length]).toEqual([400, told]);
});

test('a provider that keeps many waiting is asked by no more; who comes then is told to try again', async () => {
  const waiting: ServerResponse[] = [];
  const isFull = Promise.withResolvers<void>();
  acme.routes.set('/token', (_request, response) => {
    if (waiting.push(response) === LIMITS.providerCodesAtOnceMax) isFull.resolve();
  });
  const asking = Array.from({ length: LIMITS.providerCodesAtOnceMax }, () => postConsoleToken(service, CODE));
  await isFull.promise;
  const more = await postConsoleToken(service, CODE);
  expect([more.status, (await errorsOf(more))[0]?.detail]).toEqual([503, FAULTS.overloaded.detail]);
  const answer = JSON.stringify({ id_token: await by() });
  for (const response of waiting) response.writeHead(200, { 'Content-Type': 'application/json' }).end(answer);
  const statuses = (await Promise.all(asking)).map(({ status }) => status);
  expect([waiting.length, new Set(statuses)]).toEqual([LIMITS.providerCodesAtOnceMax, new Set([200])]);
  expect(await statusWith(await by())).toBe(200);
});

test('403 where two rights have no realm in common', async () => {
  expect(await statusWith(await by({ groups: ['here', 'there'] }))).toBe(403);
  expect(await statusWith(await by({ groups: ['here'] }))).toBe(200);
});

test('403 where no claim is worth anything', async () => {
  expect(await statusWith(await by({ groups: ['kitchen'] }))).toBe(403);
});

test('the provider is told who asks, what for, and with which verifier, and the page never learns the secret', async () => {
  await statusWith(await by());
  const { form, authorization } = asked;
  expect(Object.fromEntries(form)).toEqual({
    ...{ grant_type: 'authorization_code', code: 'c', code_verifier: 'v'.repeat(43) },
    redirect_uri: `${service.url}/console`,
  });
  expect(atob(authorization?.slice('Basic '.length) ?? '')).toBe('the+console%3A+of+us:a%2Bb+c%26d');
  const departure = await fetch(`${service.url}/console/provider`, {
    method: 'POST',
    headers: sameOrigin(service),
    body: JSON.stringify({ data: { name: 'acme' } }),
  });
  expect(await departure.json()).toEqual({
    data: {
      ...{ authorization_endpoint: `${acme.issuer}/authorize`, client_id: CLIENT.client_id },
      ...{ issuer: acme.issuer, scope: 'openid profile email', redirect_uri: `${service.url}/console` },
    },
  });
});

test('nobody is sent to a provider that there is none of, or that does not answer', async () => {
  const depart = async (name: string) => {
    const answer = await fetch(`${service.url}/console/provider`, {
      method: 'POST',
      headers: sameOrigin(service),
      body: JSON.stringify({ data: { name } }),
    });
    return [answer.status, await answer.text()];
  };
  expect(await depart('strangers')).toEqual([400, expect.stringContaining('is no provider of the console')]);
  // It has an entry, and no console in it.
  expect((await depart('other'))[0]).toBe(400);
  expect(await statusWith(await by())).toBe(200);
  const told = outcomes().length;
  expect((await depart('acme'))[0]).toBe(200);
  expect(outcomes().length).toBe(told);
  publish({ issuer: other.issuer });
  expect((await depart('acme'))[0]).toBe(503);
  expect(outcomes().slice(told)).toEqual(['metadata_unusable']);
  publish();
  expect((await depart('acme'))[0]).toBe(200);
});

test('503 where the keys of the provider cannot be read', async () => {
  const alone = await startIssuer();
  const { issuer } = alone;
  const endpoints = { authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` };
  alone.routes.set(DISCOVERY, json({ issuer, jwks_uri: `${issuer}/nowhere`, ...endpoints }));
  const believer = await startTrustingService(issuerEntry(alone, { console: CLIENT }));
  const iat = Math.floor(believer.clock.now() / 1000);
  const token = await issue(rsa, claims({ iss: issuer, iat, exp: iat + 300 }), { typ: 'JWT' });
  alone.routes.set('/token', json({ id_token: token }));
  expect((await postConsoleToken(believer, CODE)).status).toBe(503);
  await believer.stop();
  alone.stop();
});

test('a provider that takes the secret in the body alone gets it there', async () => {
  publish({ token_endpoint_auth_methods_supported: ['client_secret_post'] });
  expect(await statusWith(await by())).toBe(200);
  expect([asked.form.get('client_secret'), asked.form.get('client_id'), asked.authorization]).toEqual([
    CLIENT.client_secret,
    CLIENT.client_id,
    undefined,
  ]);
  publish();
});

test('an issuer entry without a console is no way in', async () => {
  expect(await statusWith(await by(), { name: 'other' })).toBe(400);
});

test('iss need not be there where the provider does not send it, and must be right where it is', async () => {
  const token = await by();
  expect(await statusWith(token, { iss: acme.issuer })).toBe(200);
  expect(await statusWith(token, { iss: other.issuer })).toBe(400);
  publish({ authorization_response_iss_parameter_supported: true });
  expect(await statusWith(await by())).toBe(400);
  expect(await statusWith(await by(), { iss: acme.issuer })).toBe(200);
  publish();
});

test('a wrong iss sends the code nowhere', async () => {
  const before = acme.requestCounts.get('/token') ?? 0;
  await statusWith(await by(), { iss: other.issuer });
  expect(acme.requestCounts.get('/token') ?? 0).toBe(before);
});

describe('503, which costs the page nothing, and is told to the operator:', () => {
  const answers: [string, () => void, string][] = [
    [
      'a code that another client asks for',
      () => answer({ error: 'unauthorized_client' }, 400),
      'token_endpoint_failed',
    ],
    ['a secret that is not right', () => answer({ error: 'invalid_client' }, 401), 'token_endpoint_failed'],
    ['a redirect', () => answer({}, 302), 'token_endpoint_failed'],
    ['trouble over there', () => answer({}, 500), 'token_endpoint_failed'],
    ['a refusal by 500', () => answer({ error: 'invalid_grant' }, 500), 'token_endpoint_failed'],
    [
      'nobody there',
      () => acme.routes.set('/token', (request) => request.destroy()),
      'token_endpoint_failed',
    ],
    ['no ID token', () => answer({ access_token: 'x' }), 'no_id_token'],
    ['an ID token that is no text', () => answer({ id_token: { a: 1 } }), 'no_id_token'],
    ['an answer that is no object', () => answer(['id_token']), 'no_id_token'],
  ];
  test.each(answers)('%s', async (_name, prepare, outcome) => {
    prepare();
    const got = await postConsoleToken(service, CODE);
    expect([got.status, got.headers.get('retry-after'), outcomes().at(-1)]).toEqual([503, '1', outcome]);
  });

  test.each([
    ['another issuer', () => ({ issuer: other.issuer })],
    ['a token endpoint that is no address', () => ({ token_endpoint: 7 })],
    ['token endpoints in a list', () => ({ token_endpoint: [`${acme.issuer}/token`] })],
    ['a token endpoint in clear', () => ({ token_endpoint: 'http://login.example/token' })],
    ['an endpoint of a script', () => ({ authorization_endpoint: 'javascript:alert(1)' })],
    ['an endpoint with a fragment', () => ({ authorization_endpoint: `${acme.issuer}/a#b` })],
    ['no way to say who asks', () => ({ token_endpoint_auth_methods_supported: ['private_key_jwt'] })],
    ['no verifier of PKCE by S256', () => ({ code_challenge_methods_supported: ['plain'] })],
    ['ways to say who asks that are no list', () => ({ token_endpoint_auth_methods_supported: BASIC })],
    ['ways of PKCE that are no list', () => ({ code_challenge_methods_supported: 'S256' })],
  ] as [string, () => Json][])('a discovery document with %s', async (_name, more) => {
    publish(more());
    expect([await statusWith(await by()), outcomes().at(-1)]).toEqual([503, 'metadata_unusable']);
    publish();
  });

  test('a discovery document that is not there', async () => {
    acme.routes.set(DISCOVERY, (_request, response) => response.writeHead(500).end());
    service.clock.advance(LIMITS.issuerKeysFreshMs);
    expect([await statusWith(await by()), outcomes().at(-1)]).toEqual([503, 'metadata_unusable']);
    publish();
  });

  test('it is asked again ten seconds later, and not before; one that was right, after a while', async () => {
    expect(await statusWith(await by())).toBe(200);
    publish({ issuer: 'https://other.example' });
    const before = acme.requestCounts.get(DISCOVERY) ?? 0;
    const told = outcomes().length;
    for (let count = 0; count < 3; count += 1) await statusWith(await by());
    expect(outcomes().slice(told)).toEqual(['metadata_unusable']);
    expect(acme.requestCounts.get(DISCOVERY) ?? 0).toBe(before + 1);
    publish({}, LIMITS.issuerKeysPauseMs - 5_000);
    expect(await statusWith(await by())).toBe(503);
    publish({}, 5_000);
    expect(await statusWith(await by())).toBe(200);
    const since = acme.requestCounts.get(DISCOVERY);
    service.clock.advance(LIMITS.issuerKeysPauseMs);
    expect([await statusWith(await by()), acme.requestCounts.get(DISCOVERY)]).toEqual([200, since]);
    expect(outcomes().at(-1)).toBe('answered');
  });
});
