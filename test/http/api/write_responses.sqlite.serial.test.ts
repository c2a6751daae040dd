import { describe, expect, test } from 'bun:test';
import { membersOf, shownMembers } from '../../../src/model/resource.ts';
import { RESOURCES } from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import {
  createParents,
  createRecord,
  type Data,
  FULL_SCOPE,
  KINDS,
  type Kind,
  OFFLINE,
  type ParentIds,
  type RecordBody,
  uniqueWord,
} from '../../support/resource_cases.ts';
import { comparableResponse, startService } from '../../support/service.ts';

/** The responses of successful writes, for every resource. */

const service = await startService(OFFLINE);
const token = await service.token(FULL_SCOPE);
const home = await createParents(service, token);
const installation = await service.db.engine.access.storeId();

const INSTANT = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const ID = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/);

test('the resource cases cover every resource and every writable member', () => {
  expect(KINDS.map(({ resource }) => resource)).toEqual([...RESOURCES]);
  for (const { resource, forms, required } of KINDS) {
    const writable = membersOf(resource)
      .filter(({ annotation }) => annotation.writableBy !== 'none' && annotation.within !== 'relationships')
      .map(({ name }) => name);
    expect(Object.keys(forms).sort()).toEqual([...writable, ...Object.keys(resource.inputs ?? {})].sort());
    expect(Object.keys(forms)).toEqual(expect.arrayContaining([...required]));
  }
});

/** The response headers of a POST or PUT, without those of every response. */
function headersOf(answer: Response): Record<string, string> {
  const plain = ['content-length', 'date', 'x-request-id'];
  return Object.fromEntries([...answer.headers].filter(([name]) => !plain.includes(name)));
}

const isShown = ({ resource }: Kind, member: string) =>
  shownMembers(resource).some(({ name }) => name === member);

function selfOf({ resource, collection }: Kind, id: string): string {
  const path = `${collection(home)}/${id}`;
  return service.url + (resource.selfPrefix === '' ? path.slice('/v2'.length) : path);
}

