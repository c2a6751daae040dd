import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { LIMITS } from '../../../src/domain/limits.ts';
import { SCOPE_WORDS } from '../../../src/domain/principal.ts';
import { operationsOf } from '../../support/document_caller.ts';
import type { JsonObject } from '../../support/json_schema.ts';
import { oidcPath, type Planted, plant } from '../../support/service.ts';
import { areAccepted, type Office, openOffice, tokenOf } from './office.ts';

let office: Office;
let planted: Planted;

beforeAll(async () => {
  office = await openOffice();
  planted = await plant(office.service.db);
});
afterAll(() => office.service.stop());

const RIGHTS = { name: 'The shop', scopes: ['oidc-profile-infos:read'], realms: '*' };
const secrets: string[] = [];

/** A client that was made over HTTP, and that every process knows by now. */
async function make(data: object = RIGHTS) {
  const { status, body, headers } = await office.ask('POST', '/clients', { data });
  expect(status).toBe(201);
  const { id, client_secret: secret } = body.data;
  secrets.push(String(secret));
  felt();
  return { id, secret: String(secret), etag: headers.get('etag') ?? '', data: body.data };
}

/** A second passes. */
function felt(): void {
  office.service.clock.advance(1_000);
}

const lookup = async (token: string) => (await office.service.get(oidcPath(planted), token)).status;

describe('a new client', () => {
  test('has its secret in that answer, gets a token by it, and is read without it', async () => {
    const { id, secret, etag, data } = await make();
    expect(secret).toMatch(/^ars_[\w-]{43}$/);
    expect(await lookup(await tokenOf(office.service, id, secret))).toBe(200);
    const { client_secret: _, ...without } = data;
    const read = await office.ask('GET', `/clients/${id}`);
    expect([read.status, read.headers.get('etag'), read.body.data as object]).toEqual([200, etag, without]);
    expect(without).toEqual({
      id,
      type: 'client',
      ...RIGHTS,
      is_disabled: false,
      previous_secret_expires_at: null,
      meta: { created_at: expect.any(String), updated_at: expect.any(String) },
    });
    const listed = (await office.all('/clients')).find((each) => each.id === id);
    expect(listed).toMatchObject({ ...without, last_used_at: null, links: { self: expect.any(String) } });
  });

  test('may hold what short forms stand for, and realms in any letter case', async () => {
    const { data } = await make({
      ...RIGHTS,
      scopes: ['profile-infos:read'],
      realms: [planted.realm.toUpperCase()],
    });
    expect(data).toMatchObject({
      scopes: ['oidc-profile-infos:read', 'password-profile-infos:read'],
      realms: [planted.realm],
    });
  });
});

