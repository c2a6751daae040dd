import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Uuid } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { oidcProfileInfo, passwordProfileInfo } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import {
  errorsOf,
  ISSUER,
  oidcPath,
  type Planted,
  passwordPath,
  plant,
  put,
  type Service,
  startService,
} from '../support/service.ts';

/** A reverse lookup as it is answered. */
interface Found {
  readonly data: readonly Record<string, unknown>[];
  readonly meta: object;
  readonly links: Readonly<Record<string, string | null>>;
}

let service: Service;
let planted: Planted;
let elsewhere: Planted;
let token: string;
beforeAll(async () => {
  service = await startService();
  planted = await plant(service.db, { subject: 'auth0|Jane', username: 'Jane@Shop.example' });
  elsewhere = await plant(service.db, { subject: 'auth0|Jane', username: 'Jane@Shop.example' });
  token = await service.token('profile-infos:read');
});
afterAll(() => service.stop());

const base = (realm: string) => `/v2/authentication-realms/${realm}`;
const oidcOf = (realm: string) => `${base(realm)}/user-authentication-oidc-profile-info`;
const passwordsOf = (realm: string) => `${base(realm)}/user-authentication-password-profile-info`;
/** The runtime encodes an apostrophe that it is sent; links have it so as well. */
const inLinks = (text: string) => encodeURIComponent(text).replaceAll("'", '%27');
const bySubject = (subject: string) =>
  `?filter=eq(issuer,${encodeURIComponent(ISSUER)}):eq(subject,${inLinks(`'${subject}'`)})`;

async function found(path: string): Promise<Found> {
  const answer = await service.get(path, token);
  if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as Found;
}

async function refused(path: string) {
  const answer = await service.get(path, token);
  expect(answer.status).toBe(400);
  return (await errorsOf(answer)).map(({ detail, source }) => [source?.parameter, detail]);
}

async function single(path: string): Promise<object> {
  return ((await (await service.get(path, token)).json()) as { data: object }).data;
}

