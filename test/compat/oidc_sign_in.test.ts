import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { createHash } from 'node:crypto';
import type { Flags } from '../../src/app/config/parse.ts';
import { oidcProfile } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openOidcFlow } from '../../src/sign_in/oidc_flow.ts';
import { createKeyPair, issue, json, type RequestHandler } from '../support/issuers.ts';
import {
  CODE_VERIFIER,
  createOidcProfile,
  REDIRECT_URI,
  REDIRECT_URI_WITH_QUERY,
} from '../support/oidc_sign_in.ts';
import { newPerson, signedInOf, startTokenCalls } from '../support/oidc_token_calls.ts';
import { comparableResponse, errorsOf, startService } from '../support/service.ts';
import {
  createPassword,
  DEVICE_HEADER,
  passwordBody,
  requestTokens,
  signInTokenOf,
} from '../support/sign_in.ts';

setDefaultTimeout(60_000);

/** The mechanism `oidc` of the token call: docs/wire.md#account-tokens. */

const calls = await startTokenCalls();
const { service, provider, realm, profile, realms, token, authorize, send, signIn, sealCode } = calls;
const { db, clock } = service;
const writer = await service.token('realms:write profiles:write');

const jack = await createPassword(db, realm);
const wrong = await requestTokens(service, token, passwordBody(jack, { password: 'wrong horse' }));
const WRONG_PASSWORD = await comparableResponse(wrong);

/** Sends a call that is answered as a wrong password. Returns the number of codes that the provider was asked for. */
async function refusedExchanges(...sent: Parameters<typeof send>): Promise<number> {
  const before = calls.exchanges();
  expect(await comparableResponse(await send(...sent))).toBe(WRONG_PASSWORD);
  return calls.exchanges() - before;
}

async function expectUnavailable(answer: Response): Promise<void> {
  const [error] = await errorsOf(answer);
  expect([answer.status, error?.code]).toEqual([503, 'provider_unavailable']);
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
}

/** Answers token requests in another way during a test. */
async function withTokenEndpoint<T>(answer: RequestHandler, work: () => Promise<T>): Promise<T> {
  provider.routes.set('/token', answer);
  try {
    return await work();
  } finally {
    provider.routes.set('/token', calls.redeem);
  }
}

/** Starts another process of the service. */
async function startSecond(flags: Flags = {}) {
  const second = await startService({ ...service.database.flags, baseUrl: service.url, ...flags });
  second.clock.advance(clock.now() - second.clock.now());
  return second;
}

const changed = (text: string, at: number) =>
  text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1);
const sha256 = (text: string) => createHash('sha256').update(text).digest('base64url');

describe('a sign-in with a code', () => {
  test('is answered as one with a password, without a device token', async () => {
    const answer = await signIn(newPerson({ name: 'Jane Doe' }));
    const { headers } = answer;
    expect([answer.status, headers.get('cache-control'), headers.get(DEVICE_HEADER)]).toEqual([
      ...[201, 'no-store', null],
    ]);
    const { data, meta } = (await answer.json()) as { data: object[]; meta: { account_member_id: string } };
    const type = 'account_management_authentication_token';
    const account = { type, account_id: meta.account_member_id, account_name: 'Jane Doe' };
    const more = { token: expect.any(String), expires: expect.any(String) };
    expect(data).toEqual([{ ...account, ...more }]);
    expect(meta).toMatchObject({ results: { total: 1 }, page: { limit: 25, offset: 0 } });
  });

  test('finds the same user again, through a redirect URI with a query and a long code of the provider too', async () => {
    const jane = newPerson();
    const { user } = await signedInOf(await signIn(jane));
    const changes = { redirect_uri: REDIRECT_URI_WITH_QUERY };
    const code = await authorize(jane, { changes });
    const members = { oauth_redirect_uri: REDIRECT_URI_WITH_QUERY };
    expect((await signedInOf(await send(code, { members }))).user).toBe(user);
  });

  test('that one process begins is completed by another', async () => {
    const second = await startSecond({ allowPrivate: 'localhost 127.0.0.0/8' });
    const jane = newPerson();
    const { user } = await signedInOf(await send(await authorize(jane), { to: second }));
    expect((await signedInOf(await signIn(jane))).user).toBe(user);
  });

  test('is 403 without the scope sign-in, and the provider is not asked', async () => {
    const before = calls.exchanges();
    const code = await authorize();
    for (const scope of ['sign-up', 'users:read users:write'])
      expect((await send(code, { token: await signInTokenOf(service, { scope }) })).status).toBe(403);
    expect(calls.exchanges()).toBe(before);
  });

  test('of an unknown person without the scope sign-up is authentication failed, of a known one is not', async () => {
    const signInAlone = await signInTokenOf(service, { scope: 'sign-in' });
    const jane = newPerson();
    expect(await refusedExchanges(await authorize(jane), { token: signInAlone })).toBe(1);
    const { user } = await signedInOf(await signIn(jane));
    expect((await signedInOf(await signIn(jane, { token: signInAlone }))).user).toBe(user);
  });

  test('by a client without rights in the realm is authentication failed', async () => {
    const outside = await service.token('sign-in sign-up', new Set([realms.buyers]));
    const refusals = `select 1 from act where action = 'access.refused' and detail like '%realm outside the list%'`;
    const before = await service.database.query(refusals);
    expect(await refusedExchanges(await authorize(), { token: outside })).toBe(0);
    expect(await service.database.query(refusals)).toHaveLength(before.length + 1);
  });
});