describe('what is wrong is named, all of it', () => {
  const OTHER = '01900000-0000-7000-8000-000000000000';
  const rows: readonly [string, object, number, readonly string[]][] = [
    ['nothing said', {}, 400, ['/data/name', '/data/scopes', '/data/realms']],
    [
      'everything wrong',
      { name: '', scopes: [], realms: 'all' },
      400,
      ['/data/name', '/data/scopes', '/data/realms'],
    ],
    [
      'other types',
      { name: 1, scopes: 'admin', realms: {} },
      400,
      ['/data/name', '/data/scopes', '/data/realms'],
    ],
    [
      'more scopes than there are',
      { ...RIGHTS, scopes: new Array(SCOPE_WORDS.length + 1).fill('users:read') },
      400,
      ['/data/scopes'],
    ],
    ['a scope that is none', { ...RIGHTS, scopes: ['admin', 'root'] }, 400, ['/data/scopes/1']],
    ['a name of two lines', { ...RIGHTS, name: 'a\nb' }, 400, ['/data/name']],
    ['a realm that is none', { ...RIGHTS, realms: ['x'] }, 400, ['/data/realms/0']],
    ['no realm', { ...RIGHTS, realms: [] }, 400, ['/data/realms']],
    ['a realm that nobody has', { ...RIGHTS, realms: [OTHER] }, 422, ['/data/realms/0']],
    ['rights that do not go together', { ...RIGHTS, scopes: ['admin'] }, 422, ['/data/scopes']],
  ];

  test.each(rows)('to make one: %s', async (_, said, status, pointers) => {
    const limited = status === 422 && 'scopes' in said && (said.scopes as string[])[0] === 'admin';
    const data = limited ? { ...said, realms: [planted.realm] } : said;
    const before = (await office.all('/clients')).length;
    const refused = await office.ask('POST', '/clients', { data });
    expect([refused.status, refused.body.errors.map(({ source }) => source?.pointer)]).toEqual([
      status,
      pointers as string[],
    ]);
    expect((await office.all('/clients')).length).toBe(before);
  });

  test.each(rows.slice(1))('to change one: %s', async (_, said, status, pointers) => {
    const { id } = await make();
    const limited = status === 422 && 'scopes' in said && (said.scopes as string[])[0] === 'admin';
    const data = limited ? { ...said, realms: [planted.realm] } : said;
    const refused = await office.ask('PUT', `/clients/${id}`, { data });
    expect([refused.status, refused.body.errors.map(({ source }) => source?.pointer)]).toEqual([
      status,
      pointers as string[],
    ]);
    expect((await office.ask('GET', `/clients/${id}`)).body.data).toMatchObject(RIGHTS);
  });

  test.each([[-1], [LIMITS.secretOverlapHoursMax * 3_600 + 1], [1.5], ['1'], [null]])(
    'an overlap of %p',
    async (overlap) => {
      const { id, secret } = await make();
      const refused = await office.ask('POST', `/clients/${id}/rotate`, {
        data: { overlap_seconds: overlap },
      });
      expect([refused.status, refused.body.errors.map(({ source }) => source?.pointer)]).toEqual([
        400,
        ['/data/overlap_seconds'],
      ]);
      expect(await areAccepted(office.service, id, secret)).toBe(true);
    },
  );

  test.each([
    ['page%5Blimit%5D=0', 'page[limit]'],
    ['page%5Blimit%5D=101', 'page[limit]'],
    ['page%5Blimit%5D=ten', 'page[limit]'],
    ['page%5Bafter%5D=a%20b', 'page[after]'],
    ['page%5Blimit%5D=1&page%5Blimit%5D=1', 'page[limit]'],
  ])('a list by %s', async (query, parameter) => {
    const { status, body } = await office.ask('GET', `/clients?${query}`);
    expect([status, body.errors.map(({ source }) => source?.parameter)]).toEqual([400, [parameter]]);
  });

  test.each(['nobody', 'a%00b'])('404 for a client %s', async (id) => {
    const nobody = `/clients/${id}`;
    for (const [method, path, data] of [
      ['GET', '', undefined],
      ['GET', '/use', undefined],
      ['PUT', '', { name: 'x' }],
      ['DELETE', '', undefined],
      ['POST', '/rotate', {}],
      ['POST', '/disable', undefined],
      ['POST', '/enable', undefined],
    ] as const) {
      expect([method, path, (await office.ask(method, nobody + path, { data })).status]).toEqual([
        method,
        path,
        404,
      ]);
    }
  });
});

describe('a change', () => {
  test('says only what changes, and is felt by tokens that were given before', async () => {
    const { id, secret } = await make({ ...RIGHTS, scopes: ['oidc-profile-infos:read', 'users:read'] });
    const token = await tokenOf(office.service, id, secret);
    expect(await lookup(token)).toBe(200);
    const changed = await office.ask('PUT', `/clients/${id}`, { data: { scopes: ['users:read'] } });
    expect(changed.body.data).toMatchObject({ name: RIGHTS.name, scopes: ['users:read'], realms: '*' });
    felt();
    expect(await lookup(token)).toBe(403);
  });

  test('of nothing is none', async () => {
    const { id, etag } = await make();
    const same = await office.ask('PUT', `/clients/${id}`, { data: {} });
    expect([same.status, same.headers.get('etag')]).toEqual([200, etag]);
    expect((await office.actsOn(id)).map(({ what }) => what)).toEqual(['client.created']);
  });

  test('of two administrators who saw the same, one lands', async () => {
    const { id, etag } = await make();
    const names = Array.from({ length: 8 }, (_, at) => `name ${at}`);
    const told = await Promise.all(
      names.map((name) =>
        office.ask('PUT', `/clients/${id}`, { data: { name }, headers: { 'If-Match': etag } }),
      ),
    );
    expect(told.map(({ status }) => status).sort()).toEqual([200, ...new Array(7).fill(412)]);
    const winner = told.find(({ status }) => status === 200);
    const read = await office.ask('GET', `/clients/${id}`);
    expect([read.text, read.headers.get('etag')]).toEqual([
      winner?.text as string,
      winner?.headers.get('etag') ?? '',
    ]);
    const stale = await office.ask('DELETE', `/clients/${id}`, { headers: { 'If-Match': etag } });
    expect(stale.status).toBe(412);
    const seen = { 'If-Match': read.headers.get('etag') ?? '' };
    expect((await office.ask('DELETE', `/clients/${id}`, { headers: seen })).status).toBe(204);
  });

  test('whatever changes one is held to its condition, and documents that', async () => {
    const { service } = office;
    const document = (await (await service.get('/openapi.json')).json()) as JsonObject;
    const changing = operationsOf(document).filter(
      ({ method, path }) => method !== 'get' && path.includes('/clients/{client_id}'),
    );
    const told = await Promise.all(
      changing.map(async ({ id: name, method, path, body, parameters, answers }) => {
        const { id } = await make();
        const { status } = await office.ask(
          method.toUpperCase(),
          service.url + path.replace('{client_id}', id),
          { headers: { 'If-Match': '"stale"' }, ...(body ? { data: {} } : {}) },
        );
        const isNamed = parameters.some((each) => each.in === 'header' && each.name === 'If-Match');
        return [name, status, isNamed, '412' in answers, '422' in answers];
      }),
    );
    // The last column: who may lock itself out is told that it does not.
    expect(told.sort()).toEqual([
      ['delete-client', 412, true, true, true],
      ['disable-client', 412, true, true, true],
      ['enable-client', 412, true, true, false],
      ['rotate-client', 412, true, true, false],
      ['update-client', 412, true, true, true],
    ]);
  });

  test('without a condition loses nothing of another one that comes at once', async () => {
    const { id } = await make();
    const changes = [{ name: 'Other' }, { scopes: ['users:read'] }, { realms: [planted.realm] }];
    await Promise.all(changes.map((data) => office.ask('PUT', `/clients/${id}`, { data })));
    expect((await office.ask('GET', `/clients/${id}`)).body.data).toMatchObject(
      Object.assign({}, ...changes),
    );
  });
});

