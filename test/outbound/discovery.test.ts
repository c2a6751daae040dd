import { afterAll, describe, expect, test } from 'bun:test';
import { Fault } from '../../src/domain/fault.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import {
  DISCOVERY_FAILURES,
  type Discovery,
  deriveIssuer,
  openDiscovery,
} from '../../src/outbound/discovery.ts';
import {
  type FetchResult,
  type GuardedFetchOptions,
  openGuardedFetch,
} from '../../src/outbound/guarded_fetch.ts';
import {
  type Answer,
  http,
  leadTo,
  PROVIDER_CERTIFICATE,
  PROVIDER_NAME,
  PUBLIC,
  servePlain,
  serveTls,
  stopAll,
} from '../support/outbound_servers.ts';
import { FULL_SCOPE, type Home, KINDS, type Kind, make } from '../support/resource_cases.ts';
import { type Service, startService } from '../support/service.ts';

const SUFFIX = '/.well-known/openid-configuration';
const ISSUER = `https://${PROVIDER_NAME}`;
const UNREACHABLE = { kind: 'unreachable' } as const;
const NOT_A_PROVIDER = { kind: 'not_a_provider' } as const;
const ISSUER_DIFFERS = { kind: 'issuer_differs' } as const;
/** Whoever the places are counted for. */
const ASKER = 'a';
const found = (issuer: string) => ({ kind: 'found', issuer }) as const;

const [realms, profiles] = KINDS as readonly Kind[] as [Kind, Kind];

async function realmOf(service: Service, token: string): Promise<Home> {
  const home: Home = { realm: '', oidcProfile: '', passwordProfile: '', user: '' };
  return { ...home, realm: (await make(service, token, { kind: realms, home })).id };
}

afterAll(stopAll);

/** What is discovered at `url`, where a provider answers so. */
async function discovered(url: string, answer: Answer, options: GuardedFetchOptions = {}) {
  const server = await serveTls(answer);
  const { exchange } = leadTo(server.port);
  const discover = openDiscovery(openGuardedFetch({ resolve: async () => [PUBLIC], exchange, ...options }));
  const discovery = await discover(url, ASKER);
  server.stop();
  return { discovery, heads: server.seen.map(({ head }) => head.split('\r\n')[0]) };
}

const document = (members: object): Answer => http('200 OK', JSON.stringify(members));

describe('the issuer of the document', () => {
  test.each<[string, string, string, Discovery]>([
    ['is its URL without the suffix', `${ISSUER}${SUFFIX}`, ISSUER, found(ISSUER)],
    ['keeps its final slash', `${ISSUER}${SUFFIX}`, `${ISSUER}/`, found(`${ISSUER}/`)],
    ['has a path', `${ISSUER}/a/b${SUFFIX}`, `${ISSUER}/a/b`, found(`${ISSUER}/a/b`)],
    ['has a path with a slash', `${ISSUER}/a/b${SUFFIX}`, `${ISSUER}/a/b/`, found(`${ISSUER}/a/b/`)],
    ['is never normalised', `${ISSUER}/a/../%61${SUFFIX}`, `${ISSUER}/a/../%61`, found(`${ISSUER}/a/../%61`)],
    ['ends in two slashes', `${ISSUER}${SUFFIX}`, `${ISSUER}//`, ISSUER_DIFFERS],
    ['ends in two where the URL has one more', `${ISSUER}/${SUFFIX}`, `${ISSUER}//`, found(`${ISSUER}//`)],
    ['has a slash less than the URL', `${ISSUER}/${SUFFIX}`, `${ISSUER}/`, ISSUER_DIFFERS],
    ['is another host', `${ISSUER}${SUFFIX}`, 'https://victim.example', ISSUER_DIFFERS],
    ['is a longer host', `${ISSUER}${SUFFIX}`, `${ISSUER}.evil.example`, ISSUER_DIFFERS],
    ['is a shorter host', `${ISSUER}${SUFFIX}`, 'https://login.example', ISSUER_DIFFERS],
    ['is another path', `${ISSUER}/a${SUFFIX}`, `${ISSUER}/b`, ISSUER_DIFFERS],
    ['is no path where the URL has one', `${ISSUER}/a${SUFFIX}`, ISSUER, ISSUER_DIFFERS],
    ['is another scheme', `${ISSUER}${SUFFIX}`, `http://${PROVIDER_NAME}`, ISSUER_DIFFERS],
    ['names the default port', `${ISSUER}${SUFFIX}`, `${ISSUER}:443`, ISSUER_DIFFERS],
    ['is named with it by both', `${ISSUER}:443${SUFFIX}`, `${ISSUER}:443`, found(`${ISSUER}:443`)],
    ['is in another case', `${ISSUER}${SUFFIX}`, `https://LOGIN.example.com`, ISSUER_DIFFERS],
    ['is a path in another case', `${ISSUER}/a${SUFFIX}`, `${ISSUER}/A`, ISSUER_DIFFERS],
    ['is the same once decoded', `${ISSUER}/a${SUFFIX}`, `${ISSUER}/%61`, ISSUER_DIFFERS],
    ['is the discovery URL', `${ISSUER}${SUFFIX}`, `${ISSUER}${SUFFIX}`, ISSUER_DIFFERS],
    ['is a pattern', `${ISSUER}/common${SUFFIX}`, `${ISSUER}/{tenantid}`, ISSUER_DIFFERS],
  ])('%s', async (_, url, issuer, expected) => {
    const { discovery, heads } = await discovered(url, document({ issuer, jwks_uri: 'https://x.example' }));
    expect(discovery).toEqual(expected);
    expect(heads).toEqual([`GET ${new URL(url).pathname} HTTP/1.1`]);
  });
});

