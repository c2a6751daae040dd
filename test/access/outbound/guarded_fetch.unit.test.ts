import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { CheckedAddress } from '../../../src/access/outbound/addresses.ts';
import { openExchange } from '../../../src/access/outbound/exchange.ts';
import { openGuardedFetch } from '../../../src/access/outbound/guarded_fetch.ts';
import { readTarget } from '../../../src/access/outbound/target.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import {
  DOCUMENT,
  exchangeThrough,
  FORBIDDEN,
  fetchThrough,
  httpResponse,
  LOOPBACK_RULES,
  openSilentPort,
  PROVIDER_CERTIFICATE,
  PROVIDER_NAME,
  PROVIDER_URL,
  PUBLIC_ADDRESS,
  privateTargets,
  servePlain,
  serveTls,
  UNREACHABLE,
} from '../../support/outbound_servers.ts';
import { startCommand } from '../../support/processes.ts';

const PUBLIC_V6 = '2606:4700:4700::1111';
const OK = '200 OK';
const readFixture = (name: string) =>
  readFileSync(fileURLToPath(new URL(`../../fixtures/${name}`, import.meta.url)), 'utf8');
const LOCALHOST = { cert: readFixture('localhost.cert.pem'), key: readFixture('localhost.key.pem') };

describe('a public server', () => {
  test('a public server is requested by name at the checked address', async () => {
    const server = await serveTls(httpResponse(OK, '{"a":1}'));
    const { fetch, addresses } = fetchThrough(server);
    expect(await fetch()).toEqual(DOCUMENT);
    expect(addresses).toEqual([PUBLIC_ADDRESS]);
    const [{ serverName, head } = { serverName: '', head: '' }] = server.requests;
    expect(serverName).toBe(PROVIDER_NAME);
    expect(head).toStartWith('GET /doc?x=1 HTTP/1.1\r\n');
    expect(head.split('\r\n').slice(1, -2).sort()).toEqual([
      'Accept-Encoding: identity',
      'Accept: application/json',
      'Connection: close',
      `Host: ${PROVIDER_NAME}`,
      'User-Agent: authrealm',
    ]);
  });

  test('each fetch opens a new connection with a new handshake', async () => {
    const server = await serveTls(httpResponse(OK, '{"a":1}'));
    const { fetch } = fetchThrough(server);
    for (const _ of [1, 2, 3]) expect(await fetch()).toEqual(DOCUMENT);
    expect(server.connections()).toBe(3);
    // The same server under a name that its certificate does not cover, after valid sessions.
    expect(await fetch('https://other.example.com/doc')).toEqual(UNREACHABLE);
  });

  test('a final dot of a host name is neither sent nor compared with the certificate', async () => {
    const server = await serveTls(httpResponse(OK, '{"a":1}'));
    expect(await fetchThrough(server).fetch(`https://${PROVIDER_NAME}./doc`)).toEqual(DOCUMENT);
    expect(server.requests[0]?.serverName).toBe(PROVIDER_NAME);
  });

  test('another port is dialled only if the rules name it with the host', async () => {
    const server = await serveTls(httpResponse(OK, '{"a":1}'));
    const url = `https://${PROVIDER_NAME}:8443/doc`;
    expect(await fetchThrough(server).fetch(url)).toEqual(FORBIDDEN);
    expect(server.connections()).toBe(0);
    expect(
      await fetchThrough(server, { allowPrivate: privateTargets(`${PROVIDER_NAME}:8443`) }).fetch(url),
    ).toEqual(DOCUMENT);
    expect(server.requests[0]?.head).toContain(`\r\nHost: ${PROVIDER_NAME}:8443\r\n`);
  });
});