describe('the members of a sign-in with a code', () => {
  const NAMES = ['oauth_authorization_code', 'oauth_code_verifier', 'oauth_redirect_uri'];

  test.each([
    ['missing', undefined],
    ['empty', ''],
    ['a number', 7],
    ['null', null],
    ['a list', ['code']],
  ])('are each 400 with its source where they are %s', async (_, value) => {
    const before = calls.exchanges();
    for (const names of [...NAMES.map((name) => [name]), NAMES]) {
      const members = Object.fromEntries(names.map((name) => [name, value]));
      const answer = await send(await authorize(), { members });
      const pointers = (await errorsOf(answer)).map(({ source }) => source?.pointer);
      expect([answer.status, pointers.sort()]).toEqual([400, names.map((name) => `/data/${name}`)]);
    }
    expect(calls.exchanges()).toBe(before);
  });
});

describe('a code is answered as a wrong password, and the provider is not asked,', () => {
  const other = systemClock.mintId();

  test.each<[string, () => string | Promise<string>]>([
    ['that is none', () => 'none'],
    ['of the provider itself', async () => calls.grant((await calls.begin()).query, newPerson())],
    ['with another first character', async () => changed(await authorize(), 0)],
    ['with another character', async () => changed(await authorize(), 60)],
    ['with another last character', async () => changed(await authorize(), (await authorize()).length - 1)],
    ['that is cut off', async () => (await authorize()).slice(0, -4)],
    ['with padding', async () => `${await authorize()}=`],
    ['with a space behind it', async () => `${await authorize()} `],
    ['that is a state', async () => (await calls.begin()).query.state ?? ''],
    ['of another realm', () => sealCode('c', { realmId: realms.buyers })],
    ['of an unknown profile', () => sealCode('c', { profileId: other })],
  ])('if it is one %s', async (_, codeOf) => {
    expect(await refusedExchanges(await codeOf())).toBe(0);
  });

  test('if it is of a profile of another realm', async () => {
    const elsewhere = await createOidcProfile(db, realms.buyers, provider.issuer);
    expect(await refusedExchanges(sealCode('c', { profileId: elsewhere }))).toBe(0);
  });

  test('from 60 seconds after the callback on', async () => {
    const code = await authorize();
    clock.advance(58_000);
    expect((await send(code)).status).toBe(201);
    const late = await authorize();
    clock.advance(60_000);
    expect(await refusedExchanges(late)).toBe(0);
  });

  test('if another installation made it', async () => {
    const another = await startService();
    const code = sealCode('c', {}, openOidcFlow(another.db.keyring, clock));
    expect(await refusedExchanges(code)).toBe(0);
  });

  test.each([
    ['another one of the realm', REDIRECT_URI_WITH_QUERY],
    ['one with a slash behind it', `${REDIRECT_URI}/`],
    ['one in capitals', REDIRECT_URI.toUpperCase()],
    ['none of the realm', 'https://other.example.com/callback'],
  ])('if the redirect URI is %s', async (_, oauth_redirect_uri) => {
    expect(await refusedExchanges(await authorize(), { members: { oauth_redirect_uri } })).toBe(0);
  });

  test.each([
    ['another one', 'x'.repeat(43)],
    ['the challenge', sha256(CODE_VERIFIER)],
    ['longer by a character', `${CODE_VERIFIER}x`],
  ])('if the verifier is %s', async (_, oauth_code_verifier) => {
    expect(await refusedExchanges(await authorize(), { members: { oauth_code_verifier } })).toBe(0);
  });

  test.each([
    ['of 42 characters', 'x'.repeat(42)],
    ['of 129 characters', 'x'.repeat(129)],
    ['with a plus sign', `${'x'.repeat(43)}+`],
    ['with an accent', `${'x'.repeat(43)}é`],
    ['with a line feed at its end', `${'x'.repeat(43)}\n`],
  ])('if the verifier is one %s, also of the same challenge', async (_, oauth_code_verifier) => {
    const changes = { code_challenge: sha256(oauth_code_verifier) };
    const code = await authorize(newPerson(), { changes });
    expect(await refusedExchanges(code, { members: { oauth_code_verifier } })).toBe(0);
  });

  test('if redirect_uris was emptied, or lost its redirect URI, after the callback', async () => {
    const codes = [await authorize(), await authorize()];
    try {
      await calls.setRedirectUris();
      expect(await refusedExchanges(codes[0] ?? '')).toBe(0);
      await calls.setRedirectUris(REDIRECT_URI_WITH_QUERY);
      expect(await refusedExchanges(codes[1] ?? '')).toBe(0);
    } finally {
      await calls.setRedirectUris(REDIRECT_URI, REDIRECT_URI_WITH_QUERY);
    }
  });

  test('if its profile was deleted after the callback', async () => {
    const deleted = await createOidcProfile(db, realm, provider.issuer);
    const code = await authorize(newPerson(), { at: { profile: deleted } });
    const path = `/v2/authentication-realms/${realm}/oidc-profiles/${deleted}`;
    expect((await service.del(path, writer)).status).toBe(204);
    expect(await refusedExchanges(code)).toBe(0);
  });
});

