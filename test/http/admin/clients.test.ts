import { describe, expect, test } from 'bun:test';
import { LIMITS } from '../../../src/model/limits.ts';
import { SCOPE_WORDS } from '../../../src/model/principal.ts';
import { createFixture, oidcPath } from '../../support/service.ts';
import { type AdminResponse, getsToken, startAdminApi } from './admin_api.ts';

const api = await startAdminApi();
const fixture = await createFixture(api.service.db);

const RIGHTS = { name: 'The shop', scopes: ['oidc-profile-infos:read'], realms: '*' };
const secrets: string[] = [];

/** Creates a client over HTTP, and advances the clock until every process has loaded it. */
async function createClient(data: object = RIGHTS) {
  const { status, body, headers } = await api.request('POST', '/clients', { data });
  expect(status).toBe(201);
  const { id, client_secret: secret } = body.data;
  secrets.push(String(secret));
  advanceASecond();
  return { id, secret: String(secret), etag: headers.get('etag') ?? '', data: body.data };
}

function advanceASecond(): void {
  api.service.clock.advance(1_000);
}

const lookupStatus = async (token: string) => (await api.service.get(oidcPath(fixture), token)).status;

describe('create-client', () => {
  test('create-client returns the secret, which gets a token; reads return the client without it', async () => {
    const { id, secret, etag, data } = await createClient();
    expect(secret).toMatch(/^ars_[\w-]{43}$/);
    expect(await lookupStatus(await api.service.grant({ clientId: id, secret }))).toBe(200);
    const { client_secret: _, ...without } = data;
    const read = await api.request('GET', `/clients/${id}`);
    expect([read.status, read.headers.get('etag'), read.body.data as object]).toEqual([200, etag, without]);
    expect(without).toEqual({
      id,
      type: 'client',
      ...RIGHTS,
      ...{ implicit_scopes: [], implicit_realms: '*', rate_per_address: null, storefronts: [] },
      ...{ end_user_address: null, is_disabled: false },
      previous_secret_expires_at: null,
      meta: { created_at: expect.any(String), updated_at: expect.any(String) },
    });
    const listed = (await api.listAll('/clients')).find((each) => each.id === id);
    expect(listed).toMatchObject({ ...without, last_used_at: null, links: { self: expect.any(String) } });
  });

  test('create-client expands short scopes, and accepts realm IDs in any letter case', async () => {
    const { data } = await createClient({
      ...RIGHTS,
      scopes: ['profile-infos:read'],
      realms: [fixture.realm.toUpperCase()],
    });
    expect(data).toMatchObject({
      scopes: ['oidc-profile-infos:read', 'password-profile-infos:read'],
      realms: [fixture.realm],
    });
  });
});

describe('invalid client requests name every invalid field', () => {
  const OTHER = '01900000-0000-7000-8000-000000000000';
  const rows: readonly [string, object, number, readonly string[]][] = [
    ['no members', {}, 400, ['/data/name', '/data/scopes', '/data/realms']],
    [
      'only invalid values',
      { name: '', scopes: [], realms: 'all' },
      400,
      ['/data/name', '/data/scopes', '/data/realms'],
    ],
    [
      'values of other types',
      { name: 1, scopes: 'admin', realms: {} },
      400,
      ['/data/name', '/data/scopes', '/data/realms'],
    ],
    [
      'too many scopes',
      { ...RIGHTS, scopes: new Array(SCOPE_WORDS.length + 1).fill('users:read') },
      400,
      ['/data/scopes'],
    ],
    ['an unknown scope', { ...RIGHTS, scopes: ['admin', 'root'] }, 400, ['/data/scopes/1']],
    ['a name of two lines', { ...RIGHTS, name: 'a\nb' }, 400, ['/data/name']],
    ['a malformed realm ID', { ...RIGHTS, realms: ['x'] }, 400, ['/data/realms/0']],
    ['an empty list of realms', { ...RIGHTS, realms: [] }, 400, ['/data/realms']],
    ['an unknown realm', { ...RIGHTS, realms: [OTHER] }, 422, ['/data/realms/0']],
    ['the scope admin for some realms only', { ...RIGHTS, scopes: ['admin'] }, 422, ['/data/scopes']],
  ];

  const pointersOf = ({ body }: AdminResponse) => body.errors.map(({ source }) => source?.pointer);

  test.each(rows)('create-client rejects %s', async (_, input, status, pointers) => {
    const limited = status === 422 && 'scopes' in input && (input.scopes as string[])[0] === 'admin';
    const data = limited ? { ...input, realms: [fixture.realm] } : input;
    const before = (await api.listAll('/clients')).length;
    const refused = await api.request('POST', '/clients', { data });
    expect([refused.status, pointersOf(refused)]).toEqual([status, [...pointers]]);
    expect((await api.listAll('/clients')).length).toBe(before);
  });

  test.each(rows.slice(1))('update-client rejects %s', async (_, input, status, pointers) => {
    const { id } = await createClient();
    const limited = status === 422 && 'scopes' in input && (input.scopes as string[])[0] === 'admin';
    const data = limited ? { ...input, realms: [fixture.realm] } : input;
    const refused = await api.request('PUT', `/clients/${id}`, { data });
    expect([refused.status, pointersOf(refused)]).toEqual([status, [...pointers]]);
    expect((await api.request('GET', `/clients/${id}`)).body.data).toMatchObject(RIGHTS);
  });
});

