import { afterAll, describe, expect, test } from 'bun:test';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { consoleRoutes } from '../../src/http/operations/console.ts';
import { acceptsGzip } from '../../src/http/pipeline/negotiation.ts';
import { type ServerSettings, startServer } from '../../src/http/server/server.ts';
import { freshFolder, startService } from '../support/service.ts';

/** How the console and the rendered document are served, from files that this suite creates. */

const INDEX = '<!doctype html><title>Console</title><script src="console/app-1.js"></script>';
const SCRIPT = 'document.title = "ä";'.repeat(100);
const SHOP = 'https://shop.example';
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; " +
  "form-action 'self'; frame-ancestors 'none'";

const SETTINGS: ServerSettings = {
  ...{ host: '127.0.0.1', port: 0, tls: undefined, isShared: false, trustedProxies: [] },
  requestLogging: 'off',
  corsOrigins: [SHOP],
};

function put(name: string, text: string): void {
  writeFileSync(join(folder, name), text);
  writeFileSync(join(folder, `${name}.gz`), Bun.gzipSync(Buffer.from(text)));
}

const folder = join(freshFolder(), 'console');
mkdirSync(folder);
put('index.html', INDEX);
put('docs.html', '<!doctype html><title>API</title>');
put('app-1.js', SCRIPT);
writeFileSync(join(folder, 'logo-2.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>');
writeFileSync(join(folder, '..', 'secret.txt'), 'not to be served');
const silentLog = { write: () => undefined };
const server = await startServer(SETTINGS, silentLog, async (url) =>
  consoleRoutes(folder, `${url}/sso/auth`),
);
afterAll(() => server.stop());

function request(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> {
  return fetch(server.url + path, {
    ...{ method, redirect: 'manual', decompress: false },
    headers: { 'Accept-Encoding': 'identity', ...headers },
  });
}

describe.each(['', '/sso/auth'])('under %p', (prefix) => {
  test.each(['/console', '/docs', '/console/app-1.js', '/console/logo-2.svg'])(
    '%s has the security headers of a page',
    async (path) => {
      const answer = await request(prefix + path);
      expect(answer.status).toBe(200);
      const headers = Object.fromEntries(answer.headers);
      expect(headers).toMatchObject({
        'content-security-policy': CSP,
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
        'cross-origin-opener-policy': 'same-origin',
        vary: 'Accept-Encoding',
      });
    },
  );

  test('the console page is revalidated by its ETag: 304 if unchanged', async () => {
    const answer = await request(`${prefix}/console`);
    expect(await answer.text()).toBe(INDEX);
    const { headers } = answer;
    expect([headers.get('cache-control'), headers.get('content-type')]).toEqual([
      'no-cache',
      'text/html;charset=utf-8',
    ]);
    const again = await request(`${prefix}/console`, { 'If-None-Match': headers.get('etag') ?? '' });
    expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([
      304,
      '',
      headers.get('etag'),
    ]);
    expect((await request(`${prefix}/console`, { 'If-None-Match': '"another"' })).status).toBe(200);
  });

  test('an asset is immutable for caches', async () => {
    const { headers } = await request(`${prefix}/console/app-1.js`);
    expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(headers.get('content-type')).toBe('text/javascript;charset=utf-8');
  });

  test.each([
    ['/console/', '/console'],
    ['/console//', '/console'],
    ['/docs/', '/docs'],
    ['//console/', '/console'],
  ])('%s redirects to %s, so that relative asset links work', async (path, other) => {
    const answer = await request(prefix + path);
    expect(answer.status).toBe(308);
    const target = answer.headers.get('location') ?? '';
    expect(target).toBe(`${server.url}/sso/auth${other}`);
    expect((await fetch(target)).status).toBe(200);
  });
});

/** What browsers and other clients send in `Accept`. */
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const OTHERS = ['*/*', 'application/json', 'text/html;q=0', 'text/htmlx', ''];

test.each(['/', '/sso/auth', '/sso/auth/'])(
  'a browser at %s is redirected to the console, and another client is 404',
  async (path) => {
    for (const accept of [BROWSER, 'TEXT/HTML', 'application/json, text/html;q=0.1']) {
      const { status, headers } = await request(path, { Accept: accept });
      expect([status, headers.get('vary')]).toEqual([303, 'Accept']);
      expect(headers.get('location')).toBe(`${server.url}/sso/auth/console`);
    }
    for (const accept of OTHERS) {
      const { status, headers } = await request(path, { Accept: accept });
      expect([status, headers.get('location')]).toEqual([404, null]);
    }
  },
);

test.each([
  [null, false],
  ['', false],
  ['gzip', true],
  ['GZIP', true],
  ['br, gzip;q=0.5', true],
  ['gzip;q=0', false],
  ['gzip; q=0.0, *', false],
  ['*', true],
  ['*;q=0', false],
  ['identity', false],
  ['gzip;q=none', false],
  ['x-gzip-more', false],
])('Accept-Encoding %p accepts gzip: %p', (accepted, isAccepted) => {
  expect(acceptsGzip(accepted)).toBe(isAccepted);
});

test('a client that accepts gzip gets the compressed file, with its own ETag', async () => {
  const plain = await request('/console/app-1.js');
  const compressed = await request('/console/app-1.js', { 'Accept-Encoding': 'gzip' });
  const bytes = new Uint8Array(await compressed.arrayBuffer());
  expect(compressed.headers.get('content-encoding')).toBe('gzip');
  expect(plain.headers.get('content-encoding')).toBeNull();
  expect(Buffer.from(Bun.gunzipSync(bytes)).toString()).toBe(SCRIPT);
  expect(await plain.text()).toBe(SCRIPT);
  const pages = await Promise.all(
    ['identity', 'gzip'].map((encoding) => request('/console', { 'Accept-Encoding': encoding })),
  );
  const [one, other] = pages.map(({ headers }) => headers.get('etag'));
  expect(one).not.toBe(other);
  expect((await request('/console', { 'Accept-Encoding': 'gzip', 'If-None-Match': one ?? '' })).status).toBe(
    200,
  );
});

test('an asset without a compressed file is sent uncompressed', async () => {
  const answer = await request('/console/logo-2.svg', { 'Accept-Encoding': 'gzip' });
  expect([answer.headers.get('content-encoding'), answer.headers.get('content-type')]).toEqual([
    null,
    'image/svg+xml',
  ]);
});

test('HEAD of a page has the headers of GET', async () => {
  for (const path of ['/console', '/docs', '/console/app-1.js']) {
    const [got, headed] = [await request(path), await request(path, {}, 'HEAD')];
    const plain = ({ status, headers }: Response) => [
      status,
      [...headers].filter(([name]) => name !== 'date' && name !== 'x-request-id').sort(),
    ];
    expect(plain(headed)).toEqual(plain(got));
    expect(await headed.text()).toBe('');
  }
});

test.each([
  '/console/index.html',
  '/console/docs.html',
  '/console/app-1.js.gz',
  '/console/app-2.js',
  '/console/..%2fsecret.txt',
  '/console/%2e%2e%2fsecret.txt',
  '/console/..',
  '/console/a/b',
  '/consoles',
])('%s is 404', async (path) => {
  const answer = await fetch(server.url + path);
  expect(answer.status).toBe(404);
  expect(await answer.text()).not.toContain('not to be served');
});

test.each(['/', '/console'])('POST of %s is 405 where the console is served', async (path) => {
  const answer = await request(path, {}, 'POST');
  expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
});

test('an origin listed for CORS cannot read the console', async () => {
  for (const path of ['/console', '/docs', '/console/app-1.js']) {
    const { headers } = await request(path, { Origin: SHOP });
    expect([headers.get('access-control-allow-origin'), headers.get('vary')]).toEqual([
      null,
      'Accept-Encoding',
    ]);
    const preflight = await request(
      path,
      { Origin: SHOP, 'Access-Control-Request-Method': 'GET' },
      'OPTIONS',
    );
    expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([405, null]);
  }
});

test('a console that is not built is 404, with the command that builds it', async () => {
  const bare = await startServer(SETTINGS, { write: () => undefined }, async (url) =>
    consoleRoutes(join(freshFolder(), 'console'), url),
  );
  try {
    for (const path of ['/console', '/docs']) {
      const answer = await fetch(bare.url + path);
      const { errors } = (await answer.json()) as { errors: readonly { detail: string }[] };
      expect([answer.status, errors[0]?.detail]).toEqual([
        404,
        'The console is not built; npm run prepare builds it',
      ]);
    }
  } finally {
    await bare.stop();
  }
});

test('the files of the console are read once', async () => {
  const built = join(freshFolder(), 'console');
  mkdirSync(built);
  writeFileSync(join(built, 'index.html'), INDEX);
  const one = await startServer(SETTINGS, { write: () => undefined }, async (url) =>
    consoleRoutes(built, url),
  );
  try {
    expect(await (await fetch(`${one.url}/console`)).text()).toBe(INDEX);
    rmSync(built, { recursive: true });
    expect(await (await fetch(`${one.url}/console`)).text()).toBe(INDEX);
  } finally {
    await one.stop();
  }
});

test('a failed read of the console files is retried at the next request', async () => {
  const built = join(freshFolder(), 'console');
  mkdirSync(built);
  writeFileSync(join(built, 'index.html'), INDEX);
  const one = await startServer(SETTINGS, { write: () => undefined }, async (url) =>
    consoleRoutes(built, url),
  );
  try {
    rmSync(join(built, 'index.html'));
    expect((await fetch(`${one.url}/console`)).status).toBe(500);
    writeFileSync(join(built, 'index.html'), INDEX);
    expect(await (await fetch(`${one.url}/console`)).text()).toBe(INDEX);
  } finally {
    await one.stop();
  }
});

test('with --no-console the paths of the console are unknown routes', async () => {
  const [on, off] = await Promise.all([startService(), startService({ noConsole: 'true' })]);
  try {
    for (const path of ['/', '/console', '/docs', '/console/app-1.js']) {
      const answer = await off.get(path, undefined, { Accept: BROWSER });
      expect([answer.status, (await fetch(off.url + path, { method: 'DELETE' })).status]).toEqual([404, 404]);
      const { errors } = (await answer.json()) as { errors: readonly { detail: string }[] };
      expect(errors[0]?.detail).toBe('No such path; /openapi.json lists them all');
    }
    const answer = await on.get('/console');
    expect(answer.status === 200 || (await answer.text()).includes('npm run prepare')).toBe(true);
  } finally {
    await Promise.all([on.stop(), off.stop()]);
  }
});
