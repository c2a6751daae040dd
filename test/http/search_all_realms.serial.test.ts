import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { Uuid } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { oidcProfileInfo, realm, user } from '../../src/domain/resources.ts';
import {
  createFixture,
  errorsOf,
  type Fixture,
  ISSUER,
  insertRecord,
  realmMembers,
  type Service,
  startService,
  userMembers,
} from '../support/service.ts';

/** Searches with the question in the body: of users in one realm, and of every kind of record in all realms. */

setDefaultTimeout(300_000);

interface Found {
  readonly data: readonly { readonly id: string; readonly links: { readonly self: string } }[];
  readonly meta: {
    readonly page: object;
    readonly realms: {
      readonly searched: number;
      readonly next: string | null;
      readonly cut: string | null;
    };
  };
  readonly links: Readonly<Record<string, string | null>>;
}

let service: Service;
let one: Fixture;
let two: Fixture;
let token: string;
const SCOPES = 'users:read profiles:read profile-infos:read';

beforeAll(async () => {
  service = await startService();
  one = await createFixture(service.db, { subject: 'auth0|Everywhere', username: 'Everywhere' });
  two = await createFixture(service.db, { subject: 'auth0|Everywhere', username: 'EVERYWHERE' });
  token = await service.token(SCOPES);
});
afterAll(() => service.stop());

async function search(collection: string, body: object, by = token): Promise<Found> {
  const answer = await service.post(`/v2/${collection}/search`, by, body);
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
  return (await answer.json()) as Found;
}

const USERS = 'user-authentication-info';
const OIDC = 'user-authentication-oidc-profile-info';
const PASSWORDS = 'user-authentication-password-profile-info';
const ids = ({ data }: Found) => data.map(({ id }) => id).sort();

