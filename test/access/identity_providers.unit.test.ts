import { expect, test } from 'bun:test';
import type { ServerResponse } from 'node:http';
import { Fault } from '../../src/model/fault.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { OIDC_CLIENT, openLocalProviders, startIdentityProvider } from '../support/identity_provider.ts';
import { DISCOVERY, json } from '../support/issuers.ts';
import { movableClock } from '../support/movable_clock.ts';

/** What a process remembers of OpenID providers, how often it asks them, and how many exchanges run at once. */

const acme = await startIdentityProvider();
const { issuer } = acme;
const { clientId } = OIDC_CLIENT;

test('the metadata of a provider names its endpoints and the scopes to request', async () => {
  acme.publish({ authorization_response_iss_parameter_supported: true });
  expect(await acme.open().metadata(issuer)).toEqual({
    authorizationEndpoint: `${issuer}/authorization`,
    tokenEndpoint: `${issuer}/token`,
    userinfoEndpoint: `${issuer}/userinfo`,
    authMethod: 'client_secret_basic',
    sendsIssuer: true,
    scope: 'openid email profile',
  });
});

test.each<[unknown, string]>([
  [['openid'], 'openid'],
  [['name', 'email', 'openid', 'groups'], 'openid email name'],
  [['profile', 'email', 'name'], 'openid email profile name'],
  ['email', 'openid'],
])('of the scopes %p a sign-in requests %p', async (scopes_supported, scope) => {
  acme.publish({ scopes_supported });
  expect(await acme.open().metadata(issuer)).toMatchObject({ scope });
});

test.each([
  ['another issuer', { issuer: 'https://evil.example' }],
  ['userinfo over http', { userinfo_endpoint: 'http://login.example/userinfo' }],
  ['userinfo that is no URL', { userinfo_endpoint: 7 }],
])('metadata with %s is unusable, and no code is sent', async (_name, changes) => {
  acme.publish(changes);
  const before = acme.requests('/token');
  const providers = acme.open();
  expect(await providers.metadata(issuer)).toBeUndefined();
  expect(await providers.identifyByCode(acme.codeRequest())).toBe('metadata_unusable');
  expect(acme.requests('/token')).toBe(before);
});

test('metadata that changes its issuer ends sign-in when it is read again', async () => {
  acme.publish();
  const providers = acme.open();
  expect(await providers.metadata(issuer)).toBeObject();
  acme.publish({ issuer: `${issuer}/` });
  expect(await providers.metadata(issuer)).toBeObject();
  acme.clock.advance(LIMITS.issuerKeysFreshMs);
  expect(await providers.metadata(issuer)).toBeUndefined();
});

test('the document of a provider is read once for metadata and keys, and the keys for all sign-ins', async () => {
  acme.publish();
  acme.answer(await acme.mint());
  const providers = acme.open();
  const before = [DISCOVERY, '/keys'].map(acme.requests);
  for (const caller of ['a', 'b'])
    expect(await providers.identifyByCode(acme.codeRequest({ caller }))).toBeObject();
  expect([DISCOVERY, '/keys'].map(acme.requests)).toEqual(before.map((count) => count + 1));
});

test('a service that is offline asks no provider', async () => {
  acme.publish();
  const providers = acme.open({ offline: true });
  const before = acme.requests(DISCOVERY);
  expect(await providers.metadata(issuer)).toBeUndefined();
  expect(await providers.identifyByCode(acme.codeRequest())).toBe('unreachable');
  const idToken = await acme.mint();
  expect(await providers.identifyByToken({ issuer, clientId, idToken, nonce: undefined })).toBe(
    'unreachable',
  );
  expect(acme.requests(DISCOVERY)).toBe(before);
});

test('at most issuerWaitersMax requests wait for the document of a provider, and further ones find it unavailable', async () => {
  acme.publish();
  const document = acme.routes.get(DISCOVERY);
  const asked = Promise.withResolvers<() => void>();
  acme.routes.set(DISCOVERY, (request, response) => asked.resolve(() => document?.(request, response)));
  const providers = acme.open();
  const waiting = Array.from({ length: LIMITS.issuerWaitersMax }, () => providers.metadata(issuer));
  const answer = await asked.promise;
  expect(await providers.metadata(issuer)).toBeUndefined();
  expect(await providers.identifyByCode(acme.codeRequest())).toBe('unreachable');
  answer();
  for (const read of await Promise.all(waiting)) expect(read).toBeObject();
  expect(await providers.metadata(issuer)).toBeObject();
});

