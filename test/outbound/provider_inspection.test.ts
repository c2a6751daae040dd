import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import { LIMITS } from '../../src/domain/limits.ts';
import { parseProviderDocument } from '../../src/domain/provider_document.ts';
import { oidcProfile } from '../../src/domain/resources.ts';
import { freePort, type Planted, plant, put, type Service, startService } from '../support/service.ts';

/** What is told of the provider of a profile: by real servers on loopback, one of them oidc-provider from npm. */

const WELL_KNOWN = '/.well-known/openid-configuration';
const SCOPE = 'profiles:read';

let server: Server;
let root: string;
let service: Service;
let token: string;
let planted: Planted;
/** Answers by path, beside the provider at the root. */
const answers = new Map<string, (request: IncomingMessage, response: ServerResponse) => void>();

beforeAll(async () => {
  server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  root = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(root).callback();
  server.on('request', (request, response) => {
    (answers.get(request.url?.replace(WELL_KNOWN, '') ?? '') ?? provider)(request, response);
  });
  service = await startService({ allowLoopbackDiscovery: 'true' });
  token = await service.token(SCOPE);
  planted = await plant(service.db);
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await service.stop();
});

interface Told {
  readonly asked: boolean;
  readonly answers: boolean;
  readonly took_ms: number | null;
  readonly issuer_agrees: boolean | null;
  readonly document: Readonly<Record<string, unknown>> | null;
}

/** A profile with this URL and issuer, brought along as an import does; its path. */
async function profileAt(discovery_url: string, issuer = root, realm = planted.realm, at = service) {
  const id = at.clock.mintId();
  const members = { name: 'Login', discovery_url, client_id: 'shop', issuer };
  await put(at.db, oidcProfile, [realm, id], members);
  return `/v2/authentication-realms/${realm}/oidc-profiles/${id}`;
}

const ask = (path: string, bearer = token, at = service) => at.once.get(`${path}/discovery`, bearer);

async function told(url: string, issuer?: string): Promise<Told> {
  const answer = await ask(await profileAt(url, issuer));
  expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store']);
  return ((await answer.json()) as { data: Told }).data;
}

const sends = (body: string | object, type = 'application/json') => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return (_: IncomingMessage, response: ServerResponse) => {
    response.setHeader('Content-Type', type).end(text);
  };
};

const SILENT = { asked: true, answers: false, took_ms: null, issuer_agrees: null, document: null };

test('what a real provider says is told, member by member, and nothing else of it', async () => {
  const { document, took_ms, ...rest } = await told(`${root}${WELL_KNOWN}`);
  const real = (await (await fetch(`${root}${WELL_KNOWN}`)).json()) as Record<string, unknown>;
  const names = ['issuer', 'authorization_endpoint', 'token_endpoint', 'jwks_uri', 'scopes_supported'];
  const known = [...names, 'response_types_supported'].map((name) => [name, real[name]]);
  expect(document).toEqual(Object.fromEntries(known));
  expect(real.issuer).toBe(root);
  expect(took_ms).toBeWithin(0, LIMITS.outboundMsMax);
  expect(rest).toMatchObject({ asked: true, answers: true, issuer_agrees: true });
});

test('a profile of another issuer is told so, letter for letter', async () => {
  expect((await told(`${root}${WELL_KNOWN}`, `${root}/`)).issuer_agrees).toBe(false);
  answers.set('/other', sends({ issuer: 'https://other.example' }));
  const { issuer_agrees, document } = await told(`${root}/other${WELL_KNOWN}`, `${root}/other`);
  expect([issuer_agrees, document?.issuer]).toEqual([false, 'https://other.example']);
});

describe('whatever lies between us and a document is told in the same bytes', () => {
  const silent: readonly [string, () => string | Promise<string>][] = [
    ['nobody', async () => `http://127.0.0.1:${await freePort()}`],
    ['a private address', () => 'https://10.0.0.1'],
    ['the address of metadata of clouds', () => 'http://169.254.169.254'],
    ['a name that there is none of', () => 'https://nowhere.invalid'],
    ['a redirect', () => `${root}/moved`],
    ['an error', () => `${root}/broken`],
    ['a page', () => `${root}/page`],
    ['a list', () => `${root}/list`],
    ['too much', () => `${root}/long`],
  ];
  answers.set('/moved', (_, response) => response.writeHead(302, { Location: `${root}${WELL_KNOWN}` }).end());
  answers.set('/broken', (_, response) => response.writeHead(500).end());
  answers.set('/page', sends('<html>', 'text/html'));
  answers.set('/list', sends('[]'));
  answers.set('/long', sends({ issuer: 'x'.repeat(LIMITS.outboundBytesMax) }));

  test.each(silent)('%s', async (_, urlOf) => {
    const url = `${await urlOf()}${WELL_KNOWN}`;
    const { discovery_url, type, ...data } = (await told(url)) as Told & {
      discovery_url: string;
      type: string;
    };
    expect([discovery_url, type]).toEqual([url, 'provider_discovery']);
    expect(data).toEqual(SILENT);
  });
});

