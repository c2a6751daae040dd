import { afterAll, describe, expect, test } from 'bun:test';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import { LIMITS } from '../../src/domain/limits.ts';
import { parseProviderDocument } from '../../src/domain/provider_document.ts';
import { oidcProfile } from '../../src/domain/resources.ts';
import { findPort } from '../support/daemons.ts';
import { createFixture, insertRecord, startService } from '../support/service.ts';

/** Inspections of the provider of a profile: of real servers on loopback, one of them oidc-provider from npm. */

const WELL_KNOWN = '/.well-known/openid-configuration';
const SCOPE = 'profiles:read';

/** Answers by path; the provider at the root answers all other paths. */
const answers = new Map<string, (request: IncomingMessage, response: ServerResponse) => void>();

const server = createServer();
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const root = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const provider = new Provider(root).callback();
server.on('request', (request, response) => {
  (answers.get(request.url?.replace(WELL_KNOWN, '') ?? '') ?? provider)(request, response);
});
const service = await startService({ allowLoopbackDiscovery: 'true' });
const token = await service.token(SCOPE);
const fixture = await createFixture(service.db);
afterAll(async () => {
  server.closeAllConnections();
  server.close();
});

interface Inspection {
  readonly asked: boolean;
  readonly answers: boolean;
  readonly took_ms: number | null;
  readonly issuer_agrees: boolean | null;
  readonly document: Readonly<Record<string, unknown>> | null;
}

/** Stores a profile with this URL and issuer, as an import does. Returns its path. */
async function profileAt(discovery_url: string, issuer = root, realm = fixture.realm, at = service) {
  const id = at.clock.mintId();
  const members = { name: 'Login', discovery_url, client_id: 'shop', issuer };
  await insertRecord(at.db, oidcProfile, [realm, id], members);
  return `/v2/authentication-realms/${realm}/oidc-profiles/${id}`;
}

const requestInspection = (path: string, bearer = token, at = service) =>
  at.withoutRetry.get(`${path}/discovery`, bearer);

async function inspect(url: string, issuer?: string): Promise<Inspection> {
  const answer = await requestInspection(await profileAt(url, issuer));
  expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store']);
  return ((await answer.json()) as { data: Inspection }).data;
}

const send = (body: string | object, type = 'application/json') => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return (_: IncomingMessage, response: ServerResponse) => {
    response.setHeader('Content-Type', type).end(text);
  };
};

const SILENT = { asked: true, answers: false, took_ms: null, issuer_agrees: null, document: null };

test('an inspection returns the known members of the document of a real provider, and no others', async () => {
  const { document, took_ms, ...rest } = await inspect(`${root}${WELL_KNOWN}`);
  const real = (await (await fetch(`${root}${WELL_KNOWN}`)).json()) as Record<string, unknown>;
  const names = ['issuer', 'authorization_endpoint', 'token_endpoint', 'jwks_uri', 'scopes_supported'];
  const known = [...names, 'response_types_supported'].map((name) => [name, real[name]]);
  expect(document).toEqual(Object.fromEntries(known));
  expect(real.issuer).toBe(root);
  expect(took_ms).toBeWithin(0, LIMITS.outboundMsMax);
  expect(rest).toMatchObject({ asked: true, answers: true, issuer_agrees: true });
});

test('an inspection compares the issuer of the document with that of the profile exactly', async () => {
  expect((await inspect(`${root}${WELL_KNOWN}`, `${root}/`)).issuer_agrees).toBe(false);
  answers.set('/other', send({ issuer: 'https://other.example' }));
  const { issuer_agrees, document } = await inspect(`${root}/other${WELL_KNOWN}`, `${root}/other`);
  expect([issuer_agrees, document?.issuer]).toEqual([false, 'https://other.example']);
});

describe('a provider without a usable document', () => {
  const silent: readonly [string, () => string | Promise<string>][] = [
    ['a closed port', async () => `http://127.0.0.1:${findPort()}`],
    ['a private address', () => 'https://10.0.0.1'],
    ['a cloud metadata service', () => 'http://169.254.169.254'],
    ['an unknown host name', () => 'https://nowhere.invalid'],
    ['a redirect', () => `${root}/moved`],
    ['an error', () => `${root}/broken`],
    ['an HTML page', () => `${root}/page`],
    ['a JSON list', () => `${root}/list`],
    ['a document above the size limit', () => `${root}/long`],
  ];
  answers.set('/moved', (_, response) => response.writeHead(302, { Location: `${root}${WELL_KNOWN}` }).end());
  answers.set('/broken', (_, response) => response.writeHead(500).end());
  answers.set('/page', send('<html>', 'text/html'));
  answers.set('/list', send('[]'));
  answers.set('/long', send({ issuer: 'x'.repeat(LIMITS.outboundBytesMax) }));

  test.each(silent)('an inspection of %s is the same as that of a silent provider', async (_, urlOf) => {
    const url = `${await urlOf()}${WELL_KNOWN}`;
    const { discovery_url, type, ...data } = (await inspect(url)) as Inspection & {
      discovery_url: string;
      type: string;
    };
    expect([discovery_url, type]).toEqual([url, 'provider_discovery']);
    expect(data).toEqual(SILENT);
  });
});

