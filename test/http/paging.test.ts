import { describe, expect, test } from 'bun:test';
import type { Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { realm, user } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { removeRecord } from '../records/contract/store_fixtures.ts';
import {
  buildRecord,
  errorsOf,
  insertOf,
  realmMembers,
  startService,
  userMembers,
} from '../support/service.ts';

/** The response body of a page. */
interface Body {
  readonly data: readonly { readonly id: Uuid; readonly links: { readonly self: string } }[];
  readonly meta: {
    readonly page: { limit: number; offset?: number; current?: number; total?: number };
    readonly results?: { total: number };
  };
  readonly links: Readonly<Record<'current' | 'first' | 'last' | 'next' | 'prev', string | null>>;
}

const service = await startService();
const token = await service.token('realms:read users:read');

/** Creates a realm with this many users. Returns them newest first. */
async function createRealmWithUsers(
  count: number,
): Promise<{ id: Uuid; users: readonly Uuid[]; path: string }> {
  const id = systemClock.mintId();
  const users = Array.from({ length: count }, () => systemClock.mintId());
  const writes = [
    insertOf(realm, [id], buildRecord([id], realmMembers)),
    ...users.map((each, place) => {
      const record = {
        ...buildRecord([id, each], { ...userMembers, name: `N${place % 2}` }),
        created_at: place,
      };
      return insertOf(user, [id, each], record);
    }),
  ];
  expect(await service.db.engine.records.commit(writes)).toEqual({ kind: 'written' });
  const path = `/v2/authentication-realms/${id}/user-authentication-info`;
  return { id, users: users.toReversed(), path };
}

async function page(path: string): Promise<Body> {
  const answer = await service.get(path, token);
  if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as Body;
}

const idsOf = ({ data }: Body) => data.map(({ id }) => id);

describe('pages counted from the start', () => {
  test('a page has 25 records by default, meta and five links', async () => {
    const { users, path } = await createRealmWithUsers(60);
    const at = (offset: number, limit = 25) =>
      `${service.url}${path}?page%5Blimit%5D=${limit}&page%5Boffset%5D=${offset}`;
    const first = await page(path);
    expect(idsOf(first)).toEqual(users.slice(0, 25) as Uuid[]);
    expect(first.meta).toEqual({
      page: { limit: 25, offset: 0, current: 1, total: 3 },
      results: { total: 60 },
    });
    expect(first.links).toEqual({ current: at(0), first: at(0), last: at(50), next: at(25), prev: null });
    const second = await page(first.links.next as string);
    expect(idsOf(second)).toEqual(users.slice(25, 50) as Uuid[]);
    expect(second.meta.page).toEqual({ limit: 25, offset: 25, current: 2, total: 3 });
    expect(second.links).toEqual({ current: at(25), first: at(0), last: at(50), next: at(50), prev: at(0) });
    const third = await page(second.links.next as string);
    expect(idsOf(third)).toEqual(users.slice(50) as Uuid[]);
    expect(third.links).toEqual({ current: at(50), first: at(0), last: at(50), next: null, prev: at(25) });
    const unaligned = await page(`${path}?page[limit]=10&page[offset]=5`);
    expect(idsOf(unaligned)).toEqual(users.slice(5, 15) as Uuid[]);
    expect(unaligned.links).toMatchObject({ next: at(15, 10), prev: at(0, 10), last: at(50, 10) });
    expect(unaligned.meta.page).toEqual({ limit: 10, offset: 5, current: 1, total: 6 });
  });

  test('page parameters with raw and encoded brackets are equivalent', async () => {
    const { path } = await createRealmWithUsers(3);
    const raw = await page(`${path}?page[limit]=2&page[offset]=1`);
    expect(await page(`${path}?page%5Boffset%5D=1&page%5blimit%5d=2`)).toEqual(raw);
  });

  test('a single page, an empty list and a page past the end have the documented numbers and links', async () => {
    const one = await createRealmWithUsers(2);
    const whole = await page(one.path);
    expect(whole.meta).toEqual({
      page: { limit: 25, offset: 0, current: 1, total: 1 },
      results: { total: 2 },
    });
    expect(whole.links.last).toBe(whole.links.current);
    expect([whole.links.next, whole.links.prev]).toEqual([null, null]);
    const past = await page(`${one.path}?page[offset]=10000&page[limit]=1`);
    expect(past.data).toEqual([]);
    expect(past.meta.results).toEqual({ total: 2 });
    expect(past.links.next).toBeNull();
    expect(past.links.prev).toEndWith('?page%5Blimit%5D=1&page%5Boffset%5D=1');
    const none = await page((await createRealmWithUsers(0)).path);
    expect(none.data).toEqual([]);
    expect(none.meta).toEqual({
      page: { limit: 25, offset: 0, current: 1, total: 0 },
      results: { total: 0 },
    });
    expect(none.links.last).toBe(none.links.first);
  });

  test('pages by offset until an empty one return every record once', async () => {
    const { users, path } = await createRealmWithUsers(LIMITS.listRecordsInlineMax + 250);
    const seen: Uuid[] = [];
    for (let offset = 0; ; offset += 100) {
      const { data, meta } = await page(`${path}?page[limit]=100&page[offset]=${offset}`);
      expect(meta.results?.total).toBe(users.length);
      if (data.length === 0) break;
      seen.push(...data.map(({ id }) => id));
    }
    expect(seen).toEqual([...users]);
  });

  test('links of a page repeat filter and sort', async () => {
    const { users, path } = await createRealmWithUsers(9);
    const filter = "(eq(name,'n1')|eq(name,nobody)):ge(created_at,1970-01-01)";
    const url = `${path}?sort=created_at&filter=${encodeURIComponent(filter)}&page[limit]=2&x=y`;
    const first = await page(url);
    const second = await page(first.links.next as string);
    expect([...idsOf(first), ...idsOf(second)]).toEqual([7, 5, 3, 1].map((place) => users[place] as Uuid));
    expect(first.links.next).not.toContain('x=y');
    expect(second.links.next).toBeNull();
    expect(idsOf(await page(second.links.prev as string))).toEqual(idsOf(first));
    expect(second.links.current).toMatch(
      /\?page%5Blimit%5D=2&page%5Boffset%5D=2&filter=[^'"|{}<>\\^` ]+&sort=created_at$/,
    );
  });
});

describe('pages after a record', () => {
  test('pages from an empty page[after] along links.next return every record once', async () => {
    const { users, path } = await createRealmWithUsers(25);
    const seen: Uuid[] = [];
    let next: string | null = `${path}?page[after]=&page[limit]=10`;
    let pages = 0;
    while (next) {
      const body: Body = await page(next);
      expect(body.meta).toEqual({ page: { limit: 10 } });
      expect(body.links.first).toBe(`${service.url}${path}?page%5Blimit%5D=10&page%5Bafter%5D=`);
      expect([body.links.last, body.links.prev]).toEqual([null, null]);
      expect(idsOf(await page(body.links.current as string))).toEqual(idsOf(body));
      seen.push(...idsOf(body));
      next = body.links.next;
      pages += 1;
    }
    expect(seen).toEqual([...users]);
    expect(pages).toBe(3);
  });

  test('links.next continues after a deleted record, and inserted records do not shift it', async () => {
    const { id, users, path } = await createRealmWithUsers(9);
    const first = await page(`${path}?page[after]=&page[limit]=3`);
    const { records } = service.db.engine;
    const origin = { actor: 'test', requestId: undefined, address: undefined, at: systemClock.now() };
    const { mintRevision, mintId } = systemClock;
    await removeRecord(records, { resource: user, key: [id, users[2] as Uuid], origin, mintRevision });
    const late = mintId();
    const record = buildRecord([id, late], userMembers);
    await records.commit([insertOf(user, [id, late], record)]);
    expect(idsOf(await page(first.links.next as string))).toEqual(users.slice(3, 6) as Uuid[]);
  });

  test.each(['updated_at', '-updated_at'])(
    'page[after] with sort=%s is 400 and names the change feed, because a write moves its record',
    async (sort) => {
      const { path } = await createRealmWithUsers(3);
      const answer = await service.get(`${path}?page[after]=&sort=${sort}`, token);
      expect(answer.status).toBe(400);
      const errors = await errorsOf(answer);
      expect(errors.map(({ source }) => source)).toEqual([{ parameter: 'page[after]' }]);
      expect(errors[0]?.detail).toContain('/changes');
    },
  );

  test('a cursor of another order and a forged cursor are 400', async () => {
    const { path } = await createRealmWithUsers(3);
    const { links } = await page(`${path}?page[after]=&page[limit]=1&sort=id`);
    for (const query of [
      `${new URL(links.next as string).search.replace('sort=id', 'sort=-id')}`,
      '?page[after]=AAAA',
    ]) {
      const answer = await service.get(`${path}${query}`, token);
      expect(answer.status).toBe(400);
      expect((await errorsOf(answer)).map(({ source }) => source)).toEqual([{ parameter: 'page[after]' }]);
    }
  });
});

describe('beyond the maximum offset', async () => {
  const COUNT = LIMITS.pageOffsetMax + 150;
  const { path, users } = await createRealmWithUsers(COUNT);

  test('a list beyond the maximum offset has an exact total, a valid links.last, and continues by a cursor', async () => {
    const first = await page(`${path}?page[limit]=100`);
    expect(first.meta.results).toEqual({ total: COUNT });
    expect(first.meta.page.total).toBe(102);
    expect(first.links.last).toEndWith(`page%5Boffset%5D=${LIMITS.pageOffsetMax}`);
    const last = await page(first.links.last as string);
    expect(idsOf(last)).toEqual(users.slice(10_000, 10_100) as Uuid[]);
    const beyond = await page(last.links.next as string);
    expect(beyond.links.current).toContain('page%5Bafter%5D=');
    expect(idsOf(beyond)).toEqual(users.slice(10_100) as Uuid[]);
    expect(beyond.links.next).toBeNull();
  });

  test('no link of a page near the maximum offset is 400, for any page length', async () => {
    for (const query of [
      'page[limit]=99&page[offset]=9999',
      'page[limit]=7&page[offset]=9990',
      'page[limit]=100&page[offset]=10000',
    ]) {
      const { links } = await page(`${path}?${query}`);
      const given = Object.values(links).filter((link) => link !== null);
      for (const link of given) expect((await service.get(link, token)).status).toBe(200);
    }
    for (const query of ['page[offset]=10001', 'page[limit]=101', 'page[limit]=0']) {
      expect((await service.get(`${path}?${query}`, token)).status).toBe(400);
    }
  });

  test.each(['updated_at', '-updated_at'])(
    'links.next of a list with sort=%s is null at the maximum offset',
    async (sort) => {
      const { links, data } = await page(`${path}?sort=${sort}&page[limit]=100&page[offset]=10000`);
      expect([data.length, links.next]).toEqual([100, null]);
      const before = await page(`${path}?sort=${sort}&page[limit]=100&page[offset]=9900`);
      expect(before.links.next).toBe(links.current);
    },
  );

  test('deep pages with a filter or another order follow each other without overlap', async () => {
    for (const query of ['sort=updated_at', 'sort=-id', 'filter=ilike(name,*1)', 'filter=like(name,n1*)']) {
      const deep = await page(`${path}?${query}&page[limit]=50&page[offset]=4950`);
      const start = await page(`${path}?${query}&page[limit]=50&page[offset]=4900`);
      expect(start.links.next).toBe(deep.links.current);
      expect(deep.data).toHaveLength(50);
      expect(new Set([...idsOf(start), ...idsOf(deep)]).size).toBe(100);
    }
  });
});