describe('the certificate', () => {
  test('a certificate of the dialled address instead of the host name is rejected', async () => {
    const server = await serveTls(httpResponse(OK, '{"a":1}'), LOCALHOST);
    const { exchange } = exchangeThrough(server.port, LOCALHOST.cert);
    const fetchDocument = openGuardedFetch({ resolve: async () => [PUBLIC_ADDRESS], exchange });
    expect(await fetchDocument(PROVIDER_URL)).toEqual(UNREACHABLE);
    expect(server.requests).toEqual([]);
  });

  test('a certificate of an unknown authority is rejected', async () => {
    const server = await serveTls(httpResponse(OK, '{"a":1}'));
    const { exchange } = exchangeThrough(server.port, LOCALHOST.cert);
    const fetchDocument = openGuardedFetch({ resolve: async () => [PUBLIC_ADDRESS], exchange });
    expect(await fetchDocument(PROVIDER_URL)).toEqual(UNREACHABLE);
    expect(server.requests).toEqual([]);
  });

  test('a certificate must name the address if the URL has no host name', async () => {
    const named = await serveTls(httpResponse(OK, '{"a":1}'));
    const numbered = await serveTls(httpResponse(OK, '{"a":1}'), LOCALHOST);
    const fetchWith = (ca?: string) => openGuardedFetch({ ...LOOPBACK_RULES, ...(ca && { ca }) });
    const ca = LOCALHOST.cert;
    expect(await fetchWith(ca)(`https://127.0.0.1:${numbered.port}/`)).toEqual(DOCUMENT);
    expect(numbered.requests[0]?.serverName).toBeFalsy();
    expect(await fetchWith()(`https://127.0.0.1:${numbered.port}/`)).toEqual(UNREACHABLE);
    expect(await fetchWith(ca)(`https://127.0.0.1:${named.port}/`)).toEqual(UNREACHABLE);
    const { exchange } = exchangeThrough(numbered.port, ca);
    expect(await openGuardedFetch({ exchange })(`https://${PUBLIC_ADDRESS}/`)).toEqual(UNREACHABLE);
    expect(numbered.requests).toHaveLength(1);
  });
});

test('an exchange that is aborted before it begins dials no address', async () => {
  const server = await servePlain(httpResponse(OK, '{"a":1}'));
  const target = readTarget(`http://127.0.0.1:${server.port}/`, LOOPBACK_RULES);
  if (target === undefined) throw new Error('loopback was allowed');
  expect(await openExchange()(target, '127.0.0.1' as CheckedAddress, AbortSignal.abort())).toEqual({
    kind: 'broken',
  });
  expect(server.connections()).toBe(0);
});

describe('addresses', () => {
  async function resolvingTo(...answers: readonly string[][]) {
    const server = await serveTls(httpResponse(OK, '{"a":1}'));
    let lookups = 0;
    const resolve = async () => {
      lookups += 1;
      return answers[Math.min(lookups, answers.length) - 1] ?? [];
    };
    const { fetch, addresses } = fetchThrough(server, { resolve, allowPrivate: privateTargets('localhost') });
    return { fetched: await fetch(), lookups, addresses, connections: server.connections() };
  }

  test('a name that changes its answer is resolved once, and dialled where it was checked', async () => {
    const { fetched, lookups, addresses } = await resolvingTo([PUBLIC_ADDRESS], ['127.0.0.1']);
    expect(fetched).toEqual(DOCUMENT);
    expect([lookups, addresses]).toEqual([1, [PUBLIC_ADDRESS]]);
  });

  test.each([
    [['127.0.0.1']],
    [[PUBLIC_ADDRESS, '127.0.0.1']],
    [['10.0.0.1', PUBLIC_ADDRESS]],
    [[PUBLIC_ADDRESS, PUBLIC_V6, '::ffff:93.184.216.34']],
    [[PUBLIC_ADDRESS, '64:ff9b::5db8:d822']],
    [[PUBLIC_V6, 'fe80::1%eth0']],
    [[PUBLIC_ADDRESS, 'localhost']],
    [[PUBLIC_ADDRESS, '']],
    [['169.254.169.254']],
    [[]],
  ])('a name with the addresses %j is not dialled', async (resolved) => {
    const { fetched, lookups, addresses, connections } = await resolvingTo(resolved);
    expect(fetched).toMatchObject(UNREACHABLE);
    expect([lookups, addresses, connections]).toEqual([1, [], 0]);
  });

  test('a name that cannot be resolved is unreachable', async () => {
    const resolve = () => Promise.reject(new Error('ENOTFOUND'));
    expect(await openGuardedFetch({ resolve })(PROVIDER_URL)).toEqual(UNREACHABLE);
    // The system's resolver, with a label that is too long for a query.
    expect(await openGuardedFetch()(`https://${'a'.repeat(64)}.example/`)).toEqual(UNREACHABLE);
  });

  test('the first address of each family is tried, the second one only after a failed connection', async () => {
    const tried: string[] = [];
    const fetchDocument = openGuardedFetch({
      resolve: async () => [PUBLIC_V6, '2606:4700::2', PUBLIC_ADDRESS, '93.184.216.35'],
      exchange: async (_target, address) => {
        tried.push(address);
        return { kind: address === PUBLIC_V6 ? 'unconnected' : 'broken' };
      },
    });
    expect(await fetchDocument(PROVIDER_URL)).toEqual(UNREACHABLE);
    expect(tried).toEqual([PUBLIC_V6, PUBLIC_ADDRESS]);
  });
});

