import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { LIMITS } from '../../../src/domain/limits.ts';
import { user as users } from '../../../src/domain/resources.ts';
import { type Planted, plant } from '../../support/service.ts';
import { type Office, openOffice } from './office.ts';

let office: Office;
let writer: string;

beforeAll(async () => {
  office = await openOffice();
  writer = await office.service.token('users:read users:write');
});
afterAll(() => office.service.stop());

const named = ({ realm, user }: Pick<Planted, 'realm' | 'user'>) => ({ realm_id: realm, user_id: user });
const pathOf = ({ realm, user }: Planted) => `/v2/authentication-realms/${realm}/${users.collection}/${user}`;

describe('an erasure', () => {
  test('leaves nothing that tells of the person: no record, no readable entry, no byte', async () => {
    const planted = await plant(office.service.db);
    const name = `Ada ${crypto.randomUUID()}`;
    const data = { type: users.type, name };
    await office.service.put(pathOf(planted), writer, { data });
    const done = await office.ask('POST', '/erasures', {
      data: named(planted),
      headers: { 'X-Request-Id': 'desk-9' },
    });
    expect([done.status, done.body.data]).toMatchObject([
      201,
      { id: planted.user, type: 'erasure', realm_id: planted.realm, erased_at: expect.any(String) },
    ]);
    expect((await office.service.get(pathOf(planted), writer)).status).toBe(404);
    const entries = await office.all(`/realms/${planted.realm}/log?user_id=${planted.user}`);
    const personal = entries.flatMap((entry) => (entry.personal === null ? [] : [entry.personal]));
    expect(new Set(personal)).toEqual(new Set(['erased']));
    expect(await office.actsOn(planted.user)).toMatchObject([
      { what: 'user.erased', actor: office.admin.clientId, address: '127.0.0.1', request_id: 'desk-9' },
    ]);
    const read = await office.ask('GET', done.headers.get('location') ?? '');
    let { files, ...recorded } = done.body.data as unknown as { files: { state: string } };
    expect([read.status, read.body.data as object]).toEqual([200, recorded]);
    // Its files may take longer than an answer waits.
    while (files.state === 'pending') {
      const again = await office.ask('POST', '/erasures', { data: named(planted) });
      ({ files } = again.body.data as unknown as { files: { state: string } });
    }
    if (files.state === 'clean') expect(await office.service.database.stored([name])).toEqual([]);
    else expect(files).toMatchObject({ state: 'archived', position: expect.any(String) });
  }, 300_000);

  test('is done again where it is asked for again', async () => {
    const planted = await plant(office.service.db);
    for (let round = 0; round < 2; round += 1) {
      expect((await office.ask('POST', '/erasures', { data: named(planted) })).status).toBe(201);
    }
  }, 300_000);

  test('404 for one that never was', async () => {
    const { realm, user } = await plant(office.service.db);
    for (const path of [`${realm}/${user}`, `x/${user}`, `${realm}/x`]) {
      expect((await office.ask('GET', `/erasures/${path}`)).status).toBe(404);
    }
  });
});

describe('subject access', () => {
  test('tells the records and what the log says, and that it was asked for', async () => {
    const planted = await plant(office.service.db);
    await office.service.put(pathOf(planted), writer, { data: { type: users.type, name: 'Grace' } });
    const told = await office.ask('POST', '/subject-access', { data: named(planted) });
    expect(told.status).toBe(200);
    const { records, entries } = told.body.data as unknown as Record<'records' | 'entries', object[]>;
    expect(records).toMatchObject([
      { type: users.type, name: 'Grace', id: planted.user },
      { subject: planted.subject },
      { username: planted.username },
    ]);
    expect(JSON.stringify(told.body)).not.toContain('argon2');
    expect(entries.at(-1)).toMatchObject({ what: 'user.told', user_id: planted.user });
    expect(entries).toContainEqual(
      expect.objectContaining({
        what: 'user-authentication-info.updated',
        personal: { before: { name: 'Jane Doe' }, after: { name: 'Grace' } },
      }),
    );
  });

  test('of more than one answer tells is refused, and says what tells it', async () => {
    const planted = await plant(office.service.db);
    const rounds = LIMITS.subjectAccessEntriesMax / 50;
    for (let round = 0; round < rounds; round += 1) {
      await Promise.all(
        Array.from({ length: 50 }, (_, at) =>
          office.service.put(pathOf(planted), writer, { data: { type: users.type, name: `${round} ${at}` } }),
        ),
      );
    }
    const refused = await office.ask('POST', '/subject-access', { data: named(planted) });
    expect([refused.status, refused.body.errors[0]?.detail]).toEqual([
      422,
      expect.stringContaining('authrealm subject-access'),
    ]);
  }, 300_000);
});

describe.each(['/erasures', '/subject-access'])('%s', (path) => {
  test('names what is wrong', async () => {
    const none = await office.ask('POST', path, { data: {} });
    expect([none.status, none.body.errors.map(({ source }) => source?.pointer)]).toEqual([
      400,
      ['/data/realm_id', '/data/user_id'],
    ]);
    const broken = await office.ask('POST', path, { data: { realm_id: 'x', user_id: 1 } });
    expect([broken.status, broken.body.errors.map(({ source }) => source?.pointer)]).toEqual([
      400,
      ['/data/realm_id', '/data/user_id'],
    ]);
  });

  test('422 for a user that nothing tells of', async () => {
    const { realm } = await plant(office.service.db);
    const nobody = { realm_id: realm, user_id: crypto.randomUUID() };
    const refused = await office.ask('POST', path, { data: nobody });
    expect([refused.status, refused.body.errors[0]?.source]).toEqual([422, { pointer: '/data/user_id' }]);
  });
});

test('metrics tell what the service measures, without a name of anybody', async () => {
  const { status, body, text } = await office.ask('GET', '/metrics');
  expect(status).toBe(200);
  const { families } = body.data as unknown as { families: { name: string; kind: string }[] };
  expect(families.length).toBeGreaterThan(5);
  for (const { name } of families) expect(name).toMatch(/^[a-z_]+$/);
  expect(text).not.toContain(office.admin.clientId);
});
