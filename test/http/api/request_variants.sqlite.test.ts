import { describe, expect, test } from 'bun:test';
import { request } from 'node:http';
import { comparableResponse, createFixture, LOOKUPS, startService } from '../../support/service.ts';

const service = await startService();
const fixture = await createFixture(service.db);
const token = await service.token('profile-infos:read');

describe.each(LOOKUPS)('$name', ({ path }) => {
  const SPELLINGS: [string, (path: string) => string][] = [
    ['a trailing slash', (plain) => `${plain}/`],
    ['trailing slashes', (plain) => `${plain}///`],
    ['a doubled leading slash', (plain) => `/${plain}`],
    ['a doubled slash after the first segment', (plain) => plain.replace(/(?<=\w)\//, '//')],
    ['every slash doubled', (plain) => plain.replaceAll('/', '//')],
    ['a query', (plain) => `${plain}?page[limit]=1&x=/../`],
    ['a trailing slash and a query', (plain) => `${plain}/?x`],
  ];
  test.each(SPELLINGS)(
    'a path with %s returns the same response, without a redirect',
    async (_name, spell) => {
      const plain = await comparableResponse(await service.get(path(fixture), token));
      expect(plain).toStartWith('[200,');
      expect(await comparableResponse(await service.get(spell(path(fixture)), token))).toBe(plain);
    },
  );

  test.each([
    ['Host', 'evil.example'],
    ['Host', 'evil.example:80/x?'],
    ['X-Forwarded-Host', 'evil.example'],
    ['X-Forwarded-Proto', 'https'],
    ['X-Forwarded-Prefix', '/evil'],
    ['Forwarded', 'host=evil.example;proto=https'],
    ['X-Original-URL', '/healthz'],
    ['X-HTTP-Method-Override', 'DELETE'],
    ['Accept', 'text/html'],
    ['Accept-Encoding', 'identity'],
    ['Content-Type', 'application/json'],
    ['Range', 'bytes=0-1'],
    ['If-Match', '"other"'],
    ['If-Modified-Since', 'Fri, 01 Jan 2100 00:00:00 GMT'],
  ])('the header %s: %s does not change the response', async (name, value) => {
    const plain = await comparableResponse(await service.get(path(fixture), token));
    const answer = await service.get(path(fixture), token, { [name]: value });
    expect(await comparableResponse(answer)).toBe(plain);
  });

  test.each([
    ['small', { body: '{"data":{}}' }],
    ['half JSON', { body: '{"data":' }],
    ['200 KiB', { body: 'x'.repeat(200 * 1024) }],
    ['chunked', { body: 'x'.repeat(5000), isChunked: true }],
    ['200 KiB chunked', { body: 'x'.repeat(200 * 1024), isChunked: true }],
    ['of a foreign type', { body: '<x/>', type: 'text/xml' }],
  ])('GET with a body returns the same as without: %s', async (_name, sent) => {
    const plain = await service.get(path(fixture), token);
    const answer = await getWithBody(service.url + path(fixture), sent);
    expect(answer).toEqual({ status: 200, etag: plain.headers.get('etag'), body: await plain.text() });
  });
});

interface Sent {
  readonly body: string;
  readonly isChunked?: boolean;
  readonly type?: string;
}

/** `fetch` does not send a body with GET. */
function getWithBody(url: string, { body, isChunked, type = 'application/json' }: Sent) {
  const { promise, resolve, reject } = Promise.withResolvers<object>();
  const length = isChunked ? { 'Transfer-Encoding': 'chunked' } : { 'Content-Length': body.length };
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': type, ...length };
  const outgoing = request(url, { method: 'GET', headers }, (answer) => {
    let text = '';
    answer.on('data', (part) => {
      text += part;
    });
    answer.on('end', () => {
      resolve({ status: answer.statusCode, etag: answer.headers.etag, body: text });
    });
  });
  outgoing.on('error', reject).end(body);
  return promise;
}

describe('X-Request-Id', () => {
  const MINTED = /^[0-9a-f]{20}-[0-9a-z]+$/;
  const OWN = ['a', 'A.b_c-9', '0'.repeat(64), '..', 'trace-00-4bf92f3577b34da6a3ce929d0e0e4736'];
  test.each(OWN)('a valid X-Request-Id of the caller is returned on every response: %s', async (own) => {
    for (const [path, bearer] of requests()) {
      const answer = await fetch(service.url + path, {
        headers: { Authorization: `Bearer ${bearer}`, 'X-Request-Id': own },
      });
      expect(answer.headers.get('x-request-id')).toBe(own);
    }
  });

  const INVALID: [string, [string, string][]][] = [
    ['missing', []],
    ['empty', [['X-Request-Id', '']]],
    ['65 characters long', [['X-Request-Id', '0'.repeat(65)]]],
    ['with a space', [['X-Request-Id', 'a b']]],
    ['with markup', [['X-Request-Id', '<script>alert(1)</script>']]],
    ['with a slash', [['X-Request-Id', 'a/b']]],
    ['with a letter outside of ASCII', [['X-Request-Id', 'ä']]],
    [
      'sent twice',
      [
        ['X-Request-Id', 'a'],
        ['X-Request-Id', 'b'],
      ],
    ],
  ];
  test.each(INVALID)('a request ID is generated if X-Request-Id is %s', async (_name, given) => {
    const headers = new Headers(given);
    const answers = await Promise.all([1, 2].map(() => fetch(`${service.url}/healthz`, { headers })));
    const [one, two] = answers.map((answer) => answer.headers.get('x-request-id'));
    expect(one).toMatch(MINTED);
    expect(two).toMatch(MINTED);
    expect(one).not.toBe(two);
  });

  function requests(): [string, string][] {
    return [
      [LOOKUPS[0].path(fixture), token],
      [`${LOOKUPS[1].path(fixture)}/`, token],
      [LOOKUPS[0].path(fixture), 'bad'],
      ['/nowhere', token],
      ['/oauth/token', token],
      ['/openapi.json', token],
    ];
  }
});

test('documents about the service have their Cache-Control on GET and HEAD', async () => {
  const expected = {
    '/healthz': 'no-store',
    '/readyz': 'no-store',
    '/openapi.json': 'no-cache',
    '/.well-known/oauth-authorization-server': 'no-cache',
    '/.well-known/jwks.json': 'public, max-age=300',
  };
  for (const [path, caching] of Object.entries(expected)) {
    const answer = await service.get(path);
    const head = await fetch(service.url + path, { method: 'HEAD' });
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, caching]);
    expect([head.status, head.headers.get('content-length')]).toEqual([
      200,
      answer.headers.get('content-length'),
    ]);
  }
});

