import { describe, expect, test } from 'bun:test';
import { DISCOVERY_FAILURES, type Discovery, openDiscovery } from '../../../src/access/outbound/discovery.ts';
import {
  type FetchResult,
  type GuardedFetch,
  type GuardedFetchOptions,
  openGuardedFetch,
} from '../../../src/access/outbound/guarded_fetch.ts';
import { TARGET_RULE } from '../../../src/access/outbound/target.ts';
import { Fault } from '../../../src/model/fault.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import {
  exchangeThrough,
  httpResponse,
  LOOPBACK_RULES,
  PROVIDER_CERTIFICATE,
  PROVIDER_NAME,
  PUBLIC_ADDRESS,
  privateTargets,
  type SocketHandler,
  servePlain,
  serveTls,
} from '../../support/outbound_servers.ts';
import { createRecord, FULL_SCOPE, KINDS, type ParentIds } from '../../support/resource_cases.ts';
import { type Service, startService } from '../../support/service.ts';

const SUFFIX = '/.well-known/openid-configuration';
const ISSUER = `https://${PROVIDER_NAME}`;
const UNREACHABLE = { kind: 'unreachable' } as const;
const NOT_A_PROVIDER = { kind: 'not_a_provider' } as const;
const ISSUER_DIFFERS = { kind: 'issuer_differs' } as const;
/** The caller whose discoveries are counted. */
const CALLER = 'a';
const found = (issuer: string) => ({ kind: 'found', issuer }) as const;

const [realms, profiles] = KINDS;

async function createRealm(service: Service, token: string): Promise<ParentIds> {
  const home: ParentIds = { realm: '', oidcProfile: '', passwordProfile: '', user: '' };
  return { ...home, realm: (await createRecord(service, token, { kind: realms, home })).id };
}

/** Discovers issuers as the URLs name them. */
function discoveryOf(fetchDocument: GuardedFetch) {
  const { discover } = openDiscovery(fetchDocument);
  return (url: string, caller: string) => discover(url, url.slice(0, -SUFFIX.length), caller);
}

/** The result of discovery at `url` with this answer of the provider. */
async function discoverAt(url: string, answer: SocketHandler, options: GuardedFetchOptions = {}) {
  const server = await serveTls(answer);
  const { exchange } = exchangeThrough(server.port);
  const discover = discoveryOf(
    openGuardedFetch({ resolve: async () => [PUBLIC_ADDRESS], exchange, ...options }),
  );
  const discovery = await discover(url, CALLER);
  server.stop();
  return { discovery, heads: server.requests.map(({ head }) => head.split('\r\n')[0]) };
}

const document = (members: object): SocketHandler => httpResponse('200 OK', JSON.stringify(members));

describe('the issuer of the document', () => {
  test.each<[string, string, string, Discovery]>([
    ['is its URL without the suffix', `${ISSUER}${SUFFIX}`, ISSUER, found(ISSUER)],
    ['keeps its final slash', `${ISSUER}${SUFFIX}`, `${ISSUER}/`, found(`${ISSUER}/`)],
    ['has a path', `${ISSUER}/a/b${SUFFIX}`, `${ISSUER}/a/b`, found(`${ISSUER}/a/b`)],
    ['has a path with a slash', `${ISSUER}/a/b${SUFFIX}`, `${ISSUER}/a/b/`, found(`${ISSUER}/a/b/`)],
    ['is never normalised', `${ISSUER}/a/../%61${SUFFIX}`, `${ISSUER}/a/../%61`, found(`${ISSUER}/a/../%61`)],
    ['ends in two slashes', `${ISSUER}${SUFFIX}`, `${ISSUER}//`, ISSUER_DIFFERS],
    [
      'ends in two slashes where the URL has one more',
      `${ISSUER}/${SUFFIX}`,
      `${ISSUER}//`,
      found(`${ISSUER}//`),
    ],
    ['has a slash less than the URL', `${ISSUER}/${SUFFIX}`, `${ISSUER}/`, ISSUER_DIFFERS],
    ['is another host', `${ISSUER}${SUFFIX}`, 'https://victim.example', ISSUER_DIFFERS],
    ['is a longer host', `${ISSUER}${SUFFIX}`, `${ISSUER}.evil.example`, ISSUER_DIFFERS],
    ['is a shorter host', `${ISSUER}${SUFFIX}`, 'https://login.example', ISSUER_DIFFERS],
    ['is another path', `${ISSUER}/a${SUFFIX}`, `${ISSUER}/b`, ISSUER_DIFFERS],
    ['has no path where the URL has one', `${ISSUER}/a${SUFFIX}`, ISSUER, ISSUER_DIFFERS],
    ['is another scheme', `${ISSUER}${SUFFIX}`, `http://${PROVIDER_NAME}`, ISSUER_DIFFERS],
    ['names the default port', `${ISSUER}${SUFFIX}`, `${ISSUER}:443`, ISSUER_DIFFERS],
    [
      'names the default port as the URL does',
      `${ISSUER}:443${SUFFIX}`,
      `${ISSUER}:443`,
      found(`${ISSUER}:443`),
    ],
    ['is in another case', `${ISSUER}${SUFFIX}`, `https://LOGIN.example.com`, ISSUER_DIFFERS],
    ['is a path in another case', `${ISSUER}/a${SUFFIX}`, `${ISSUER}/A`, ISSUER_DIFFERS],
    ['is the same once decoded', `${ISSUER}/a${SUFFIX}`, `${ISSUER}/%61`, ISSUER_DIFFERS],
    ['is the discovery URL', `${ISSUER}${SUFFIX}`, `${ISSUER}${SUFFIX}`, ISSUER_DIFFERS],
    ['is a pattern', `${ISSUER}/common${SUFFIX}`, `${ISSUER}/{tenantid}`, ISSUER_DIFFERS],
  ])('an issuer that %s is compared with the discovery URL', async (_, url, issuer, expected) => {
    const { discovery, heads } = await discoverAt(url, document({ issuer, jwks_uri: 'https://x.example' }));
    expect(discovery).toEqual(expected === ISSUER_DIFFERS ? { ...expected, claimed: issuer } : expected);
    expect(heads).toEqual([`GET ${new URL(url).pathname} HTTP/1.1`]);
  });
});

