import { Database } from 'bun:sqlite';
import { afterAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import type { ListPage, ListRequest, PageRequest, Sort } from '../../src/directory/store.ts';
import { type ParsedFilter, parseFilter } from '../../src/domain/filter/filter.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import type { KeyPrefix, Resource } from '../../src/domain/resource.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  realm,
  user,
} from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { Embedded } from '../../src/store/engine.ts';
import { clauseOf } from '../../src/store/lists/filters.ts';
import { type ListStatement, listTable, planList } from '../../src/store/lists/list_plans.ts';
import { startAtCursor } from '../../src/store/lists/list_reading.ts';
import type { ReaderListRequest } from '../../src/store/lists/lists.ts';
import { openTotalCache } from '../../src/store/lists/totals.ts';
import { openEngine } from '../../src/store/open.ts';
import { SQLITE, sqliteStatements } from '../../src/store/sqlite/dialect.ts';
import { indexesOf } from '../../src/store/sqlite/lists.ts';
import { openReader } from '../../src/store/sqlite/reader.ts';
import { freshFolder, userMembers } from '../support/service.ts';
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
const db = new Database(path, { readonly: true });
afterAll(() => {
  db.close();
  engine.close();
});

interface ListCase {
  readonly resource: Resource;
  readonly depth: number;
  readonly filter?: string;
  readonly sort?: Sort;
  readonly only?: true;
}

const filterOf = (resource: Resource, text: string | undefined) =>
  text ? parseFilter(text, resource.filterables ?? resource.reverseLookup?.filterables ?? {}) : [];

/** The list plan of a case, and the query plan of each of its statements. */
function planOf({ resource, depth, filter: text, sort = NEWEST, only }: ListCase, narrowed?: ParsedFilter) {
  const table = listTable(resource, sqliteStatements(resource), indexesOf(db, resource.table), SQLITE);
  const filter = narrowed ?? filterOf(resource, text);
  const { text: where } = clauseOf(filter, table.columnOf, SQLITE);
  const plan = planList(table, { depth, filter, hasOnly: only === true, sort, where }, SQLITE.lists);
  const steps = (reading: ListStatement): readonly string[] =>
    db
      .query<{ detail: string }, []>(`explain query plan ${plan.text(reading)}`)
      .all()
      .map(({ detail }) => detail);
  return { plan, steps };
}

const FIRST_ID = '00000000-0000-0000-0000-000000000001';
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff' as Uuid;

const SORTS: readonly Sort[] = (['created_at', 'updated_at', 'id'] as const).flatMap((by) => [
  { by, isDescending: true },
  { by, isDescending: false },
]);

/** Lists that an index returns in their order. */
const ORDERED: readonly ListCase[] = [
  { resource: realm, depth: 0 },
  { resource: oidcProfile, depth: 1 },
  { resource: passwordProfile, depth: 1 },
  { resource: oidcProfileInfo, depth: 2 },
  { resource: passwordProfileInfo, depth: 2 },
  { resource: oidcProfileInfo, depth: 1, filter: `eq(oidc_profile_id,${mintId()})` },
  { resource: passwordProfileInfo, depth: 1, filter: `eq(password_profile_id,${mintId()})` },
  ...SORTS.map((sort) => ({ resource: user, depth: 1, sort })),
  { resource: user, depth: 1, filter: 'ge(created_at,2026-01-01)' },
  { resource: user, depth: 1, filter: 'ge(created_at,2026-01-01):lt(created_at,2026-02-01)' },
  { resource: user, depth: 1, filter: 'le(created_at,2026-02-01)' },
  {
    resource: user,
    depth: 1,
    filter: 'ge(updated_at,2026-01-01)',
    sort: { by: 'updated_at', isDescending: false },
  },
  { resource: user, depth: 1, filter: `gt(id,${FIRST_ID})`, sort: { by: 'id', isDescending: false } },
  { resource: user, depth: 1, filter: `gt(id,${FIRST_ID})`, sort: { by: 'id', isDescending: true } },
];