describe('changes of clients', () => {
  test('update-client changes only the members in the body, and applies to issued tokens', async () => {
    const { id, secret } = await createClient({
      ...RIGHTS,
      scopes: ['oidc-profile-infos:read', 'users:read'],
    });
    const token = await api.service.grant({ clientId: id, secret });
    expect(await lookupStatus(token)).toBe(200);
    const changed = await api.request('PUT', `/clients/${id}`, { data: { scopes: ['users:read'] } });
    expect(changed.body.data).toMatchObject({ name: RIGHTS.name, scopes: ['users:read'], realms: '*' });
    advanceASecond();
    expect(await lookupStatus(token)).toBe(403);
  });
});

describe('secret rotation', () => {
  test('rotate-client accepts the old secret for a day, or for the requested overlap', async () => {
    const { service, request } = api;
    const { id, secret } = await createClient();
    const rotated = await request('POST', `/clients/${id}/rotate`, { data: {} });
    const next = String(rotated.body.data.client_secret);
    secrets.push(next);
    const until = Date.parse(String(rotated.body.data.previous_secret_expires_at));
    expect(Math.abs(until - service.clock.now() - LIMITS.secretOverlapMs)).toBeLessThan(60_000);
    advanceASecond();
    for (const each of [secret, next]) expect(await getsToken(service, id, each)).toBe(true);
    await request('POST', `/clients/${id}/rotate`, { data: { overlap_seconds: 2 } });
    service.clock.advance(2_000);
    expect((await request('GET', `/clients/${id}`)).body.data.previous_secret_expires_at).toBeNull();
    const last = await request('POST', `/clients/${id}/rotate`, { data: { overlap_seconds: 0 } });
    const newest = String(last.body.data.client_secret);
    secrets.push(newest);
    expect(last.body.data.previous_secret_expires_at).toBeNull();
    advanceASecond();
    const accepted = [secret, next, newest].map((each) => getsToken(service, id, each));
    expect(await Promise.all(accepted)).toEqual([false, false, true]);
  });
});

describe('disabled and deleted clients', () => {
  test('a disabled client and its tokens are rejected within a second, and accepted once it is enabled', async () => {
    const { id, secret } = await createClient();
    const token = await api.service.grant({ clientId: id, secret });
    const off = await api.request('POST', `/clients/${id}/disable`);
    expect([off.status, off.body.data.is_disabled]).toEqual([200, true]);
    expect((await api.request('POST', `/clients/${id}/disable`)).text).toBe(off.text);
    advanceASecond();
    expect([await lookupStatus(token), await getsToken(api.service, id, secret)]).toEqual([401, false]);
    const on = await api.request('POST', `/clients/${id}/enable`);
    expect([on.status, on.body.data.is_disabled]).toEqual([200, false]);
    advanceASecond();
    expect([await lookupStatus(token), await getsToken(api.service, id, secret)]).toEqual([200, true]);
    // The second grant within a minute is counted in an entry at its end.
    expect((await api.auditEntriesOf(id)).map(({ what }) => what)).toEqual([
      'client.created',
      'token.granted',
      'client.disabled',
      'access.refused',
      'client.enabled',
    ]);
  });

  test('a deleted client is 404, its tokens are rejected within a second, its audit entries remain', async () => {
    const { id, secret } = await createClient();
    const token = await api.service.grant({ clientId: id, secret });
    await api.service.db.engine.access.recordClientUsage([id], api.service.clock.now());
    expect((await api.request('DELETE', `/clients/${id}`)).status).toBe(204);
    advanceASecond();
    expect([await lookupStatus(token), await getsToken(api.service, id, secret)]).toEqual([401, false]);
    expect((await api.request('GET', `/clients/${id}`)).status).toBe(404);
    expect((await api.service.db.engine.access.clientUsage()).has(id)).toBe(false);
    const last = (await api.auditEntriesOf(id)).at(-1);
    expect(last).toMatchObject({ what: 'client.deleted', detail: { before: { name: RIGHTS.name } } });
  });

  test.each([
    ['POST', '/disable', undefined],
    ['DELETE', '', undefined],
    ['PUT', '', { scopes: ['users:read'] }],
  ])('a client cannot lock itself out: %s %s', async (method, path, data) => {
    const own = `/clients/${api.admin.clientId}`;
    const refused = await api.request(method, own + path, { data });
    expect([refused.status, refused.body.errors[0]?.detail]).toEqual([
      422,
      expect.stringContaining('is the client of this request, which would lock itself out'),
    ]);
    advanceASecond();
    expect((await api.request('PUT', own, { data: { scopes: ['admin', 'users:read'] } })).status).toBe(200);
    expect((await api.request('POST', `${own}/enable`)).status).toBe(200);
  });
});