describe('a document without an issuer', () => {
  test.each<[string, object]>([
    ['none', {}],
    ['null', { issuer: null }],
    ['a number', { issuer: 1 }],
    ['a list', { issuer: [ISSUER] }],
    ['an object', { issuer: { toString: ISSUER } }],
    ['in another case', { Issuer: ISSUER }],
    ['empty', { issuer: '' }],
    ['no URL', { issuer: PROVIDER_NAME }],
    ['with a space', { issuer: `${ISSUER} ` }],
    ['with a line end', { issuer: `${ISSUER}\n` }],
    ['with a query', { issuer: `${ISSUER}?a` }],
    ['with a fragment', { issuer: `${ISSUER}#a` }],
    ['with userinfo', { issuer: `https://a@${PROVIDER_NAME}` }],
    ['with a backslash', { issuer: `${ISSUER}\\` }],
    ['with letters beyond ASCII', { issuer: `${ISSUER}/é` }],
    ['too long', { issuer: `${ISSUER}/${'a'.repeat(1_024)}` }],
    ['inside of __proto__', JSON.parse(`{"__proto__":{"issuer":"${ISSUER}"}}`)],
  ])('%s', async (_, members) => {
    expect((await discovered(`${ISSUER}${SUFFIX}`, document(members))).discovery).toEqual(NOT_A_PROVIDER);
  });

  test.each<[string, Answer]>([
    ['a list', http('200 OK', `[{"issuer":"${ISSUER}"}]`)],
    ['a page', http('200 OK', '<html>', { 'Content-Type': 'text/html' })],
    ['nothing', http('200 OK', '')],
  ])('%s', async (_, answer) => {
    expect((await discovered(`${ISSUER}${SUFFIX}`, answer)).discovery).toEqual(NOT_A_PROVIDER);
  });
});

describe('a URL that no issuer leads to is asked of nobody', () => {
  test.each([
    `${ISSUER}/.well-known/openid-configuration/`,
    `${ISSUER}/.well-known/openid-configuration?a=b`,
    `${ISSUER}/.well-known/openid-configuration#a`,
    `${ISSUER}/.well-known/OpenID-Configuration`,
    `${ISSUER}/.well-known%2Fopenid-configuration`,
    `${ISSUER}/.well-known/oauth-authorization-server`,
    `${ISSUER}?a=${SUFFIX}`,
    `${ISSUER}/#${SUFFIX}`,
    `https://user:secret@${PROVIDER_NAME}${SUFFIX}`,
    `https:${PROVIDER_NAME}${SUFFIX}`,
    `https:/${SUFFIX}`,
    ` ${ISSUER}${SUFFIX}`,
    `${ISSUER}/\t${SUFFIX}`,
    `${ISSUER}\\${SUFFIX}`,
    `ftp://${PROVIDER_NAME}${SUFFIX}`,
    ISSUER,
    SUFFIX,
    '',
  ])('%j', async (url) => {
    const { discovery, heads } = await discovered(url, document({ issuer: ISSUER }));
    expect(discovery).toEqual(ISSUER_DIFFERS);
    expect(heads).toEqual([]);
    expect(await deriveIssuer(url)).toEqual(ISSUER_DIFFERS);
  });
});