test.each([
  ['of 43 characters', 'x'.repeat(43)],
  ['of 128 characters', 'x'.repeat(128)],
  ['with every other character that RFC 7636 allows', `${'x'.repeat(43)}-._~09AZ`],
])('a verifier %s signs in', async (_, oauth_code_verifier) => {
  const changes = { code_challenge: sha256(oauth_code_verifier) };
  const code = await authorize(newPerson(), { changes });
  expect((await send(code, { members: { oauth_code_verifier } })).status).toBe(201);
});

describe('a code is answered as a wrong password, after the provider was asked,', () => {
  test('if it is sent twice', async () => {
    const code = await authorize();
    expect((await send(code)).status).toBe(201);
    expect(await refusedExchanges(code)).toBe(1);
  });

  test('if the provider does not know it', async () => {
    expect(await refusedExchanges(sealCode('unknown'))).toBe(1);
  });

  test('if the code of the provider was made for another sign-in', async () => {
    const victim = await calls.begin();
    const stolen = calls.grant(victim.query, newPerson());
    expect(await refusedExchanges(await calls.complete(await calls.begin(), stolen))).toBe(1);
  });

  test.each([
    ['another nonce', { nonce: 'of-another-sign-in' }],
    ['no nonce', { nonce: undefined }],
    ['another audience', { aud: 'another' }],
    ['a second audience', { aud: ['shop', 'another'] }],
    ['another authorized party', { azp: 'another' }],
    ['another issuer', { iss: 'https://login.example.com' }],
    ['its end in the past', { exp: 1 }],
    ['a subject of 256 characters', { sub: 'x'.repeat(256) }],
    ['no subject', { sub: undefined }],
    ['no e-mail address', { email: undefined }],
    ['an e-mail address that is none', { email: 'jane' }],
  ])('if the ID token has %s', async (_, claims) => {
    expect(await refusedExchanges(await authorize(newPerson(claims)))).toBe(1);
  });

  test('if the ID token is signed by another key', async () => {
    const pair = await createKeyPair('one');
    const now = Math.floor(clock.now() / 1000);
    const begun = await calls.begin();
    const times = { iat: now, exp: now + 300, nonce: begun.query.nonce };
    const claims = { iss: provider.issuer, aud: 'shop', ...times, ...newPerson() };
    const forged = json({ id_token: await issue(pair, claims, { typ: 'JWT' }) });
    const code = await calls.complete(begun, 'c');
    expect(await withTokenEndpoint(forged, () => refusedExchanges(code))).toBe(1);
  });
});

