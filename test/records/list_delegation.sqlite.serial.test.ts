import { Database } from 'bun:sqlite';
import { afterAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { parseFilter } from '../../src/model/filter/filter.ts';
import type { Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import type { KeyPrefix, Resource } from '../../src/model/resource.ts';
import { oidcProfile, oidcProfileInfo, realm, user } from '../../src/model/resources.ts';
import type { ListPage, ListRequest, PageRequest, Sort } from '../../src/model/store.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import type { Embedded } from '../../src/ops/store/engine.ts';
import { openEngine } from '../../src/ops/store/open.ts';
import type { ListOutcome } from '../../src/records/store/lists/list_reading.ts';
import { openListReading, type ReaderListRequest } from '../../src/records/store/lists/lists.ts';
import { SQLITE, sqliteStatements } from '../../src/records/store/sqlite/dialect.ts';
import { indexesOf } from '../../src/records/store/sqlite/lists.ts';
import { openReader } from '../../src/records/store/sqlite/reader.ts';
import type { Row, SqlValue, Statement, Work } from '../../src/sql/transaction_work.ts';
import { freshFolder, realmMembers, userMembers } from '../support/service.ts';
import {
  commitWrites,
  createRealmFixture,
  insert,
  mintId,
  oidcLink,
  usernameLink,
  WRITTEN,
} from './contract/store_fixtures.ts';

const PEOPLE = 3_000;
const NEWEST: Sort = { by: 'created_at', isDescending: true };
/** A filter that all users match, so that their total is counted. */
const SINCE_2020 = 'ge(created_at,2020-01-01)';
const FIRST_PAGE: PageRequest = { kind: 'offset', offset: 0, limit: 25 };

const path = join(freshFolder(), 'plans.db');
const engine = await openEngine({ engine: 'sqlite', path }, 'auto', { version: 'test', clock: systemClock });
const fixture = await createRealmFixture(engine.records);
const people = Array.from({ length: PEOPLE }, (_, number) =>
  insert(user, [fixture.realm, mintId()], {
    ...userMembers,
    name: `N${number % 2}`,
    email: `p${number}@shop.example`,
  }),
);
const links = people.flatMap(({ record }, number) => {
  const owner = { ...fixture, user: record.id };
  return [oidcLink(owner, `s-${number}`), usernameLink(owner, `p${number}@shop.example`)];
});
expect(await commitWrites(engine.records, ...people, ...links)).toEqual(WRITTEN);
const userId = people[7]?.record.id as Uuid;
afterAll(() => engine.close());

const filterOf = (resource: Resource, text: string | undefined) =>
  text ? parseFilter(text, resource.filterables ?? resource.reverseLookup?.filterables ?? {}) : [];

const SORTS: readonly Sort[] = (['created_at', 'updated_at', 'id'] as const).flatMap((by) => [
  { by, isDescending: true },
  { by, isDescending: false },
]);

/** Filters of more shapes than statements are cached for. */
const MANY_SHAPES = Array.from({ length: LIMITS.listStatementsCachedMax + 20 }, (_, shape) =>
  Array.from(
    { length: 9 },
    (_, place) => `${(shape >> place) & 1 ? 'gt' : 'ge'}(created_at,2020-01-01)`,
  ).join(':'),
);

describe('delegation of lists to a reader', () => {
  const delegated = async (
    resource: Resource,
    filter: string | undefined,
    listing: Partial<ListRequest> = {},
  ) => {
    const requests: ReaderListRequest[] = [];
    const reader = await openReader(path);
    const list = (engine.embedded as Embedded).listDelegating((request) => {
      requests.push(request);
      return reader.answer(request);
    });
    const scope: KeyPrefix = resource === realm ? [] : [fixture.realm];
    const own = { filter: filterOf(resource, filter), sort: NEWEST, page: FIRST_PAGE, ...listing };
    const listed = (await list(resource, scope, own)) as ListPage;
    const again = (await list(resource, scope, own)) as ListPage;
    reader.close();
    expect(again).toEqual(listed);
    expect(listed).toEqual((await engine.records.list(resource, scope, own)) as ListPage);
    return requests.map(({ isTotalWanted }) => isTotalWanted);
  };
  const MAX = LIMITS.listRecordsInlineMax;
  const start: PageRequest = { kind: 'after', after: undefined, limit: 100 };
  const near: PageRequest = { kind: 'offset', offset: MAX - 100, limit: 100 };
  const deep: PageRequest = { ...near, limit: 99, offset: MAX - 98 };

  test('a page of a whole collection is read here, with its stored total', async () => {
    for (const sort of SORTS) {
      expect(await delegated(user, undefined, { sort, page: start })).toEqual([]);
      expect(await delegated(user, undefined, { sort })).toEqual([]);
    }
    const after = { at: systemClock.now(), id: userId };
    expect(await delegated(user, undefined, { page: { ...start, after } })).toEqual([]);
    expect(await delegated(user, undefined, { page: near })).toEqual([]);
    expect(await delegated(oidcProfile, undefined)).toEqual([]);
    expect(await delegated(realm, undefined)).toEqual([]);
  });

  test('a page beyond the first listRecordsInlineMax records is delegated', async () => {
    expect(await delegated(user, undefined, { page: deep })).toEqual([true, false]);
  });

  test('equal values of an indexed member and IDs are searched here', async () => {
    expect(await delegated(user, 'eq(email,p7@shop.example)')).toEqual([]);
    expect(await delegated(user, 'in(email,p7@shop.example,p8@shop.example)', { page: start })).toEqual([]);
    expect(await delegated(user, 'eq(email,p7@shop.example)', { page: deep })).toEqual([]);
    expect(await delegated(user, `in(id,${userId},${mintId()})`)).toEqual([]);
    expect(await delegated(user, `eq(id,${userId}):ilike(email,*7*)`)).toEqual([]);
    const identity = 'eq(issuer,https://login.example.com/):eq(subject,s-9)';
    expect(await delegated(oidcProfileInfo, identity)).toEqual([]);
  });

  test('an indexed value of more than listRecordsInlineMax records is delegated, and of no more is not', async () => {
    const named = (name: string, count: number) =>
      Array.from({ length: count }, () =>
        insert(user, [fixture.realm, mintId()], { ...userMembers, name, email: `${mintId()}@shop.example` }),
      );
    expect(await commitWrites(engine.records, ...named('Bound', MAX))).toEqual(WRITTEN);
    for (const page of [FIRST_PAGE, near, deep, start]) {
      expect(await delegated(user, 'eq(name,bound)', { page })).toEqual([]);
    }
    expect(await commitWrites(engine.records, ...named('Bound', 1))).toEqual(WRITTEN);
    expect(await delegated(user, 'eq(name,bound)')).toEqual([true, false]);
    expect(await delegated(user, 'eq(name,bound)', { page: start })).toEqual([false, false]);
  });

  test('every other filter is delegated, its total at most once a second', async () => {
    const filters = [
      'ilike(email,*7@shop*)',
      'like(email,p10*)',
      SINCE_2020,
      'eq(given_name,jane)',
      'eq(email,p7@shop.example):eq(name,n1)',
      '(eq(email,p8@shop.example)|eq(email,p7@shop.example))',
      'match(text,p7)',
      `eq(id,${userId}):match(text,p7)`,
    ];
    for (const filter of filters) {
      expect([filter, await delegated(user, filter)]).toEqual([filter, [true, false]]);
      expect([filter, await delegated(user, filter, { page: start })]).toEqual([filter, [false, false]]);
    }
  });

  test('a page after a record in a range of its sort key is a page of the whole collection', async () => {
    const after = { at: systemClock.now(), id: userId };
    const until = 'le(created_at,2200-01-01)';
    expect(await delegated(user, until, { page: { ...start, after } })).toEqual([]);
  });

  test('more than listRecordsInlineMax links of a profile are read here by cursor alone', async () => {
    const links = `eq(oidc_profile_id,${fixture.oidc})`;
    expect(await delegated(oidcProfileInfo, links)).toEqual([true, false]);
    expect(await delegated(oidcProfileInfo, links, { page: start })).toEqual([]);
  });

  test('the count of more than listRecordsInlineMax realms is delegated, and of no more is not', async () => {
    const realms = (count: number) =>
      Array.from({ length: count }, () => insert(realm, [mintId()], realmMembers));
    expect(await commitWrites(engine.records, ...realms(MAX - 1))).toEqual(WRITTEN);
    expect(await delegated(realm, undefined)).toEqual([]);
    expect(await commitWrites(engine.records, ...realms(1))).toEqual(WRITTEN);
    expect(await delegated(realm, undefined)).toEqual([true, false]);
    expect(await delegated(realm, undefined, { page: start })).toEqual([]);
  });
});

test('the first list after the close of an engine is unavailable', async () => {
  const target = { engine: 'sqlite', path: join(freshFolder(), 'closed.db') } as const;
  const closed = await openEngine(target, 'auto', { version: 'test', clock: systemClock });
  const list = (closed.embedded as Embedded).listDelegating(() => Promise.reject(new Error('delegated')));
  await closed.close();
  const listing: ListRequest = { filter: [], sort: NEWEST, page: FIRST_PAGE };
  expect((async () => list(user, [mintId()], listing))()).rejects.toMatchObject({ code: 'unavailable' });
});

describe('totals', () => {
  const all: ListRequest = { filter: filterOf(user, SINCE_2020), sort: NEWEST, page: FIRST_PAGE };

  async function openCountingList(delayMs = 0) {
    const reader = await openReader(path);
    let count = 0;
    const list = (engine.embedded as Embedded).listDelegating(async (request) => {
      if (request.isTotalWanted) count += 1;
      await Bun.sleep(delayMs);
      return reader.answer(request);
    });
    return { list, countsOfTotals: () => count };
  }

  test('concurrent lists share one count of the total, and each has its own page', async () => {
    const { list, countsOfTotals } = await openCountingList(20);
    const pages = [0, 25, 50, 75].map((offset) => ({ ...FIRST_PAGE, offset }) as PageRequest);
    const lists = await Promise.all(pages.map((page) => list(user, [fixture.realm], { ...all, page })));
    expect(countsOfTotals()).toBe(1);
    expect(new Set(lists.map((listed) => listed?.total)).size).toBe(1);
    expect(new Set(lists.flatMap((listed) => listed?.items.map(({ record }) => record.id))).size).toBe(100);
  });

  test('a total older than a second is counted again, and never contradicts its page', async () => {
    const { list, countsOfTotals } = await openCountingList();
    const before = (await list(user, [fixture.realm], all))?.total as number;
    const more = insert(user, [fixture.realm, mintId()], userMembers);
    expect(await commitWrites(engine.records, more)).toEqual(WRITTEN);
    const fresh = await list(user, [fixture.realm], all);
    expect(fresh?.items[0]?.record.id).toBe(more.record.id);
    expect([fresh?.total, countsOfTotals()]).toEqual([before, 1]);
    const pageAtEnd = async (limit: number) => {
      const page = { kind: 'offset', offset: before - 5, limit } as const;
      const listed = await list(user, [fixture.realm], { ...all, page });
      return [listed?.items.length, listed?.total];
    };
    // The last page shows the total itself, and the page before it that there is one record more.
    expect([await pageAtEnd(25), await pageAtEnd(5)]).toEqual([
      [6, before + 1],
      [5, before + 1],
    ]);
    await Bun.sleep(LIMITS.totalAgeMsMax + 5);
    expect((await list(user, [fixture.realm], all))?.total).toBe(before + 1);
    expect(countsOfTotals()).toBe(2);
  });

  test('a failed count is not cached', async () => {
    let isBroken = true;
    const reader = await openReader(path);
    const list = (engine.embedded as Embedded).listDelegating(async (request) => {
      if (isBroken) throw new Error('reader failed');
      return reader.answer(request);
    });
    expect(Promise.resolve(list(user, [fixture.realm], all))).rejects.toThrow('reader failed');
    await Bun.sleep(1);
    isBroken = false;
    expect((await list(user, [fixture.realm], all))?.total).toBeGreaterThan(PEOPLE);
    reader.close();
  });

  /** A list whose reader returns totals only after this many requests. */
  async function openListWithLateTotals(
    requestCount: number,
    count: (page: ListPage | undefined) => typeof page,
  ) {
    const reader = await openReader(path);
    const requests: ReaderListRequest[] = [];
    const { promise: allAsked, resolve } = Promise.withResolvers<void>();
    const list = (engine.embedded as Embedded).listDelegating(async (request) => {
      requests.push(request);
      if (requests.length === requestCount) resolve();
      if (!request.isTotalWanted) return reader.answer(request);
      await allAsked;
      return count(await reader.answer(request));
    });
    return { list, countsOfTotals: () => requests.filter(({ isTotalWanted }) => isTotalWanted).length };
  }

  test('a page is read while its total is counted for another caller', async () => {
    const { list, countsOfTotals } = await openListWithLateTotals(4, (page) => page);
    const lists = await Promise.all(Array.from({ length: 4 }, () => list(user, [fixture.realm], all)));
    expect(lists.map((listed) => listed?.total)).toEqual(Array(4).fill(lists[0]?.total));
    expect(countsOfTotals()).toBe(1);
  });

  test('a failed count fails the lists that wait for it', async () => {
    const { list, countsOfTotals } = await openListWithLateTotals(4, () => {
      throw new Error('reader failed');
    });
    const lists = await Promise.allSettled(
      Array.from({ length: 4 }, async () => list(user, [fixture.realm], all)),
    );
    expect(lists.map(({ status }) => status)).toEqual(Array(4).fill('rejected'));
    expect(countsOfTotals()).toBe(1);
  });

  test('concurrent lists of an absent realm ask for one total', async () => {
    const { list, countsOfTotals } = await openListWithLateTotals(4, (page) => page);
    const id = mintId();
    const lists = await Promise.all(Array.from({ length: 4 }, () => list(user, [id], all)));
    expect(lists).toEqual(Array(4).fill(undefined));
    expect(countsOfTotals()).toBe(1);
  });

  test('a remembered total is that of the same resource, realm, filter and IDs alone', async () => {
    const { list } = await openCountingList();
    const other = await createRealmFixture(engine.records);
    const realms = Array.from({ length: LIMITS.listRecordsInlineMax + 1 }, () =>
      insert(realm, [mintId()], realmMembers),
    );
    expect(await commitWrites(engine.records, ...realms)).toEqual(WRITTEN);
    const deep = { filter: [], sort: NEWEST, page: { ...FIRST_PAGE, offset: 5_000 } as PageRequest };
    const lists: readonly (readonly [Resource, KeyPrefix, ListRequest])[] = [
      ...[fixture, other].map((of) => [user, [of.realm], deep] as const),
      [user, [fixture.realm], { ...deep, filter: filterOf(user, 'eq(name,n1)') }],
      [oidcProfile, [fixture.realm], deep],
      [realm, [], deep],
      [realm, [], { ...deep, only: realms.map(({ record }) => record.id) }],
    ];
    for (const each of lists) {
      expect((await list(...each))?.total).toBe((await engine.records.list(...each))?.total as number);
    }
  });

  test('a total beyond the limit of those remembered is counted for each list', async () => {
    const realms = Array.from({ length: LIMITS.totalsCachedMax + 1 }, mintId);
    const { list, countsOfTotals } = await openListWithLateTotals(2 * realms.length, (page) => page);
    await Promise.all([...realms, ...realms].map((id) => list(user, [id], all)));
    expect(countsOfTotals()).toBe(realms.length + 1);
  });

  test('a list of a realm that did not exist is not remembered', async () => {
    const { list } = await openCountingList();
    const id = mintId();
    expect(await list(user, [id], all)).toBeUndefined();
    expect(await commitWrites(engine.records, insert(realm, [id], realmMembers))).toEqual(WRITTEN);
    expect((await list(user, [id], all))?.total).toBe(0);
  });

  test('list statements evicted from their cache are prepared again, here and in the reader', async () => {
    const { list } = await openCountingList();
    const page = { kind: 'offset', offset: 0, limit: 1 } as const;
    const totalOf = async (filter: string) =>
      (await list(user, [fixture.realm], { ...all, filter: filterOf(user, filter), page }))?.total;
    for (const filter of [...MANY_SHAPES, ...MANY_SHAPES]) {
      expect(await totalOf(`eq(id,${userId}):${filter}`)).toBe(1);
      expect(await totalOf(filter)).toBeGreaterThan(PEOPLE);
    }
  });
});

describe('the statements of a list that is read here', () => {
  const db = new Database(path, { readonly: true });
  afterAll(() => db.close());

  function openReading() {
    const forgotten: string[] = [];
    const reading = openListReading({
      of: sqliteStatements,
      dialect: SQLITE,
      indexesOf: (table) => indexesOf(db, table),
      forget: (texts) => forgotten.push(...texts),
    });
    const start = (filter: string) => {
      const listing = { filter: filterOf(user, filter), sort: NEWEST, page: FIRST_PAGE };
      return reading.bounded({ resource: user, scope: [fixture.realm], listing });
    };
    return { start, forgotten };
  }

  test('statements of a plan that was evicted while its list waited are forgotten again', () => {
    const { start, forgotten } = openReading();
    const evict = () => {
      for (const filter of MANY_SHAPES) start(filter);
    };
    const begin = start('eq(email,x)');
    evict();
    const first = begin?.().next().value as Statement;
    expect(forgotten).toContain(first.text);
    forgotten.length = 0;
    evict();
    expect(forgotten).toContain(first.text);
  });

  test.each([
    [2, [2]],
    [LIMITS.pageRecordsMax, [LIMITS.pageRecordsMax]],
    [LIMITS.pageRecordsMax + 1, [LIMITS.pageRecordsMax + 1, 1, LIMITS.pageRecordsMax + 1]],
    [LIMITS.listRecordsInlineMax, [LIMITS.pageRecordsMax + 1, 1, LIMITS.listRecordsInlineMax]],
    [LIMITS.listRecordsInlineMax + 1, [LIMITS.pageRecordsMax + 1, 1]],
  ])('%d records with a value are counted first if they exceed a page', async (count, expected) => {
    const named = Array.from({ length: count }, (_, number) =>
      insert(user, [fixture.realm, mintId()], {
        ...userMembers,
        name: `Named ${count}`,
        email: `${count}.${number}@shop.example`,
      }),
    );
    expect(await commitWrites(engine.records, ...named)).toEqual(WRITTEN);
    const work = openReading().start(`eq(name,named ${count})`)?.() as Work<ListOutcome>;
    const rowCounts: number[] = [];
    let step = work.next();
    while (!step.done) {
      const { text, values } = step.value as Statement;
      const rows = db.query<Row, SqlValue[]>(text).all(...values);
      rowCounts.push(rows.length);
      step = work.next({ rows, count: 0 });
    }
    expect(rowCounts).toEqual(expected);
    expect(step.value === 'elsewhere').toBe(count > LIMITS.listRecordsInlineMax);
  });
});