test('whatever lies between us and a document is told in one word', async () => {
  const dead = await servePlain(() => undefined);
  dead.stop();
  const body = JSON.stringify({ issuer: ISSUER });
  const url = `${ISSUER}${SUFFIX}`;
  const privately = { resolve: async () => ['10.0.0.1'], exchange: leadTo(dead.port).exchange };
  const nowhere = { resolve: () => Promise.reject(new Error('ENOTFOUND')) };
  const refused = { exchange: leadTo(dead.port).exchange };
  const discoveries = [
    discovered(url, http('200 OK', body), privately),
    discovered(url, http('200 OK', body), nowhere),
    discovered(url, http('200 OK', body), refused),
    discovered(`https://other.example.com${SUFFIX}`, http('200 OK', body)),
    discovered(`http://${PROVIDER_NAME}${SUFFIX}`, http('200 OK', body)),
    discovered(`${ISSUER}:22${SUFFIX}`, http('200 OK', body)),
    discovered(`https://127.0.0.1${SUFFIX}`, http('200 OK', body)),
    discovered(`https://[fd00:ec2::254]${SUFFIX}`, http('200 OK', body)),
    discovered(url, http('302 Found', body, { Location: '/' })),
    discovered(url, http('401 Unauthorized', body)),
    discovered(url, http('404 Not Found', body)),
    discovered(url, http('503 Service Unavailable', body)),
    discovered(url, http('200 OK', ' '.repeat(LIMITS.outboundBytesMax + 1))),
    discovered(url, (socket) => socket.destroy()),
  ];
  for (const { discovery } of await Promise.all(discoveries)) expect(discovery).toEqual(UNREACHABLE);
});

test('what is told is one of three phrases', () => {
  expect(DISCOVERY_FAILURES).toEqual({
    unreachable: 'unreachable',
    not_a_provider: 'not an OpenID provider',
    issuer_differs: 'issuer differs',
  });
});

test('by the URL alone the issuer has no final slash', async () => {
  expect(await deriveIssuer(`${ISSUER}/a${SUFFIX}`)).toEqual(found(`${ISSUER}/a`));
  expect(await deriveIssuer(`http://localhost:3000${SUFFIX}`)).toEqual(found('http://localhost:3000'));
});

describe('a provider on loopback', () => {
  test('is found by http where it is allowed, and nowhere else', async () => {
    const server = await servePlain((socket) => {
      document({ issuer: `http://localhost:${server.port}` })(socket);
    });
    const url = `http://localhost:${server.port}${SUFFIX}`;
    expect(await openDiscovery(openGuardedFetch())(url, ASKER)).toEqual(UNREACHABLE);
    const discover = openDiscovery(openGuardedFetch({ allowLoopback: true }));
    expect(await discover(url, ASKER)).toEqual(found(`http://localhost:${server.port}`));
    expect(await discover(url.replace('localhost', '127.0.0.1'), ASKER)).toEqual(ISSUER_DIFFERS);
    const { discovery } = await discovered(`${ISSUER}${SUFFIX}`, document({ issuer: ISSUER }), {
      allowLoopback: true,
      ca: PROVIDER_CERTIFICATE,
      resolve: async () => ['127.0.0.1'],
    });
    expect(discovery).toEqual(UNREACHABLE);
  });
});