/** Sends codes of these callers to a token endpoint that answers when `release` is called. */
async function exchangeSlowly(callers: readonly string[]) {
  acme.publish();
  const idToken = await acme.mint();
  const providers = acme.open();
  const waiting: ServerResponse[] = [];
  const isFull = Promise.withResolvers<void>();
  acme.routes.set('/token', (_request, response) => {
    if (waiting.push(response) === callers.length) isFull.resolve();
  });
  const exchanges = callers.map((caller) => providers.identifyByCode(acme.codeRequest({ caller })));
  await isFull.promise;
  return {
    providers,
    rejection: (caller: string, more = {}) =>
      providers.identifyByCode(acme.codeRequest({ caller, ...more })).then(
        () => undefined,
        (fault) => fault instanceof Fault && fault.code,
      ),
    async release() {
      for (const response of waiting)
        response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ id_token: idToken }));
      return Promise.all(exchanges);
    },
  };
}

test('more codes of one provider than 16 at once are overloaded, while another provider is asked', async () => {
  const { providerCodesAtOnceMax: length } = LIMITS;
  // Those without an address share no limit of their own.
  const callers = Array.from({ length }, (_, at) => (at < length / 2 ? `192.0.2.${at}` : 'unknown'));
  const { rejection, release } = await exchangeSlowly(callers);
  expect(await rejection('198.51.100.1')).toBe('overloaded');
  expect(await rejection('198.51.100.1', { issuer: `${issuer}/other` })).toBeUndefined();
  for (const found of await release()) expect(found).toMatchObject({ subject: 'auth0|jane' });
  acme.answer(await acme.mint());
  expect(await rejection('198.51.100.1')).toBeUndefined();
});

test.each([
  ['an IPv4 address', ['192.0.2.1'], '192.0.2.1', '192.0.2.2'],
  ['a /48 of IPv6 addresses', ['2001:db8:1::1', '2001:db8:1:ffff::1'], '2001:db8:1:2::3', '2001:db8:2::1'],
])(
  'more codes of %s than 4 at once are overloaded, while those of others are exchanged',
  async (_name, of, one, other) => {
    const callers = Array.from(
      { length: LIMITS.providerCodesPerCallerMax },
      (_, at) => of[at % of.length] ?? '',
    );
    const { rejection, release } = await exchangeSlowly(callers);
    expect(await rejection(one)).toBe('overloaded');
    acme.answer(undefined);
    expect(await rejection(other)).toBeUndefined();
    await release();
    expect(await rejection(one)).toBeUndefined();
  },
);

test('257 providers in turn: the least recently used one leaves, and its document is read once in ten seconds', async () => {
  const clock = movableClock();
  const providers = openLocalProviders(clock);
  const issuers = Array.from({ length: LIMITS.identityProvidersMax + 1 }, (_, at) => `${issuer}/p${at}`);
  const documentOf = (each: string) => each.slice(issuer.length) + DISCOVERY;
  for (const each of issuers) {
    const endpoints = { authorization_endpoint: `${each}/a`, token_endpoint: `${each}/t` };
    acme.routes.set(documentOf(each), json({ issuer: each, ...endpoints }));
  }
  const requests = () => issuers.reduce((sum, each) => sum + acme.requests(documentOf(each)), 0);
  const [first = '', second = ''] = issuers;
  for (const each of issuers) expect(await providers.metadata(each)).toBeObject();
  expect(requests()).toBe(issuers.length);
  // The first one left, and no other leaves for it before its document may be read again.
  expect(await providers.metadata(first)).toBeUndefined();
  expect(await providers.metadata(second)).toBeObject();
  expect(requests()).toBe(issuers.length);
  clock.advance(LIMITS.issuerKeysPauseMs);
  expect(await providers.metadata(first)).toBeObject();
  expect(requests()).toBe(issuers.length + 1);
  expect(await providers.metadata(second)).toBeObject();
  expect(requests()).toBe(issuers.length + 1);
});
