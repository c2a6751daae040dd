import { expect, setDefaultTimeout, test } from 'bun:test';
import { createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { gzipSync } from 'node:zlib';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import type { IdentityResult } from '../../src/access/issuers/identity_providers.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { OIDC_CLIENT, startIdentityProvider } from '../support/identity_provider.ts';
import { createKeyPair, DISCOVERY, issue, json, type RequestHandler } from '../support/issuers.ts';
import { compact, type Json } from '../support/token_forge.ts';

/** Codes of OpenID providers: what is known of the person, and every wrong answer of a provider. */

setDefaultTimeout(60_000);

const acme = await startIdentityProvider();
const { clientId } = OIDC_CLIENT;
const JANE = {
  ...{ issuer: acme.issuer, subject: 'auth0|jane', email: 'jane@example.com', isEmailVerified: true },
  ...{ names: {}, amr: undefined },
};

/** What a process finds that has not read anything of the provider before. */
function identify(more: Json = {}): Promise<IdentityResult> {
  return acme.open().identifyByCode(acme.codeRequest(more));
}

async function identifyWith(idToken: unknown, userinfo?: unknown): Promise<IdentityResult> {
  acme.publish(userinfo === undefined ? { userinfo_endpoint: undefined } : {});
  acme.answer(idToken, userinfo);
  return identify();
}

test('the token request of a code has client, code, verifier and redirect URI', async () => {
  acme.publish();
  const idToken = await acme.mint();
  let received: { readonly form: URLSearchParams; readonly authorization: string | undefined } | undefined;
  const bodyOf = async (request: IncomingMessage) => Buffer.concat(await Array.fromAsync(request)).toString();
  acme.routes.set('/token', async (request, response) => {
    const form = new URLSearchParams(await bodyOf(request));
    received = { form, authorization: request.headers.authorization };
    json({ id_token: idToken })(request, response);
  });
  expect(await identify()).toEqual(JANE);
  expect(Object.fromEntries(received?.form ?? [])).toEqual({
    ...{ grant_type: 'authorization_code', code: 'c', code_verifier: 'v'.repeat(43) },
    redirect_uri: 'https://directory.example/callback',
  });
  expect(atob(received?.authorization?.slice('Basic '.length) ?? '')).toBe('the+shop%3A+of+us:a%2Bb+c%26d');
});

test.each<[string, Json, Json]>([
  ['an e-mail address that is not verified', { email_verified: false }, { isEmailVerified: false }],
  ['an e-mail address without email_verified', { email_verified: undefined }, { isEmailVerified: false }],
  ['email_verified as the text true', { email_verified: 'true' }, { isEmailVerified: true }],
  ['email_verified as the text false', { email_verified: 'false' }, { isEmailVerified: false }],
  ['email_verified as a number', { email_verified: 1 }, { isEmailVerified: false }],
  [
    'an e-mail address of 300 characters',
    { email: `${'x'.repeat(288)}@example.com` },
    { email: `${'x'.repeat(288)}@example.com` },
  ],
  [
    'an e-mail address of 321 characters',
    { email: `${'x'.repeat(309)}@example.com` },
    { email: undefined, isEmailVerified: false },
  ],
  ['an e-mail address that is a number', { email: 7 }, { email: undefined, isEmailVerified: false }],
  ['an e-mail address that is none', { email: 'jane' }, { email: undefined, isEmailVerified: false }],
  ['names', { name: 'Jane Doe', given_name: 'Jane' }, { names: { name: 'Jane Doe', given_name: 'Jane' } }],
  [
    'other names',
    { middle_name: 'Mary', family_name: 'Doe' },
    { names: { middle_name: 'Mary', family_name: 'Doe' } },
  ],
  [
    'names of no use',
    { name: 'a\nb', given_name: 7, middle_name: '', family_name: 'x'.repeat(256) },
    { names: {} },
  ],
  ['blank names', { name: ' ', given_name: 'Jane', family_name: '' }, { names: { given_name: 'Jane' } }],
  ['names that cannot be stored', { given_name: 'Ja\u0000ne', family_name: 'D\ud800' }, { names: {} }],
  ['a subject of 255 characters', { sub: 'x'.repeat(255) }, { subject: 'x'.repeat(255) }],
  ['amr', { amr: ['pwd', 'x'.repeat(32)] }, { amr: ['pwd', 'x'.repeat(32)] }],
  ['eight values of amr', { amr: new Array(8).fill('otp') }, { amr: new Array(8).fill('otp') }],
  ['nine values of amr', { amr: new Array(9).fill('otp') }, {}],
  ['a value of amr of 33 characters', { amr: ['x'.repeat(33)] }, {}],
  ['amr outside a list', { amr: 'pwd' }, {}],
  ['a number in amr', { amr: ['pwd', 1] }, {}],
  ['azp', { azp: clientId }, {}],
  ['an audience in a list', { aud: [clientId] }, {}],
  ['a lifetime of ten days', { exp: acme.now() + 864_000 }, {}],
  ['other claims', { groups: [{ a: 1 }] }, {}],
])('an ID token with %s identifies the person', async (_name, claims, expected) => {
  expect(await identifyWith(await acme.mint(claims))).toStrictEqual({
    ...JANE,
    ...expected,
  } as IdentityResult);
});

test('an ID token is accepted 30 seconds after its end and before its beginning', async () => {
  const late = () => acme.mint({ iat: acme.now() - 300, exp: acme.now() - 28 });
  const early = () => acme.mint({ iat: acme.now() + 28, nbf: acme.now() + 28 });
  acme.publish();
  for (const mint of [late, early]) {
    acme.answer(await mint());
    expect(await identify()).toEqual(JANE);
  }
});

test.each([...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']])(
  'an ID token that is signed with %s identifies the person',
  async (alg) => {
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
    acme.publish({}, [{ ...(await exportJWK(publicKey)), kid: 'one' }]);
    acme.answer(await new SignJWT(acme.claims()).setProtectedHeader({ alg, kid: 'one' }).sign(privateKey));
    expect(await identify()).toEqual(JANE);
  },
);

const { kid: _, ...unnamed } = acme.pair.publicJwk;
const another = await createKeyPair('two');
test.each<[string, readonly Json[], Json, boolean]>([
  ['without kid, of a set with one key', [acme.pair.publicJwk], { kid: undefined }, true],
  ['without kid, of a set with one key without kid', [unnamed], { kid: undefined }, true],
  ['without kid, of two keys', [acme.pair.publicJwk, another.publicJwk], { kid: undefined }, false],
  ['without kid, of two keys of which one has none', [unnamed, another.publicJwk], { kid: undefined }, false],
  ['without kid, by the key of another', [another.publicJwk], { kid: undefined }, false],
  ['with an unknown kid', [acme.pair.publicJwk], { kid: 'three' }, false],
  ['with a kid, of a set with one key without kid', [unnamed], {}, false],
  [
    'with a kid of two keys, by the first',
    [acme.pair.publicJwk, { ...another.publicJwk, kid: 'one' }],
    {},
    true,
  ],
  [
    'with a kid of two keys, by the second',
    [{ ...another.publicJwk, kid: 'one' }, acme.pair.publicJwk],
    {},
    false,
  ],
  ['with a kid of null', [acme.pair.publicJwk], { kid: null }, false],
])('an ID token %s', async (_name, keys, header, isAccepted) => {
  acme.publish({}, keys);
  acme.answer(await acme.mint({}, header));
  expect(await identify()).toEqual(isAccepted ? JANE : 'id_token_refused');
});

const hs256 = async (input: string) =>
  createHmac('sha256', JSON.stringify(acme.pair.publicJwk)).update(input).digest();
const headerText = JSON.stringify({ alg: 'RS256', typ: 'JWT', kid: 'one' });
const sign = (header: string, claims: string) => compact(header, claims, acme.pair.sign);

test.each<[string, () => unknown]>([
  ['of another issuer', () => acme.mint({ iss: 'https://evil.example' })],
  ['of an issuer with one more slash', () => acme.mint({ iss: `${acme.issuer}/` })],
  ['for two clients', () => acme.mint({ aud: [clientId, 'another'] })],
  ['for another client', () => acme.mint({ aud: 'another' })],
  ['for no client', () => acme.mint({ aud: [] })],
  ['with another azp', () => acme.mint({ azp: 'another' })],
  ['with another nonce', () => acme.mint({ nonce: 'm'.repeat(22) })],
  ['without nonce', () => acme.mint({ nonce: undefined })],
  ['that has ended', () => acme.mint({ iat: acme.now() - 300, exp: acme.now() - 32 })],
  ['that has not begun', () => acme.mint({ nbf: acme.now() + 60 })],
  ['of the future', () => acme.mint({ iat: acme.now() + 60 })],
  ['without iat', () => acme.mint({ iat: undefined })],
  ['with the typ of an access token', () => acme.mint({}, { typ: 'at+jwt' })],
  ['with a subject of 256 characters', () => acme.mint({ sub: 'x'.repeat(256) })],
  ['with a subject that is a number', () => acme.mint({ sub: 7 })],
  ['with a subject that has a line break', () => acme.mint({ sub: 'a\nb' })],
  ['with sub twice', () => sign(headerText, JSON.stringify(acme.claims()).replace('{', '{"sub":"root",'))],
  ['with kid twice', () => sign(headerText.replace('{', '{"kid":"two",'), JSON.stringify(acme.claims()))],
  ['with alg none', async () => (await acme.mint({}, { alg: 'none' })).replace(/[^.]*$/, '')],
  [
    'that is signed with HS256 by the public key',
    () => issue(acme.pair, acme.claims(), { alg: 'HS256', typ: 'JWT' }, hs256),
  ],
  ['with a key in its header', () => acme.mint({}, { jwk: acme.pair.publicJwk })],
  ['with an invalid signature', async () => (await acme.mint()).replace(/[^.]*$/, 'AAAA')],
  ['that is no JWT', () => 'nonsense'],
  ['of more bytes than the limit', () => acme.mint({ padding: 'x'.repeat(LIMITS.idTokenBytesMax) })],
])('an ID token %s is refused', async (_name, make) => {
  expect(await identifyWith(await make())).toBe('id_token_refused');
});

const responding =
  (body: string | Uint8Array, headers: Record<string, string> = {}, status = 200): RequestHandler =>
  (_request, response) =>
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(body);
const silent: RequestHandler = () => undefined;
const good = JSON.stringify({ id_token: await acme.mint() });

test.each<[string, RequestHandler, IdentityResult]>([
  ['256 KiB and one byte', responding(good.padEnd(LIMITS.outboundBytesMax + 1)), 'token_endpoint_failed'],
  ['HTML', responding(good, { 'Content-Type': 'text/html' }), 'no_id_token'],
  ['a redirect', responding('', { Location: '/elsewhere' }, 302), 'token_endpoint_failed'],
  ['gzip', responding(gzipSync(good), { 'Content-Encoding': 'gzip' }), 'token_endpoint_failed'],
  ['no ID token', json({ access_token: 'x' }), 'no_id_token'],
  ['a wrong client secret', responding('{"error":"invalid_client"}', {}, 401), 'token_endpoint_failed'],
  ['an error of its own', responding('{"error":"invalid_grant"}', {}, 500), 'token_endpoint_failed'],
  ['the end of the connection', (request) => request.destroy(), 'token_endpoint_failed'],
])('a provider whose token endpoint answers %s is unavailable', async (_name, handler, cause) => {
  acme.publish();
  acme.routes.set('/token', handler);
  expect(await identify()).toBe(cause);
});

test('a token response of 256 KiB is read', async () => {
  acme.publish();
  const body = JSON.stringify({ id_token: await acme.mint() }).padEnd(LIMITS.outboundBytesMax);
  acme.routes.set('/token', responding(body));
  expect(await identify()).toEqual(JANE);
});

test.each([400, 403])(
  'a code that the provider rejects with %d is refused, and no failure of the provider',
  async (status) => {
    acme.publish();
    acme.routes.set('/token', responding('{"error":"invalid_grant"}', {}, status));
    expect(await identify()).toBe('code_refused');
  },
);

const withoutEmail = (more: Json = {}) => acme.mint({ email: undefined, email_verified: undefined, ...more });
test.each<[string, string, IdentityResult]>([
  [DISCOVERY, '/token', 'token_endpoint_failed'],
  ['/token', '/keys', 'keys_unreadable'],
  ['/token', '/userinfo', 'userinfo_failed'],
])(
  'a provider has 4.5 seconds for all requests together: slow at %s, silent at %s',
  async (slow, next, cause) => {
    acme.publish();
    acme.answer(await withoutEmail());
    const handler = acme.routes.get(slow) ?? silent;
    acme.routes.set(slow, (request, response) => {
      acme.clock.advance(LIMITS.outboundMsMax - 100);
      handler(request, response);
    });
    acme.routes.set(next, silent);
    const began = performance.now();
    expect(await identify()).toBe(cause);
    expect(performance.now() - began).toBeLessThan(2_000);
  },
);

const INFO = { sub: 'auth0|jane', email: 'jane@example.org', email_verified: true };

test('userinfo is asked with the access token, and only if the ID token has no usable e-mail address', async () => {
  let authorization: string | undefined;
  acme.publish();
  acme.answer(await withoutEmail());
  acme.routes.set('/userinfo', (request, response) => {
    authorization = request.headers.authorization;
    json(INFO)(request, response);
  });
  expect(await identify()).toEqual({ ...JANE, email: 'jane@example.org' });
  expect(authorization).toBe('Bearer of-userinfo');
  const before = acme.requests('/userinfo');
  expect(await identifyWith(await acme.mint(), INFO)).toEqual(JANE);
  expect(acme.requests('/userinfo')).toBe(before);
});

test.each<[string, Json, Json, Json]>([
  [
    'the names that the ID token has not',
    { name: 'Jane' },
    { name: 'Joan', family_name: 'Doe' },
    { names: { name: 'Jane', family_name: 'Doe' } },
  ],
  [
    'an address with its own email_verified',
    { email_verified: true },
    { email_verified: false },
    { isEmailVerified: false },
  ],
  [
    'an address in place of an unusable one',
    { email: 7, email_verified: true },
    { email_verified: undefined },
    { isEmailVerified: false },
  ],
  ['no usable address', {}, { email: 'nobody' }, { email: undefined, isEmailVerified: false }],
  ['no amr', {}, { amr: ['pwd'] }, {}],
])('userinfo gives %s', async (_name, claims, info, expected) => {
  const found = await identifyWith(await withoutEmail(claims), { ...INFO, ...info });
  expect(found).toEqual({ ...JANE, email: 'jane@example.org', ...expected } as IdentityResult);
});

test.each<[string, RequestHandler, IdentityResult]>([
  ['another sub', json({ ...INFO, sub: 'root' }), 'userinfo_refused'],
  ['no sub', json({ email: INFO.email }), 'userinfo_refused'],
  ['a JWT', responding(await acme.mint(), { 'Content-Type': 'application/jwt' }), 'userinfo_refused'],
  ['a list', json([INFO]), 'userinfo_refused'],
  ['status 401', responding('{}', {}, 401), 'userinfo_failed'],
  ['a redirect', responding('', { Location: '/elsewhere' }, 302), 'userinfo_failed'],
])('nobody is identified where userinfo is %s', async (_name, handler, cause) => {
  acme.publish();
  acme.answer(await withoutEmail());
  acme.routes.set('/userinfo', handler);
  expect(await identify()).toBe(cause);
});

test('a person without e-mail address is identified if the provider has no userinfo', async () => {
  acme.publish({ userinfo_endpoint: undefined });
  acme.answer(await withoutEmail());
  expect(await identify()).toEqual({ ...JANE, email: undefined, isEmailVerified: false });
  acme.publish();
  for (const token of [undefined, 7, 'a\r\nb', '']) {
    acme.routes.set('/token', json({ id_token: await withoutEmail(), access_token: token }));
    expect(await identify()).toEqual({ ...JANE, email: undefined, isEmailVerified: false });
  }
});

test('neither code nor access token is sent to a private address on another host than that of the issuer', async () => {
  const elsewhere = acme.issuer.replace('127.0.0.1', 'localhost');
  acme.answer(await withoutEmail(), INFO);
  const before = ['/token', '/userinfo'].map(acme.requests);
  for (const token_endpoint of [`${elsewhere}/token`, 'https://10.0.0.1/token', 'https://169.254.169.254/']) {
    acme.publish({ token_endpoint });
    expect(await identify()).toBe('token_endpoint_failed');
  }
  acme.publish({ userinfo_endpoint: `${elsewhere}/userinfo` });
  acme.answer(await withoutEmail(), INFO);
  expect(await identify()).toBe('userinfo_failed');
  expect(['/token', '/userinfo'].map(acme.requests)).toEqual([(before[0] ?? 0) + 1, before[1] ?? 0]);
});