describe('in all realms', () => {
  const byId = (): [string, string][] => [
    [USERS, two.user],
    [OIDC, two.oidcLink],
    [PASSWORDS, two.passwordLink],
    ['oidc-profiles', two.oidcProfile],
    ['password-profiles', two.passwordProfile],
  ];

  test('a record is found by its identifier alone, in any letter case, and says where it is', async () => {
    for (const [collection, id] of byId()) {
      for (const said of [id, id.toUpperCase()]) {
        const found = await search(collection, { filter: `eq(id,${said})` });
        expect([collection, ids(found)]).toEqual([collection, [id]]);
        expect(found.data[0]?.links.self).toContain(`/authentication-realms/${two.realm}/`);
        expect(found.meta.realms).toEqual({ searched: 2, next: null, cut: null });
        expect(Object.values(found.links)).toEqual([null, null, null, null, null]);
        const at = new URL(found.data[0]?.links.self ?? '').pathname;
        expect((await service.get(at, token)).status).toBe(200);
      }
    }
  });

  test('links are found by subject alone, by subject and issuer, and by username', async () => {
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

  test('a subject is found at an issuer that no profile has, and at each that has it', async () => {
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

  test('users are found by e-mail address and name, and by how they begin', async () => {
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

  test('of realms outside of the token nothing is found, and nothing is told', async () => {
    const limited = await service.token(SCOPES, new Set([one.realm]));
    for (const [collection, id] of byId()) {
      const found = await search(collection, { filter: `eq(id,${id})` }, limited);
      expect([found.data.length, found.meta.realms]).toEqual([0, { searched: 1, next: null, cut: null }]);
    }
    expect(ids(await search(OIDC, { filter: 'eq(subject,auth0|Everywhere)' }, limited))).toEqual([
      one.oidcLink,
    ]);
    const nowhere = await service.token(SCOPES, new Set([crypto.randomUUID() as Uuid]));
    expect(ids(await search(OIDC, { filter: 'eq(subject,auth0|Everywhere)' }, nowhere))).toEqual([]);
  });

  test('of the realms of a token, those behind the named one are asked', async () => {
    const both = await service.token(SCOPES, new Set([two.realm, one.realm]));
    const [first, last] = one.realm < two.realm ? [one, two] : [two, one];
    const filter = 'eq(subject,auth0|Everywhere)';
    const ask = async (page: object) => {
      const found = await search(OIDC, { filter, page }, both);
      return [found.data.map(({ id }) => id), found.meta.realms];
    };
    expect(await ask({ limit: 1 })).toEqual([
      [first.oidcLink],
      { searched: 1, next: first.realm, cut: null },
    ]);
    for (const after_realm of [first.realm, first.realm.toUpperCase()]) {
      expect(await ask({ after_realm })).toEqual([[last.oidcLink], { searched: 1, next: null, cut: null }]);
    }
    expect(await ask({ after_realm: last.realm })).toEqual([[], { searched: 0, next: null, cut: null }]);
  });

  test('the scope of each kind is asked for', async () => {
    const users = await service.token('users:read');
    expect((await service.post(`/v2/${OIDC}/search`, users, { filter: 'eq(subject,x)' })).status).toBe(403);
    expect((await service.post(`/v2/${USERS}/search`, users, { filter: 'eq(name,x)' })).status).toBe(200);
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
    [OIDC, `eq(issuer,"${ISSUER}")`],
    [OIDC, `(eq(issuer,"${ISSUER}")|eq(subject,a))`],
    [OIDC, 'eq(subject,a):eq(subject,b)'],
    [OIDC, 'like(subject,auth*)'],
    [PASSWORDS, 'like(username,ja*)'],
    ['oidc-profiles', 'eq(name,Login)'],
    ['password-profiles', 'eq(id,none)'],
    [USERS, 'nonsense('],
  ])('%s takes no %p: 400 says what it takes', async (collection, filter) => {
    const answer = await service.post(`/v2/${collection}/search`, token, { filter });
    expect(answer.status).toBe(400);
    expect((await errorsOf(answer))[0]?.source).toEqual({ pointer: '/filter' } as never);
  });

  test('it says how such a filter is written', async () => {
    const answer = await service.post(`/v2/${USERS}/search`, token, { filter: 'like(email,*jane)' });
    const [id, ...others] = ['id', 'email', 'name'].map((member) => `eq(${member},…)`);
    const beginnings = ['email', 'name'].map((member) => ` or like(${member},…*) with 2 characters or more`);
    const words = [id, ...others.map((other, at) => `${other}${beginnings[at]}`)].join('; ');
    expect((await errorsOf(answer))[0]?.detail).toBe(`filter: must be one of: ${words}`);
  });

  test.each([
    [[], ''],
    [{}, '/filter'],
    [{ filter: 7 }, '/filter'],
    [{ filter: 'eq(name,a)', page: { limit: 0 } }, '/page/limit'],
    [{ filter: 'eq(name,a)', page: { limit: 101 } }, '/page/limit'],
    [{ filter: 'eq(name,a)', page: { after_realm: 'none' } }, '/page/after_realm'],
    [{ filter: 'eq(name,a)', page: [] }, '/page'],
  ])('%j is told what to mend', async (body, pointer) => {
    const answer = await service.post(`/v2/${USERS}/search`, token, body);
    expect([answer.status, (await errorsOf(answer))[0]?.source]).toEqual([400, { pointer } as never]);
  });
});

describe('of a realm that has more than there is room for', () => {
  const LIMIT = 5;
  /** Asks with users of one e-mail address: as many in each of three realms, in their order. */
  async function asked(counts: readonly number[], limit = LIMIT) {
    const realms = counts.map(() => service.clock.mintId()).sort();
    const email = `${crypto.randomUUID()}@cut.example`;
    for (const [place, id] of realms.entries()) {
      await insertRecord(service.db, realm, [id], realmMembers);
      for (let made = 0; made < (counts[place] ?? 0); made += 1)
        await insertRecord(service.db, user, [id, service.clock.mintId()], { ...userMembers, email });
    }
    const by = await service.token(SCOPES, new Set(realms));
    const ask = async (after?: string) => {
      const page = { limit, ...(after === undefined ? {} : { after_realm: after }) };
      const { data, meta } = await search(USERS, { filter: `eq(email,${email})`, page }, by);
      return { count: data.length, ...meta.realms };
    };
    return { realms, ask };
  }

  test.each<[string, readonly number[], number]>([
    ['the only one', [6], 0],
    ['the last one', [0, 0, 40], 2],
    ['the last one, behind others that have some', [2, 1, 3], 2],
  ])('%s, it is named, and there is none behind it', async (_, counts, place) => {
    const { realms, ask } = await asked(counts);
    const cut = realms[place] as string;
    expect(await ask()).toEqual({ count: LIMIT, searched: counts.length, next: null, cut });
  });

  test('in the middle, it is named, and one goes on behind it', async () => {
    const { realms, ask } = await asked([2, 7, 3]);
    const middle = realms[1] as string;
    expect(await ask()).toEqual({ count: LIMIT, searched: 2, next: middle, cut: middle });
    expect(await ask(middle)).toEqual({ count: 3, searched: 1, next: null, cut: null });
  });

  test('and where there is just room for all, none is named', async () => {
    const { realms, ask } = await asked([2, 3, 4]);
    const middle = realms[1] as string;
    expect(await ask()).toEqual({ count: LIMIT, searched: 2, next: middle, cut: null });
    expect(await ask(middle)).toEqual({ count: 4, searched: 1, next: null, cut: null });
    const { ask: only } = await asked([LIMIT]);
    expect(await only()).toEqual({ count: LIMIT, searched: 1, next: null, cut: null });
  });

  test('of the longest page too', async () => {
    const longest = LIMITS.pageRecordsMax;
    const { realms, ask } = await asked([longest + 1], longest);
    const cut = realms[0] as string;
    expect(await ask()).toEqual({ count: longest, searched: 1, next: null, cut });
  });

  test('by a subject at several issuers', async () => {
    const planted = await createFixture(service.db);
    const subject = 'cut';
    for (const issuer of ['https://a.example', 'https://b.example', 'https://c.example']) {
      const members = { subject, issuer, oidc_profile_id: planted.oidcProfile };
      const key = [planted.realm, planted.user, service.clock.mintId()] as const;
      await insertRecord(service.db, oidcProfileInfo, key, members);
    }
    const by = await service.token(SCOPES, new Set([planted.realm]));
    for (const [limit, cut] of [
      [2, planted.realm],
      [3, null],
    ] as const) {
      const found = await search(OIDC, { filter: `eq(subject,${subject})`, page: { limit } }, by);
      expect([found.data.length, found.meta.realms.cut]).toEqual([limit, cut]);
    }
  });
});

describe('users of one realm', () => {
  const path = () => `/v2/authentication-realms/${one.realm}/${USERS}`;

  test('are found by every filter of their list, with the values in the body', async () => {
    for (const filter of ['like(email,*example.com)', 'eq(given_name,jane)', `eq(id,${one.user})`]) {
      const listed = await service.get(`${path()}?filter=${encodeURIComponent(filter)}`, token);
      const searched = await service.post(`${path()}/search`, token, { filter });
      const [left, right] = [await listed.json(), await searched.json()] as Found[];
      expect(right?.data).toEqual(left?.data as Found['data']);
      expect(right?.data).toHaveLength(1);
      expect(right?.meta).toEqual(left?.meta as Found['meta']);
      expect(Object.values(right?.links ?? {})).toEqual([null, null, null, null, null]);
    }
  });

  test('come a page at a time', async () => {
    await insertRecord(service.db, user, [one.realm, service.clock.mintId()], userMembers);
    const asked = (offset: number) =>
      service.post(`${path()}/search`, token, { filter: 'eq(given_name,jane)', page: { limit: 1, offset } });
    const pages = (await Promise.all([0, 1, 2].map(async (at) => (await asked(at)).json()))) as Found[];
    expect(pages.map(({ data }) => data.length)).toEqual([1, 1, 0]);
    expect(pages[0]?.data[0]?.id).not.toBe(pages[1]?.data[0]?.id as string);
  });

  test('404 for a realm that is not there, or outside of the token', async () => {
    const limited = await service.token('users:read', new Set([two.realm]));
    expect((await service.post(`${path()}/search`, limited, { filter: 'eq(name,x)' })).status).toBe(404);
    const nowhere = `/v2/authentication-realms/${crypto.randomUUID()}/${USERS}/search`;
    expect((await service.post(nowhere, token, { filter: 'eq(name,x)' })).status).toBe(404);
  });

  test('what is no filter is told', async () => {
    for (const body of [{ filter: 'eq(subject,x)' }, {}]) {
      const answer = await service.post(`${path()}/search`, token, body);
      const [error] = await errorsOf(answer);
      expect([answer.status, error?.source]).toEqual([400, { pointer: '/filter' } as never]);
    }
  });
});