describe('the last use of a client', () => {
  test('the last use of a client is reported to the minute, and recording it leaves the version unchanged', async () => {
    const { id } = await createClient();
    const { access } = api.service.db.engine;
    const version = (await access.state(undefined))?.version;
    const at = api.service.clock.now();
    await access.recordClientUsage([id, 'nobody'], at);
    await access.recordClientUsage([id], at - 1);
    expect((await access.state(undefined))?.version).toBe(version);
    const response = await api.request('GET', `/clients/${id}/use`);
    expect(response.body.data.last_used_at).toBe(new Date(at).toISOString());
    const listed = (await api.listAll('/clients')).find((each) => each.id === id);
    expect(listed?.last_used_at).toBe(new Date(at).toISOString());
    expect((await access.clientUsage()).has('nobody')).toBe(false);
  });
});

test('list-clients returns all clients in pages of two, ordered by ID, each with its realms', async () => {
  const { db } = api.service;
  const realms = [fixture.realm, (await createFixture(db)).realm, (await createFixture(db)).realm].sort();
  for (const some of [realms, realms.slice(1), realms.slice(2)])
    await createClient({ ...RIGHTS, realms: some });
  const listed = await api.listAll('/clients?page%5Blimit%5D=2');
  const table = (await db.engine.access.state(undefined))?.clients ?? [];
  const expected = table.map(({ clientId, realms: of }) => [clientId, of === '*' ? of : [...of]]).sort();
  expect(listed.map((client) => [client.id, client.realms])).toEqual(expected as never);
});

test('an audit entry of a client names the caller, its address, the request and the new values', async () => {
  const response = await api.request('POST', '/clients', {
    data: RIGHTS,
    headers: { 'X-Request-Id': 'request-1' },
  });
  secrets.push(String(response.body.data.client_secret));
  const [entry, ...more] = await api.auditEntriesOf(response.body.data.id);
  expect(more).toEqual([]);
  expect(entry).toMatchObject({
    what: 'client.created',
    actor: api.admin.clientId,
    address: '127.0.0.1',
    request_id: 'request-1',
    detail: {
      after: { name: 'The shop', scope: 'oidc-profile-infos:read', realms: '*', is_disabled: false },
    },
  });
});

test('each change of a client is an audit entry with the rights before and after', async () => {
  const { id } = await createClient({ ...RIGHTS, realms: [fixture.realm] });
  for (const [method, path, data] of [
    ['PUT', '', { name: 'Other' }],
    ['POST', '/rotate', {}],
    ['POST', '/disable', undefined],
    ['POST', '/enable', undefined],
  ] as const) {
    expect((await api.request(method, `/clients/${id}${path}`, { data })).status).toBe(200);
  }
  const rights = { scope: RIGHTS.scopes.join(), realms: [fixture.realm] };
  const first = { name: RIGHTS.name, ...rights, is_disabled: false };
  const other = { ...first, name: 'Other' };
  const off = { ...other, is_disabled: true };
  expect((await api.auditEntriesOf(id)).map(({ what, detail }) => [what, detail])).toEqual([
    ['client.created', { after: first }],
    ['client.changed', { before: first, after: other }],
    ['client.rotated', { before: other, after: other }],
    ['client.disabled', { before: other, after: off }],
    ['client.enabled', { before: off, after: other }],
  ]);
});

test('a client secret is only in the response that created it, not in the log or the database', async () => {
  await api.listAll('/clients');
  await api.listAll('/log');
  expect(secrets.length).toBeGreaterThan(10);
  for (const secret of secrets) {
    expect(api.responseTexts.filter((text) => text.includes(secret))).toHaveLength(1);
  }
  expect(JSON.stringify(api.service.log)).not.toContain('ars_');
  expect(await api.service.database.findPlaintext(secrets)).toEqual([]);
}, 300_000);
