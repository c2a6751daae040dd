import { expect, test } from 'bun:test';
import type { Uuid } from '../../src/model/id.ts';
import { realm, user } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { errorsOf, insertRecord, realmMembers, type Service, startService } from '../support/service.ts';

/** The users of the account realm in another form: docs/wire.md#account-members. */

const MEMBERS = '/v2/account-members';
const ACCOUNTS = systemClock.mintId();
const OTHER = systemClock.mintId();

const users: Uuid[] = [];

const service = await startService({ accountRealm: ACCOUNTS });
for (const id of [ACCOUNTS, OTHER]) await insertRecord(service.db, realm, [id], realmMembers);
for (const name of ['Ann', 'Ben', 'Cleo']) {
  const id = systemClock.mintId();
  await insertRecord(service.db, user, [ACCOUNTS, id], {
    ...{ name: `${name} Banks`, email: `${name}@banks.com`.toLowerCase() },
    ...{ given_name: name, middle_name: null, family_name: 'Banks' },
    ...{ creation_status: 'COMPLETE', email_vouched: true, enabled: true },
  });
  users.push(id);
  await Bun.sleep(2);
}
const token = await service.token('users:read users:write');

interface Page {
  readonly data: readonly { readonly id: string }[];
  readonly meta: object;
  readonly links: Readonly<Record<string, string | null>>;
}

const list = async (query: string) =>
  (await (await service.get(`${MEMBERS}?${query}`, token)).json()) as Page;
const idsOf = ({ data }: Page) => data.map(({ id }) => id);

test('an account member is a user of the account realm in another form', async () => {
  const [ann] = users;
  const path = `/v2/authentication-realms/${ACCOUNTS}/user-authentication-info/${ann}`;
  const { data: record } = (await (await service.get(path, token)).json()) as {
    data: { meta: { created_at: string; updated_at: string } };
  };
  const { created_at, updated_at } = record.meta;
  const member = {
    id: ann,
    type: 'account_member',
    name: 'Ann Banks',
    email: 'ann@banks.com',
    given_name: 'Ann',
    middle_name: null,
    family_name: 'Banks',
    meta: { timestamps: { created_at, updated_at } },
  };
  const links = { self: `${service.url}${MEMBERS}/${ann}` };
  const single = await service.get(`${MEMBERS}/${ann?.toUpperCase()}`, token);
  expect([single.status, await single.json()]).toEqual([200, { data: member, links }]);
  expect((await list('filter=eq(given_name,ann)')).data).toEqual([{ ...member, links }] as never);
});

test('a user of the account realm is an account with one membership, unless members have no accounts', async () => {
  const [ann = ''] = users;
  const { meta } = (
    (await (await service.get(`${MEMBERS}/${ann}`, token)).json()) as { data: { meta: object } }
  ).data;
  const account = {
    ...{ id: ann, type: 'account', name: 'Ann Banks', legal_name: 'Ann Banks' },
    ...{ registration_id: null, external_ref: null, parent_id: null, meta },
  };
  const paths = ['/v2/accounts', `/v2/accounts/${ann}`, `/v2/accounts/${ann}/account-memberships`] as const;
  const read = () =>
    Promise.all(
      paths.map(async (path) => {
        const answer = await service.get(path, token);
        return [answer.status, (await answer.json()) as Page] as const;
      }),
    );
  const [[, all], [, single], [, memberships]] = (await read()) as [
    [number, Page],
    [number, Page],
    [number, Page],
  ];
  expect(idsOf(all)).toEqual(users.toReversed());
  const links = { self: `${service.url}/v2/accounts/${ann}` };
  expect(single).toEqual({ data: account, links } as never);
  expect(memberships.data).toEqual([
    {
      ...{ id: ann, type: 'account_membership', meta },
      relationships: { account_member: { data: { id: ann, type: 'account_member' } } },
    },
  ] as never);
  const settings = await service.token('settings:write');
  const put = (isOn: boolean) =>
    service.put('/v2/settings/account-authentication', settings, {
      data: { type: 'account_authentication_settings', auto_create_account_for_account_members: isOn },
    });
  expect((await put(false)).status).toBe(200);
  const [[listed, none], [item], [membership]] = (await read()) as [[number, Page], [number], [number]];
  expect([listed, none.data, item, membership]).toEqual([200, [], 404, 404]);
  expect((await put(true)).status).toBe(200);
});

test('the list has the pages, the filter, the order and the total of the list of users', async () => {
  const [ann, ben, cleo] = users;
  const first = await list('page%5Blimit%5D=2');
  expect(idsOf(first)).toEqual([cleo, ben] as string[]);
  expect(first.meta).toEqual({
    page: { limit: 2, offset: 0, current: 1, total: 2 },
    results: { total: 3 },
  });
  expect(first.links).toMatchObject({
    current: `${service.url}${MEMBERS}?page%5Blimit%5D=2&page%5Boffset%5D=0`,
    next: `${service.url}${MEMBERS}?page%5Blimit%5D=2&page%5Boffset%5D=2`,
    prev: null,
  });
  const second = (await (await service.get(first.links.next ?? '', token)).json()) as Page;
  expect([idsOf(second), second.links.next]).toEqual([[ann] as string[], null]);
  expect(idsOf(await list('sort=created_at&filter=like(email,*@banks.com)'))).toEqual(users);
  const followed = await list('page%5Blimit%5D=2&page%5Bafter%5D=');
  const rest = (await (await service.get(followed.links.next ?? '', token)).json()) as Page;
  expect(idsOf(rest)).toEqual([ann] as string[]);
  expect(idsOf(await list('page%5Boffset%5D=100'))).toEqual([]);
});

test('an invalid filter, sort or page is 400', async () => {
  for (const query of ['filter=none(', 'filter=eq(subject,x)', 'sort=name', 'page%5Blimit%5D=101']) {
    const answer = await service.get(`${MEMBERS}?${query}`, token);
    expect([query, answer.status]).toEqual([query, 400]);
    expect((await errorsOf(answer)).length).toBe(1);
  }
});

test('a user of another realm, an unknown ID and a malformed one are 404', async () => {
  const stranger = systemClock.mintId();
  await insertRecord(service.db, user, [OTHER, stranger], {
    ...{ name: 'Dan', email: 'dan@banks.com', given_name: null, middle_name: null, family_name: null },
    ...{ creation_status: 'COMPLETE', email_vouched: true, enabled: true },
  });
  for (const id of [stranger, systemClock.mintId(), 'none'])
    expect((await service.get(`${MEMBERS}/${id}`, token)).status).toBe(404);
});

test('the list of a realm that is deleted meanwhile is 404', async () => {
  const realmPath = `/v2/authentication-realms/${ACCOUNTS}`;
  const own: Service = await startService({ accountRealm: ACCOUNTS }, (engine) => {
    const get: typeof engine.records.get = async (...args) => {
      const found = await engine.records.get(...args);
      if (args[0].name === realm.name) expect((await own.del(realmPath, admin)).status).toBe(204);
      return found;
    };
    return { ...engine, records: { ...engine.records, get } };
  });
  await insertRecord(own.db, realm, [ACCOUNTS], realmMembers);
  const admin = await own.token('users:read realms:write');
  expect((await own.get(MEMBERS, admin)).status).toBe(404);
});