describe('a silent address', () => {
  /** A fetch of a name with two public addresses, each led to a port of loopback. */
  async function fetchWith(first: number, second: number) {
    const dialled: string[] = [];
    const real = openExchange({ ca: PROVIDER_CERTIFICATE });
    const fetchDocument = openGuardedFetch({
      resolve: async () => [PUBLIC_V6, PUBLIC_ADDRESS],
      exchange: (target, address, signal, connectMs) => {
        dialled.push(address);
        const port = address === PUBLIC_V6 ? first : second;
        return real({ ...target, port }, '127.0.0.1' as CheckedAddress, signal, connectMs);
      },
    });
    const began = performance.now();
    return { fetched: await fetchDocument(PROVIDER_URL), dialled, ms: performance.now() - began };
  }

  test('a silent address has half of the time, and the next address the rest', async () => {
    const [silent, server] = [await openSilentPort(), await serveTls(httpResponse(OK, '{"a":1}'))];
    const { fetched, dialled, ms } = await fetchWith(silent.port, server.port);
    silent.stop();
    expect(fetched).toEqual(DOCUMENT);
    expect(dialled).toEqual([PUBLIC_V6, PUBLIC_ADDRESS]);
    expect(ms).toBeGreaterThan(LIMITS.outboundMsMax / 2 - 50);
  }, 300_000);

  test('a silent last address has all of the remaining time', async () => {
    const [silent, closed] = [await openSilentPort(), await servePlain(() => undefined)];
    closed.stop();
    const { fetched, dialled, ms } = await fetchWith(closed.port, silent.port);
    silent.stop();
    expect(fetched).toEqual(UNREACHABLE);
    expect(dialled).toEqual([PUBLIC_V6, PUBLIC_ADDRESS]);
    expect(ms).toBeGreaterThan(LIMITS.outboundMsMax - 50);
  }, 300_000);

  test('the first address that accepts the connection is waited for, however slow it is', async () => {
    const document = httpResponse(OK, '{"a":1}');
    const slow = await serveTls((socket) => setTimeout(document, LIMITS.outboundMsMax / 2 + 500, socket));
    const { fetched, dialled } = await fetchWith(slow.port, slow.port);
    expect(fetched).toEqual(DOCUMENT);
    expect(dialled).toEqual([PUBLIC_V6]);
  }, 300_000);
});