/** Lists whose filter an index serves. */
const FILTERED: readonly ListCase[] = [
  { resource: realm, depth: 0, only: true },
  { resource: oidcProfileInfo, depth: 1, filter: 'eq(issuer,https://a.example):eq(subject,s)' },
  { resource: oidcProfileInfo, depth: 1, filter: 'eq(subject,s):eq(issuer,https://a.example)' },
  { resource: oidcProfileInfo, depth: 1, filter: `in(id,${mintId()},${mintId()},${mintId()})` },
  { resource: passwordProfileInfo, depth: 1, filter: 'eq(username,x)' },
  { resource: passwordProfileInfo, depth: 1, filter: `eq(username,x):eq(password_profile_id,${mintId()})` },
  { resource: passwordProfileInfo, depth: 1, filter: `eq(id,${mintId()})` },
  { resource: user, depth: 1, filter: 'eq(email,x@shop.example)' },
  { resource: user, depth: 1, filter: 'in(email,x@shop.example,y@shop.example)' },
  { resource: user, depth: 1, filter: 'like(email,x*)' },
  { resource: user, depth: 1, filter: 'ilike(name,x*)' },
  { resource: user, depth: 1, filter: `in(id,${mintId()},${mintId()}):ilike(name,*x*):is_null(given_name)` },
  { resource: user, depth: 1, filter: 'ge(updated_at,2026-01-01)' },
];

/** Filters for which every index also reads records that do not match. */
const UNINDEXED: readonly ListCase[] = [
  'ilike(email,*x)',
  'ilike(email,*x*)',
  'is_null(given_name)',
  'eq(given_name,x)',
  '(eq(email,x)|eq(email,y))',
  'eq(email,x):eq(email,y)',
  'eq(email,x):ge(created_at,2026-01-01)',
  'eq(email,x):eq(name,y)',
  'like(email,x*):ge(created_at,2026-01-01)',
  'ge(created_at,2026-01-01):gt(created_at,2026-02-01)',
  'like(email,x*):like(email,xy*)',
].map((filter) => ({ resource: user, depth: 1, filter }));

const title = ({ resource, depth, filter = 'all', sort = NEWEST, only }: ListCase) =>
  `${resource.name}, ${depth} parents, ${only ? 'some IDs' : filter.replace(/[0-9a-f-]{36}/g, 'ID')}, ${sort.by} ${
    sort.isDescending ? 'descending' : 'ascending'
  }`;

