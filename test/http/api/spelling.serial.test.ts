import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { request } from 'node:http';
import { LOOKUPS, type Planted, plant, type Service, seen, startService } from '../../support/service.ts';

let service: Service;
let planted: Planted;
let token: string;

beforeAll(async () => {
  service = await startService();
  planted = await plant(service.db);
  token = await service.token('profile-infos:read');
});
afterAll(() => service.stop());

describe.each(LOOKUPS)('$name', ({ path }) => {
  const SPELLINGS: [string, (path: string) => string][] = [
    ['a slash at its end', (plain) => `${plain}/`],
    ['slashes at its end', (plain) => `${plain}///`],
    ['a doubled slash at its start', (plain) => `/${plain}`],
    ['a doubled slash behind its first segment', (plain) => plain.replace(/(?<=\w)\//, '//')],
    ['every slash doubled', (plain) => plain.replaceAll('/', '//')],
    ['a query', (plain) => `${plain}?page[limit]=1&x=/../`],
    ['a slash at its end and a query', (plain) => `${plain}/?x`],
  ];
  test.each(SPELLINGS)('%s changes nothing, and redirects nobody', async (_name, spell) => {
    const plain = await seen(await service.get(path(planted), token));
    expect(plain).toStartWith('[200,');
    expect(await seen(await service.get(spell(path(planted)), token))).toBe(plain);
  });

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
  ])('the header %s: %s changes nothing', async (name, value) => {
    const plain = await seen(await service.get(path(planted), token));
    const answer = await service.get(path(planted), token, { [name]: value });
    expect(await seen(answer)).toBe(plain);
  });

  test.each([
    ['small', { body: '{"data":{}}' }],
    ['half JSON', { body: '{"data":' }],
    ['200 KiB', { body: 'x'.repeat(200 * 1024) }],
    ['chunked', { body: 'x'.repeat(5000), isChunked: true }],
    ['200 KiB chunked', { body: 'x'.repeat(200 * 1024), isChunked: true }],
    ['of a foreign type', { body: '<x/>', type: 'text/xml' }],
  ])('a body on GET is answered as without one: %s', async (_name, sent) => {
    const plain = await service.get(path(planted), token);
    const answer = await getWithBody(service.url + path(planted), sent);
    expect(answer).toEqual({ status: 200, etag: plain.headers.get('etag'), body: await plain.text() });
  });
});

interface Sent {
  readonly body: string;
  readonly isChunked?: boolean;
  readonly type?: string;
}

/** `fetch` refuses to send a body with GET. */
function getWithBody(url: string, { body, isChunked, type = 'application/json' }: Sent) {
  const { promise, resolve, reject } = Promise.withResolvers<object>();
  const length = isChunked ? { 'Transfer-Encoding': 'chunked' } : { 'Content-Length': body.length };
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': type, ...length };
  const asking = request(url, { method: 'GET', headers }, (answer) => {
    let text = '';
    answer.on('data', (part) => {
      text += part;
    });
    answer.on('end', () => {
      resolve({ status: answer.statusCode, etag: answer.headers.etag, body: text });
    });
  });
  asking.on('error', reject).end(body);
  return promise;
}

describe('X-Request-Id', () => {
  const MINTED = /^[0-9a-f]{20}-[0-9a-z]+$/;
  const OWN = ['a', 'A.b_c-9', '0'.repeat(64), '..', 'trace-00-4bf92f3577b34da6a3ce929d0e0e4736'];
  test.each(OWN)('the caller keeps its own: %s', async (own) => {
    for (const [path, bearer] of everyKind()) {
      const answer = await fetch(service.url + path, {
        headers: { Authorization: `Bearer ${bearer}`, 'X-Request-Id': own },
      });
      expect(answer.headers.get('x-request-id')).toBe(own);
    }
  });

  const FOREIGN: [string, [string, string][]][] = [
    ['none', []],
    ['an empty one', [['X-Request-Id', '']]],
    ['65 characters', [['X-Request-Id', '0'.repeat(65)]]],
    ['a space', [['X-Request-Id', 'a b']]],
    ['markup', [['X-Request-Id', '<script>alert(1)</script>']]],
    ['a slash', [['X-Request-Id', 'a/b']]],
    ['latin letters beyond ASCII', [['X-Request-Id', 'ä']]],
    [
      'two headers',
      [
        ['X-Request-Id', 'a'],
        ['X-Request-Id', 'b'],
      ],
    ],
  ];
  test.each(FOREIGN)('minted for %s', async (_name, given) => {
    const headers = new Headers(given);
    const answers = await Promise.all([1, 2].map(() => fetch(`${service.url}/healthz`, { headers })));
    const [one, two] = answers.map((answer) => answer.headers.get('x-request-id'));
    expect(one).toMatch(MINTED);
    expect(two).toMatch(MINTED);
    expect(one).not.toBe(two);
  });

  function everyKind(): [string, string][] {
    return [
      [LOOKUPS[0].path(planted), token],
      [`${LOOKUPS[1].path(planted)}/`, token],
      [LOOKUPS[0].path(planted), 'bad'],
      ['/nowhere', token],
      ['/oauth/token', token],
      ['/openapi.json', token],
    ];
  }
});

test('what is answered about the service itself says how it may be cached', async () => {
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
