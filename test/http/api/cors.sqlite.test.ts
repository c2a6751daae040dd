import { afterAll, describe, expect, test } from 'bun:test';
import { createFixture, type Fixture, LOOKUPS, type Service, startService } from '../../support/service.ts';

const SHOP = 'https://shop.example';
const ADMIN = 'https://admin.example:8443';

const [off, on] = await Promise.all([startService(), startService({ corsOrigins: `${SHOP} ${ADMIN}` })]);
const fixture = await createFixture(on.db);
const token = await on.token('profile-infos:read');
afterAll(() => Promise.all([off.stop(), on.stop()]));

function corsOf({ headers }: Response): string[] {
  return [...headers.keys()].filter((name) => name.startsWith('access-control-') || name === 'vary');
}

function preflight(service: Service, path: string, headers: Record<string, string>): Promise<Response> {
  return fetch(service.url + path, { method: 'OPTIONS', headers });
}

const PREFLIGHT = {
  'Access-Control-Request-Method': 'GET',
  'Access-Control-Request-Headers': 'authorization',
};

describe('without listed origins', () => {
  test.each(['/healthz', LOOKUPS[0].path({} as Fixture)])(
    'without listed origins a response of %s has no CORS header',
    async (path) => {
      const answer = await off.get(path, undefined, { Origin: SHOP });
      expect(corsOf(answer)).toEqual([]);
    },
  );

  test('without listed origins a preflight is 405, like other unknown methods', async () => {
    const answer = await preflight(off, '/healthz', { Origin: SHOP, ...PREFLIGHT });
    expect([answer.status, answer.headers.get('allow'), ...corsOf(answer)]).toEqual([405, 'GET, HEAD']);
  });
});

describe('with listed origins', () => {
  const requestsByStatus = (): [number, string, string | undefined][] => [
    [200, LOOKUPS[0].path(fixture), token],
    [200, `${LOOKUPS[0].path(fixture)}/`, token],
    [401, LOOKUPS[0].path(fixture), undefined],
    [404, '/nowhere', token],
    [405, '/oauth/token', token],
  ];

  test.each([SHOP, ADMIN])(
    'the listed origin %s is allowed on responses of every status, without a wildcard',
    async (origin) => {
      for (const [status, path, bearer] of requestsByStatus()) {
        const answer = await on.get(path, bearer, { Origin: origin });
        expect(answer.status).toBe(status);
        expect(answer.headers.get('access-control-allow-origin')).toBe(origin);
        expect(answer.headers.get('vary')).toBe('Origin');
        expect(answer.headers.get('access-control-allow-credentials')).toBeNull();
        const exposed = answer.headers.get('access-control-expose-headers')?.split(', ');
        expect(exposed).toEqual([
          'Authrealm-Device',
          'ETag',
          'Location',
          'RateLimit',
          'RateLimit-Policy',
          'Retry-After',
          'WWW-Authenticate',
          'X-Request-Id',
        ]);
      }
    },
  );

  const UNLISTED = [
    'https://evil.example',
    'null',
    '*',
    'http://shop.example',
    'https://shop.example:444',
    'https://shop.example.evil.example',
    'https://SHOP.example',
    `${SHOP}/`,
    `${SHOP}, ${ADMIN}`,
  ];
  test.each(UNLISTED)('a response to the unlisted origin %s has only Vary', async (origin) => {
    for (const [status, path, bearer] of requestsByStatus()) {
      const answer = await on.get(path, bearer, { Origin: origin });
      expect([answer.status, ...corsOf(answer)]).toEqual([status, 'vary']);
    }
    const refused = await preflight(on, LOOKUPS[0].path(fixture), { Origin: origin, ...PREFLIGHT });
    expect([refused.status, ...corsOf(refused)]).toEqual([405, 'vary']);
  });

  test('Vary names the origin in addition to the headers that the response depends on', async () => {
    const { headers } = await on.get('/openapi.json', undefined, { Origin: SHOP });
    expect(headers.get('vary')).toBe('Accept-Encoding, Origin');
  });

  test('a 304 response has the CORS headers', async () => {
    const answer = await on.get(LOOKUPS[0].path(fixture), token, { Origin: SHOP, 'If-None-Match': '*' });
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([304, SHOP]);
  });

  test('a preflight of a listed origin is 204 without a token and without a body', async () => {
    for (const [path, methods] of [
      [LOOKUPS[0].path(fixture), 'GET, PUT, DELETE'],
      [`${LOOKUPS[1].path(fixture)}/`, 'GET, PUT, DELETE'],
      [LOOKUPS[0].path(fixture).replace(/\/[^/]*$/, ''), 'GET, POST'],
      ['/oauth/access_token', 'POST'],
    ] as const) {
      const answer = await preflight(on, path, { Origin: SHOP, ...PREFLIGHT });
      expect([answer.status, await answer.text()]).toEqual([204, '']);
      expect(answer.headers.get('access-control-allow-origin')).toBe(SHOP);
      expect(answer.headers.get('access-control-allow-methods')).toBe(methods);
      expect(answer.headers.get('access-control-max-age')).toBe('600');
      expect(answer.headers.get('vary')).toBe('Origin');
    }
  });

  /** Whether a browser sends these headers without credentials (Fetch, CORS-preflight fetch): `*` covers all but Authorization. */
  const isAllowed = (header: string, allowed: readonly string[]) =>
    allowed.includes(header.toLowerCase()) || (allowed.includes('*') && header !== 'Authorization');

  test('a preflight allows every request header, Authorization by its name', async () => {
    const sent = ['Authorization', 'Content-Type', 'X-MOLTIN-SETTINGS-PAGE_LENGTH', 'EP-Context-Tag'];
    const answer = await preflight(on, LOOKUPS[0].path(fixture), {
      Origin: SHOP,
      'Access-Control-Request-Method': 'GET',
      'Access-Control-Request-Headers': sent.join(',').toLowerCase(),
    });
    const allowed = answer.headers.get('access-control-allow-headers')?.toLowerCase().split(', ') ?? [];
    expect(sent.filter((header) => !isAllowed(header, allowed))).toEqual([]);
    expect(answer.headers.get('access-control-allow-credentials')).toBeNull();
  });

  test('OPTIONS without Access-Control-Request-Method is 405', async () => {
    const answer = await preflight(on, LOOKUPS[0].path(fixture), { Origin: SHOP });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD, PUT, DELETE']);
  });

  test('a preflight of an unknown path is 404', async () => {
    expect((await preflight(on, '/nowhere', { Origin: SHOP, ...PREFLIGHT })).status).toBe(404);
  });
});