describe('who is this?', () => {
  test('a subject at an issuer: the record as a GET shows it, whose it is, and its address', async () => {
    const query = bySubject('auth0|Jane');
    const answer = await service.get(`${oidcOf(planted.realm)}${query}`, token);
    expect(answer.headers.get('cache-control')).toBe('private, no-cache');
    expect(answer.headers.get('etag')).toBeNull();
    expect((await answer.json()) as object).toEqual({
      data: [
        {
          ...(await single(oidcPath(planted))),
          relationships: {
            user_authentication_info: { data: { id: planted.user, type: 'user_authentication_info' } },
          },
          links: { self: `${service.url}${oidcPath(planted)}` },
        },
      ],
      meta: { page: { limit: 25, offset: 0, current: 1, total: 1 }, results: { total: 1 } },
      links: { current: null, first: null, last: null, next: null, prev: null },
    });
  });

  test('a username, in any spelling of its key; with its profile and without', async () => {
    const asked = [
      "eq(username,'jane@shop.EXAMPLE')",
      `eq(username,ＪＡＮＥ@shop.example):eq(password_profile_id,${planted.passwordProfile})`,
    ];
    for (const filter of asked) {
      const { data } = await found(`${passwordsOf(planted.realm)}?filter=${encodeURIComponent(filter)}`);
      expect(data).toEqual([
        {
          ...(await single(passwordPath(planted))),
          relationships: {
            user_authentication_info: { data: { id: planted.user, type: 'user_authentication_info' } },
          },
          // In a list this link is versioned (docs/wire.md#self-links).
          links: { self: `${service.url}${passwordPath(planted)}` },
        },
      ]);
    }
    const other = `eq(username,jane@shop.example):eq(password_profile_id,${elsewhere.passwordProfile})`;
    expect((await found(`${passwordsOf(planted.realm)}?filter=${other}`)).data).toEqual([]);
  });

  test('the plain spelling asks for the record alone, every other says the same', async () => {
    const asked: string[] = [];
    const counted = await startService({}, (engine) => {
      const { find, list } = engine.records;
      const counting = (all: typeof list): typeof list => {
        return (...question) => {
          asked.push('list');
          return all(...question);
        };
      };
      const records: typeof engine.records = {
        ...engine.records,
        find: (...question) => {
          asked.push('find');
          return find(...question);
        },
        list: counting(list),
      };
      const { embedded } = engine;
      if (!embedded) return { ...engine, records };
      const listBeside: typeof embedded.listDelegating = (ask) => counting(embedded.listDelegating(ask));
      return { ...engine, records, embedded: { ...embedded, listDelegating: listBeside } };
    });
    const at = await plant(counted.db, { subject: 'auth0|Jane' });
    const as = await counted.token('profile-infos:read');
    const path = oidcOf(at.realm);
    const terms = [`eq(issuer,${ISSUER})`, "eq(subject,'auth0|Jane')"] as const;
    const spelled = async (query: string) => {
      asked.length = 0;
      const body = await (await counted.get(`${path}?${query}`, as)).text();
      return { body, asked: [...asked] };
    };
    const plain = await spelled(`filter=${terms.join(':')}`);
    expect(plain.asked).toEqual(['find']);
    expect(plain.body).toContain(at.oidcLink);
    expect(await spelled(`filter=${encodeURIComponent(terms.toReversed().join(':'))}`)).toEqual(plain);
    for (const query of [
      `filter=${terms.join(' : ')}`,
      `filter=${terms.join(':')}&page[limit]=25`,
      `filter=${terms[0]}:eq(subject,'auth0\\|Jane')`,
      `filter=in(id,${at.oidcLink})`,
    ]) {
      expect(await spelled(query)).toEqual({ ...plain, asked: ['list'] });
    }
    asked.length = 0;
    const searched = await counted.post(`${path}/search`, as, { filter: terms.join(':') });
    expect([await searched.text(), asked]).toEqual([plain.body, ['find']]);
    await counted.stop();
  });

  test('a subject that differs in case, composition, width or an invisible character finds nothing', async () => {
    const subject = 'auth0|Ünï';
    const given = await plant(service.db, {
      ...planted,
      oidcLink: systemClock.mintId(),
      passwordLink: systemClock.mintId(),
      subject,
      username: 'x',
    });
    const at = (text: string) => found(`${oidcOf(planted.realm)}${bySubject(text)}`);
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

  test('every separator and quote of the grammar in a subject, and SQL', async () => {
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
      const key = [planted.realm, planted.user, id] as const;
      await put(service.db, oidcProfileInfo, key, {
        subject,
        issuer: ISSUER,
        oidc_profile_id: planted.oidcProfile,
      });
      const quoted = subject.replace(/[\\']/g, '\\$&');
      const page = await found(`${oidcOf(planted.realm)}${bySubject(quoted)}`);
      expect(page.data.map((item) => item.subject)).toEqual([subject]);
    }
  });
});

describe('batches', () => {
  test('up to 100 identifiers at once: those of this realm, on one page', async () => {
    const ids: Uuid[] = [];
    for (let place = 0; place < 98; place += 1) {
      const id = systemClock.mintId();
      const members = { username: `batch-${place}`, password_profile_id: planted.passwordProfile };
      await put(service.db, passwordProfileInfo, [planted.realm, planted.user, id], members);
      ids.push(id);
    }
    const asked = [...ids, elsewhere.passwordLink, systemClock.mintId()];
    expect(asked).toHaveLength(LIMITS.filterValuesMax);
    const page = await found(`${passwordsOf(planted.realm)}?filter=in(id,${asked.join().toUpperCase()})`);
    expect(page.data.map(({ id }) => id)).toEqual(ids.toReversed());
    expect(page.meta).toEqual({
      page: { limit: 100, offset: 0, current: 1, total: 1 },
      results: { total: 98 },
    });
    const parts = await found(
      `${passwordsOf(planted.realm)}?filter=in(id,${ids})&page[limit]=50&page[offset]=50`,
    );
    expect(parts.data.map(({ id }) => id)).toEqual(ids.toReversed().slice(50));
    const before = await found(parts.links.prev as string);
    expect([...before.data, ...parts.data].map(({ id }) => id)).toEqual(ids.toReversed());
    expect((await found(before.links.next as string)).data).toEqual(parts.data);
    const first = await found(`${passwordsOf(planted.realm)}?filter=in(id,${ids})&page[limit]=50`);
    expect([first.data, first.links.next]).toEqual([before.data, before.links.next as string]);
    expect(new Set(Object.values(page.links))).toEqual(new Set([null]));
    const behind = await found(
      `${passwordsOf(planted.realm)}?filter=in(id,${ids})&page[limit]=60&page[after]=`,
    );
    const rest = await found(behind.links.next as string);
    expect([...behind.data, ...rest.data].map(({ id }) => id)).toEqual(ids.toReversed());
    expect(rest.links.next).toBeNull();
    const one = await found(`${passwordsOf(planted.realm)}?filter=eq(id,${ids[3]})`);
    expect(one.data.map(({ id }) => id)).toEqual([ids[3] as Uuid]);
  });
});

describe('what is no reverse lookup', () => {
  const OIDC = 'filter: must be one of: eq(issuer,…):eq(subject,…); eq(id,…) or in(id,…)';
  const PASSWORDS =
    'filter: must be one of: eq(username,…); eq(username,…):eq(password_profile_id,…); eq(id,…) or in(id,…)';

  test('says which filters there are', async () => {
    const id = planted.oidcLink;
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
      expect(await refused(oidcOf(planted.realm) + query)).toEqual([['filter', OIDC]]);
    }
    for (const query of ['', `?filter=eq(password_profile_id,${planted.passwordProfile})`]) {
      expect(await refused(passwordsOf(planted.realm) + query)).toEqual([['filter', PASSWORDS]]);
    }
  });

  test('says what is wrong with a filter, and repeats nothing of it', async () => {
    const many = Array.from({ length: LIMITS.filterValuesMax + 1 }, () => planted.oidcLink).join();
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
      const [[parameter, detail] = []] = await refused(
        `${oidcOf(planted.realm)}?filter=${encodeURIComponent(filter)}`,
      );
      expect(parameter).toBe('filter');
      expect(detail).toStartWith('Could not parse the supplied filter: ');
    }
    expect(await refused(`${oidcOf(planted.realm)}?filter=%ff`)).toEqual([
      ['filter', 'filter: must be UTF-8, percent-encoded'],
    ]);
    expect(await refused(`${oidcOf(planted.realm)}${bySubject('x')}&page[limit]=0`)).toHaveLength(1);
  });

  test('who may not look, and where there is nothing to look in', async () => {
    const path = `${oidcOf(planted.realm)}${bySubject('auth0|Jane')}`;
    expect((await service.get(path)).status).toBe(401);
    expect((await service.get(path, await service.token('password-profile-infos:read'))).status).toBe(403);
    const limited = await service.token('profile-infos:read', new Set([elsewhere.realm]));
    expect((await service.get(path, limited)).status).toBe(404);
    const own = await service.get(`${oidcOf(elsewhere.realm)}${bySubject('auth0|Jane')}`, limited);
    expect(((await own.json()) as Found).data.map(({ id }) => id)).toEqual([elsewhere.oidcLink]);
    for (const realm of [systemClock.mintId(), 'nowhere']) {
      expect((await service.get(`${oidcOf(realm)}${bySubject('auth0|Jane')}`, token)).status).toBe(404);
    }
  });
});

describe('the question in the body', () => {
  const ask = (path: string, body: string | object, headers?: Record<string, string>) =>
    service.post(`${path}/search`, token, body, headers);

  test('answers the same items; no link repeats the question', async () => {
    const filter = `eq(issuer,${ISSUER}):eq(subject,auth0|Jane)`;
    const answer = await ask(oidcOf(planted.realm), { filter, page: { limit: 5 } });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('cache-control')).toBe('private, no-cache');
    const { data } = await found(`${oidcOf(planted.realm)}${bySubject('auth0|Jane')}`);
    expect((await answer.json()) as object).toEqual({
      data,
      meta: { page: { limit: 5, offset: 0, current: 1, total: 1 }, results: { total: 1 } },
      links: { current: null, first: null, last: null, next: null, prev: null },
    });
    const ids = `in(id,${planted.passwordLink},${systemClock.mintId()})`;
    const batch = (await (await ask(passwordsOf(planted.realm), { filter: ids, page: {} })).json()) as Found;
    expect(batch.data.map(({ id }) => id)).toEqual([planted.passwordLink]);
    expect(batch.meta).toMatchObject({ page: { limit: 100 } });
    const { realm } = planted;
    const several = [planted, await plant(service.db, { realm })].map(({ passwordLink }) => passwordLink);
    const first = await ask(passwordsOf(realm), { filter: `in(id,${several.join()})`, page: { limit: 1 } });
    expect(await first.json()).toMatchObject({
      meta: { results: { total: 2 } },
      links: { current: null, first: null, last: null, next: null, prev: null },
    });
    const past = await ask(passwordsOf(planted.realm), { filter: ids, page: { offset: 1 } });
    expect(await past.json()).toMatchObject({ data: [], meta: { results: { total: 1 } } });
    const behind = await ask(oidcOf(planted.realm), { filter, page: { offset: 1 } });
    expect(await behind.json()).toMatchObject({ data: [], meta: { results: { total: 1 } } });
  });

  const BAD: readonly (readonly [string, string | object, string])[] = [
    ['no body', '', ''],
    ['no JSON', '{', ''],
    ['too deep', '['.repeat(65), ''],
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
    ['a filter that is none', { filter: 'eq(subject' }, '/filter'],
  ];
  for (const [what, body, pointer] of BAD) {
    test(`400: ${what}`, async () => {
      const answer = await ask(oidcOf(planted.realm), body);
      expect(answer.status).toBe(400);
      const [error] = await errorsOf(answer);
      expect(error?.source).toEqual({ pointer });
    });
  }

  test('415, 413, 401, 403 and 404 before the question is read', async () => {
    const path = oidcOf(planted.realm);
    expect((await ask(path, 'x', { 'Content-Type': 'text/plain' })).status).toBe(415);
    expect((await ask(path, `"${'x'.repeat(LIMITS.bodyBytesMax)}"`)).status).toBe(413);
    expect((await service.post(`${path}/search`, 'none', {})).status).toBe(401);
    const other = await service.token('users:read');
    expect((await service.post(`${path}/search`, other, '{')).status).toBe(403);
    expect((await ask(oidcOf('nowhere'), '{')).status).toBe(404);
    expect((await service.get(`${path}/search`, token)).status).toBe(405);
    const nowhere = await ask(oidcOf(systemClock.mintId()), { filter: `eq(id,${planted.oidcLink})` });
    expect(nowhere.status).toBe(404);
  });
});