describe('places', () => {
  const url = `${ISSUER}${SUFFIX}`;
  const { discoveriesAtOnceMax, discoveriesPerRealmMax } = LIMITS;

  /** Discoveries whose fetches end when a test says so. */
  function openHeld() {
    const waiting: ((fetched: FetchResult) => void)[] = [];
    const discover = openDiscovery(() => new Promise((resolve) => waiting.push(resolve)));
    return { waiting, discover };
  }

  async function isRefused(discovering: Promise<Discovery>): Promise<boolean> {
    const error: unknown = await discovering.catch((reason: unknown) => reason);
    return error instanceof Fault && error.code === 'overloaded';
  }

  test('one discovery too many is refused at once, and a place is free when one has ended', async () => {
    const { waiting, discover } = openHeld();
    const under = Array.from({ length: discoveriesAtOnceMax }, (_, place) => discover(url, `asker ${place}`));
    expect(await isRefused(discover(url, ASKER))).toBe(true);
    expect(waiting).toHaveLength(discoveriesAtOnceMax);
    // A URL that asks nobody takes no place.
    expect(await discover(ISSUER, ASKER)).toEqual(ISSUER_DIFFERS);

    waiting[0]?.(UNREACHABLE);
    expect(await under[0]).toEqual(UNREACHABLE);
    const next = discover(url, ASKER);
    for (const end of waiting.slice(1)) end({ kind: 'document', document: { issuer: ISSUER } });
    for (const each of [...under.slice(1), next]) expect(await each).toEqual(found(ISSUER));
  });

  test('one asker has some of them, and the others theirs', async () => {
    const { waiting, discover } = openHeld();
    const own = Array.from({ length: discoveriesPerRealmMax }, () => discover(url, ASKER));
    expect(await isRefused(discover(url, ASKER))).toBe(true);
    const other = discover(url, 'b');
    expect(waiting).toHaveLength(discoveriesPerRealmMax + 1);
    waiting[0]?.(UNREACHABLE);
    expect(await own[0]).toEqual(UNREACHABLE);
    const next = discover(url, ASKER);
    expect(waiting).toHaveLength(discoveriesPerRealmMax + 2);
    for (const end of waiting) end(UNREACHABLE);
    for (const each of [...own, other, next]) expect(await each).toEqual(UNREACHABLE);
  });

  test('one is free only when the resolver is done, however early the answer was', async () => {
    const resolvers: ((addresses: readonly string[]) => void)[] = [];
    const resolve = () => new Promise<readonly string[]>((told) => resolvers.push(told));
    const discover = openDiscovery(openGuardedFetch({ resolve }));
    const own = Array.from({ length: discoveriesPerRealmMax }, () => discover(url, ASKER));
    for (const each of own) expect(await each).toEqual(UNREACHABLE);
    expect(await isRefused(discover(url, ASKER))).toBe(true);
    expect(resolvers).toHaveLength(discoveriesPerRealmMax);
    resolvers[0]?.([]);
    await Bun.sleep(0);
    const next = discover(url, ASKER);
    expect(resolvers).toHaveLength(discoveriesPerRealmMax + 1);
    for (const told of resolvers) told([]);
    expect(await next).toEqual(UNREACHABLE);
  }, 300_000);

  test('are counted by realm: slow providers of one do not stop another', async () => {
    const held: (() => void)[] = [];
    let isHolding = true;
    const provider = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      async fetch({ url: asked }) {
        if (isHolding) await new Promise<void>((release) => held.push(release));
        return Response.json({ issuer: asked.replace(SUFFIX, '') });
      },
    });
    const service = await startService({ allowLoopbackDiscovery: 'true' });
    try {
      const token = await service.token(FULL_SCOPE);
      const [slow, other] = [await realmOf(service, token), await realmOf(service, token)];
      const post = (home: Home) => {
        const discovery_url = `http://127.0.0.1:${provider.port}${SUFFIX}`;
        return service.once.post(profiles.collection(home), token, {
          data: { ...profiles.fresh(home), discovery_url },
        });
      };
      const busy = Array.from({ length: discoveriesPerRealmMax }, () => post(slow));
      while (held.length < discoveriesPerRealmMax) await Bun.sleep(1);
      expect((await post(slow)).status).toBe(503);
      isHolding = false;
      expect((await post(other)).status).toBe(201);
      for (const release of held) release();
      for (const answer of await Promise.all(busy)) expect(answer.status).toBe(201);
      expect((await post(slow)).status).toBe(201);
    } finally {
      await provider.stop(true);
      await service.stop();
    }
  });
});