describe('a document without an issuer', () => {
  test.each<[string, object]>([
    ['no issuer', {}],
    ['a null issuer', { issuer: null }],
    ['a number as issuer', { issuer: 1 }],
    ['a list as issuer', { issuer: [ISSUER] }],
    ['an object as issuer', { issuer: { toString: ISSUER } }],
    ['an Issuer in another case', { Issuer: ISSUER }],
    ['an empty issuer', { issuer: '' }],
    ['an issuer that is no URL', { issuer: PROVIDER_NAME }],
    ['an issuer with a space', { issuer: `${ISSUER} ` }],
    ['an issuer with a line end', { issuer: `${ISSUER}\n` }],
    ['an issuer with a query', { issuer: `${ISSUER}?a` }],
    ['an issuer with a fragment', { issuer: `${ISSUER}#a` }],
    ['an issuer with userinfo', { issuer: `https://a@${PROVIDER_NAME}` }],
    ['an issuer with a backslash', { issuer: `${ISSUER}\\` }],
    ['an issuer with letters beyond ASCII', { issuer: `${ISSUER}/é` }],
    ['an issuer that is too long', { issuer: `${ISSUER}/${'a'.repeat(1_024)}` }],
    ['an issuer inside of __proto__', JSON.parse(`{"__proto__":{"issuer":"${ISSUER}"}}`)],
  ])('a document with %s is not an OpenID provider', async (_, members) => {
    expect((await discoverAt(`${ISSUER}${SUFFIX}`, document(members))).discovery).toEqual(NOT_A_PROVIDER);
  });

  test.each<[string, SocketHandler]>([
    ['a JSON list', httpResponse('200 OK', `[{"issuer":"${ISSUER}"}]`)],
    ['an HTML page', httpResponse('200 OK', '<html>', { 'Content-Type': 'text/html' })],
    ['no bytes', httpResponse('200 OK', '')],
  ])('a discovery answer of %s is not an OpenID provider', async (_, answer) => {
    expect((await discoverAt(`${ISSUER}${SUFFIX}`, answer)).discovery).toEqual(NOT_A_PROVIDER);
  });
});

