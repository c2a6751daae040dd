import { beforeEach, describe, expect, test } from 'bun:test';
import { type ConnectOptions, connect, type DirectoryClient } from '../../src/client/client.ts';
import { errorOf } from '../support/client_library.ts';
import { type FaultyProxy, type ProxyFault, startFaultyProxy } from '../support/faulty_proxy.ts';
import { startService } from '../support/service.ts';

/** The client library behind a proxy that loses, refuses and delays requests. */

const SCOPE = 'realms:read realms:write users:read users:write';

let proxy: FaultyProxy;
let directory: DirectoryClient;

const service = await startService();
const { clientId, secret } = await service.client(SCOPE);
const credentials = { clientId, clientSecret: secret };
beforeEach(async () => {
  proxy = await startFaultyProxy(service.url);
  directory = connectBy({});
});

function connectBy(options: Partial<Omit<ConnectOptions, 'token'>>): DirectoryClient {
  return connect({ url: proxy.url, ...credentials, ...options });
}

const newRealm = () => directory.realms.create([], { name: 'Shop' });
/** The requests for records, without those to the token endpoint. */
const sent = () => proxy.requests.filter(({ path }) => path.startsWith('/v2'));
const tokensFetched = () => proxy.requests.filter(({ path }) => path === '/oauth/access_token').length;

const BUSY: ProxyFault = { status: 503, headers: { 'Retry-After': '0' } };