describe('nobody is asked', () => {
  test('where no issuer leads to the URL', async () => {
    let asked = 0;
    answers.set('/elsewhere', (_, response) => {
      asked += 1;
      response.end('{}');
    });
    expect(await told(`${root}/elsewhere`)).toMatchObject({ ...SILENT, asked: false });
    expect(await told(`${root}/elsewhere?x=${WELL_KNOWN}`)).toMatchObject({ ...SILENT, asked: false });
    expect(asked).toBe(0);
  });

  test('by a service that is offline', async () => {
    let asked = 0;
    answers.set('/offline', (_, response) => {
      asked += 1;
      response.end('{}');
    });
    const offline = await startService({ offline: 'true' });
    const { realm } = await plant(offline.db);
    const path = await profileAt(`${root}/offline${WELL_KNOWN}`, root, realm, offline);
    const answer = await ask(path, await offline.token(SCOPE), offline);
    expect([answer.status, ((await answer.json()) as { data: Told }).data]).toMatchObject([
      200,
      { ...SILENT, asked: false },
    ]);
    expect(asked).toBe(0);
    await offline.stop();
  });

  test('for whoever may not read the profile', async () => {
    let asked = 0;
    answers.set('/secret', (_, response) => {
      asked += 1;
      response.end('{}');
    });
    const path = await profileAt(`${root}/secret${WELL_KNOWN}`);
    const elsewhere = await service.token(SCOPE, new Set([service.clock.mintId()]));
    const statuses = [
      (await ask(path, '')).status,
      (await ask(path, await service.token('users:read'))).status,
      (await ask(path, elsewhere)).status,
      (await ask(path.replace(/.{12}$/, '000000000000'))).status,
    ];
    expect([...statuses, asked]).toEqual([401, 403, 404, 404, 0]);
  });
});

describe('a document is told as far as it is what it should be', () => {
  const { providerTextCharactersMax, providerListEntriesMax, providerEntryCharactersMax } = LIMITS;
  const nothing = {
    ...{ issuer: null, authorization_endpoint: null, token_endpoint: null, jwks_uri: null },
    ...{ scopes_supported: null, response_types_supported: null },
  };
  const fits = 'a'.repeat(providerTextCharactersMax);
  const word = 'w'.repeat(providerEntryCharactersMax);
  const many = Array.from({ length: providerListEntriesMax + 1 }, (_, place) => `s${place}`);
  test.each<[string, object, object]>([
    ['nothing', {}, {}],
    ['other members', { userinfo_endpoint: root, client_secret: 'x' }, {}],
    ['other kinds', { issuer: 1, jwks_uri: [root], token_endpoint: {}, scopes_supported: 'openid' }, {}],
    ['a text that fits', { issuer: fits }, { issuer: fits }],
    ['one that is longer', { issuer: `${fits}a` }, {}],
    ['control characters', { issuer: 'a\nb', token_endpoint: '\u001b[2J' }, {}],
    ['as many words as are told', { scopes_supported: many }, { scopes_supported: many.slice(0, -1) }],
    [
      'words and others',
      { scopes_supported: [word, `${word}w`, 1, null, 'a\0', '', 'openid'] },
      { scopes_supported: [word, 'openid'] },
    ],
    ['no words', { response_types_supported: [] }, { response_types_supported: [] }],
    ['members of every object', JSON.parse('{"__proto__":{"issuer":"x"}}'), {}],
  ])('%s', async (_, written, expected) => {
    expect(parseProviderDocument(written as Record<string, unknown>)).toEqual({ ...nothing, ...expected });
    answers.set('/written', sends(written));
    const { document, answers: came } = await told(`${root}/written${WELL_KNOWN}`);
    expect([came, document]).toEqual([true, { ...nothing, ...expected }]);
  });
});

test('of one realm two are asked at once, one more is 503; other realms go on', async () => {
  const held: (() => void)[] = [];
  answers.set('/slow', (_, response) => {
    held.push(() => response.setHeader('Content-Type', 'application/json').end('{}'));
  });
  const url = `${root}/slow${WELL_KNOWN}`;
  const path = await profileAt(url);
  const busy = Array.from({ length: LIMITS.discoveriesPerRealmMax }, () => ask(path));
  while (held.length < LIMITS.discoveriesPerRealmMax) await Bun.sleep(1);
  const refused = await ask(path);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
  // The places are those in which the issuers of new profiles are learned.
  const data = {
    type: oidcProfile.type,
    name: 'Login',
    discovery_url: url,
    client_id: 'a',
    client_secret: 'b',
  };
  const writer = await service.token('profiles:write');
  expect((await service.once.post(path.slice(0, path.lastIndexOf('/')), writer, { data })).status).toBe(503);
  const neighbour = await plant(service.db);
  const other = ask(await profileAt(url, root, neighbour.realm));
  while (held.length <= LIMITS.discoveriesPerRealmMax) await Bun.sleep(1);
  for (const release of held) release();
  for (const answer of await Promise.all([...busy, other])) expect(answer.status).toBe(200);
  answers.set('/slow', sends({}));
  expect((await ask(path)).status).toBe(200);
});

test('one that never ends is given up in time', async () => {
  answers.set('/endless', () => undefined);
  const began = performance.now();
  expect(await told(`${root}/endless${WELL_KNOWN}`)).toMatchObject(SILENT);
  expect(performance.now() - began).toBeGreaterThan(LIMITS.outboundMsMax - 100);
}, 300_000);
