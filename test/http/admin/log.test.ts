import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { NIL_UUID } from '../../../src/domain/id.ts';
import { realm as realms, user as users } from '../../../src/domain/resources.ts';
import { type Planted, plant } from '../../support/service.ts';
import { type Item, type Office, openOffice } from './office.ts';

let office: Office;
let planted: Planted;
let writer: string;

beforeAll(async () => {
  office = await openOffice();
  planted = await plant(office.service.db);
  writer = await office.service.token('realms:write users:write');
});
afterAll(() => office.service.stop());

const usersPath = () => `/v2/authentication-realms/${planted.realm}/${users.collection}`;

async function makeUser(name: string): Promise<string> {
  const data = { type: users.type, name, email: 'joe@example.com' };
  const headers = { 'X-Request-Id': 'till-1' };
  const made = await office.service.post(usersPath(), writer, { data }, headers);
  return ((await made.json()) as { data: { id: string } }).data.id;
}

const what = (entries: readonly Item[]) => entries.map((entry) => entry.what);

describe('the log of a realm', () => {
  test('tells what was written, by whom, from where, before and after', async () => {
    const id = await makeUser('Joe Before');
    const data = { type: users.type, name: 'Joe After' };
    await office.service.put(`${usersPath()}/${id}`, writer, { data });
    const entries = await office.all(`/realms/${planted.realm}/log?user_id=${id.toUpperCase()}`);
    expect(what(entries)).toEqual(['user-authentication-info.created', 'user-authentication-info.updated']);
    expect(entries[0]).toMatchObject({
      type: 'log_entry',
      address: '127.0.0.1',
      request_id: 'till-1',
      realm_id: planted.realm,
      user_id: id,
      object: id,
      personal: { after: { name: 'Joe Before', email: 'joe@example.com' } },
      tag: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(entries[1]?.personal).toEqual({ before: { name: 'Joe Before' }, after: { name: 'Joe After' } });
  });

  test('of one user says nothing of another one, page by page', async () => {
    const [one, other] = [await makeUser('One'), await makeUser('Other')];
    for (const name of ['A', 'B', 'C']) {
      await office.service.put(`${usersPath()}/${one}`, writer, { data: { type: users.type, name } });
    }
    const path = `/realms/${planted.realm}/log?page%5Blimit%5D=2&user_id=${one}`;
    const entries = await office.all(path);
    expect(entries).toHaveLength(4);
    expect(new Set(entries.map(({ user_id }) => user_id))).toEqual(new Set([one]));
    const whole = await office.all(`/realms/${planted.realm}/log?page%5Blimit%5D=3`);
    expect(whole.map(({ user_id }) => user_id)).toContain(other);
    const places = whole.map(({ id }) => Number(id));
    expect(places).toEqual([...places].sort((left, right) => left - right));
    expect(new Set(places).size).toBe(places.length);
  });

  test('is still there when the realm is not', async () => {
    const data = { type: realms.type, name: 'Gone' };
    const made = await office.service.post('/v2/authentication-realms', writer, { data });
    const { id } = ((await made.json()) as { data: { id: string } }).data;
    expect((await office.service.del(`/v2/authentication-realms/${id}`, writer)).status).toBe(204);
    expect(what(await office.all(`/realms/${id}/log`))).toEqual([
      'authentication-realm.created',
      'authentication-realm.deleted',
    ]);
  });

  test.each([
    ['nobody has', '01900000-0000-7000-8000-000000000000'],
    ['is none', 'x'],
    ['stands for no realm', NIL_UUID],
  ])('404 for a realm that %s', async (_, id) => {
    expect((await office.ask('GET', `/realms/${id}/log`)).status).toBe(404);
  });

  test.each([
    ['user_id=x', 'user_id'],
    ['page%5Bafter%5D=-1', 'page[after]'],
    ['page%5Bafter%5D=1e3', 'page[after]'],
  ])('400 for %s', async (query, parameter) => {
    const { status, body } = await office.ask('GET', `/realms/${planted.realm}/log?${query}`);
    expect([status, body.errors.map(({ source }) => source?.parameter)]).toEqual([400, [parameter]]);
  });
});

test('the log of the installation goes on behind any place', async () => {
  const all = await office.all('/log?page%5Blimit%5D=2');
  expect(what(all)).toContain('token.granted');
  const middle = all[Math.floor(all.length / 2)]?.id ?? '';
  const behind = await office.all(`/log?page%5Bafter%5D=${middle}`);
  expect(behind).toEqual(all.slice(all.findIndex(({ id }) => id === middle) + 1));
});

test('heads say how far each log goes', async () => {
  const heads = await office.all('/log/heads?page%5Blimit%5D=1');
  expect(heads[0]?.id).toBe(NIL_UUID);
  expect(heads.map(({ id }) => id)).toContain(planted.realm);
  for (const { id, seq, tag, entries, begins_after } of heads) {
    const log = await office.all(id === NIL_UUID ? '/log' : `/realms/${id}/log`);
    const last = log.at(-1);
    expect([seq, tag, entries]).toEqual([Number(last?.id), last?.tag ?? null, log.length]);
    expect(begins_after).toBe(0);
  }
});
