import { describe, expect, test } from 'bun:test';
import { NIL_UUID } from '../../../src/model/id.ts';
import { realm as realms, user as users } from '../../../src/model/resources.ts';
import { createFixture } from '../../support/service.ts';
import { type AdminItem, startAdminApi } from './admin_api.ts';

const api = await startAdminApi();
const fixture = await createFixture(api.service.db);
const writer = await api.service.token('realms:write users:write');

const usersPath = () => `/v2/authentication-realms/${fixture.realm}/${users.collection}`;

async function createUser(name: string): Promise<string> {
  const data = { type: users.type, name, email: 'joe@example.com' };
  const headers = { 'X-Request-Id': 'request-1' };
  const created = await api.service.post(usersPath(), writer, { data }, headers);
  return ((await created.json()) as { data: { id: string } }).data.id;
}

const actionsOf = (entries: readonly AdminItem[]) => entries.map(({ what }) => what);

describe('list-realm-log', () => {
  test('a realm log entry has the change, its caller and address, and the values before and after', async () => {
    const id = await createUser('Joe Before');
    const data = { type: users.type, name: 'Joe After' };
    await api.service.put(`${usersPath()}/${id}`, writer, { data });
    const entries = await api.listAll(`/realms/${fixture.realm}/log?user_id=${id.toUpperCase()}`);
    expect(actionsOf(entries)).toEqual([
      'user-authentication-info.created',
      'user-authentication-info.updated',
    ]);
    expect(entries[0]).toMatchObject({
      type: 'log_entry',
      address: '127.0.0.1',
      request_id: 'request-1',
      realm_id: fixture.realm,
      user_id: id,
      object: id,
      personal: { after: { name: 'Joe Before', email: 'joe@example.com' } },
      tag: expect.stringMatching(/^[0-9a-f]{32}$/),
    });
    expect(entries[1]?.personal).toEqual({ before: { name: 'Joe Before' }, after: { name: 'Joe After' } });
  });

  test('a realm log of one user contains no entry about another user, on any page', async () => {
    const [one, other] = [await createUser('One'), await createUser('Other')];
    for (const name of ['A', 'B', 'C']) {
      await api.service.put(`${usersPath()}/${one}`, writer, { data: { type: users.type, name } });
    }
    const path = `/realms/${fixture.realm}/log?page%5Blimit%5D=2&user_id=${one}`;
    const entries = await api.listAll(path);
    expect(entries).toHaveLength(4);
    expect(new Set(entries.map(({ user_id }) => user_id))).toEqual(new Set([one]));
    const whole = await api.listAll(`/realms/${fixture.realm}/log?page%5Blimit%5D=3`);
    expect(whole.map(({ user_id }) => user_id)).toContain(other);
    const positions = whole.map(({ id }) => Number(id));
    expect(positions).toEqual([...positions].sort((left, right) => left - right));
    expect(new Set(positions).size).toBe(positions.length);
  });

  test('the log of a deleted realm remains readable', async () => {
    const data = { type: realms.type, name: 'Gone' };
    const created = await api.service.post('/v2/authentication-realms', writer, { data });
    const { id } = ((await created.json()) as { data: { id: string } }).data;
    expect((await api.service.del(`/v2/authentication-realms/${id}`, writer)).status).toBe(204);
    expect(actionsOf(await api.listAll(`/realms/${id}/log`))).toEqual([
      'authentication-realm.created',
      'authentication-realm.deleted',
    ]);
  });

  test.each([
    ['that does not exist', '01900000-0000-7000-8000-000000000000'],
    ['with a malformed ID', 'x'],
    ['with the nil UUID', NIL_UUID],
  ])('the log of a realm %s is 404', async (_, id) => {
    expect((await api.request('GET', `/realms/${id}/log`)).status).toBe(404);
  });
});

test('list-log returns the entries after any position', async () => {
  const all = await api.listAll('/log?page%5Blimit%5D=2');
  expect(actionsOf(all)).toContain('token.granted');
  const middle = all[Math.floor(all.length / 2)]?.id ?? '';
  const after = await api.listAll(`/log?page%5Bafter%5D=${middle}`);
  expect(after).toEqual(all.slice(all.findIndex(({ id }) => id === middle) + 1));
});

test('list-log-heads returns the position, tag and number of entries of each log', async () => {
  const heads = await api.listAll('/log/heads?page%5Blimit%5D=1');
  expect(heads[0]?.id).toBe(NIL_UUID);
  expect(heads.map(({ id }) => id)).toContain(fixture.realm);
  for (const { id, seq, tag, entries, begins_after } of heads) {
    const log = await api.listAll(id === NIL_UUID ? '/log' : `/realms/${id}/log`);
    const last = log.at(-1);
    expect([seq, tag, entries]).toEqual([Number(last?.id), last?.tag ?? null, log.length]);
    expect(begins_after).toBe(0);
  }
});
