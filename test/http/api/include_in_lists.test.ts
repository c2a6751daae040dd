import { expect, test } from 'bun:test';
import { LIMITS } from '../../../src/model/limits.ts';
import { oidcProfileInfo, realm as realmResource, user } from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { commitWrites, insert, oidcLink, WRITTEN } from '../../records/contract/store_fixtures.ts';
import {
  createFixture,
  errorsOf,
  type Fixture,
  insertRecord,
  realmMembers,
  startService,
  userMembers,
} from '../../support/service.ts';

/** `include` in lists of users (docs/wire.md#included-records). */

interface Item {
  readonly id: string;
  readonly type: string;
  readonly relationships: Readonly<Record<string, { readonly data: { readonly id: string } }>>;
}

interface Page {
  readonly data: readonly { readonly id: string }[];
  readonly included?: readonly Item[];
  readonly meta: object;
  readonly links: Readonly<Record<string, string | null>>;
}

const BOTH = 'include=oidc_profile_infos,password_profile_infos';

const service = await startService();
const first = await createFixture(service.db);
const { realm, oidcProfile, passwordProfile } = first;
const second = await createFixture(service.db, { realm, oidcProfile, passwordProfile });
const alone = systemClock.mintId();
await insertRecord(service.db, user, [realm, alone], userMembers);
const token = await service.token('users:read profile-infos:read');
const path = `/v2/authentication-realms/${realm}/user-authentication-info`;

async function read(url: string): Promise<Page> {
  const answer = await service.get(url, token);
  expect(answer.status).toBe(200);
  return (await answer.json()) as Page;
}

const usersOf = ({ included = [] }: Page) =>
  included.map(({ id, relationships }) => [id, relationships[user.type]?.data.id]);

test('a list of users with include has the links of its page with their users, and is otherwise unchanged', async () => {
  const { included, links, ...page } = await read(`${path}?${BOTH}`);
  const { links: plainLinks, ...plain } = await read(path);
  expect(page).toEqual(plain);
  expect(usersOf({ included } as Page)).toEqual([
    [second.oidcLink, second.user],
    [first.oidcLink, first.user],
    [second.passwordLink, second.user],
    [first.passwordLink, first.user],
  ]);
  expect(links.current).toBe(`${plainLinks.current}&${BOTH}`);
});

test('the links of a page with include lead to pages with include, which have the links of their users alone', async () => {
  const pages: Page[] = [];
  let next: string | null | undefined = `${path}?page[limit]=1&page[after]=&include=oidc_profile_infos`;
  while (next) {
    const page = await read(next);
    pages.push(page);
    next = page.links.next;
  }
  expect(pages.map((page) => [page.data[0]?.id, usersOf(page)])).toEqual([
    [alone, []],
    [second.user, [[second.oidcLink, second.user]]],
    [first.user, [[first.oidcLink, first.user]]],
  ]);
});

test('a search of users with include has the links of the users that it finds', async () => {
  const filter = `eq(id,${first.user})`;
  const answer = await service.post(`${path}/search?${BOTH}`, token, { filter });
  const page = (await answer.json()) as Page;
  expect(usersOf(page)).toEqual([
    [first.oidcLink, first.user],
    [first.passwordLink, first.user],
  ]);
});

test('a search of all realms with include has the links of the users that it finds, and not of those with the same ID', async () => {
  const twin = await createTwin(first);
  const search = async (limit: number) => {
    const body = { filter: `eq(id,${first.user})`, page: { limit } };
    const answer = await service.post(`/v2/user-authentication-info/search?${BOTH}`, token, body);
    return usersOf((await answer.json()) as Page);
  };
  const [one, other] = first.realm < twin.realm ? [first, twin] : [twin, first];
  const linksOf = (of: readonly Fixture[], kind: 'oidcLink' | 'passwordLink') =>
    of.map((each) => [each[kind], each.user]);
  expect(await search(1)).toEqual([...linksOf([one], 'oidcLink'), ...linksOf([one], 'passwordLink')]);
  expect(await search(2)).toEqual([
    ...linksOf([one, other], 'oidcLink'),
    ...linksOf([one, other], 'passwordLink'),
  ]);
});