test('a discovery URL without an issuer is refused, and nothing is requested', async () => {
  let requests = 0;
  const provider = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ url }) {
      requests += 1;
      return Response.json({ issuer: url.replace(SUFFIX, '') });
    },
  });
  const root = `http://127.0.0.1:${provider.port}`;
  const service = await startService({ allowPrivate: '127.0.0.0/8' });
  const token = await service.token(FULL_SCOPE);
  const home = await createRealm(service, token);
  const statusOf = async (discovery_url: string) => {
    const data = { ...profiles.fresh(home), discovery_url };
    return (await service.post(profiles.collection(home), token, { data })).status;
  };
  for (const url of [
    `${root}${SUFFIX}/`,
    `${root}${SUFFIX}?a=b`,
    `${root}${SUFFIX}#a`,
    `${root}/.well-known/OpenID-Configuration`,
    `${root}/.well-known%2Fopenid-configuration`,
    `${root}/.well-known/oauth-authorization-server`,
    `${root}?a=${SUFFIX}`,
    `${root}/#${SUFFIX}`,
    `${root.replace('://', '://user:secret@')}${SUFFIX}`,
    `${root.replace('//', '')}${SUFFIX}`,
    `${root.replace('//', '/')}${SUFFIX}`,
    ` ${root}${SUFFIX}`,
    `${root}/\t${SUFFIX}`,
    `${root}\\${SUFFIX}`,
    `${root.replace('http', 'ftp')}${SUFFIX}`,
    root,
    SUFFIX,
    '',
  ])
    expect([url, [400, 422].includes(await statusOf(url))]).toEqual([url, true]);
  expect(requests).toBe(0);
  expect(await statusOf(`${root}${SUFFIX}`)).toBe(201);
  expect(requests).toBe(1);
  await provider.stop(true);
});

test('every network and HTTP failure of a discovery is reported as unreachable', async () => {
  const closed = await servePlain(() => undefined);
  closed.stop();
  const body = JSON.stringify({ issuer: ISSUER });
  const url = `${ISSUER}${SUFFIX}`;
  const privateAddress = {
    resolve: async () => ['10.0.0.1'],
    exchange: exchangeThrough(closed.port).exchange,
  };
  const unresolvable = { resolve: () => Promise.reject(new Error('ENOTFOUND')) };
  const refused = { exchange: exchangeThrough(closed.port).exchange };
  const discoveries = [
    discoverAt(url, httpResponse('200 OK', body), privateAddress),
    discoverAt(url, httpResponse('200 OK', body), unresolvable),
    discoverAt(url, httpResponse('200 OK', body), refused),
    discoverAt(`https://other.example.com${SUFFIX}`, httpResponse('200 OK', body)),
    discoverAt(url, httpResponse('401 Unauthorized', body)),
    discoverAt(url, httpResponse('404 Not Found', body)),
    discoverAt(url, httpResponse('503 Service Unavailable', body)),
    discoverAt(url, httpResponse('200 OK', ' '.repeat(LIMITS.outboundBytesMax + 1))),
    discoverAt(url, (socket) => socket.destroy()),
  ];
  for (const { discovery } of await Promise.all(discoveries)) expect(discovery).toMatchObject(UNREACHABLE);
});

test('a discovery URL that is forbidden as it is written, and a redirect, are named', async () => {
  const body = JSON.stringify({ issuer: ISSUER });
  const written = [`http://${PROVIDER_NAME}`, `${ISSUER}:22`, 'https://127.0.0.1', 'https://[fd00:ec2::254]'];
  for (const issuer of [...written, 'https://localhost']) {
    const { discovery } = await discoverAt(`${issuer}${SUFFIX}`, httpResponse('200 OK', body));
    expect([issuer, discovery]).toEqual([issuer, { kind: 'forbidden' }]);
  }
  const moved = httpResponse('302 Found', body, { Location: '/' });
  expect((await discoverAt(`${ISSUER}${SUFFIX}`, moved)).discovery).toEqual({ kind: 'redirect' });
});

test('discovery failures are reported by one of five phrases', () => {
  expect(DISCOVERY_FAILURES).toEqual({
    forbidden: TARGET_RULE,
    redirect: 'the provider answered with a redirect, which is not followed',
    unreachable: 'unreachable: check the URL, and that the service may connect to its host',
    not_a_provider: 'not an OpenID provider',
    issuer_differs: 'issuer differs',
  });
});

describe('a provider on loopback', () => {
  test('a provider on loopback is discovered over http only if loopback is allowed', async () => {
    const server = await servePlain((socket) => {
      document({ issuer: `http://localhost:${server.port}` })(socket);
    });
    const url = `http://localhost:${server.port}${SUFFIX}`;
    expect(await discoveryOf(openGuardedFetch())(url, CALLER)).toEqual({ kind: 'forbidden' });
    const discover = discoveryOf(openGuardedFetch(LOOPBACK_RULES));
    expect(await discover(url, CALLER)).toEqual(found(`http://localhost:${server.port}`));
    expect((await discover(url.replace('localhost', '127.0.0.1'), CALLER)).kind).toBe('issuer_differs');
    const { discovery } = await discoverAt(`${ISSUER}${SUFFIX}`, document({ issuer: ISSUER }), {
      allowPrivate: privateTargets('localhost'),
      ca: PROVIDER_CERTIFICATE,
      resolve: async () => ['127.0.0.1'],
    });
    expect(discovery).toMatchObject(UNREACHABLE);
  });
});

