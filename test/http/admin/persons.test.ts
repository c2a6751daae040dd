import { describe, expect, test } from 'bun:test';
import { LIMITS } from '../../../src/model/limits.ts';
import { user as users } from '../../../src/model/resources.ts';
import type { Engine } from '../../../src/ops/store/open.ts';
import { createFixture, type Fixture } from '../../support/service.ts';
import { type AdminItem, startAdminApi } from './admin_api.ts';

/** Runs once, before the next list is read from the store. */
let beforeList: (() => Promise<unknown>) | undefined;

function interruptingLists(engine: Engine): Engine {
  const list: Engine['records']['list'] = async (...wanted) => {
    const action = beforeList;
    beforeList = undefined;
    await action?.();
    return engine.records.list(...wanted);
  };
  return { ...engine, records: { ...engine.records, list } };
}

const api = await startAdminApi({}, interruptingLists);
const writer = await api.service.token('users:read users:write');

const idsOf = ({ realm, user }: Pick<Fixture, 'realm' | 'user'>) => ({ realm_id: realm, user_id: user });
const userPath = ({ realm, user }: Fixture) =>
  `/v2/authentication-realms/${realm}/${users.collection}/${user}`;

const logEntriesOf = ({ realm, user }: Fixture) => api.listAll(`/realms/${realm}/log?user_id=${user}`);

/** The different personal values of log entries that have some. */
const personalValues = (entries: readonly AdminItem[]) =>
  new Set(entries.flatMap(({ personal }) => (personal === null ? [] : [personal])));

describe('create-erasure', () => {
  test('an erasure removes the record, the personal values of the log, and the bytes in the database', async () => {
    const fixture = await createFixture(api.service.db);
    const name = `Ada ${crypto.randomUUID()}`;
    const data = { type: users.type, name };
    await api.service.put(userPath(fixture), writer, { data });
    const erased = await api.request('POST', '/erasures', {
      data: idsOf(fixture),
      headers: { 'X-Request-Id': 'request-9' },
    });
    expect([erased.status, erased.body.data]).toMatchObject([
      201,
      { id: fixture.user, type: 'erasure', realm_id: fixture.realm, erased_at: expect.any(String) },
    ]);
    expect((await api.service.get(userPath(fixture), writer)).status).toBe(404);
    expect(personalValues(await logEntriesOf(fixture))).toEqual(new Set(['erased']));
    expect(await api.auditEntriesOf(fixture.user)).toMatchObject([
      { what: 'user.erased', actor: api.admin.clientId, address: '127.0.0.1', request_id: 'request-9' },
    ]);
    const read = await api.request('GET', erased.headers.get('location') ?? '');
    const { files, ...recorded } = erased.body.data as unknown as { files: string };
    expect([read.status, read.body.data as object]).toEqual([200, recorded]);
    const isEmbedded = api.service.database.address.engine === 'sqlite';
    expect(files).toBe(isEmbedded ? 'overwritten' : 'archived');
    if (isEmbedded) expect(await api.service.database.findPlaintext([name])).toEqual([]);
  }, 300_000);

  test('a repeated erasure is 201 again', async () => {
    const fixture = await createFixture(api.service.db);
    for (let round = 0; round < 2; round += 1) {
      expect((await api.request('POST', '/erasures', { data: idsOf(fixture) })).status).toBe(201);
    }
  }, 300_000);

  test('get-erasure is 404 for a user that was not erased and for malformed IDs', async () => {
    const { realm, user } = await createFixture(api.service.db);
    for (const path of [`${realm}/${user}`, `x/${user}`, `${realm}/x`]) {
      expect((await api.request('GET', `/erasures/${path}`)).status).toBe(404);
    }
  });
});

