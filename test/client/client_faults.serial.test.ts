import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import {
  AuthrealmError,
  type ConnectOptions,
  connect,
  type DirectoryClient,
} from '../../src/client/client.ts';
import { type FaultyProxy, type ProxyFault, startFaultyProxy } from '../support/faulty_proxy.ts';
import { type Service, startService } from '../support/service.ts';

/** The client library behind a proxy that loses, refuses and holds back what it is told to. */

const SCOPE = 'realms:read realms:write users:read users:write';

let service: Service;
let proxy: FaultyProxy;
let credentials: { readonly clientId: string; readonly clientSecret: string };
let directory: DirectoryClient;

beforeAll(async () => {
  service = await startService();
  const { clientId, secret } = await service.client(SCOPE);
  credentials = { clientId, clientSecret: secret };
});
afterAll(() => service.stop());
beforeEach(async () => {
  proxy = await startFaultyProxy(service.url);
  directory = connectBy({});
});
afterEach(() => proxy.stop());

function connectBy(options: Partial<Omit<ConnectOptions, 'token'>>): DirectoryClient {
  return connect({ url: proxy.url, ...credentials, ...options });
}

async function errorOf(work: Promise<unknown>): Promise<AuthrealmError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof AuthrealmError)) throw new Error(`no AuthrealmError: ${error}`);
  return error;
}

const newRealm = () => directory.realms.create([], { name: 'Shop' });
/** What came for records, the token endpoint left out. */
const sent = () => proxy.requests.filter(({ path }) => path.startsWith('/v2'));
const tokensFetched = () => proxy.requests.filter(({ path }) => path === '/oauth/access_token').length;

const BUSY: ProxyFault = { status: 503, headers: { 'Retry-After': '0' } };