describe('inspections without a request', () => {
  test('an inspection sends no request to a URL without an issuer', async () => {
    let requests = 0;
    answers.set('/elsewhere', (_, response) => {
      requests += 1;
      response.end('{}');
    });
    expect(await inspect(`${root}/elsewhere`)).toMatchObject({ ...SILENT, asked: false });
    expect(await inspect(`${root}/elsewhere?x=${WELL_KNOWN}`)).toMatchObject({ ...SILENT, asked: false });
    expect(requests).toBe(0);
  });

  test('an inspection by an offline service sends no request', async () => {
    let requests = 0;
    answers.set('/offline', (_, response) => {
      requests += 1;
      response.end('{}');
    });
    const offline = await startService({ offline: 'true' });
    const { realm } = await createFixture(offline.db);
    const path = await profileAt(`${root}/offline${WELL_KNOWN}`, root, realm, offline);
    const answer = await requestInspection(path, await offline.token(SCOPE), offline);
    expect([answer.status, ((await answer.json()) as { data: Inspection }).data]).toMatchObject([
      200,
      { ...SILENT, asked: false },
    ]);
    expect(requests).toBe(0);
  });

  test('an inspection by a caller that may not read the profile sends no request', async () => {
    let requests = 0;
    answers.set('/secret', (_, response) => {
      requests += 1;
      response.end('{}');
    });
    const path = await profileAt(`${root}/secret${WELL_KNOWN}`);
    const otherRealmToken = await service.token(SCOPE, new Set([service.clock.mintId()]));
    const statuses = [
      (await requestInspection(path, '')).status,
      (await requestInspection(path, await service.token('users:read'))).status,
      (await requestInspection(path, otherRealmToken)).status,
      (await requestInspection(path.replace(/.{12}$/, '000000000000'))).status,
    ];
    expect([...statuses, requests]).toEqual([401, 403, 404, 404, 0]);
  });
});

describe('the filter of provider documents', () => {
  const { providerTextCharactersMax, providerListEntriesMax, providerEntryCharactersMax } = LIMITS;
  const empty = {
    ...{ issuer: null, authorization_endpoint: null, token_endpoint: null, jwks_uri: null },
    ...{ scopes_supported: null, response_types_supported: null },
  };
  const longest = 'a'.repeat(providerTextCharactersMax);
  const word = 'w'.repeat(providerEntryCharactersMax);
  const many = Array.from({ length: providerListEntriesMax + 1 }, (_, place) => `s${place}`);
  test.each<[string, object, object]>([
    ['no members', {}, {}],
    ['other members', { userinfo_endpoint: root, client_secret: 'x' }, {}],
    [
      'members of other types',
      { issuer: 1, jwks_uri: [root], token_endpoint: {}, scopes_supported: 'openid' },
      {},
    ],
    ['a text of the maximum length', { issuer: longest }, { issuer: longest }],
    ['a text above the maximum length', { issuer: `${longest}a` }, {}],
    ['control characters', { issuer: 'a\nb', token_endpoint: '\u001b[2J' }, {}],
    ['more words than the maximum', { scopes_supported: many }, { scopes_supported: many.slice(0, -1) }],
    [
      'a list of words and other values',
      { scopes_supported: [word, `${word}w`, 1, null, 'a\0', '', 'openid'] },
      { scopes_supported: [word, 'openid'] },
    ],
    ['an empty list', { response_types_supported: [] }, { response_types_supported: [] }],
    ['members of the prototype', JSON.parse('{"__proto__":{"issuer":"x"}}'), {}],
  ])('an inspection returns the valid members of a document with %s', async (_, written, expected) => {
    expect(parseProviderDocument(written as Record<string, unknown>)).toEqual({ ...empty, ...expected });
    answers.set('/written', send(written));
    const { document, answers: hasAnswered } = await inspect(`${root}/written${WELL_KNOWN}`);
    expect([hasAnswered, document]).toEqual([true, { ...empty, ...expected }]);
  });
});

test('a realm runs two inspections at once; one more is 503, and other realms are not affected', async () => {
  const pending: (() => void)[] = [];
  answers.set('/slow', (_, response) => {
    pending.push(() => response.setHeader('Content-Type', 'application/json').end('{}'));
  });
  const url = `${root}/slow${WELL_KNOWN}`;
  const path = await profileAt(url);
  const busy = Array.from({ length: LIMITS.discoveriesPerRealmMax }, () => requestInspection(path));
  while (pending.length < LIMITS.discoveriesPerRealmMax) await Bun.sleep(1);
  const refused = await requestInspection(path);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
  // The discoveries of new profiles share the limit.
  const data = {
    type: oidcProfile.type,
    name: 'Login',
    discovery_url: url,
    client_id: 'a',
    client_secret: 'b',
  };
  const writer = await service.token('profiles:write');
  expect(
    (await service.withoutRetry.post(path.slice(0, path.lastIndexOf('/')), writer, { data })).status,
  ).toBe(503);
  const otherRealm = await createFixture(service.db);
  const other = requestInspection(await profileAt(url, root, otherRealm.realm));
  while (pending.length <= LIMITS.discoveriesPerRealmMax) await Bun.sleep(1);
  for (const release of pending) release();
  for (const answer of await Promise.all([...busy, other])) expect(answer.status).toBe(200);
  answers.set('/slow', send({}));
  expect((await requestInspection(path)).status).toBe(200);
});

test('an inspection of a provider that never answers ends at the deadline', async () => {
  answers.set('/endless', () => undefined);
  const began = performance.now();
  expect(await inspect(`${root}/endless${WELL_KNOWN}`)).toMatchObject(SILENT);
  expect(performance.now() - began).toBeGreaterThan(LIMITS.outboundMsMax - 100);
}, 300_000);