describe('concurrent discoveries', () => {
  const url = `${ISSUER}${SUFFIX}`;
  const { discoveriesAtOnceMax, discoveriesPerRealmMax } = LIMITS;

  /** Discoveries whose fetches the test ends. */
  function openPending() {
    const waiting: ((fetched: FetchResult) => void)[] = [];
    const discover = discoveryOf(() => new Promise((resolve) => waiting.push(resolve)));
    return { waiting, discover };
  }

  async function isRefused(discovering: Promise<Discovery>): Promise<boolean> {
    const error: unknown = await discovering.catch((reason: unknown) => reason);
    return error instanceof Fault && error.code === 'overloaded';
  }

  test('a discovery above the limit is rejected at once, and allowed when another one has ended', async () => {
    const { waiting, discover } = openPending();
    const running = Array.from({ length: discoveriesAtOnceMax }, (_, index) =>
      discover(url, `caller ${index}`),
    );
    expect(await isRefused(discover(url, CALLER))).toBe(true);
    expect(waiting).toHaveLength(discoveriesAtOnceMax);
    waiting[0]?.(UNREACHABLE);
    expect(await running[0]).toEqual(UNREACHABLE);
    const next = discover(url, CALLER);
    for (const end of waiting.slice(1)) end({ kind: 'document', document: { issuer: ISSUER } });
    for (const each of [...running.slice(1), next]) expect(await each).toEqual(found(ISSUER));
  });

  test('a caller at its own limit of discoveries does not limit another caller', async () => {
    const { waiting, discover } = openPending();
    const ofCaller = Array.from({ length: discoveriesPerRealmMax }, () => discover(url, CALLER));
    expect(await isRefused(discover(url, CALLER))).toBe(true);
    const other = discover(url, 'b');
    expect(waiting).toHaveLength(discoveriesPerRealmMax + 1);
    waiting[0]?.(UNREACHABLE);
    expect(await ofCaller[0]).toEqual(UNREACHABLE);
    const next = discover(url, CALLER);
    expect(waiting).toHaveLength(discoveriesPerRealmMax + 2);
    for (const end of waiting) end(UNREACHABLE);
    for (const each of [...ofCaller, other, next]) expect(await each).toEqual(UNREACHABLE);
  });

  test('a discovery counts until its resolver has ended, however early it was answered', async () => {
    const resolvers: ((addresses: readonly string[]) => void)[] = [];
    const resolve = () => new Promise<readonly string[]>((answer) => resolvers.push(answer));
    const discover = discoveryOf(openGuardedFetch({ resolve }));
    const ofCaller = Array.from({ length: discoveriesPerRealmMax }, () => discover(url, CALLER));
    for (const each of ofCaller) expect(await each).toEqual(UNREACHABLE);
    expect(await isRefused(discover(url, CALLER))).toBe(true);
    expect(resolvers).toHaveLength(discoveriesPerRealmMax);
    resolvers[0]?.([]);
    await Bun.sleep(0);
    const next = discover(url, CALLER);
    expect(resolvers).toHaveLength(discoveriesPerRealmMax + 1);
    for (const answer of resolvers) answer([]);
    expect(await next).toEqual(UNREACHABLE);
  }, 300_000);

  test('discoveries are limited per realm: slow providers of one realm do not stop another realm', async () => {
    const pending: (() => void)[] = [];
    let isSlow = true;
    const provider = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      async fetch({ url: requestUrl }) {
        if (isSlow) await new Promise<void>((release) => pending.push(release));
        return Response.json({ issuer: requestUrl.replace(SUFFIX, '') });
      },
    });
    const service = await startService({ allowPrivate: 'localhost 127.0.0.0/8' });
    try {
      const token = await service.token(FULL_SCOPE);
      const [slow, other] = [await createRealm(service, token), await createRealm(service, token)];
      const post = (home: ParentIds) => {
        const discovery_url = `http://127.0.0.1:${provider.port}${SUFFIX}`;
        return service.withoutRetry.post(profiles.collection(home), token, {
          data: { ...profiles.fresh(home), discovery_url },
        });
      };
      const busy = Array.from({ length: discoveriesPerRealmMax }, () => post(slow));
      while (pending.length < discoveriesPerRealmMax) await Bun.sleep(1);
      expect((await post(slow)).status).toBe(503);
      isSlow = false;
      expect((await post(other)).status).toBe(201);
      for (const release of pending) release();
      for (const answer of await Promise.all(busy)) expect(answer.status).toBe(201);
      expect((await post(slow)).status).toBe(201);
    } finally {
      await provider.stop(true);
    }
  });
});
