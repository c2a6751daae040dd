import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { NIL_UUID, type Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { oidcProfileInfo, realm, user } from '../../src/model/resources.ts';
import {
  createFixture,
  errorsOf,
  ISSUER,
  insertRecord,
  realmMembers,
  startService,
  userMembers,
} from '../support/service.ts';

/** Searches with the filter in the body: of users in one realm, and of every resource in all realms. */

setDefaultTimeout(300_000);

interface SearchPage {
  readonly data: readonly { readonly id: string; readonly links: { readonly self: string } }[];
  readonly meta: {
    readonly page: object;
    readonly realms: {
      readonly next: string | null;
      readonly cut: string | null;
    };
  };
  readonly links: Readonly<Record<string, string | null>>;
}

const SCOPES = 'users:read profiles:read profile-infos:read';

const service = await startService();
const one = await createFixture(service.db, { subject: 'auth0|Everywhere', username: 'Everywhere' });
const two = await createFixture(service.db, { subject: 'auth0|Everywhere', username: 'EVERYWHERE' });
const token = await service.token(SCOPES);

async function search(collection: string, body: object, by = token): Promise<SearchPage> {
  const answer = await service.post(`/v2/${collection}/search`, by, body);
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
  return (await answer.json()) as SearchPage;
}

const USERS = 'user-authentication-info';
const OIDC = 'user-authentication-oidc-profile-info';
const PASSWORDS = 'user-authentication-password-profile-info';
const ids = ({ data }: SearchPage) => data.map(({ id }) => id).sort();

describe('search in all realms', () => {
  const byId = (): [string, string][] => [
    [USERS, two.user],
    [OIDC, two.oidcLink],
    [PASSWORDS, two.passwordLink],
    ['oidc-profiles', two.oidcProfile],
    ['password-profiles', two.passwordProfile],
  ];

  test('search by ID finds a record in any realm, in any letter case, with its self link', async () => {
    for (const [collection, id] of byId()) {
      for (const spelling of [id, id.toUpperCase()]) {
        const found = await search(collection, { filter: `eq(id,${spelling})` });
        expect([collection, ids(found)]).toEqual([collection, [id]]);
        expect(found.data[0]?.links.self).toContain(`/authentication-realms/${two.realm}/`);
        expect(found.meta.realms).toEqual({ next: null, cut: null });
        expect(Object.values(found.links)).toEqual([null, null, null, null, null]);
        const at = new URL(found.data[0]?.links.self ?? '').pathname;
        expect((await service.get(at, token)).status).toBe(200);
      }
    }
  });

  test('search finds links by subject, by subject and issuer, and by username', async () => {
    const both = [one.oidcLink, two.oidcLink].sort();
    expect(ids(await search(OIDC, { filter: 'eq(subject,auth0|Everywhere)' }))).toEqual(both);
    const issuer = `eq(issuer,"${ISSUER}")`;
    expect(ids(await search(OIDC, { filter: `${issuer}:eq(subject,auth0|Everywhere)` }))).toEqual(both);
    expect(ids(await search(OIDC, { filter: `eq(subject,auth0|Everywhere):${issuer}` }))).toEqual(both);
    expect(ids(await search(OIDC, { filter: 'eq(subject,auth0|everywhere)' }))).toEqual([]);
    expect(ids(await search(PASSWORDS, { filter: 'eq(username,everywhere)' }))).toEqual(
      [one.passwordLink, two.passwordLink].sort(),
    );
  });

  test('search by subject finds the links of every issuer, even of issuers without a profile', async () => {
    const subject = 'several issuers';
    const made: string[] = [];
    for (const issuer of ['https://a.example', 'https://m.example/', 'https://z.example']) {
      const id = service.clock.mintId();
      made.push(id);
      const members = { subject, issuer, oidc_profile_id: one.oidcProfile };
      await insertRecord(service.db, oidcProfileInfo, [one.realm, one.user, id], members);
    }
    expect(ids(await search(OIDC, { filter: `eq(subject,"${subject}")` }))).toEqual(made.sort());
  });

  test('search finds users by e-mail address and name, whole or by prefix', async () => {
    const made = service.clock.mintId();
    const members = { ...userMembers, name: 'Zoë Überall', email: 'zoe@elsewhere.example' };
    await insertRecord(service.db, user, [two.realm, made], members);
    for (const filter of [
      'eq(email,ZOE@elsewhere.example)',
      'eq(name,"zoë überall")',
      'like(email,zo*)',
      'like(name,zoë*)',
      'like(name,"ZOË ÜB*")',
    ]) {
      expect([filter, ids(await search(USERS, { filter }))]).toEqual([filter, [made]]);
    }
    expect((await search(USERS, { filter: 'eq(email,jane@example.com)' })).data).toHaveLength(2);
  });

  test('search with a list of realms finds and reports nothing of other realms', async () => {
    const limited = await service.token(SCOPES, new Set([one.realm]));
    for (const [collection, id] of byId()) {
      const found = await search(collection, { filter: `eq(id,${id})` }, limited);
      expect([found.data.length, found.meta.realms]).toEqual([0, { next: null, cut: null }]);
    }
    expect(ids(await search(OIDC, { filter: 'eq(subject,auth0|Everywhere)' }, limited))).toEqual([
      one.oidcLink,
    ]);
    const unknownRealm = await service.token(SCOPES, new Set([crypto.randomUUID() as Uuid]));
    expect(ids(await search(OIDC, { filter: 'eq(subject,auth0|Everywhere)' }, unknownRealm))).toEqual([]);
  });

  test('search with after_realm continues with the later realms of the token', async () => {
    const both = await service.token(SCOPES, new Set([two.realm, one.realm]));
    const [first, last] = one.realm < two.realm ? [one, two] : [two, one];
    const filter = 'eq(subject,auth0|Everywhere)';
    const searchPage = async (page: object) => {
      const found = await search(OIDC, { filter, page }, both);
      return [found.data.map(({ id }) => id), found.meta.realms];
    };
    expect(await searchPage({ limit: 1 })).toEqual([[first.oidcLink], { next: first.realm, cut: null }]);
    for (const after_realm of [first.realm, first.realm.toUpperCase()]) {
      expect(await searchPage({ after_realm })).toEqual([[last.oidcLink], { next: null, cut: null }]);
    }
    expect(await searchPage({ after_realm: last.realm })).toEqual([[], { next: null, cut: null }]);
  });

  test.each([
    [USERS, 'like(email,*jane)'],
    [USERS, 'like(email,*jane*)'],
    [USERS, 'like(email,j*)'],
    [USERS, 'eq(given_name,Jane)'],
    [USERS, 'eq(name,a):eq(email,b)'],
    [USERS, '(eq(name,a)|eq(name,b))'],
    [USERS, 'in(email,a,b)'],
    [USERS, 'gt(created_at,2020-01-01)'],
    [USERS, 'match(text,j)'],
    [USERS, 'match(text,"\\*")'],
    [USERS, 'match(text,jane*)'],
    [USERS, 'match(text,"-- .")'],
    [USERS, 'match(text,a1 b2 c3 d4 e5 f6 g7 h8 i9 j1 k2 l3 m4 n5 o6 p7 q8)'],
    [USERS, 'match(name,jane)'],
    [USERS, 'match(text,jane):eq(name,jane)'],
    [OIDC, 'match(text,auth0)'],
    [OIDC, `eq(issuer,"${ISSUER}")`],
    [OIDC, `(eq(issuer,"${ISSUER}")|eq(subject,a))`],
    [OIDC, 'eq(subject,a):eq(subject,b)'],
    [OIDC, 'like(subject,auth*)'],
    [PASSWORDS, 'like(username,ja*)'],
    ['oidc-profiles', 'eq(name,Login)'],
    ['password-profiles', 'eq(id,none)'],
    [USERS, 'nonsense('],
  ])('search of %s rejects the filter %p with 400', async (collection, filter) => {
    const answer = await service.post(`/v2/${collection}/search`, token, { filter });
    expect(answer.status).toBe(400);
    expect((await errorsOf(answer))[0]?.source).toEqual({ pointer: '/filter' } as never);
  });

  test('search names the accepted filters', async () => {
    const answer = await service.post(`/v2/${USERS}/search`, token, { filter: 'like(email,*jane)' });
    const [id, ...others] = ['id', 'email', 'name'].map((member) => `eq(${member},…)`);
    const prefixes = ['email', 'name'].map((member) => ` or like(${member},…*) with 2 characters or more`);
    const text = 'match(text,…) with a word of 2 characters or more, or match(text,*)';
    const filters = [id, ...others.map((other, at) => `${other}${prefixes[at]}`), text].join('; ');
    expect((await errorsOf(answer))[0]?.detail).toBe(`filter: must be one of: ${filters}`);
  });

  test.each([
    [[], ''],
    [{}, '/filter'],
    [{ filter: 7 }, '/filter'],
    [{ filter: 'eq(name,a)', page: { limit: 0 } }, '/page/limit'],
    [{ filter: 'eq(name,a)', page: { limit: 101 } }, '/page/limit'],
    [{ filter: 'eq(name,a)', page: { after_realm: 'none' } }, '/page/after_realm'],
    [{ filter: 'eq(name,a)', page: { after_id: NIL_UUID } }, '/page/after_id'],
    [{ filter: 'match(text,*)', page: { total: 1 } }, '/page/total'],
    [{ filter: 'match(text,*)', realms: [] }, '/realms'],
    [{ filter: 'match(text,*)', realms: ['none'] }, '/realms/0'],
    [{ filter: 'eq(name,a)', page: [] }, '/page'],
  ])('search is 400 for the body %j, with the pointer', async (body, pointer) => {
    const answer = await service.post(`/v2/${USERS}/search`, token, body);
    expect([answer.status, (await errorsOf(answer))[0]?.source]).toEqual([400, { pointer } as never]);
  });
});

describe('search of a realm with more matches than fit', () => {
  const LIMIT = 5;
  /** Creates realms with these numbers of users with one e-mail address; returns the realms and a search for them. */
  async function createMatches(counts: readonly number[], limit = LIMIT) {
    const realms = counts.map(() => service.clock.mintId()).sort();
    const email = `${crypto.randomUUID()}@cut.example`;
    for (const [place, id] of realms.entries()) {
      await insertRecord(service.db, realm, [id], realmMembers);
      for (let made = 0; made < (counts[place] ?? 0); made += 1)
        await insertRecord(service.db, user, [id, service.clock.mintId()], { ...userMembers, email });
    }
    const by = await service.token(SCOPES, new Set(realms));
    const searchAfter = async (after?: string) => {
      const page = { limit, ...(after === undefined ? {} : { after_realm: after }) };
      const { data, meta } = await search(USERS, { filter: `eq(email,${email})`, page }, by);
      return { count: data.length, ...meta.realms };
    };
    return { realms, searchAfter };
  }

  test.each<[string, readonly number[], number]>([
    ['the only realm', [6], 0],
    ['the last realm', [0, 0, 40], 2],
    ['the last realm, after others with matches,', [2, 1, 3], 2],
  ])('search reports %s as cut if its matches do not fit, and no next realm', async (_, counts, place) => {
    const { realms, searchAfter } = await createMatches(counts);
    const cut = realms[place] as string;
    expect(await searchAfter()).toEqual({ count: LIMIT, next: null, cut });
  });

  test('search reports a middle realm as cut if its matches do not fit, and continues after it', async () => {
    const { realms, searchAfter } = await createMatches([2, 7, 3]);
    const middle = realms[1] as string;
    expect(await searchAfter()).toEqual({ count: LIMIT, next: middle, cut: middle });
    expect(await searchAfter(middle)).toEqual({ count: 3, next: null, cut: null });
  });

  test('search reports no cut realm if the matches just fit', async () => {
    const { realms, searchAfter } = await createMatches([2, 3, 4]);
    const middle = realms[1] as string;
    expect(await searchAfter()).toEqual({ count: LIMIT, next: middle, cut: null });
    expect(await searchAfter(middle)).toEqual({ count: 4, next: null, cut: null });
    const { searchAfter: only } = await createMatches([LIMIT]);
    expect(await only()).toEqual({ count: LIMIT, next: null, cut: null });
  });

  test('search reports a cut realm for a page of the maximum length', async () => {
    const longest = LIMITS.pageRecordsMax;
    const { realms, searchAfter } = await createMatches([longest + 1], longest);
    const cut = realms[0] as string;
    expect(await searchAfter()).toEqual({ count: longest, next: null, cut });
  });

  test('search by a subject of several issuers reports a cut realm', async () => {
    const fixture = await createFixture(service.db);
    const subject = 'cut';
    for (const issuer of ['https://a.example', 'https://b.example', 'https://c.example']) {
      const members = { subject, issuer, oidc_profile_id: fixture.oidcProfile };
      const key = [fixture.realm, fixture.user, service.clock.mintId()] as const;
      await insertRecord(service.db, oidcProfileInfo, key, members);
    }
    const by = await service.token(SCOPES, new Set([fixture.realm]));
    for (const [limit, cut] of [
      [2, fixture.realm],
      [3, null],
    ] as const) {
      const found = await search(OIDC, { filter: `eq(subject,${subject})`, page: { limit } }, by);
      expect([found.data.length, found.meta.realms.cut]).toEqual([limit, cut]);
    }
  });
});

describe('users of one realm', () => {
  const path = () => `/v2/authentication-realms/${one.realm}/${USERS}`;

  test('search of the users of a realm accepts every filter of their list', async () => {
    for (const filter of ['like(email,*example.com)', 'eq(given_name,jane)', `eq(id,${one.user})`]) {
      const listed = await service.get(`${path()}?filter=${encodeURIComponent(filter)}`, token);
      const searched = await service.post(`${path()}/search`, token, { filter });
      const [left, right] = [await listed.json(), await searched.json()] as SearchPage[];
      expect(right?.data).toEqual(left?.data as SearchPage['data']);
      expect(right?.data).toHaveLength(1);
      expect(right?.meta).toEqual(left?.meta as SearchPage['meta']);
      expect(Object.values(right?.links ?? {})).toEqual([null, null, null, null, null]);
    }
  });

  test('search of the users of a realm returns pages', async () => {
    await insertRecord(service.db, user, [one.realm, service.clock.mintId()], userMembers);
    const searchAt = (offset: number) =>
      service.post(`${path()}/search`, token, { filter: 'eq(given_name,jane)', page: { limit: 1, offset } });
    const pages = (await Promise.all(
      [0, 1, 2].map(async (at) => (await searchAt(at)).json()),
    )) as SearchPage[];
    expect(pages.map(({ data }) => data.length)).toEqual([1, 1, 0]);
    expect(pages[0]?.data[0]?.id).not.toBe(pages[1]?.data[0]?.id as string);
  });

  test('search of the users of a realm is 400 for an invalid or missing filter', async () => {
    for (const body of [{ filter: 'eq(subject,x)' }, {}]) {
      const answer = await service.post(`${path()}/search`, token, body);
      const [error] = await errorsOf(answer);
      expect([answer.status, error?.source]).toEqual([400, { pointer: '/filter' } as never]);
    }
  });
});