describe.each([...KINDS])('$name', (kind) => {
  test(`POST of a ${kind.name} is 201 with its members, links and Location`, async () => {
    const data = kind.fresh(home);
    const answer = await service.post(kind.collection(home), token, { data });
    expect(answer.status).toBe(201);
    const body = (await answer.json()) as RecordBody;
    const { id } = body.data;
    const shown = kind.shown(data, installation);
    const links = Object.entries(kind.links?.(home, id, installation) ?? {});
    expect(body).toEqual({
      data: {
        id: ID,
        type: kind.resource.type,
        ...shown,
        meta: { ...(shown.meta as Data), created_at: INSTANT, updated_at: INSTANT },
      } as never,
      links: {
        self: selfOf(kind, id),
        ...Object.fromEntries(links.map(([name, path]) => [name, service.url + path])),
      },
    });
    expect(body.data.meta.updated_at).toBe(body.data.meta.created_at as string);
    expect(headersOf(answer)).toEqual({
      'cache-control': 'private, no-cache',
      'content-type': 'application/json',
      etag: expect.stringMatching(/^"[0-9a-f]{16}-[A-Za-z0-9_-]{8}"$/),
      location: `${service.url}${kind.collection(home)}/${id}`,
    });
  });

  test(`Location, links.self and the path of a ${kind.name} return the same bytes and ETag`, async () => {
    const answer = await service.post(kind.collection(home), token, { data: kind.fresh(home) });
    const text = await answer.clone().text();
    const { links, data } = (await answer.json()) as RecordBody;
    const location = answer.headers.get('location') ?? '';
    for (const address of [location, links.self ?? '', `${kind.collection(home)}/${data.id}`]) {
      const found = await service.get(address, token);
      expect([found.status, await found.text()]).toEqual([200, text]);
      expect(found.headers.get('etag')).toBe(answer.headers.get('etag') as string);
    }
  });

  test(`PUT of a ${kind.name} is 200, and changes only the members in the body`, async () => {
    const { path, etag, body } = await createRecord(service, token, { kind, home });
    service.clock.advance(5);
    const changes = kind.changes();
    const answer = await service.put(path, token, { data: { type: kind.resource.type, ...changes } });
    expect(answer.status).toBe(200);
    const after = (await answer.clone().json()) as RecordBody;
    const visible = Object.entries(changes).filter(([name]) => isShown(kind, name));
    expect(after).toEqual({
      data: {
        ...body.data,
        ...Object.fromEntries(visible),
        meta: { ...body.data.meta, updated_at: after.data.meta.updated_at as string },
      },
      links: body.links,
    });
    expect((after.data.meta.updated_at ?? '') > (body.data.meta.updated_at ?? '')).toBe(true);
    expect(headersOf(answer)).toEqual({
      'cache-control': 'private, no-cache',
      'content-type': 'application/json',
      etag: expect.stringMatching(/^"[0-9a-f]{16}-[A-Za-z0-9_-]{8}"$/),
    });
    expect(answer.headers.get('etag')).not.toBe(etag);
    expect(await comparableResponse(await service.get(path, token))).toBe(await comparableResponse(answer));
  });

  test(`PUT changes each member of a ${kind.name} alone; without members only updated_at`, async () => {
    const { path, body } = await createRecord(service, token, { kind, home });
    let last = body;
    for (const [name, value] of [...Object.entries(kind.changes()), ['type', kind.resource.type] as const]) {
      service.clock.advance(5);
      const answer = await service.put(path, token, { data: { type: kind.resource.type, [name]: value } });
      expect([name, answer.status]).toEqual([name, 200]);
      const after = (await answer.json()) as RecordBody;
      const meta = { ...last.data.meta, updated_at: after.data.meta.updated_at as string };
      expect(after.data).toEqual({ ...last.data, ...(isShown(kind, name) ? { [name]: value } : {}), meta });
      expect((after.data.meta.updated_at ?? '') > (last.data.meta.updated_at ?? '')).toBe(true);
      last = after;
    }
  });

  test(`DELETE of a ${kind.name} is 204 without a body; later requests are 404`, async () => {
    const { path, id } = await createRecord(service, token, { kind, home });
    const answer = await service.del(path, token);
    expect([answer.status, await answer.text()]).toEqual([204, '']);
    expect(headersOf(answer)).toEqual({});
    const absent = `${kind.collection(home)}/${systemClock.mintId()}`;
    const absent404 = await comparableResponse(await service.get(absent, token));
    expect(absent404).toStartWith('[404,');
    const put = { data: { type: kind.resource.type, id } };
    expect(await comparableResponse(await service.get(path, token))).toBe(absent404);
    expect(await comparableResponse(await service.put(path, token, put))).toBe(absent404);
    expect(await comparableResponse(await service.del(path, token))).toBe(absent404);
  });

  test(`writes of a ${kind.name} accept trailing and doubled slashes without a redirect`, async () => {
    const spellings = (path: string) => [`${path}/`, path.replace('/v2/', '/v2//'), `/${path}//`];
    for (const [index, collection] of spellings(kind.collection(home)).entries()) {
      const made = await service.post(collection, token, { data: kind.fresh(home) });
      expect(made.status).toBe(201);
      const { id } = ((await made.json()) as RecordBody).data;
      const item = spellings(`${kind.collection(home)}/${id}`)[index] ?? '';
      expect((await service.put(item, token, { data: { type: kind.resource.type } })).status).toBe(200);
      expect((await service.del(item, token)).status).toBe(204);
    }
  });

  test(`writes of a ${kind.name} accept IDs of the path in any letter case`, async () => {
    const { id } = await createRecord(service, token, { kind, home });
    const upper = Object.fromEntries(Object.entries(home).map(([name, each]) => [name, each.toUpperCase()]));
    const path = `${kind.collection(upper as unknown as ParentIds)}/${id.toUpperCase()}`;
    expect((await service.put(path, token, { data: { type: kind.resource.type } })).status).toBe(200);
    expect((await service.del(path, token)).status).toBe(204);
  });
});

test('the unversioned path of a password profile info accepts PUT and DELETE', async () => {
  const kind = KINDS[5];
  const { path } = await createRecord(service, token, { kind, home });
  const bare = path.slice('/v2'.length);
  const answer = await service.put(bare, token, {
    data: { type: kind.resource.type, username: uniqueWord('bare') },
  });
  expect(answer.status).toBe(200);
  expect(await comparableResponse(await service.get(path, token))).toBe(await comparableResponse(answer));
  expect((await service.del(bare, token)).status).toBe(204);
});