test('a list of records that have none below them ignores include, even if it is given twice', async () => {
  const profiles = await service.token('profiles:read');
  const list = `/v2/authentication-realms/${realm}/oidc-profiles?${BOTH}&${BOTH}`;
  expect((await service.get(list, profiles)).status).toBe(200);
  expect((await service.get(`${path}?${BOTH}&${BOTH}`, token)).status).toBe(400);
});

test('a list with include needs the read scope of each kind', async () => {
  const oidcOnly = await service.token('users:read oidc-profile-infos:read');
  const statusOf = async (query: string) => (await service.get(`${path}?${query}`, oidcOnly)).status;
  expect([await statusOf('include=oidc_profile_infos'), await statusOf(BOTH)]).toEqual([200, 403]);
  for (const search of [`${path}/search`, '/v2/user-authentication-info/search'])
    expect((await service.post(`${search}?${BOTH}`, oidcOnly, { filter: 'eq(name,x)' })).status).toBe(403);
});

const TOO_MANY = `include: finds more than ${LIMITS.includedInPageMax} records of one kind below this page: ask for a smaller page`;

/** A realm in which a user of another realm has the same ID, with links of its own. */
async function createTwin(of: Fixture): Promise<Fixture> {
  const home = systemClock.mintId();
  await insertRecord(service.db, realmResource, [home], realmMembers);
  await insertRecord(service.db, user, [home, of.user], userMembers);
  return createFixture(service.db, { realm: home, user: of.user });
}

/** Links to the provider of a fixture. */
function linksOfUser(of: Fixture, count: number, subject: string) {
  const ids = { realm: of.realm, user: of.user, oidc: of.oidcProfile, passwords: of.passwordProfile };
  return Array.from({ length: count }, (_, at) => oidcLink(ids, `${subject}-${at}`));
}

test('a page with include has up to 1,000 records of one kind; with more it is 400, and a smaller one is answered', async () => {
  const many = await createFixture(service.db);
  const next = { ...many, user: systemClock.mintId() };
  const nextUser = insert(user, [many.realm, next.user], userMembers);
  const half = LIMITS.includedInPageMax / 2;
  // The user of the fixture has one link already.
  const [last, ...links] = [...linksOfUser(many, half, 'own'), ...linksOfUser(next, half, 'next')];
  const writes = [nextUser, ...links];
  expect(await commitWrites(service.db.engine.records, ...writes)).toEqual(WRITTEN);
  const query = `${path.replace(realm, many.realm)}?include=${oidcProfileInfo.includedAs}`;
  expect((await read(query)).included).toHaveLength(LIMITS.includedInPageMax);
  expect(await commitWrites(service.db.engine.records, last as (typeof links)[0])).toEqual(WRITTEN);
  const answer = await service.get(query, token);
  expect([answer.status, (await errorsOf(answer))[0]?.detail]).toEqual([400, TOO_MANY]);
  expect((await read(`${query}&page[limit]=1`)).included).toHaveLength(half);
});

test('a search of all realms with include is 400 for more than 1,000 records of one kind in all realms together', async () => {
  const here = await createFixture(service.db);
  const there = await createTwin(here);
  const writes = [here, there].flatMap((each) => linksOfUser(each, LIMITS.includedInPageMax / 2, 'own'));
  expect(await commitWrites(service.db.engine.records, ...writes)).toEqual(WRITTEN);
  const url = `/v2/user-authentication-info/search?include=${oidcProfileInfo.includedAs}`;
  const answer = await service.post(url, token, { filter: `eq(id,${here.user})` });
  expect([answer.status, (await errorsOf(answer))[0]?.detail]).toEqual([400, TOO_MANY]);
});
