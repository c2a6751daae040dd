import { describe, expect, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import { exchangeBytes, getRequest, type RawExchangeOptions } from '../support/raw_http.ts';
import { createFixture, LOOKUPS, startService } from '../support/service.ts';

/** Raw requests that client libraries do not send. */

const service = await startService();
const fixture = await createFixture(service.db);
const authorization = `Authorization: Bearer ${await service.token('profile-infos:read')}\r\n`;

function post(headers: string, body = ''): string {
  return `POST /oauth/token HTTP/1.1\r\nHost: a\r\n${headers}\r\n${body}`;
}

const talk = (bytes: string, options?: RawExchangeOptions) => exchangeBytes(service.url, bytes, options);

/**
 * Requests that the runtime answers itself: a status and `Connection: close`, no body and no X-Request-Id.
 * docs/guides/network.md lists them. With status 0 the connection is closed without a response.
 */
const BY_RUNTIME: [what: string, bytes: () => string, status: number][] = [
  ['HTTP/1.1 without Host', () => 'GET /healthz HTTP/1.1\r\n\r\n', 400],
  ['a request line of one word', () => 'GARBAGE\r\n\r\n', 400],
  ['a request line with two spaces', () => 'GET  /healthz HTTP/1.1\r\nHost: a\r\n\r\n', 400],
  ['an empty line before the request', () => `\r\n${getRequest('/healthz')}`, 400],
  ['TLS on a plain port', () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400],
  ['the preface of HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
  ['no method', () => ' /healthz HTTP/1.1\r\nHost: a\r\n\r\n', 400],
  ['a target without a slash', () => getRequest('healthz'), 400],
  ['a target that is a star', () => 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n', 400],
  ['a target that begins with a backslash', () => getRequest('\\healthz'), 400],
  ['an absolute target that is not http', () => getRequest('ftp://a/healthz'), 400],
  ['no HTTP version', () => 'GET /healthz\r\n\r\n', 505],
  ['an unknown HTTP version', () => getRequest('/healthz', '', 'HTTP/9.9'), 505],
  ['a space in the target', () => getRequest('/heal thz'), 505],
  ['NUL in the target', () => getRequest('/heal\0thz'), 505],
  ['a control character in the target', () => getRequest('/heal\x01thz'), 505],
  ['bare line feeds', () => 'GET /healthz HTTP/1.1\nHost: a\n\n', 505],
  ['a header line without a colon', () => getRequest('/healthz', 'bad header\r\n'), 400],
  ['a header line without a name', () => getRequest('/healthz', ': x\r\n'), 400],
  ['a space before the colon', () => getRequest('/healthz', 'X : x\r\n'), 400],
  ['NUL in a header', () => getRequest('/healthz', 'X: a\0b\r\n'), 400],
  ['a folded header line', () => getRequest('/healthz', 'X: a\r\n b\r\n'), 400],
  ['two different lengths', () => post('Content-Length: 3\r\nContent-Length: 4\r\n', 'abcd'), 400],
  ['a length that is a list', () => post('Content-Length: 3, 3\r\n', 'abc'), 400],
  ['a negative length', () => post('Content-Length: -3\r\n', 'abc'), 400],
  ['a signed length', () => post('Content-Length: +3\r\n', 'abc'), 400],
  ['an absurd length', () => post(`Content-Length: ${'9'.repeat(20)}\r\n`, 'abc'), 400],
  ['a length and chunks', () => post('Content-Length: 3\r\nTransfer-Encoding: chunked\r\n', CHUNKS), 400],
  ['chunks and a length', () => post('Transfer-Encoding: chunked\r\nContent-Length: 3\r\n', CHUNKS), 400],
  ['an unknown transfer coding', () => post('Transfer-Encoding: gzip\r\n', 'abc'), 400],
  ['two transfer codings', () => post('Transfer-Encoding: gzip, chunked\r\n', CHUNKS), 400],
  [
    'chunks announced twice',
    () => post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', CHUNKS),
    400,
  ],
  ['a chunk without a size', () => post('Transfer-Encoding: chunked\r\n', 'zz\r\nabc\r\n0\r\n\r\n'), 400],
  [
    'a broken chunk after a valid one',
    () => post('Transfer-Encoding: chunked\r\n', '3\r\nabc\r\nzz\r\n'),
    400,
  ],
  ['chunks with bare line feeds', () => post('Transfer-Encoding: chunked\r\n', '3\nabc\n0\n\n'), 400],
  ['a header of 20 KiB', () => getRequest('/healthz', `X: ${'x'.repeat(20_480)}\r\n`), 431],
  ['a token of 64 KiB', () => getRequest('/healthz', `Authorization: Bearer ${'x'.repeat(65_536)}\r\n`), 431],
  [
    'headers over 16 KiB together',
    () => getRequest('/healthz', `X: ${'x'.repeat(160)}\r\n`.repeat(101)),
    431,
  ],
  ['a target of 20 KiB', () => getRequest(`/${'x'.repeat(20_480)}`), 431],
  ['250 headers', () => getRequest('/healthz', 'X: x\r\n'.repeat(250)), 431],
  ['an unregistered method', () => 'BREW /healthz HTTP/1.1\r\nHost: a\r\n\r\n', 0],
  ['a method in lower case', () => 'get /healthz HTTP/1.1\r\nHost: a\r\n\r\n', 0],
];
const CHUNKS = '3\r\nabc\r\n0\r\n\r\n';

/** Less than the 10 seconds after which the runtime closes a connection without a whole header. */
const AT_ONCE_MS = 5_000;

describe('requests that the runtime rejects', () => {
  test.each(BY_RUNTIME)(
    'the runtime rejects %s at once, without a body, and closes the connection',
    async (_what, bytes, status) => {
      const { responses, isEnded, ms } = await talk(bytes(), { expectedResponses: 2 });
      expect(responses.map((answer) => answer.status)).toEqual(status === 0 ? [] : [status]);
      expect(responses.map((answer) => answer.body).join('')).toBe('');
      expect(responses.every(({ headers }) => headers.get('connection') === 'close')).toBe(true);
      expect(isEnded).toBe(true);
      expect(ms).toBeLessThan(AT_ONCE_MS);
    },
  );
});

const RECORD = () => LOOKUPS[0].path(fixture);
const healthy = { status: 200, body: '{"status":"ok"}' };
const unknown = { status: 404, body: expect.stringContaining('No such path') };

/** Unusual valid requests, which the service answers with a body and an X-Request-Id. */
const BY_PROGRAM: [what: string, bytes: () => string, answer: { status: number; body: string }][] = [
  ['an absolute target', () => getRequest('http://evil.example/healthz'), healthy],
  ['an absolute target in HTTP/1.0', () => 'GET http://evil.example/healthz/ HTTP/1.0\r\n\r\n', healthy],
  ['an absolute target without a path', () => getRequest('http://evil.example?x=/healthz'), unknown],
  [
    'an absolute target without a path in HTTP/1.0',
    () => 'GET http://evil?x=/healthz HTTP/1.0\r\n\r\n',
    unknown,
  ],
  ['an empty Host', () => 'GET /healthz/ HTTP/1.1\r\nHost:\r\n\r\n', healthy],
  ['an invalid Host', () => 'GET /healthz/ HTTP/1.1\r\nHost: <>\r\n\r\n', healthy],
  ['a Host with a path', () => 'GET //nowhere HTTP/1.1\r\nHost: a/healthz?\r\n\r\n', unknown],
  ['two Hosts, which are both ignored', () => getRequest('/healthz', 'Host: b\r\n'), healthy],
  ['no Host in HTTP/1.0', () => 'GET /healthz HTTP/1.0\r\n\r\n', healthy],
  ['doubled slashes', () => getRequest('//healthz//'), healthy],
  ['a path that could be a host', () => 'GET //a/healthz HTTP/1.0\r\n\r\n', unknown],
  ['a dot segment, resolved', () => getRequest('/x/../healthz'), healthy],
  [
    'a dot segment in HTTP/1.0 without Host, not resolved',
    () => 'GET /x/../healthz HTTP/1.0\r\n\r\n',
    unknown,
  ],
  ['an escaped slash', () => getRequest('/%2Fhealthz'), unknown],
  ['a query with dot segments', () => getRequest('/healthz?x=/../nowhere'), healthy],
  ['a fragment', () => getRequest('/healthz#x'), healthy],
  ['invalid UTF-8 in the target', () => getRequest('/health\xffz'), unknown],
  [
    'exactly 16 KiB of headers',
    () => getRequest('/healthz', `X: ${'x'.repeat(LIMITS.headerBytesMax - 39)}\r\n`),
    healthy,
  ],
  ['the same length twice', () => post('Content-Length: 3\r\nContent-Length: 3\r\n', 'abc'), badGrant()],
  [
    'a chunk with an extension',
    () => post('Transfer-Encoding: chunked\r\n', '3;x=y\r\nabc\r\n0\r\n\r\n'),
    badGrant(),
  ],
  ['no length in HTTP/1.0', () => 'POST /oauth/token HTTP/1.0\r\n\r\n', badGrant()],
  ['a registered method', () => 'M-SEARCH /healthz HTTP/1.1\r\nHost: a\r\n\r\n', refusedMethod()],
  ['TRACE', () => 'TRACE /healthz HTTP/1.1\r\nHost: a\r\n\r\n', refusedMethod()],
  ['CONNECT', () => 'CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n', refusedMethod()],
  ['an upgrade', () => getRequest('/healthz', 'Connection: upgrade\r\nUpgrade: websocket\r\n'), healthy],
  ['a length of a gigabyte', () => post('Content-Length: 1000000000\r\n'), tooLarge()],
];

function badGrant() {
  return { status: 400, body: expect.stringContaining('grant_type is missing') };
}
function refusedMethod() {
  return { status: 405, body: expect.stringContaining('Method Not Allowed') };
}
function tooLarge() {
  return { status: 413, body: expect.stringContaining('Content Too Large') };
}

describe('requests that the service answers', () => {
  test.each(BY_PROGRAM)('the service answers %s', async (_what, bytes, expected) => {
    const { responses } = await talk(bytes());
    expect(responses).toHaveLength(1);
    expect(responses[0]).toMatchObject(expected);
    expect(responses[0]?.headers.get('x-request-id')).toMatch(/^[0-9a-f]{20}-/);
    expect(responses[0]?.headers.get('content-type')).toBe('application/json');
  });

  test('a lookup in HTTP/1.0 without Host has the links of the base URL', async () => {
    for (const target of [RECORD(), `${RECORD()}/`, `/${RECORD()}`]) {
      const { responses, isEnded } = await talk(`GET ${target} HTTP/1.0\r\n${authorization}\r\n`, {
        expectedResponses: 2,
      });
      expect(responses).toHaveLength(1);
      expect(JSON.parse(responses[0]?.body ?? '').links.self).toBe(service.url + RECORD());
      expect(isEnded).toBe(true);
    }
  });

  test('dot segments in a path are resolved, and never reach another record', async () => {
    const { realm, user, oidcLink } = fixture;
    const rows: [string, number][] = [
      [`${RECORD()}/../${oidcLink}`, 200],
      [RECORD().replace(user, `x/../${user}`), 200],
      [RECORD().replace(realm, '..'), 404],
      [RECORD().replace(user, '..'), 404],
      [RECORD().replace(oidcLink, '..'), 404],
      [`/../../..${RECORD()}`, 200],
    ];
    for (const [target, status] of rows) {
      const { responses } = await talk(getRequest(target, authorization));
      expect([target, responses[0]?.status]).toEqual([target, status]);
      const old = await talk(`GET ${target} HTTP/1.0\r\n${authorization}\r\n`);
      expect([target, old.responses[0]?.status]).toEqual([target, 404]);
    }
  });
});

describe('several requests on one connection', () => {
  test('pipelined requests are answered in order, each with its own ID', async () => {
    // The embedded database answers lookups synchronously, once their token was checked.
    await talk(getRequest(RECORD(), authorization));
    const targets = ['/healthz', RECORD(), '/', '/nowhere', `${RECORD()}/`, '/readyz'];
    const bytes = targets
      .map((target, at) => getRequest(target, `${authorization}X-Request-Id: n${at}\r\n`))
      .join('');
    const { responses } = await talk(bytes, { expectedResponses: targets.length });
    expect(responses.map(({ status, headers }) => [status, headers.get('x-request-id')])).toEqual([
      [200, 'n0'],
      [200, 'n1'],
      [404, 'n2'],
      [404, 'n3'],
      [200, 'n4'],
      [200, 'n5'],
    ]);
  });

  // The runtime answers one request of a connection at a time: https://github.com/oven-sh/bun/pull/38128.
  test('a request pipelined after an asynchronous one is not answered, and the connection is closed', async () => {
    const token = await service.token('users:write');
    const data = { type: 'user_authentication_info', name: 'Jane', email: 'jane@example.com' };
    const body = JSON.stringify({ data });
    const head = `POST /v2/authentication-realms/${fixture.realm}/user-authentication-info HTTP/1.1\r\nHost: a\r\n`;
    const waits = `${head}Authorization: Bearer ${token}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    for (const exchange of [
      await talk(waits + getRequest('/healthz'), { expectedResponses: 2 }),
      await talk(waits, { isHalfClosed: true }),
    ]) {
      expect([[], [201]]).toContainEqual(exchange.responses.map(({ status }) => status));
      expect(exchange.isEnded).toBe(true);
    }
    expect((await talk(waits)).responses.map(({ status }) => status)).toEqual([201]);
  });

  test('a body of a GET is not read as a second request', async () => {
    const smuggled = getRequest('/nowhere');
    for (const target of ['/healthz', `${RECORD()}/`]) {
      const first = getRequest(target, `${authorization}Content-Length: ${smuggled.length}\r\n`);
      const { responses } = await talk(first + smuggled + getRequest('/readyz'), { expectedResponses: 2 });
      expect(responses.map(({ status }) => status)).toEqual([200, 200]);
    }
  });

  test('the rest of a body that is too large is not read as a second request', async () => {
    const chunk = `8000\r\n${'x'.repeat(0x8000)}\r\n`;
    const large = post('Transfer-Encoding: chunked\r\n', `${chunk.repeat(4)}0\r\n\r\n`);
    const { responses } = await talk(large + getRequest('/healthz'), { expectedResponses: 2 });
    expect(responses.map(({ status }) => status)).toEqual([413, 200]);
  });

  test('Expect: 100-continue is answered 100', async () => {
    const { responses } = await talk(post('Expect: 100-continue\r\nContent-Length: 3\r\n'));
    expect(responses[0]?.status).toBe(100);
  });

  test('a caller that has closed its side of the connection still gets the response', async () => {
    for (const target of ['/healthz', '/readyz', RECORD(), '/nowhere']) {
      const { responses, isEnded } = await talk(getRequest(target, authorization), {
        isHalfClosed: true,
        expectedResponses: 2,
      });
      expect([responses.map(({ status }) => status), isEnded]).toEqual([
        [target === '/nowhere' ? 404 : 200],
        true,
      ]);
    }
  });

  test('a body that the caller aborts is not logged as a fault', async () => {
    const before = service.log.length;
    const bytes = post('Content-Length: 100\r\n', 'grant_type=');
    expect((await talk(bytes, { isHalfClosed: true })).responses).toEqual([]);
    expect((await talk(bytes, { timeoutMs: 50 })).responses).toEqual([]);
    await Bun.sleep(50);
    expect(service.log.slice(before)).toEqual([]);
  });
});

describe('the end of a connection', () => {
  const TRAILERS = 'X-Checksum: 1\r\n\r\n';
  const chunked = (start: string, last: string) =>
    `${start} HTTP/1.1\r\nHost: a\r\n${authorization}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n${last}`;

  test.each(['POST /oauth/token', 'POST /nowhere', 'GET /healthz', 'GET lookup'])(
    '%s with trailers in one packet is answered once, and the connection is closed',
    async (start) => {
      const bytes = chunked(start.replace('lookup', RECORD()), TRAILERS);
      const { responses, isEnded } = await talk(bytes, { expectedResponses: 2 });
      expect([responses.map(({ status }) => status), isEnded]).toEqual([[400], true]);
    },
  );

  test.each([
    ['POST /oauth/token', 400],
    ['POST /nowhere', 404],
    ['POST /admin/v1/clients', 401],
  ])(
    '%s whose trailers arrive later is answered %i once, and the connection is closed',
    async (start, status) => {
      const bytes = chunked(start, '').replace(status === 401 ? authorization : '', '');
      const { responses, isEnded } = await talk(bytes, { drip: TRAILERS, expectedResponses: 2 });
      expect([responses.map((each) => each.status), isEnded]).toEqual([[status], true]);
      expect(responses[0]?.headers.has('x-request-id')).toBe(true);
    },
  );

  test('a refused request is answered before its chunked body has arrived', async () => {
    const bytes = 'POST /admin/v1/clients HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';
    const { responses } = await talk(bytes, { expectedResponses: 1 });
    expect(responses[0]?.status).toBe(401);
  });

  test('a write with trailers that is answered 400 writes nothing', async () => {
    const token = await service.token('users:write users:read');
    const path = `/v2/authentication-realms/${fixture.realm}/user-authentication-info`;
    const total = async () => (await service.get(path, token)).text();
    const before = await total();
    const data = { type: 'user_authentication_info', name: 'Trailer', email: 'trailer@example.com' };
    const body = JSON.stringify({ data });
    const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const bytes = `${head}${body.length.toString(16)}\r\n${body}\r\n0\r\n`;
    const { responses } = await talk(bytes + TRAILERS, { expectedResponses: 2 });
    expect(responses.map(({ status }) => status)).toEqual([400]);
    expect(await total()).toEqual(before);
    const complete = await talk(`${bytes}\r\n`, { expectedResponses: 2 });
    expect([complete.responses.map(({ status }) => status), complete.isEnded]).toEqual([[201], true]);
  });

  test.each(['close', 'Close', 'keep-alive, close'])(
    'a request with "Connection: %s" is answered "Connection: close"',
    async (value) => {
      for (const target of [RECORD(), '/healthz', '/nowhere']) {
        const bytes = getRequest(target, `${authorization}Connection: ${value}\r\n`);
        const { responses, isEnded } = await talk(bytes, { expectedResponses: 2 });
        expect([responses.length, responses[0]?.headers.get('connection'), isEnded]).toEqual([
          1,
          'close',
          true,
        ]);
      }
    },
  );

  test.each(['', 'Connection: keep-alive\r\n', 'Connection: x-close\r\n'])(
    'the response to a request with the header %j does not close the connection',
    async (header) => {
      const { responses } = await talk(getRequest(RECORD(), authorization + header));
      expect([responses[0]?.status, responses[0]?.headers.get('connection')]).toEqual([200, null]);
    },
  );
});
