import { describe, expect, test } from 'bun:test';
import { LIMITS } from '../../../src/model/limits.ts';
import type { JsonObject } from '../../support/json_schema.ts';
import { operationsOf } from '../../support/openapi_client.ts';
import { createFixture } from '../../support/service.ts';
import { startAdminApi } from './admin_api.ts';

/** What clients and webhook targets have in common: conditional, concurrent and empty changes. */

const api = await startAdminApi();
const { realm } = await createFixture(api.service.db);
const operations = operationsOf((await (await api.service.get('/openapi.json')).json()) as JsonObject);

const CLIENT = {
  name: 'client',
  data: { name: 'The shop', scopes: ['oidc-profile-infos:read'], realms: '*' },
  changes: [{ name: 'Other' }, { scopes: ['users:read'] }, { realms: [realm] }],
  conditional: ['delete-client', 'disable-client', 'enable-client', 'rotate-client', 'update-client'],
  // These document 422: by them a client could lock itself out.
  conflicting: ['delete-client', 'disable-client', 'update-client'],
};
const WEBHOOK = {
  name: 'webhook',
  data: { name: 'Shop search', url: 'https://search.example/hook', events: '*', realms: '*' },
  changes: [{ name: 'Other' }, { events_max: 7 }, { realms: [realm] }, { with_data: true }],
  conditional: ['delete-webhook', 'disable-webhook', 'enable-webhook', 'update-webhook'],
  conflicting: ['redeliver-webhook', 'update-webhook'],
};

async function create({ name, data }: { readonly name: string; readonly data: object }) {
  const { status, body, headers } = await api.request('POST', `/${name}s`, { data });
  expect(status).toBe(201);
  const { id } = body.data;
  return { id, path: `/${name}s/${id}`, etag: headers.get('etag') ?? '' };
}

describe.each([CLIENT, WEBHOOK])('$name', (kind) => {
  const { name, changes, conditional, conflicting } = kind;

  test(`an empty update and the enabling of an enabled ${name} change nothing and log nothing`, async () => {
    const { id, path, etag } = await create(kind);
    for (const [method, below, data] of [
      ['PUT', '', {}],
      ['POST', '/enable', undefined],
    ] as const) {
      const unchanged = await api.request(method, path + below, { data });
      expect([unchanged.status, unchanged.headers.get('etag')]).toEqual([200, etag]);
    }
    expect((await api.auditEntriesOf(id)).map(({ what }) => what)).toEqual([`${name}.created`]);
  });

  test(`of eight concurrent updates of a ${name} with the same If-Match one succeeds, the others are 412`, async () => {
    const { path, etag } = await create(kind);
    const seen = { headers: { 'If-Match': etag } };
    const names = Array.from({ length: 8 }, (_, at) => `name ${at}`);
    const responses = await Promise.all(
      names.map((each) => api.request('PUT', path, { data: { name: each }, ...seen })),
    );
    expect(responses.map(({ status }) => status).sort()).toEqual([200, ...new Array(7).fill(412)]);
    const winner = responses.find(({ status }) => status === 200);
    const read = await api.request('GET', path);
    const etagNow = read.headers.get('etag') ?? '';
    expect([read.text, etagNow]).toEqual([winner?.text ?? '', winner?.headers.get('etag') ?? '']);
    expect((await api.request('DELETE', path, seen)).status).toBe(412);
    expect((await api.request('DELETE', path, { headers: { 'If-Match': etagNow } })).status).toBe(204);
  });

  test(`an operation that changes a ${name} checks If-Match exactly if it documents it, and documents its conflicts`, async () => {
    // A test event is sent to the URL of its target.
    const changing = operations.filter(
      ({ id, method, path }) =>
        method !== 'get' && path.includes(`/${name}s/{${name}_id}`) && id !== 'test-webhook',
    );
    const results = await Promise.all(
      changing.map(async ({ id: operation, method, path, body, parameters, responses }) => {
        const { id } = await create(kind);
        const url = api.service.url + path.replace(`{${name}_id}`, id);
        const sent = { headers: { 'If-Match': '"stale"' }, ...(body ? { data: {} } : {}) };
        const { status } = await api.request(method.toUpperCase(), url, sent);
        const isNamed = parameters.some((each) => each.in === 'header' && each.name === 'If-Match');
        return [operation, status === 412, isNamed, '412' in responses, '422' in responses];
      }),
    );
    expect(results).toEqual(
      changing.map(({ id }) => {
        const isConditional = conditional.includes(id);
        return [id, isConditional, isConditional, isConditional, conflicting.includes(id)];
      }),
    );
    expect(changing.map(({ id }) => id)).toEqual(expect.arrayContaining(conditional));
  });

  test(`concurrent updates of a ${name} without If-Match keep the changes of each other`, async () => {
    const { path } = await create(kind);
    await Promise.all(changes.map((data) => api.request('PUT', path, { data })));
    expect((await api.request('GET', path)).body.data).toMatchObject(Object.assign({}, ...changes));
  });

  test.each([[-1], [LIMITS.secretOverlapHoursMax * 3_600 + 1], [1.5], ['1'], [null]])(
    `the rotation of a ${name} rejects an overlap of %p, and changes nothing`,
    async (overlap) => {
      const { path, etag } = await create(kind);
      const refused = await api.request('POST', `${path}/rotate`, { data: { overlap_seconds: overlap } });
      const pointers = refused.body.errors.map(({ source }) => source?.pointer);
      expect([refused.status, pointers]).toEqual([400, ['/data/overlap_seconds']]);
      expect((await api.request('GET', path)).headers.get('etag')).toBe(etag);
    },
  );
});

test.each([
  ['/clients', 'page[limit]=0'],
  ['/clients', 'page[limit]=101'],
  ['/clients', 'page[limit]=ten'],
  ['/clients', 'page[after]=a b'],
  ['/clients', 'page[limit]=1&page[limit]=1'],
  ['/webhooks', 'page[limit]=0'],
  ['/webhooks', 'page[after]=a b'],
  ['/webhooks/ID/deliveries', 'page[limit]=101'],
  ['/webhooks/ID/deliveries', 'page[after]=1'],
  ['/webhooks/ID/dead-letters', 'page[after]=1'],
  [`/realms/${realm}/log`, 'user_id=x'],
  [`/realms/${realm}/log`, 'page[after]=-1'],
  [`/realms/${realm}/log`, 'page[after]=1e3'],
])('the list %s rejects the query %s, and names the parameter', async (list, query) => {
  const { id } = await create(WEBHOOK);
  const { status, body } = await api.request('GET', `${list.replace('ID', id)}?${encodeURI(query)}`);
  const parameters = body.errors.map(({ source }) => source?.parameter);
  expect([status, parameters]).toEqual([400, [query.split('=')[0]]]);
});