describe('a rotation', () => {
  test('leaves the old secret for a day, or for as long as it says', async () => {
    const { service, ask } = office;
    const { id, secret } = await make();
    const rotated = await ask('POST', `/clients/${id}/rotate`, { data: {} });
    const next = String(rotated.body.data.client_secret);
    secrets.push(next);
    const until = Date.parse(String(rotated.body.data.previous_secret_expires_at));
    expect(Math.abs(until - service.clock.now() - LIMITS.secretOverlapMs)).toBeLessThan(60_000);
    felt();
    for (const each of [secret, next]) expect(await areAccepted(service, id, each)).toBe(true);
    await ask('POST', `/clients/${id}/rotate`, { data: { overlap_seconds: 2 } });
    service.clock.advance(2_000);
    expect((await ask('GET', `/clients/${id}`)).body.data.previous_secret_expires_at).toBeNull();
    const last = await ask('POST', `/clients/${id}/rotate`, { data: { overlap_seconds: 0 } });
    const newest = String(last.body.data.client_secret);
    secrets.push(newest);
    expect(last.body.data.previous_secret_expires_at).toBeNull();
    felt();
    const accepted = [secret, next, newest].map((each) => areAccepted(service, id, each));
    expect(await Promise.all(accepted)).toEqual([false, false, true]);
  });
});

describe('an end', () => {
  test('disabled: refused within a second with its tokens, and accepted again once it is enabled', async () => {
    const { id, secret } = await make();
    const token = await tokenOf(office.service, id, secret);
    const off = await office.ask('POST', `/clients/${id}/disable`);
    expect([off.status, off.body.data.is_disabled]).toEqual([200, true]);
    expect((await office.ask('POST', `/clients/${id}/disable`)).text).toBe(off.text);
    felt();
    expect([await lookup(token), await areAccepted(office.service, id, secret)]).toEqual([401, false]);
    const on = await office.ask('POST', `/clients/${id}/enable`);
    expect([on.status, on.body.data.is_disabled]).toEqual([200, false]);
    felt();
    expect([await lookup(token), await areAccepted(office.service, id, secret)]).toEqual([200, true]);
    expect((await office.actsOn(id)).map(({ what }) => what)).toEqual([
      'client.created',
      'token.granted',
      'client.disabled',
      'client.enabled',
      'token.granted',
    ]);
  });

  test('deleted: gone, its tokens refused within a second, its log still there', async () => {
    const { id, secret } = await make();
    const token = await tokenOf(office.service, id, secret);
    await office.service.db.engine.access.recordClientUsage([id], office.service.clock.now());
    expect((await office.ask('DELETE', `/clients/${id}`)).status).toBe(204);
    felt();
    expect([await lookup(token), await areAccepted(office.service, id, secret)]).toEqual([401, false]);
    expect((await office.ask('GET', `/clients/${id}`)).status).toBe(404);
    expect((await office.service.db.engine.access.clientUsage()).has(id)).toBe(false);
    const last = (await office.actsOn(id)).at(-1);
    expect(last).toMatchObject({ what: 'client.deleted', detail: { before: { name: RIGHTS.name } } });
  });

  test.each([
    ['POST', '/disable', undefined],
    ['DELETE', '', undefined],
    ['PUT', '', { scopes: ['users:read'] }],
  ])('nobody locks itself out: %s %s', async (method, path, data) => {
    const own = `/clients/${office.admin.clientId}`;
    const refused = await office.ask(method, own + path, { data });
    expect([refused.status, refused.body.errors[0]?.detail]).toEqual([
      422,
      expect.stringContaining('is the client of this request, which would lock itself out'),
    ]);
    felt();
    expect((await office.ask('PUT', own, { data: { scopes: ['admin', 'users:read'] } })).status).toBe(200);
    expect((await office.ask('POST', `${own}/enable`)).status).toBe(200);
  });
});