const SORTING = /TEMP B-TREE/;
/** A search by value or in index order, or a list of parameters. */
const INDEXED =
  /^(?:SEARCH \w+ USING |SCAN json_each |LIST SUBQUERY|(?:CORRELATED )?SCALAR SUBQUERY|CO-ROUTINE|SCAN (?:\(subquery|probed$))/;

/** The steps that read the table. */
const touching = (steps: readonly string[], table: string) =>
  steps.filter((step) => step.includes(` ${table} `));

describe('a list that is read on the event loop uses an index', () => {
  for (const given of ORDERED) {
    test(`the list is read in the order of an index: ${title(given)}`, () => {
      const { plan, steps } = planOf(given);
      expect(plan.isWalkable).toBe(true);
      const readings = ['walk offset', 'walk after', 'probe'] as const;
      for (const used of readings.map(steps)) {
        expect(used.join()).not.toMatch(SORTING);
        const [first, ...more] = touching(used, given.resource.table);
        expect(more).toEqual([]);
        expect(first).toMatch(/ USING (COVERING )?INDEX /);
        // Without a scope an index is walked from its end.
        if (given.depth > 0) expect(first).toStartWith('SEARCH');
      }
    });
  }

  for (const given of ORDERED) {
    test(`a page after a record starts at that record in the index: ${title(given)}`, () => {
      const { by } = given.sort ?? NEWEST;
      const after = { at: by === 'id' ? undefined : Date.UTC(2026, 0, 10), id: LAST_ID };
      const filter = filterOf(given.resource, given.filter);
      const { filter: remaining } = startAtCursor({
        filter,
        sort: given.sort ?? NEWEST,
        page: { kind: 'after', after, limit: 5 },
      });
      const [step] = touching(planOf(given, remaining).steps('walk after'), given.resource.table);
      expect(step).toMatch(by === 'id' ? /[ (]id[<>]\?/ : /\(\w+_at,\w*id\)[<>]\(\?,\?\)/);
      const ranges = remaining.flat().filter(({ kind }) => kind === 'range');
      expect(step?.match(/[<>]/g)).toHaveLength(1 + ranges.length);
    });
  }

  for (const given of FILTERED) {
    test(`the filter is served by an index: ${title(given)}`, () => {
      const { plan, steps } = planOf(given);
      expect([plan.isServed, plan.isWalkable]).toEqual([true, false]);
      for (const reading of ['gather', 'probe'] as const) {
        const used = steps(reading);
        for (const step of used) expect(step).toMatch(INDEXED);
        expect(used.join()).not.toMatch(SORTING);
        expect(used.join()).toMatch(new RegExp(`SEARCH ${given.resource.table} USING (COVERING )?INDEX`));
      }
    });
  }

  for (const given of UNINDEXED) {
    test(`the filter is not served by an index: ${title(given)}`, () => {
      const { plan } = planOf(given);
      expect([plan.isServed, plan.isWalkable]).toEqual([false, false]);
    });
  }
});

describe('a list that is read in a worker', () => {
  const used = (filter: string, reading: ListStatement) =>
    planOf({ resource: user, depth: 1, filter }).steps(reading).join();

  test('a filter reads the index with its column, or else the primary index', () => {
    for (const reading of ['few', 'count'] as const) {
      expect(used('ilike(email,*x*)', reading)).toContain('COVERING INDEX user_info_by_email (realm_id=?)');
      expect(used('ilike(name,*x)', reading)).toContain('COVERING INDEX user_info_by_name (realm_id=?)');
      expect(used('is_null(given_name)', reading)).toContain(
        'INDEX sqlite_autoindex_user_info_1 (realm_id=?)',
      );
      expect(used('eq(email,x):is_null(given_name)', reading)).toContain(
        'INDEX user_info_by_email (realm_id=? AND email_key=?)',
      );
      expect(used('(eq(email,x)|eq(email,y))', reading)).toContain(
        'INDEX user_info_by_email (realm_id=? AND email_key=?)',
      );
      expect(used('(eq(email,x)|eq(name,y))', reading)).toContain(
        'INDEX sqlite_autoindex_user_info_1 (realm_id=?)',
      );
    }
  });

  test('a few matching records are fetched by row ID', () => {
    for (const reading of ['narrow offset', 'narrow after'] as const) {
      expect(used('ilike(email,*x*)', reading)).toContain(
        'SEARCH user_info USING INTEGER PRIMARY KEY (rowid=?)',
      );
    }
  });
});

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
  const deep: PageRequest = { kind: 'offset', offset: LIMITS.listRecordsInlineMax, limit: 25 };
  const near: PageRequest = { kind: 'offset', offset: LIMITS.listRecordsInlineMax - 101, limit: 100 };

  test('a page that an index bounds is not delegated', async () => {
    const first: PageRequest = { kind: 'after', after: undefined, limit: 100 };
    for (const sort of SORTS) expect(await delegated(user, undefined, { sort, page: first })).toEqual([]);
    const after = { at: systemClock.now(), id: userId };
    expect(await delegated(user, undefined, { page: { ...first, after } })).toEqual([]);
    expect(await delegated(user, 'eq(email,p7@shop.example)')).toEqual([]);
    expect(await delegated(user, 'like(email,p1*)', { page: { ...near, limit: 1 } })).toEqual([true, false]);
    expect(await delegated(user, 'like(email,p10*)')).toEqual([]);
    expect(await delegated(user, 'like(email,p10*)', { page: deep })).toEqual([]);
    expect(await delegated(user, `in(id,${userId},${mintId()})`)).toEqual([]);
    const identity = 'eq(issuer,https://login.example.com/):eq(subject,s-9)';
    expect(await delegated(oidcProfileInfo, identity)).toEqual([]);
    expect(await delegated(realm, undefined)).toEqual([]);
  });

  test('the stored total of all records of a realm is not delegated', async () => {
    expect(await delegated(user, undefined)).toEqual([]);
    expect(await delegated(user, undefined, { page: near })).toEqual([]);
    expect(await delegated(oidcProfile, undefined)).toEqual([]);
  });

  test('the count of many filtered records is delegated, the page is not', async () => {
    expect(await delegated(user, SINCE_2020)).toEqual([true]);
    expect(await delegated(user, SINCE_2020, { page: near })).toEqual([true]);
  });

  test('deep pages and filters without an index are delegated, their total at most once a second', async () => {
    expect(await delegated(user, undefined, { page: deep })).toEqual([true, false]);
    const page: PageRequest = { kind: 'after', after: undefined, limit: 5 };
    const filters = ['ilike(email,*7@shop*)', 'eq(name,n1)', '(eq(name,n1)|eq(email,p7@shop.example))'];
    for (const filter of filters) {
      expect(await delegated(user, filter)).toEqual([true, false]);
      expect(await delegated(user, filter, { page })).toEqual([false, false]);
    }
  });
});