describe('subject access', () => {
  test('subject access returns the records and log entries of the user, with an entry for the request itself', async () => {
    const fixture = await createFixture(api.service.db);
    await api.service.put(userPath(fixture), writer, { data: { type: users.type, name: 'Grace' } });
    const response = await api.request('POST', '/subject-access', { data: idsOf(fixture) });
    expect(response.status).toBe(200);
    const { records, entries } = response.body.data as unknown as Record<'records' | 'entries', object[]>;
    expect(records).toMatchObject([
      { type: users.type, name: 'Grace', id: fixture.user },
      { subject: fixture.subject },
      { username: fixture.username },
    ]);
    expect(JSON.stringify(response.body)).not.toContain('argon2');
    expect(entries.at(-1)).toMatchObject({ what: 'user.told', user_id: fixture.user });
    expect(entries).toContainEqual(
      expect.objectContaining({
        what: 'user-authentication-info.updated',
        personal: { before: { name: 'Jane Doe' }, after: { name: 'Grace' } },
      }),
    );
  });

  test('subject access to more entries than a response holds is 422, and names the command for it', async () => {
    const fixture = await createFixture(api.service.db);
    const rounds = LIMITS.subjectAccessEntriesMax / 50;
    for (let round = 0; round < rounds; round += 1) {
      await Promise.all(
        Array.from({ length: 50 }, (_, at) =>
          api.service.put(userPath(fixture), writer, { data: { type: users.type, name: `${round} ${at}` } }),
        ),
      );
    }
    const refused = await api.request('POST', '/subject-access', { data: idsOf(fixture) });
    expect([refused.status, refused.body.errors[0]?.detail]).toEqual([
      422,
      expect.stringContaining('authrealm subject-access'),
    ]);
  }, 300_000);
});

describe('a user that is deleted during the request', () => {
  async function requestDuringDeletion(path: string) {
    const fixture = await createFixture(api.service.db);
    let deletion: Response | undefined;
    beforeList = async () => {
      deletion = await api.service.del(userPath(fixture), writer);
    };
    const response = await api.request('POST', path, { data: idsOf(fixture) });
    expect(deletion?.status).toBe(204);
    return { response, entries: await logEntriesOf(fixture), fixture };
  }

  test('subject access returns its record and its log entries', async () => {
    const { response, entries, fixture } = await requestDuringDeletion('/subject-access');
    expect([response.status, response.body.data]).toMatchObject([
      200,
      {
        records: [{ type: users.type, id: fixture.user }],
        entries: [...entries.map(({ what, object }) => ({ what, object })), { what: 'user.told' }],
      },
    ]);
  });

  test('an erasure removes the personal values of its log', async () => {
    const { response, entries } = await requestDuringDeletion('/erasures');
    expect(response.status).toBe(201);
    expect(personalValues(entries)).toEqual(new Set(['erased']));
  });
});

describe.each(['/erasures', '/subject-access'])('POST %s', (path) => {
  test(`POST ${path} names every missing and every malformed ID`, async () => {
    const empty = await api.request('POST', path, { data: {} });
    expect([empty.status, empty.body.errors.map(({ source }) => source?.pointer)]).toEqual([
      400,
      ['/data/realm_id', '/data/user_id'],
    ]);
    const malformed = await api.request('POST', path, { data: { realm_id: 'x', user_id: 1 } });
    expect([malformed.status, malformed.body.errors.map(({ source }) => source?.pointer)]).toEqual([
      400,
      ['/data/realm_id', '/data/user_id'],
    ]);
  });

  test(`POST ${path} is 422 for a user without data`, async () => {
    const { realm } = await createFixture(api.service.db);
    const unknownUser = { realm_id: realm, user_id: crypto.randomUUID() };
    const refused = await api.request('POST', path, { data: unknownUser });
    expect([refused.status, refused.body.errors[0]?.source]).toEqual([422, { pointer: '/data/user_id' }]);
  });
});

test('get-metrics returns the metric families, without client IDs', async () => {
  const { status, body, text } = await api.request('GET', '/metrics');
  expect(status).toBe(200);
  const { families } = body.data as unknown as { families: { name: string; kind: string }[] };
  expect(families.length).toBeGreaterThan(5);
  for (const { name } of families) expect(name).toMatch(/^[a-z_]+$/);
  expect(text).not.toContain(api.admin.clientId);
});