describe('last use', () => {
  test('is told to the minute, and moves nothing that others read again', async () => {
    const { id } = await make();
    const { access } = office.service.db.engine;
    const version = (await access.state(undefined))?.version;
    const at = office.service.clock.now();
    await access.recordClientUsage([id, 'nobody'], at);
    await access.recordClientUsage([id], at - 1);
    expect((await access.state(undefined))?.version).toBe(version);
    const told = await office.ask('GET', `/clients/${id}/use`);
    expect(told.body.data.last_used_at).toBe(new Date(at).toISOString());
    const listed = (await office.all('/clients')).find((each) => each.id === id);
    expect(listed?.last_used_at).toBe(new Date(at).toISOString());
    expect((await access.clientUsage()).has('nobody')).toBe(false);
  });
});

test('pages of two follow each other to the end, in the order of identifiers, each client with its realms', async () => {
  const { db } = office.service;
  const realms = [planted.realm, (await plant(db)).realm, (await plant(db)).realm].sort();
  for (const some of [realms, realms.slice(1), realms.slice(2)]) await make({ ...RIGHTS, realms: some });
  const listed = await office.all('/clients?page%5Blimit%5D=2');
  const table = (await db.engine.access.state(undefined))?.clients ?? [];
  const told = table.map(({ clientId, realms: of }) => [clientId, of === '*' ? of : [...of]]).sort();
  expect(listed.map((client) => [client.id, client.realms])).toEqual(told as never);
});

test('an act says who asked, from where and in which request, and what it came to', async () => {
  const made = await office.ask('POST', '/clients', { data: RIGHTS, headers: { 'X-Request-Id': 'desk-1' } });
  secrets.push(String(made.body.data.client_secret));
  const [act, ...more] = await office.actsOn(made.body.data.id);
  expect(more).toEqual([]);
  expect(act).toMatchObject({
    what: 'client.created',
    actor: office.admin.clientId,
    address: '127.0.0.1',
    request_id: 'desk-1',
    detail: {
      after: { name: 'The shop', scope: 'oidc-profile-infos:read', realms: '*', is_disabled: false },
    },
  });
});

test('every change is an act by its name, with the rights before and after', async () => {
  const { id } = await make({ ...RIGHTS, realms: [planted.realm] });
  for (const [method, path, data] of [
    ['PUT', '', { name: 'Other' }],
    ['POST', '/rotate', {}],
    ['POST', '/disable', undefined],
    ['POST', '/enable', undefined],
  ] as const) {
    expect((await office.ask(method, `/clients/${id}${path}`, { data })).status).toBe(200);
  }
  const rights = { scope: RIGHTS.scopes.join(), realms: [planted.realm] };
  const first = { name: RIGHTS.name, ...rights, is_disabled: false };
  const other = { ...first, name: 'Other' };
  const off = { ...other, is_disabled: true };
  expect((await office.actsOn(id)).map(({ what, detail }) => [what, detail])).toEqual([
    ['client.created', { after: first }],
    ['client.changed', { before: first, after: other }],
    ['client.rotated', { before: other, after: other }],
    ['client.disabled', { before: other, after: off }],
    ['client.enabled', { before: off, after: other }],
  ]);
});

test('a secret stands in the answer that made it, and nowhere else', async () => {
  await office.all('/clients');
  await office.all('/log');
  expect(secrets.length).toBeGreaterThan(10);
  for (const secret of secrets) {
    expect(office.answers.filter((answer) => answer.includes(secret))).toHaveLength(1);
  }
  expect(JSON.stringify(office.service.log)).not.toContain('ars_');
  expect(await office.service.database.stored(secrets)).toEqual([]);
}, 300_000);