describe('loopback', () => {
  const plain = () => servePlain(httpResponse(OK, '{"a":1}'));

  test('loopback is not dialled unless it is allowed', async () => {
    const server = await plain();
    for (const host of ['127.0.0.1', 'localhost', '[::1]', '127.9.9.9'])
      for (const scheme of ['http', 'https'])
        expect(await openGuardedFetch()(`${scheme}://${host}:${server.port}/`)).toEqual(FORBIDDEN);
    expect(server.connections()).toBe(0);
  });

  test.each(['127.0.0.1', '127.1', '127.9.9.9', 'localhost', 'LOCALHOST'])(
    '%s is fetched if loopback is allowed',
    async (host) => {
      const server =
        host === '127.9.9.9' ? await servePlain(httpResponse(OK, '{"a":1}'), host) : await plain();
      const fetchDocument = openGuardedFetch(LOOPBACK_RULES);
      expect(await fetchDocument(`http://${host}:${server.port}/`)).toEqual(DOCUMENT);
    },
  );

  test('localhost is fetched over https on any port, with the certificate of its name', async () => {
    const server = await serveTls(httpResponse(OK, '{"a":1}'), LOCALHOST);
    const fetchDocument = openGuardedFetch({ ...LOOPBACK_RULES, ca: LOCALHOST.cert });
    expect(await fetchDocument(`https://localhost:${server.port}/`)).toEqual(DOCUMENT);
    expect(server.requests[0]?.serverName).toBe('localhost');
  });

  test('localhost is tried at its next address if the first one has no listener', async () => {
    const server = await plain();
    const resolve = async () => ['::1', '127.0.0.1'];
    const fetchDocument = openGuardedFetch({ ...LOOPBACK_RULES, resolve });
    expect(await fetchDocument(`http://localhost:${server.port}/`)).toEqual(DOCUMENT);
  });

  test.each([
    ['another name with its address', 'rebound.example', ['127.0.0.1']],
    ['localhost at a private address', 'localhost', ['10.0.0.1']],
    ['localhost at a public address', 'localhost', [PUBLIC_ADDRESS]],
    ['localhost with one address too many', 'localhost', ['127.0.0.1', '10.0.0.1']],
    ['a name below localhost', 'a.localhost', ['127.0.0.1']],
    ['any address', '0.0.0.0', []],
    ['an IPv4-mapped loopback address', '[::ffff:127.0.0.1]', []],
    ['a private address', '10.0.0.1', []],
  ])('allowed loopback does not include %s', async (_, host, resolved) => {
    const server = await plain();
    const tried: string[] = [];
    const fetchDocument = openGuardedFetch({
      allowPrivate: privateTargets('localhost'),
      allowHttp: true,
      resolve: async () => resolved,
      exchange: async (_target, address) => {
        tried.push(address);
        return { kind: 'broken' };
      },
    });
    for (const scheme of ['http', 'https'])
      expect((await fetchDocument(`${scheme}://${host}:${server.port}/`)).kind).toBeOneOf([
        'forbidden',
        'unreachable',
      ]);
    expect(tried).toEqual([]);
  });
});

describe('the environment', () => {
  test('environment variables neither set a proxy nor turn off the certificate check', async () => {
    const answer = httpResponse(OK, '{"a":1}');
    const plain = await servePlain(answer);
    const secure = await serveTls(answer, LOCALHOST);
    const proxy = await servePlain(httpResponse('502 Bad Gateway', ''));
    const proxyUrl = `http://127.0.0.1:${proxy.port}`;
    const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'];
    const environment = Object.fromEntries(
      [...names, ...names.map((name) => name.toLowerCase())].map((name) => [name, proxyUrl]),
    );
    const moduleUrl = new URL('../../../src/access/outbound/guarded_fetch.ts', import.meta.url).href;
    const script = `
      const { openGuardedFetch } = await import(${JSON.stringify(moduleUrl)});
      const rules = { allowPrivate: [{ host: 'localhost' }], allowHttp: true };
      const [plain, secure, ca] = ${JSON.stringify([plain.port, secure.port, LOCALHOST.cert])};
      const trusting = openGuardedFetch({ ...rules, ca });
      const doubting = openGuardedFetch(rules);
      const kinds = [
        await trusting('http://localhost:' + plain), await trusting('https://localhost:' + secure),
        await doubting('https://localhost:' + secure),
      ].map(({ kind }) => kind);
      console.log('guarded', ...kinds);
      await Bun.stdin.text();
      console.log('bare', (await fetch('http://localhost:' + plain)).status);
    `;
    const child = startCommand([process.execPath, '-e', script], {
      ...environment,
      NODE_USE_ENV_PROXY: '1',
      NODE_TLS_REJECT_UNAUTHORIZED: '0',
    });
    expect(await child.line(/^guarded/)).toBe('guarded document document unreachable');
    expect(proxy.connections()).toBe(0);
    // The variables do take effect: the fetch of the runtime uses the proxy.
    child.process.stdin.end();
    expect(await child.line(/^bare/)).toBe('bare 502');
    expect(proxy.connections()).toBe(1);
    await child.process.exited;
  });
});