describe('a create', () => {
  test.each<[string, ProxyFault]>([
    ['is lost before the service', { cut: 'before' }],
    ['loses its response', { cut: 'after' }],
    ['loses half of its response', { cut: 'inside' }],
    ['is answered 503', BUSY],
    ['is answered 409 while in flight', { status: 409, headers: { 'Retry-After': '0' } }],
    ['is answered 429', { status: 429 }],
  ])('a create that %s is retried and creates one record', async (_, fault) => {
    const { key, id } = await newRealm();
    proxy.injectFaults(/^POST .*user-authentication-info$/, fault, fault);
    const user = await directory.users.create(key, { name: 'Jane', email: 'jane@example.com' });
    const creates = sent().filter(({ method, path }) => method === 'POST' && path.includes(id));
    expect(creates).toHaveLength(3);
    expect(new Set(creates.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
    const { total, records } = await directory.users.page(key);
    expect([total, records[0]?.id]).toEqual([1, user.id]);
  });

  test('two creates have different idempotency keys', async () => {
    await Promise.all([newRealm(), newRealm()]);
    expect(new Set(sent().map(({ headers }) => headers['idempotency-key'])).size).toBe(2);
  });
});

describe('an update', () => {
  test.each<[string, ProxyFault]>([
    ['is lost before the service', { cut: 'before' }],
    ['loses its response', { cut: 'after' }],
  ])('an update that %s is retried', async (_, fault) => {
    const realm = await newRealm();
    proxy.injectFaults(/^PUT /, fault);
    expect((await directory.realms.update(realm.key, { name: 'Store' })).name).toBe('Store');
    expect(sent().filter(({ method }) => method === 'PUT')).toHaveLength(2);
  });

  test('an update with ifMatch that is lost before the service is retried', async () => {
    const realm = await newRealm();
    proxy.injectFaults(/^PUT /, { cut: 'before' });
    const updated = await directory.realms.update(realm.key, { name: 'Store' }, { ifMatch: realm.etag });
    expect(updated.name).toBe('Store');
  });

  test('an update with ifMatch that loses its response is 412 and uncertain', async () => {
    const realm = await newRealm();
    proxy.injectFaults(/^PUT /, { cut: 'after' });
    const error = await errorOf(directory.realms.update(realm.key, { name: 'x' }, { ifMatch: realm.etag }));
    expect([error.status, error.isUncertain]).toEqual([412, true]);
  });

  test('modify does not apply a change twice after a lost response', async () => {
    const realm = await newRealm();
    proxy.injectFaults(/^PUT /, { cut: 'after' });
    const error = await errorOf(directory.realms.modify(realm.key, ({ name }) => ({ name: `${name}!` })));
    expect([error.status, error.isUncertain]).toEqual([412, true]);
    expect((await directory.realms.get(realm.key)).name).toBe('Shop!');
  });

  test('modify retries after a concurrent change', async () => {
    const realm = await newRealm();
    const other = connect({ url: service.url, ...credentials });
    let calls = 0;
    const { name } = await directory.realms.modify(realm.key, async (record) => {
      calls += 1;
      if (calls < 3) await other.realms.update(realm.key, { name: `${record.name}+` });
      return { name: `${record.name}!` };
    });
    expect([calls, name]).toEqual([3, 'Shop++!']);
  });
});

describe('a delete', () => {
  test.each<[string, ProxyFault]>([
    ['is lost before the service', { cut: 'before' }],
    ['loses its response', { cut: 'after' }],
  ])('a delete that %s is retried', async (_, fault) => {
    const { key } = await newRealm();
    proxy.injectFaults(/^DELETE /, fault);
    await directory.realms.delete(key);
    expect((await errorOf(directory.realms.get(key))).status).toBe(404);
  });

  test('a delete of an unknown record is 404', async () => {
    const { key } = await newRealm();
    await directory.realms.delete(key);
    expect((await errorOf(directory.realms.delete(key))).status).toBe(404);
  });
});

describe('retries', () => {
  test('a retry waits for the seconds of Retry-After', async () => {
    const { key } = await newRealm();
    proxy.injectFaults(/^GET /, { status: 429, headers: { 'Retry-After': '1' } });
    await directory.realms.get(key);
    const [first, second] = sent().slice(-2);
    const waited = (second?.at ?? 0) - (first?.at ?? 0);
    expect(waited).toBeGreaterThanOrEqual(995);
    expect(waited).toBeLessThan(5_000);
  });

  test('a request fails with the last response after the maximum of retries', async () => {
    const { key } = await newRealm();
    const body = JSON.stringify({
      errors: [{ status: '503', title: 'Service Unavailable', detail: 'later', code: 'unavailable' }],
    });
    proxy.injectFaults(/^GET /, ...Array.from({ length: 9 }, () => ({ ...BUSY, body })));
    const before = sent().length;
    const error = await errorOf(connectBy({ retries: 2 }).realms.get(key));
    expect(sent().length - before).toBe(3);
    expect([error.status, error.isUncertain]).toEqual([503, true]);
    expect(error.message).toEndWith('was answered 503 Service Unavailable: later');
    expect(error.errors.map(({ code }) => code)).toEqual(['unavailable']);
  });

  test('an error response of a proxy keeps only the titles and details that are text', async () => {
    const { key } = await newRealm();
    const odd = [{ toString: 7 }, {}, [], 7, null, true].map((detail) => ({ title: 'Bad Gateway', detail }));
    const errors = [...odd, null, 7, 'text', [], { title: {} }, { title: 'Last', detail: 'later' }];
    proxy.injectFaults(/^GET /, { status: 403, body: JSON.stringify({ errors }) });
    const error = await errorOf(connectBy({ retries: 0 }).realms.get(key));
    expect(error.message).toEndWith(`was answered 403 ${'Bad Gateway; '.repeat(odd.length)}Last: later`);
    expect(error.errors.map(({ detail }) => detail)).toEqual([...odd.map(() => undefined), 'later']);
  });

  test('a request fails at once if Retry-After exceeds its total timeout', async () => {
    const { key } = await newRealm();
    proxy.injectFaults(/^GET /, { status: 503, headers: { 'Retry-After': '86400' } });
    const startedAt = performance.now();
    const error = await errorOf(connectBy({ totalTimeoutMs: 20_000 }).realms.get(key));
    expect(error.status).toBe(503);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });

  test('an attempt without a response is aborted after its timeout and retried', async () => {
    const { key } = await newRealm();
    proxy.injectFaults(/^GET /, 'hang');
    expect((await connectBy({ timeoutMs: 500 }).realms.get(key)).key).toEqual(key);
    proxy.injectFaults(/^GET /, 'hang');
    const error = await errorOf(connectBy({ timeoutMs: 500, retries: 0 }).realms.get(key));
    expect([error.status, error.isUncertain]).toEqual([undefined, true]);
    expect(error.message).toEndWith('failed without a response: no answer in 500 ms');
  });

  test('the signal of the caller aborts a request during an attempt and during a pause', async () => {
    const { key } = await newRealm();
    for (const fault of ['hang', { status: 503, headers: { 'Retry-After': '20' } }] as const) {
      proxy.injectFaults(/^GET /, fault);
      const controller = new AbortController();
      const reason = new Error('enough');
      const work = directory.realms.get(key, { signal: controller.signal });
      setTimeout(() => controller.abort(reason), 200);
      expect(await work.catch((error: unknown) => error)).toBe(reason);
    }
  });

  test('the error of an unreachable service does not contain the token', async () => {
    const nowhere = connect({ url: 'http://127.0.0.1:9', retries: 1, token: async () => 'secret-token' });
    const error = await errorOf(nowhere.realms.get(['01234567-89ab-cdef-0123-456789abcdef']));
    expect(error.status).toBeUndefined();
    expect(JSON.stringify([error.message, error.stack, { ...error }])).not.toContain('secret-token');
  });
});

describe('the token', () => {
  test('concurrent calls fetch one token, with retries', async () => {
    proxy.injectFaults(/access_token$/, BUSY, { cut: 'before' });
    const made = await Promise.all(Array.from({ length: 10 }, newRealm));
    expect(new Set(made.map(({ id }) => id)).size).toBe(10);
    expect(tokensFetched()).toBe(3);
  });

  test('the token is fetched again before it expires', async () => {
    const realm = await newRealm();
    const shortLived = connectBy({
      fetch: async (url, init) => {
        const answer = await fetch(url, init);
        if (!url.endsWith('access_token')) return answer;
        return Response.json({ ...((await answer.json()) as object), expires_in: 2 });
      },
    });
    const before = tokensFetched();
    await shortLived.realms.get(realm.key);
    await shortLived.realms.get(realm.key);
    expect(tokensFetched() - before).toBe(1);
    await Bun.sleep(1_900);
    await shortLived.realms.get(realm.key);
    expect(tokensFetched() - before).toBe(2);
  });

  test('a refused token is fetched again once for concurrent calls', async () => {
    const { key } = await newRealm();
    proxy.injectFaults(/^GET /, { status: 401 }, { status: 401 }, { status: 401 });
    await Promise.all([1, 2, 3].map(() => directory.realms.get(key)));
    expect(tokensFetched()).toBe(2);
    proxy.injectFaults(/^GET /, { status: 401 }, { status: 401 });
    expect((await errorOf(directory.realms.get(key))).status).toBe(401);
  });

  test('the token function is called again after a refused token', async () => {
    const { key } = await newRealm();
    const tokens = ['stale', await service.token(SCOPE)];
    const withTokens = connect({ url: proxy.url, token: async () => tokens.shift() ?? '' });
    expect((await withTokens.realms.get(key)).key).toEqual(key);
  });

  test('the error of a wrong secret does not contain the secret', async () => {
    const clientSecret = 'ars_of-somebody-else';
    const wrong = connect({ url: proxy.url, clientId: credentials.clientId, clientSecret });
    const error = await errorOf(newRealmBy(wrong));
    expect(error.status).toBe(401);
    expect(error.message).toStartWith('POST /oauth/access_token was answered 401 ');
    expect(JSON.stringify([error.message, error.stack, { ...error }])).not.toContain(clientSecret);
  });

  test('the token is not sent to the target of a redirect or a link', async () => {
    const { key } = await newRealm();
    const otherServer = await startFaultyProxy(service.url);
    proxy.injectFaults(/^GET /, {
      status: 307,
      headers: { Location: `${otherServer.url}/v2/authentication-realms` },
    });
    const error = await errorOf(directory.realms.get(key));
    expect([error.status, error.message]).toEqual([307, expect.stringContaining('redirect')]);
    const next = `${otherServer.url}/v2/authentication-realms?page%5Blimit%5D=1&page%5Bafter%5D=`;
    const body = JSON.stringify({ data: [], meta: {}, links: { next } });
    proxy.injectFaults(/^GET /, { status: 200, body });
    for await (const _ of directory.realms.list([], { pageSize: 2 })) break;
    expect(otherServer.requests).toEqual([]);
    expect(sent().at(-1)?.path).toEndWith(new URL(next).search);
  });
});

test.each<[string, ProxyFault]>([
  ['an HTML page', { status: 200, body: '<!doctype html>' }],
  ['other JSON', { status: 200, body: '{"ok":true}' }],
  ['an empty body', { status: 200 }],
])('%s instead of a record is an error', async (_, fault) => {
  const { key } = await newRealm();
  proxy.injectFaults(/^GET /, fault);
  await errorOf(directory.realms.get(key));
});

function newRealmBy(other: DirectoryClient) {
  return other.realms.create([], { name: 'Shop' });
}