describe('totals', () => {
  const all: ListRequest = { filter: filterOf(user, SINCE_2020), sort: NEWEST, page: FIRST_PAGE };

  async function openCountingList(delayMs = 0) {
    const reader = await openReader(path);
    let count = 0;
    const list = (engine.embedded as Embedded).listDelegating(async (request) => {
      count += 1;
      await Bun.sleep(delayMs);
      return reader.answer(request);
    });
    return { list, requestCount: () => count };
  }

  test('concurrent lists share one count of the total, and each has its own page', async () => {
    const { list, requestCount } = await openCountingList(20);
    const pages = [0, 25, 50, 75].map((offset) => ({ ...FIRST_PAGE, offset }) as PageRequest);
    const lists = await Promise.all(pages.map((page) => list(user, [fixture.realm], { ...all, page })));
    expect(requestCount()).toBe(1);
    expect(new Set(lists.map((listed) => listed?.total)).size).toBe(1);
    expect(new Set(lists.flatMap((listed) => listed?.items.map(({ record }) => record.id))).size).toBe(100);
  });

  test('a total older than a second is counted again, and never contradicts its page', async () => {
    const { list, requestCount } = await openCountingList();
    const before = (await list(user, [fixture.realm], all))?.total as number;
    const more = insert(user, [fixture.realm, mintId()], userMembers);
    expect(await commitWrites(engine.records, more)).toEqual(WRITTEN);
    const fresh = await list(user, [fixture.realm], all);
    expect(fresh?.items[0]?.record.id).toBe(more.record.id);
    expect([fresh?.total, requestCount()]).toEqual([before, 1]);
    // The last page shows the total itself.
    const last = await list(user, [fixture.realm], {
      ...all,
      page: { kind: 'offset', offset: before - 5, limit: 25 },
    });
    expect([last?.items.length, last?.total]).toEqual([6, before + 1]);
    await Bun.sleep(LIMITS.totalAgeMsMax + 5);
    expect((await list(user, [fixture.realm], all))?.total).toBe(before + 1);
    expect(requestCount()).toBe(3);
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

  test('the cache of totals evicts the oldest beyond its limit', async () => {
    const totals = openTotalCache();
    const requests = Array.from({ length: LIMITS.totalsCachedMax + 1 }, (_, number) => `question ${number}`);
    for (const request of requests) totals.add(request, Promise.resolve(5));
    await Bun.sleep(1);
    expect(requests.slice(0, 3).map(totals.known)).toEqual([undefined, 5, 5]);
  });

  test('list statements evicted from their cache are prepared again', async () => {
    const { list } = await openCountingList();
    const shapes = LIMITS.listStatementsCachedMax + 20;
    for (let round = 0; round < 2; round += 1) {
      for (let shape = 0; shape < shapes; shape += 1) {
        const digits = Array.from({ length: 10 }, (_, place) => (shape >> place) & 1);
        const filter = digits.map((digit) => `${digit ? 'gt' : 'ge'}(created_at,2020-01-01)`).join(':');
        const page = { kind: 'offset', offset: 0, limit: 1 } as const;
        const listed = await list(user, [fixture.realm], { ...all, filter: filterOf(user, filter), page });
        expect(listed?.total).toBeGreaterThan(PEOPLE);
      }
    }
  });
});
