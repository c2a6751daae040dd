import { describe, expect, test } from 'bun:test';
import type { Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { oidcProfileInfo, passwordProfileInfo } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { testInProcess } from '../support/program_service.ts';
import {
  createFixture,
  errorsOf,
  ISSUER,
  insertRecord,
  oidcPath,
  passwordPath,
  startService,
} from '../support/service.ts';

/** The response body of a reverse lookup. */
interface FoundPage {
  readonly data: readonly Record<string, unknown>[];
  readonly meta: object;
  readonly links: Readonly<Record<string, string | null>>;
}

const service = await startService();
const fixture = await createFixture(service.db, { subject: 'auth0|Jane', username: 'Jane@Shop.example' });
const otherRealm = await createFixture(service.db, { subject: 'auth0|Jane', username: 'Jane@Shop.example' });
const token = await service.token('profile-infos:read');

const base = (realm: string) => `/v2/authentication-realms/${realm}`;
const oidcOf = (realm: string) => `${base(realm)}/user-authentication-oidc-profile-info`;
const passwordsOf = (realm: string) => `${base(realm)}/user-authentication-password-profile-info`;
/** The runtime encodes an apostrophe, and so do links. */
const inLinks = (text: string) => encodeURIComponent(text).replaceAll("'", '%27');
const bySubject = (subject: string) =>
  `?filter=eq(issuer,${encodeURIComponent(ISSUER)}):eq(subject,${inLinks(`'${subject}'`)})`;

async function findPage(path: string): Promise<FoundPage> {
  const answer = await service.get(path, token);
  if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as FoundPage;
}

async function rejections(path: string) {
  const answer = await service.get(path, token);
  expect(answer.status).toBe(400);
  return (await errorsOf(answer)).map(({ detail, source }) => [source?.parameter, detail]);
}

async function single(path: string): Promise<object> {
  return ((await (await service.get(path, token)).json()) as { data: object }).data;
}

describe('find by identity or username', () => {
  test('find by issuer and subject returns the record as GET does, with its user and self link', async () => {
    const query = bySubject('auth0|Jane');
    const answer = await service.get(`${oidcOf(fixture.realm)}${query}`, token);
    expect(answer.headers.get('cache-control')).toBe('private, no-cache');
    expect(answer.headers.get('etag')).toBeNull();
    expect((await answer.json()) as object).toEqual({
      data: [
        {
          ...(await single(oidcPath(fixture))),
          relationships: {
            user_authentication_info: { data: { id: fixture.user, type: 'user_authentication_info' } },
          },
          links: { self: `${service.url}${oidcPath(fixture)}` },
        },
      ],
      meta: { page: { limit: 25, offset: 0, current: 1, total: 1 }, results: { total: 1 } },
      links: { current: null, first: null, last: null, next: null, prev: null },
    });
  });

  test('find by username matches any spelling of its key, with and without the profile', async () => {
    const filters = [
      "eq(username,'jane@shop.EXAMPLE')",
      `eq(username,ＪＡＮＥ@shop.example):eq(password_profile_id,${fixture.passwordProfile})`,
    ];
    for (const filter of filters) {
      const { data } = await findPage(`${passwordsOf(fixture.realm)}?filter=${encodeURIComponent(filter)}`);
      expect(data).toEqual([
        {
          ...(await single(passwordPath(fixture))),
          relationships: {
            user_authentication_info: { data: { id: fixture.user, type: 'user_authentication_info' } },
          },
          // In a list this link is versioned (docs/wire.md#self-links).
          links: { self: `${service.url}${passwordPath(fixture)}` },
        },
      ]);
    }
    const other = `eq(username,jane@shop.example):eq(password_profile_id,${otherRealm.passwordProfile})`;
    expect((await findPage(`${passwordsOf(fixture.realm)}?filter=${other}`)).data).toEqual([]);
  });

  testInProcess(
    'find with a plain filter reads one record; other spellings list, with the same response',
    async () => {
      const storeReads: string[] = [];
      const counted = await startService({}, (engine) => {
        const { find, list } = engine.records;
        const counting = (all: typeof list): typeof list => {
          return (...args) => {
            storeReads.push('list');
            return all(...args);
          };
        };
        const records: typeof engine.records = {
          ...engine.records,
          find: (...args) => {
            storeReads.push('find');
            return find(...args);
          },
          list: counting(list),
        };
        const { embedded } = engine;
        if (!embedded) return { ...engine, records };
        const listDelegating: typeof embedded.listDelegating = (delegate) =>
          counting(embedded.listDelegating(delegate));
        return { ...engine, records, embedded: { ...embedded, listDelegating } };
      });
      const at = await createFixture(counted.db, { subject: 'auth0|Jane' });
      const as = await counted.token('profile-infos:read');
      const path = oidcOf(at.realm);
      const terms = [`eq(issuer,${ISSUER})`, "eq(subject,'auth0|Jane')"] as const;
      const requestWith = async (query: string) => {
        storeReads.length = 0;
        const body = await (await counted.get(`${path}?${query}`, as)).text();
        return { body, reads: [...storeReads] };
      };
      const plain = await requestWith(`filter=${terms.join(':')}`);
      expect(plain.reads).toEqual(['find']);
      expect(plain.body).toContain(at.oidcLink);
      expect(await requestWith(`filter=${encodeURIComponent(terms.toReversed().join(':'))}`)).toEqual(plain);
      for (const query of [
        `filter=${terms.join(' : ')}`,
        `filter=${terms.join(':')}&page[limit]=25`,
        `filter=${terms[0]}:eq(subject,'auth0\\|Jane')`,
        `filter=in(id,${at.oidcLink})`,
      ]) {
        expect(await requestWith(query)).toEqual({ ...plain, reads: ['list'] });
      }
      storeReads.length = 0;
      const searched = await counted.post(`${path}/search`, as, { filter: terms.join(':') });
      expect([await searched.text(), storeReads]).toEqual([plain.body, ['find']]);
    },
  );

  test('find by a subject that differs in case, composition, width or an invisible character is empty', async () => {
    const subject = 'auth0|Ünï';
    const given = await createFixture(service.db, {
      ...fixture,
      oidcLink: systemClock.mintId(),
      passwordLink: systemClock.mintId(),
      subject,
      username: 'x',
    });
    const at = (text: string) => findPage(`${oidcOf(fixture.realm)}${bySubject(text)}`);
    expect((await at(subject)).data.map(({ id }) => id)).toEqual([given.oidcLink]);
    for (const other of [
      subject.toLowerCase(),
      subject.toUpperCase(),
      subject.normalize('NFD'),
      `${subject}\u200b`,
      'ａuth0|Ünï',
      ` ${subject}`,
    ]) {
      expect(await at(other)).toMatchObject({
        data: [],
        meta: { page: { total: 0 }, results: { total: 0 } },
      });
    }
  });

  test('find by a subject with separators, quotes or SQL returns exactly that subject', async () => {
    const subjects = [
      "a'b",
      'a"b',
      'a,b',
      'a)b',
      '(a|b):c',
      'a\\b',
      '*',
      "' or '1'='1",
      '"; drop table realm; --',
      '%',
      '_',
      'a&b=c#d+e f',
    ];
    for (const subject of subjects) {
      const id = systemClock.mintId();
      const key = [fixture.realm, fixture.user, id] as const;
      await insertRecord(service.db, oidcProfileInfo, key, {
        subject,
        issuer: ISSUER,
        oidc_profile_id: fixture.oidcProfile,
      });
      const quoted = subject.replace(/[\\']/g, '\\$&');
      const page = await findPage(`${oidcOf(fixture.realm)}${bySubject(quoted)}`);
      expect(page.data.map((item) => item.subject)).toEqual([subject]);
    }
  });
});

describe('find by many IDs', () => {
  test('find by up to 100 IDs returns those of the realm, on one page by default', async () => {
    const ids: Uuid[] = [];
    for (let place = 0; place < 98; place += 1) {
      const id = systemClock.mintId();
      const members = { username: `batch-${place}`, password_profile_id: fixture.passwordProfile };
      await insertRecord(service.db, passwordProfileInfo, [fixture.realm, fixture.user, id], members);
      ids.push(id);
    }
    const requested = [...ids, otherRealm.passwordLink, systemClock.mintId()];
    expect(requested).toHaveLength(LIMITS.filterValuesMax);
    const page = await findPage(
      `${passwordsOf(fixture.realm)}?filter=in(id,${requested.join().toUpperCase()})`,
    );
    expect(page.data.map(({ id }) => id)).toEqual(ids.toReversed());
    expect(page.meta).toEqual({
      page: { limit: 100, offset: 0, current: 1, total: 1 },
      results: { total: 98 },
    });
    const parts = await findPage(
      `${passwordsOf(fixture.realm)}?filter=in(id,${ids})&page[limit]=50&page[offset]=50`,
    );
    expect(parts.data.map(({ id }) => id)).toEqual(ids.toReversed().slice(50));
    const before = await findPage(parts.links.prev as string);
    expect([...before.data, ...parts.data].map(({ id }) => id)).toEqual(ids.toReversed());
    expect((await findPage(before.links.next as string)).data).toEqual(parts.data);
    const first = await findPage(`${passwordsOf(fixture.realm)}?filter=in(id,${ids})&page[limit]=50`);
    expect([first.data, first.links.next]).toEqual([before.data, before.links.next as string]);
    expect(new Set(Object.values(page.links))).toEqual(new Set([null]));
    const firstPage = await findPage(
      `${passwordsOf(fixture.realm)}?filter=in(id,${ids})&page[limit]=60&page[after]=`,
    );
    const rest = await findPage(firstPage.links.next as string);
    expect([...firstPage.data, ...rest.data].map(({ id }) => id)).toEqual(ids.toReversed());
    expect(rest.links.next).toBeNull();
    const one = await findPage(`${passwordsOf(fixture.realm)}?filter=eq(id,${ids[3]})`);
    expect(one.data.map(({ id }) => id)).toEqual([ids[3] as Uuid]);
  });
});

describe('rejected reverse lookups', () => {
  const OIDC =
    'filter: must be one of: eq(issuer,…):eq(subject,…); eq(id,…) or in(id,…); eq(oidc_profile_id,…)';
  const PASSWORDS =
    'filter: must be one of: eq(username,…); eq(username,…):eq(password_profile_id,…); eq(id,…) or in(id,…); eq(password_profile_id,…)';

  test('find with another filter is 400, and names the accepted filters', async () => {
    const id = fixture.oidcLink;
    for (const query of [
      '',
      '?',
      '?page[limit]=5',
      '?sort=id',
      `?filter=eq(issuer,${ISSUER})`,
      '?filter=eq(subject,x)',
      `?filter=eq(id,${id}):eq(subject,x)`,
      `?filter=(eq(id,${id})|eq(id,${id}))`,
      `?filter=eq(id,${id}):eq(id,${id})`,
      '?filter=(eq(subject,a)|eq(subject,b)):eq(issuer,c)',
    ]) {
      expect(await rejections(oidcOf(fixture.realm) + query)).toEqual([['filter', OIDC]]);
    }
    for (const query of ['', `?filter=eq(password_profile_id,${fixture.passwordProfile}):eq(id,${id})`]) {
      expect(await rejections(passwordsOf(fixture.realm) + query)).toEqual([['filter', PASSWORDS]]);
    }
  });

  test('find with a malformed filter is 400 with the broken rule, and without the filter', async () => {
    const many = Array.from({ length: LIMITS.filterValuesMax + 1 }, () => fixture.oidcLink).join();
    for (const filter of [
      '',
      'eq(subject',
      'like(subject,a*)',
      'in(subject,a,b):eq(issuer,c)',
      'eq(name,x)',
      'eq(id,not-an-id)',
      `in(id,${many})`,
      'eq(subject,):eq(issuer,x)',
    ]) {
      const [[parameter, detail] = []] = await rejections(
        `${oidcOf(fixture.realm)}?filter=${encodeURIComponent(filter)}`,
      );
      expect(parameter).toBe('filter');
      expect(detail).toStartWith('Could not parse the supplied filter: ');
    }
    expect(await rejections(`${oidcOf(fixture.realm)}?filter=%ff`)).toEqual([
      ['filter', 'filter: must be UTF-8, percent-encoded'],
    ]);
    expect(await rejections(`${oidcOf(fixture.realm)}${bySubject('x')}&page[limit]=0`)).toHaveLength(1);
  });
});

describe('search with the filter in the body', () => {
  const search = (path: string, body: string | object, headers?: Record<string, string>) =>
    service.post(`${path}/search`, token, body, headers);

  test('search returns the same items as find, without links', async () => {
    const filter = `eq(issuer,${ISSUER}):eq(subject,auth0|Jane)`;
    const answer = await search(oidcOf(fixture.realm), { filter, page: { limit: 5 } });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('cache-control')).toBe('private, no-cache');
    const { data } = await findPage(`${oidcOf(fixture.realm)}${bySubject('auth0|Jane')}`);
    expect((await answer.json()) as object).toEqual({
      data,
      meta: { page: { limit: 5, offset: 0, current: 1, total: 1 }, results: { total: 1 } },
      links: { current: null, first: null, last: null, next: null, prev: null },
    });
    const ids = `in(id,${fixture.passwordLink},${systemClock.mintId()})`;
    const batch = (await (
      await search(passwordsOf(fixture.realm), { filter: ids, page: {} })
    ).json()) as FoundPage;
    expect(batch.data.map(({ id }) => id)).toEqual([fixture.passwordLink]);
    expect(batch.meta).toMatchObject({ page: { limit: 100 } });
    const { realm } = fixture;
    const several = [fixture, await createFixture(service.db, { realm })].map(
      ({ passwordLink }) => passwordLink,
    );
    const first = await search(passwordsOf(realm), {
      filter: `in(id,${several.join()})`,
      page: { limit: 1 },
    });
    expect(await first.json()).toMatchObject({
      meta: { results: { total: 2 } },
      links: { current: null, first: null, last: null, next: null, prev: null },
    });
    const past = await search(passwordsOf(fixture.realm), { filter: ids, page: { offset: 1 } });
    expect(await past.json()).toMatchObject({ data: [], meta: { results: { total: 1 } } });
    const firstPage = await search(oidcOf(fixture.realm), { filter, page: { offset: 1 } });
    expect(await firstPage.json()).toMatchObject({ data: [], meta: { results: { total: 1 } } });
  });

  const INVALID: readonly (readonly [string, string | object, string])[] = [
    ['an empty body', '', ''],
    ['invalid JSON', '{', ''],
    ['an array', [], ''],
    ['null', 'null', ''],
    ['a number', '5', ''],
    ['a filter of another type', { filter: ['eq(id,x)'] }, '/filter'],
    ['a page of another type', { filter: 'eq(id,x)', page: 5 }, '/page'],
    ['a page that is null', { filter: 'eq(id,x)', page: null }, '/page'],
    ['a limit as text', { filter: 'eq(id,x)', page: { limit: '5' } }, '/page/limit'],
    ['a limit of 0', { filter: 'eq(id,x)', page: { limit: 0 } }, '/page/limit'],
    ['a limit of 101', { filter: 'eq(id,x)', page: { limit: 101 } }, '/page/limit'],
    ['half a limit', { filter: 'eq(id,x)', page: { limit: 0.5 } }, '/page/limit'],
    ['an offset beyond the bound', { filter: 'eq(id,x)', page: { offset: 10_001 } }, '/page/offset'],
    ['no filter', {}, '/filter'],
    ['another filter', { filter: 'eq(subject,x)' }, '/filter'],
    ['a malformed filter', { filter: 'eq(subject' }, '/filter'],
  ];
  for (const [what, body, pointer] of INVALID) {
    test(`search with ${what} is 400, with the pointer`, async () => {
      const answer = await search(oidcOf(fixture.realm), body);
      expect(answer.status).toBe(400);
      const [error] = await errorsOf(answer);
      expect(error?.source).toEqual({ pointer });
    });
  }

  test('search is 415, 413, 401, 403 or 404 before its body is parsed', async () => {
    const path = oidcOf(fixture.realm);
    expect((await search(path, 'x', { 'Content-Type': 'text/plain' })).status).toBe(415);
    expect((await search(path, `"${'x'.repeat(LIMITS.bodyBytesMax)}"`)).status).toBe(413);
    expect((await service.post(`${path}/search`, 'none', {})).status).toBe(401);
    const other = await service.token('users:read');
    expect((await service.post(`${path}/search`, other, '{')).status).toBe(403);
    expect((await search(oidcOf('nowhere'), '{')).status).toBe(404);
    expect((await service.get(`${path}/search`, token)).status).toBe(405);
    const unknownRealm = await search(oidcOf(systemClock.mintId()), { filter: `eq(id,${fixture.oidcLink})` });
    expect(unknownRealm.status).toBe(404);
  });
});