describe('the OpenAPI document', () => {
  const request = (encoding: string, headers: Record<string, string> = {}) =>
    fetch(`${service.url}/openapi.json`, {
      decompress: false,
      headers: { 'Accept-Encoding': encoding, ...headers },
    });

  test('the OpenAPI document is a fifth of its size for a client that accepts gzip', async () => {
    const [plain, packed] = await Promise.all(['identity', 'gzip'].map((encoding) => request(encoding)));
    const [text, bytes] = [await plain?.text(), await packed?.bytes()];
    expect(packed?.headers.get('content-encoding')).toBe('gzip');
    expect(Buffer.from(Bun.gunzipSync(bytes as Uint8Array<ArrayBuffer>)).toString()).toBe(text as string);
    expect(bytes?.length).toBeLessThan((text?.length ?? 0) / 5);
    expect([plain, packed].map((answer) => answer?.headers.get('vary'))).toEqual([
      'Accept-Encoding',
      'Accept-Encoding',
    ]);
  });

  test('the OpenAPI document is 304 for its ETag, which each encoding has its own of', async () => {
    const etags: (string | null)[] = [];
    for (const encoding of ['identity', 'gzip']) {
      const etag = (await request(encoding)).headers.get('etag');
      const again = await request(encoding, { 'If-None-Match': etag ?? '' });
      expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag]);
      etags.push(etag);
    }
    expect(new Set(etags).size).toBe(2);
    expect((await request('gzip', { 'If-None-Match': etags[0] ?? '' })).status).toBe(200);
  });
});