describe('a create', () => {
  test.each<[string, ProxyFault]>([
    ['is lost on its way there', { cut: 'before' }],
    ['is lost on its way back', { cut: 'after' }],
    ['is cut in the middle of the answer', { cut: 'inside' }],
    ['is refused for now', BUSY],
    ['meets itself', { status: 409, headers: { 'Retry-After': '0' } }],
    ['is one too many', { status: 429 }],
  ])('that %s is made once', async (_, trouble) => {
    const { key, id } = await newRealm();
    proxy.injectFaults(/^POST .*user-authentication-info$/, trouble, trouble);
    const user = await directory.users.create(key, { name: 'Jane', email: 'jane@example.com' });
    const creates = sent().filter(({ method, path }) => method === 'POST' && path.includes(id));
    expect(creates).toHaveLength(3);
    expect(new Set(creates.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
    const { total, records } = await directory.users.page(key);
    expect([total, records[0]?.id]).toEqual([1, user.id]);
  });

  test('of another record has another key', async () => {
    await Promise.all([newRealm(), newRealm()]);
    expect(new Set(sent().map(({ headers }) => headers['idempotency-key'])).size).toBe(2);
  });
});

describe('an update', () => {
  test.each<[string, ProxyFault]>([
    ['there', { cut: 'before' }],
    ['back', { cut: 'after' }],
  ])('that is lost on its way %s is made', async (_, trouble) => {
    const realm = await newRealm();
    proxy.injectFaults(/^PUT /, trouble);
    expect((await directory.realms.update(realm.key, { name: 'Store' })).name).toBe('Store');
    expect(sent().filter(({ method }) => method === 'PUT')).toHaveLength(2);
  });

  test('on a condition, lost on its way there, is made', async () => {
    const realm = await newRealm();
    proxy.injectFaults(/^PUT /, { cut: 'before' });
    const updated = await directory.realms.update(realm.key, { name: 'Store' }, { ifMatch: realm.etag });
    expect(updated.name).toBe('Store');
  });

  test('on a condition, lost on its way back, leaves open who was faster', async () => {
    const realm = await newRealm();
    proxy.injectFaults(/^PUT /, { cut: 'after' });
    const error = await errorOf(directory.realms.update(realm.key, { name: 'x' }, { ifMatch: realm.etag }));
    expect([error.status, error.isUncertain]).toEqual([412, true]);
  });

  test('of modify is never made twice, though its answer is lost', async () => {
    const realm = await newRealm();
    proxy.injectFaults(/^PUT /, { cut: 'after' });
    const error = await errorOf(directory.realms.modify(realm.key, ({ name }) => ({ name: `${name}!` })));
    expect([error.status, error.isUncertain]).toEqual([412, true]);
    expect((await directory.realms.get(realm.key)).name).toBe('Shop!');
  });

  test('of modify is made anew where somebody else was faster', async () => {
    const realm = await newRealm();
    const other = connect({ url: service.url, ...credentials });
    let asked = 0;
    const { name } = await directory.realms.modify(realm.key, async (record) => {
      asked += 1;
      if (asked < 3) await other.realms.update(realm.key, { name: `${record.name}+` });
      return { name: `${record.name}!` };
    });
    expect([asked, name]).toEqual([3, 'Shop++!']);
  });
});

describe('a delete', () => {
  test.each<[string, ProxyFault]>([
    ['there', { cut: 'before' }],
    ['back', { cut: 'after' }],
  ])('that is lost on its way %s is done', async (_, trouble) => {
    const { key } = await newRealm();
    proxy.injectFaults(/^DELETE /, trouble);
    await directory.realms.delete(key);
    expect((await errorOf(directory.realms.get(key))).status).toBe(404);
  });

  test('of what is not there says so', async () => {
    const { key } = await newRealm();
    await directory.realms.delete(key);
    expect((await errorOf(directory.realms.delete(key))).status).toBe(404);
  });
});

describe('how long a request goes on', () => {
  test('it waits as long as the answer asks, in seconds or until a date', async () => {
    const { key } = await newRealm();
    const at = Date.parse('2026-01-31T09:00:00Z');
    const dated = { Date: new Date(at).toUTCString(), 'Retry-After': new Date(at + 1_000).toUTCString() };
    for (const headers of [{ 'Retry-After': '1' }, dated]) {
      proxy.injectFaults(/^GET /, { status: 429, headers });
      await directory.realms.get(key);
      const [first, second] = sent().slice(-2);
      const waited = (second?.at ?? 0) - (first?.at ?? 0);
      expect(waited).toBeGreaterThanOrEqual(995);
      expect(waited).toBeLessThan(2_500);
    }
  });

  test('it ends with the last answer after so many attempts', async () => {
    const { key } = await newRealm();
    const body = JSON.stringify({
      errors: [{ status: '503', title: 'Service Unavailable', detail: 'later' }],
    });
    proxy.injectFaults(/^GET /, ...Array.from({ length: 9 }, () => ({ ...BUSY, body })));
    const before = sent().length;
    const error = await errorOf(connectBy({ retries: 2 }).realms.get(key));
    expect(sent().length - before).toBe(3);
    expect([error.status, error.isUncertain]).toEqual([503, true]);
    expect(error.message).toEndWith('was answered 503 Service Unavailable: later');
  });

  test('it ends at once where waiting would take too long', async () => {
    const { key } = await newRealm();
    proxy.injectFaults(/^GET /, { status: 503, headers: { 'Retry-After': '86400' } });
    const startedAt = performance.now();
    const error = await errorOf(connectBy({ totalTimeoutMs: 5_000 }).realms.get(key));
    expect(error.status).toBe(503);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });

  test('an attempt that is never answered is given up and made again', async () => {
    const { key } = await newRealm();
    proxy.injectFaults(/^GET /, 'hang');
    expect((await connectBy({ timeoutMs: 500 }).realms.get(key)).key).toEqual(key);
    proxy.injectFaults(/^GET /, 'hang');
    const error = await errorOf(connectBy({ timeoutMs: 500, retries: 0 }).realms.get(key));
    expect([error.status, error.isUncertain]).toEqual([undefined, true]);
    expect(error.message).toEndWith('failed without a response: no answer in 500 ms');
  });

  test('it ends when the caller says so, in an attempt and in a pause', async () => {
    const { key } = await newRealm();
    for (const trouble of ['hang', { status: 503, headers: { 'Retry-After': '20' } }] as const) {
      proxy.injectFaults(/^GET /, trouble);
      const leaving = new AbortController();
      const reason = new Error('enough');
      const work = directory.realms.get(key, { signal: leaving.signal });
      setTimeout(() => leaving.abort(reason), 200);
      expect(await work.catch((error: unknown) => error)).toBe(reason);
    }
  });

  test('nobody there is told without the address', async () => {
    const nowhere = connect({ url: 'http://127.0.0.1:9', retries: 1, token: async () => 'secret-token' });
    const error = await errorOf(nowhere.realms.get(['01234567-89ab-cdef-0123-456789abcdef']));
    expect(error.status).toBeUndefined();
    expect(JSON.stringify([error.message, error.stack, { ...error }])).not.toContain('secret-token');
  });
});

describe('the token', () => {
  test('is fetched once for all, also where that takes more than one attempt', async () => {
    proxy.injectFaults(/access_token$/, BUSY, { cut: 'before' });
    const made = await Promise.all(Array.from({ length: 10 }, newRealm));
    expect(new Set(made.map(({ id }) => id)).size).toBe(10);
    expect(tokensFetched()).toBe(3);
  });

  test('is fetched again before it ends', async () => {
    const realm = await newRealm();
    const hasty = connectBy({
      fetch: async (url, init) => {
        const answer = await fetch(url, init);
        if (!url.endsWith('access_token')) return answer;
        return Response.json({ ...((await answer.json()) as object), expires_in: 1 });
      },
    });
    const before = tokensFetched();
    await hasty.realms.get(realm.key);
    await hasty.realms.get(realm.key);
    expect(tokensFetched() - before).toBe(1);
    await Bun.sleep(950);
    await hasty.realms.get(realm.key);
    expect(tokensFetched() - before).toBe(2);
  });

  test('is fetched again once where it is refused, by however many calls', async () => {
    const { key } = await newRealm();
    proxy.injectFaults(/^GET /, { status: 401 }, { status: 401 }, { status: 401 });
    await Promise.all([1, 2, 3].map(() => directory.realms.get(key)));
    expect(tokensFetched()).toBe(2);
    proxy.injectFaults(/^GET /, { status: 401 }, { status: 401 });
    expect((await errorOf(directory.realms.get(key))).status).toBe(401);
  });

  test('that is lent is asked for again where it is refused', async () => {
    const { key } = await newRealm();
    const tokens = ['stale', await service.token(SCOPE)];
    const lent = connect({ url: proxy.url, token: async () => tokens.shift() ?? '' });
    expect((await lent.realms.get(key)).key).toEqual(key);
  });

  test('is not given to a client with a wrong secret, and the error does not repeat it', async () => {
    const clientSecret = 'ars_of-somebody-else';
    const wrong = connect({ url: proxy.url, clientId: credentials.clientId, clientSecret });
    const error = await errorOf(newRealmBy(wrong));
    expect(error.status).toBe(401);
    expect(error.message).toStartWith('POST /oauth/access_token was answered 401 ');
    expect(JSON.stringify([error.message, error.stack, { ...error }])).not.toContain(clientSecret);
  });

  test('goes nowhere but to the service', async () => {
    const { key } = await newRealm();
    const elsewhere = await startFaultyProxy(service.url);
    proxy.injectFaults(/^GET /, {
      status: 307,
      headers: { Location: `${elsewhere.url}/v2/authentication-realms` },
    });
    const error = await errorOf(directory.realms.get(key));
    expect([error.status, error.message]).toEqual([307, expect.stringContaining('redirect')]);
    const next = `${elsewhere.url}/v2/authentication-realms?page%5Blimit%5D=1&page%5Bafter%5D=`;
    const body = JSON.stringify({ data: [], meta: {}, links: { next } });
    proxy.injectFaults(/^GET /, { status: 200, body });
    for await (const _ of directory.realms.list([], { pageSize: 2 })) break;
    expect(elsewhere.requests).toEqual([]);
    expect(sent().at(-1)?.path).toEndWith(new URL(next).search);
    await elsewhere.stop();
  });
});

test.each<[string, ProxyFault]>([
  ['a page of somebody else', { status: 200, body: '<!doctype html>' }],
  ['JSON of somebody else', { status: 200, body: '{"ok":true}' }],
  ['nothing', { status: 200 }],
])('%s is no record', async (_, trouble) => {
  const { key } = await newRealm();
  proxy.injectFaults(/^GET /, trouble);
  await errorOf(directory.realms.get(key));
});

function newRealmBy(other: DirectoryClient) {
  return other.realms.create([], { name: 'Shop' });
}