test('userinfo completes an ID token without an e-mail address, and of another subject it is refused', async () => {
  const own = await startTokenCalls();
  const { issuer, routes } = own.provider;
  own.describe({ userinfo_endpoint: `${issuer}/userinfo` });
  const john = newPerson();
  const bare = { sub: john.sub };
  routes.set('/userinfo', json({ ...john, name: 'John Doe' }));
  expect((await (await own.signIn(bare)).json()) as object).toMatchObject({
    data: [{ account_name: 'John Doe' }],
  });
  routes.set('/userinfo', json(newPerson()));
  expect(await comparableResponse(await own.signIn({ sub: newPerson().sub }))).toBe(WRONG_PASSWORD);
});

describe('a sign-in with a code is 503 with Retry-After', () => {
  test.each<[string, RequestHandler]>([
    ['answers 500', calls.answerWith(500, {})],
    ['answers 400 with another error', calls.answerWith(400, { error: 'invalid_request' })],
    ['answers that the client is unknown', calls.answerWith(401, { error: 'invalid_client' })],
    ['answers 400 invalid_client', calls.answerWith(400, { error: 'invalid_client' })],
    ['sends no ID token', json({ access_token: 'a', token_type: 'Bearer' })],
    ['sends an ID token that is no text', json({ id_token: 7 })],
    ['sends HTML', (_, response) => response.setHeader('Content-Type', 'text/html').end('<p>no</p>')],
    ['redirects', (_, response) => response.writeHead(307, { Location: '/keys' }).end()],
    ['sends 256 KiB and a byte', json({ id_token: 'x'.repeat(256 * 1024) })],
    ['closes the connection', (request) => request.socket.destroy()],
    ['does not answer', () => undefined],
  ])('where the provider %s', async (_, answer) => {
    const code = await authorize();
    const startedAt = performance.now();
    await expectUnavailable(await withTokenEndpoint(answer, () => send(code)));
    expect(performance.now() - startedAt).toBeLessThan(5_500);
  });

  test('where the client secret of the profile is not that of the provider, until it is changed', async () => {
    const path = `/v2/authentication-realms/${realm}/oidc-profiles/${profile}`;
    const change = async (client_secret: string) => {
      const answer = await service.put(path, writer, { data: { type: oidcProfile.type, client_secret } });
      expect(answer.status).toBe(200);
    };
    const [early, late] = [await authorize(), await authorize()];
    calls.setClientSecret('another secret');
    await expectUnavailable(await send(early));
    await change('another secret');
    expect((await send(late)).status).toBe(201);
    calls.setClientSecret('a secret: of the shop');
    await change('a secret: of the shop');
  });

  test('where the keys of the provider cannot be read', async () => {
    const own = await startTokenCalls();
    own.provider.routes.set('/keys', (_, response) => response.writeHead(500).end());
    await expectUnavailable(await own.signIn());
  });

  test('where the process is offline', async () => {
    const offline = await startSecond({ allowPrivate: 'localhost 127.0.0.0/8', offline: 'true' });
    const before = calls.exchanges();
    const code = await authorize();
    await expectUnavailable(await send(code, { to: offline.withoutRetry }));
    expect(calls.exchanges()).toBe(before);
  });

  test('where the provider is on a private address that is not allowed', async () => {
    const strict = await startSecond();
    await expectUnavailable(await send(await authorize(), { to: strict.withoutRetry }));
  });
});

test('an Idempotency-Key does not repeat the answer of a code', async () => {
  const code = await authorize();
  const headers = { 'Idempotency-Key': 'once' };
  expect((await send(code, { headers })).status).toBe(201);
  expect(await refusedExchanges(code, { headers })).toBe(1);
});

test('a sign-in with a code needs the address of the end user', async () => {
  const headers = { 'Authrealm-End-User-Address': '' };
  const answer = await send(await authorize(), { headers });
  expect([answer.status, (await errorsOf(answer)).map(({ source }) => source?.parameter)]).toEqual([
    400,
    ['Authrealm-End-User-Address'],
  ]);
});
