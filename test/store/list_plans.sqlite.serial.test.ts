import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import type { ListPage, ListRequest, PageRequest, Sort } from '../../src/directory/store.ts';
import { type Filter, parseFilter } from '../../src/domain/filter/filter.ts';
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
import { clauseOf } from '../../src/store/lists/filters.ts';
import { type ListStatement, listTable, planList } from '../../src/store/lists/list_plans.ts';
import { startAtCursor } from '../../src/store/lists/list_reading.ts';
import type { ReaderListRequest } from '../../src/store/lists/lists.ts';
import { openTotalCache } from '../../src/store/lists/totals.ts';
import { type EmbeddedEngine, openEngine } from '../../src/store/open.ts';
import { SQLITE, sqliteStatements } from '../../src/store/sqlite/dialect.ts';
import { indexesOf } from '../../src/store/sqlite/lists.ts';
import { openReader } from '../../src/store/sqlite/reader.ts';
import { freshFolder, userMembers } from '../support/service.ts';
import {
  type Ground,
  ground,
  insert,
  LANDED,
  land,
  mint,
  oidcLink,
  usernameLink,
} from './contract/store_fixtures.ts';

const PEOPLE = 3_000;
const NEWEST: Sort = { by: 'created_at', isDescending: true };
const BEGINNING: PageRequest = { kind: 'offset', offset: 0, limit: 25 };

let path: string;
let engine: EmbeddedEngine;
let db: Database;
let at: Ground;
let someone: Uuid;

beforeAll(async () => {
  path = join(freshFolder(), 'plans.db');
  engine = await openEngine({ engine: 'sqlite', path }, 'auto', { version: 'test', clock: systemClock });
  at = await ground(engine.records);
  const people = Array.from({ length: PEOPLE }, (_, number) =>
    insert(user, [at.realm, mint()], {
      ...userMembers,
      name: `N${number % 2}`,
      email: `p${number}@shop.example`,
    }),
  );
  const links = people.flatMap(({ record }, number) => {
    const owner = { ...at, user: record.id };
    return [oidcLink(owner, `s-${number}`), usernameLink(owner, `p${number}@shop.example`)];
  });
  expect(await land(engine.records, ...people, ...links)).toEqual(LANDED);
  someone = people[7]?.record.id as Uuid;
  db = new Database(path, { readonly: true });
});
afterAll(() => {
  db.close();
  engine.close();
});

interface Asked {
  readonly resource: Resource;
  readonly depth: number;
  readonly filter?: string;
  readonly sort?: Sort;
  readonly only?: true;
}

const filterOf = (resource: Resource, text: string | undefined) =>
  text ? parseFilter(text, resource.filterables ?? resource.reverseLookup?.filterables ?? {}) : [];

/** The statements of a shape, and how the engine goes about each of them. */
function planned({ resource, depth, filter: text, sort = NEWEST, only }: Asked, narrowed?: Filter) {
  const table = listTable(resource, sqliteStatements(resource), indexesOf(db, resource.table));
  const filter = narrowed ?? filterOf(resource, text);
  const { text: where } = clauseOf(filter, table.columnOf, SQLITE);
  const plan = planList(table, { depth, filter, hasOnly: only === true, sort, where }, SQLITE.lists);
  const steps = (reading: ListStatement, mayBePurging = false): readonly string[] =>
    db
      .query<{ detail: string }, []>(`explain query plan ${plan.text(reading, mayBePurging)}`)
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

/** Lists that an index has in their order. */
const WALKED: readonly Asked[] = [
  { resource: realm, depth: 0 },
  { resource: oidcProfile, depth: 1 },
  { resource: passwordProfile, depth: 1 },
  { resource: oidcProfileInfo, depth: 2 },
  { resource: passwordProfileInfo, depth: 2 },
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

/** Lists whose filter an index answers. */
const FOUND: readonly Asked[] = [
  { resource: realm, depth: 0, only: true },
  { resource: oidcProfileInfo, depth: 1, filter: 'eq(issuer,https://a.example):eq(subject,s)' },
  { resource: oidcProfileInfo, depth: 1, filter: 'eq(subject,s):eq(issuer,https://a.example)' },
  { resource: oidcProfileInfo, depth: 1, filter: `in(id,${mint()},${mint()},${mint()})` },
  { resource: passwordProfileInfo, depth: 1, filter: 'eq(username,x)' },
  { resource: passwordProfileInfo, depth: 1, filter: `eq(username,x):eq(password_profile_id,${mint()})` },
  { resource: passwordProfileInfo, depth: 1, filter: `eq(id,${mint()})` },
  { resource: user, depth: 1, filter: 'eq(email,x@shop.example)' },
  { resource: user, depth: 1, filter: 'in(email,x@shop.example,y@shop.example)' },
  { resource: user, depth: 1, filter: 'like(email,x*)' },
  { resource: user, depth: 1, filter: 'ilike(name,x*)' },
  { resource: user, depth: 1, filter: `in(id,${mint()},${mint()}):ilike(name,*x*):is_null(given_name)` },
  { resource: user, depth: 1, filter: 'ge(updated_at,2026-01-01)' },
];

/** What no index finds without looking at other records as well. */
const NEITHER: readonly Asked[] = [
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

const title = ({ resource, depth, filter = 'everything', sort = NEWEST, only }: Asked) =>
  `${resource.name}, ${depth} above, ${only ? 'only some' : filter.replace(/[0-9a-f-]{36}/g, 'ID')} by ${sort.by} ${
    sort.isDescending ? 'down' : 'up'
  }`;

const SORTING = /TEMP B-TREE/;
/** Into the table by a value, or along an index in its order; a list of parameters; the few marks of a purge. */
const INDEXED =
  /^(?:SEARCH \w+ USING |SCAN json_each |LIST SUBQUERY|(?:CORRELATED )?SCALAR SUBQUERY|CO-ROUTINE|SCAN (?:\(subquery|probed$))/;

/** The steps that touch a table of records, without those about marks of a purge. */
const touching = (steps: readonly string[], table: string) =>
  steps.filter((step) => step.includes(` ${table} `));

describe('what is read where lookups run goes by an index', () => {
  for (const asked of WALKED) {
    test(`along it: ${title(asked)}`, () => {
      const { plan, steps } = planned(asked);
      expect(plan.isWalkable).toBe(true);
      const readings = ['walk from', 'walk behind', 'probe'] as const;
      for (const taken of readings.flatMap((reading) => [steps(reading), steps(reading, true)])) {
        expect(taken.join()).not.toMatch(SORTING);
        const [first, ...more] = touching(taken, asked.resource.table);
        expect(more).toEqual([]);
        expect(first).toMatch(/ USING (COVERING )?INDEX /);
        // Without a scope an index is walked from its end.
        if (asked.depth > 0) expect(first).toStartWith('SEARCH');
      }
    });
  }

  for (const asked of WALKED) {
    test(`behind a record at that record: ${title(asked)}`, () => {
      const { by } = asked.sort ?? NEWEST;
      const after = { at: by === 'id' ? undefined : Date.UTC(2026, 0, 10), id: LAST_ID };
      const filter = filterOf(asked.resource, asked.filter);
      const { filter: left } = startAtCursor({
        filter,
        sort: asked.sort ?? NEWEST,
        page: { kind: 'after', after, limit: 5 },
      });
      const [step] = touching(planned(asked, left).steps('walk behind'), asked.resource.table);
      expect(step).toMatch(by === 'id' ? /[ (]id[<>]\?/ : /\(\w+_at,\w*id\)[<>]\(\?,\?\)/);
      expect(step?.match(/[<>]/g)).toHaveLength(1 + left.length);
    });
  }

  for (const asked of FOUND) {
    test(`by it: ${title(asked)}`, () => {
      const { plan, steps } = planned(asked);
      expect([plan.isServed, plan.isWalkable]).toEqual([true, false]);
      for (const reading of ['gather', 'probe'] as const) {
        const taken = steps(reading);
        for (const step of taken) expect(step).toMatch(INDEXED);
        expect(taken.join()).not.toMatch(SORTING);
        expect(taken.join()).toMatch(new RegExp(`SEARCH ${asked.resource.table} USING (COVERING )?INDEX`));
      }
    });
  }

  for (const asked of NEITHER) {
    test(`not claimed: ${title(asked)}`, () => {
      const { plan } = planned(asked);
      expect([plan.isServed, plan.isWalkable]).toEqual([false, false]);
    });
  }
});

describe('what is read beside the service', () => {
  const taken = (filter: string, reading: ListStatement) =>
    planned({ resource: user, depth: 1, filter }).steps(reading).join();

  test('goes along the index that holds what the filter looks at, and else along the rows', () => {
    for (const reading of ['few', 'count'] as const) {
      expect(taken('ilike(email,*x*)', reading)).toContain('COVERING INDEX user_info_email (realm_id=?)');
      expect(taken('ilike(name,*x)', reading)).toContain('COVERING INDEX user_info_name (realm_id=?)');
      expect(taken('is_null(given_name)', reading)).toContain(
        'INDEX sqlite_autoindex_user_info_1 (realm_id=?)',
      );
      expect(taken('eq(email,x):is_null(given_name)', reading)).toContain(
        'INDEX user_info_email (realm_id=? AND email_key=?)',
      );
      expect(taken('(eq(email,x)|eq(email,y))', reading)).toContain(
        'INDEX user_info_email (realm_id=? AND email_key=?)',
      );
      expect(taken('(eq(email,x)|eq(name,y))', reading)).toContain(
        'INDEX sqlite_autoindex_user_info_1 (realm_id=?)',
      );
    }
  });

  test('few records are fetched by where they lie', () => {
    for (const reading of ['narrow from', 'narrow behind'] as const) {
      expect(taken('ilike(email,*x*)', reading)).toContain(
        'SEARCH user_info USING INTEGER PRIMARY KEY (rowid=?)',
      );
    }
  });
});

describe('who reads what', () => {
  const ask = async (resource: Resource, filter: string | undefined, listing: Partial<ListRequest> = {}) => {
    const questions: ReaderListRequest[] = [];
    const reader = await openReader(path);
    const list = engine.embedded.listDelegating((question) => {
      questions.push(question);
      return reader.answer(question);
    });
    const scope: KeyPrefix = resource === realm ? [] : [at.realm];
    const own = { filter: filterOf(resource, filter), sort: NEWEST, page: BEGINNING, ...listing };
    const listed = (await list(resource, scope, own)) as ListPage;
    const again = (await list(resource, scope, own)) as ListPage;
    reader.close();
    expect(again).toEqual(listed);
    expect(listed).toEqual((await engine.records.list(resource, scope, own)) as ListPage);
    return questions.map(({ isTotalWanted }) => isTotalWanted);
  };
  const deep: PageRequest = { kind: 'offset', offset: LIMITS.listRecordsInlineMax, limit: 25 };
  const near: PageRequest = { kind: 'offset', offset: LIMITS.listRecordsInlineMax - 101, limit: 100 };

  test('what an index bounds is read here', async () => {
    for (const sort of SORTS) {
      expect(
        await ask(user, undefined, { sort, page: { kind: 'after', after: undefined, limit: 100 } }),
      ).toEqual([]);
    }
    const after = { at: systemClock.now(), id: someone };
    expect(await ask(user, undefined, { page: { kind: 'after', after, limit: 100 } })).toEqual([]);
    expect(await ask(user, 'eq(email,p7@shop.example)')).toEqual([]);
    expect(await ask(user, 'like(email,p1*)', { page: { ...near, limit: 1 } })).toEqual([true, false]);
    expect(await ask(user, 'like(email,p10*)')).toEqual([]);
    expect(await ask(user, 'like(email,p10*)', { page: deep })).toEqual([]);
    expect(await ask(user, `in(id,${someone},${mint()})`)).toEqual([]);
    expect(await ask(oidcProfileInfo, 'eq(issuer,https://login.example.com/):eq(subject,s-9)')).toEqual([]);
    expect(await ask(realm, undefined)).toEqual([]);
  });

  test('of many records another one counts, and the page is read here', async () => {
    expect(await ask(user, undefined)).toEqual([true]);
    expect(await ask(user, undefined, { page: near })).toEqual([true]);
  });

  test('deep pages, and filters that no index answers, are read by another one; the total once a second', async () => {
    expect(await ask(user, undefined, { page: deep })).toEqual([true, false]);
    for (const filter of [
      'ilike(email,*7@shop*)',
      'eq(name,n1)',
      '(eq(name,n1)|eq(email,p7@shop.example))',
    ]) {
      expect(await ask(user, filter)).toEqual([true, false]);
      expect(await ask(user, filter, { page: { kind: 'after', after: undefined, limit: 5 } })).toEqual([
        false,
        false,
      ]);
    }
  });
});

describe('totals', () => {
  const all: ListRequest = { filter: [], sort: NEWEST, page: BEGINNING };

  async function counting(delayMs = 0) {
    const reader = await openReader(path);
    let asked = 0;
    const list = engine.embedded.listDelegating(async (question) => {
      asked += 1;
      await Bun.sleep(delayMs);
      return reader.answer(question);
    });
    return { list, asked: () => asked };
  }

  test('many who ask at once have it counted once, and each its own page', async () => {
    const { list, asked } = await counting(20);
    const offsets = [0, 25, 50, 75];
    const lists = await Promise.all(
      offsets.map((offset) =>
        list(user, [at.realm], { ...all, page: { ...BEGINNING, offset } as PageRequest }),
      ),
    );
    expect(asked()).toBe(1);
    expect(new Set(lists.map((listed) => listed?.total)).size).toBe(1);
    expect(new Set(lists.flatMap((listed) => listed?.items.map(({ record }) => record.id))).size).toBe(100);
  });

  test('one that is a second old is counted again, and never contradicts its page', async () => {
    const { list, asked } = await counting();
    const before = (await list(user, [at.realm], all))?.total as number;
    const more = insert(user, [at.realm, mint()], userMembers);
    expect(await land(engine.records, more)).toEqual(LANDED);
    const young = await list(user, [at.realm], all);
    expect(young?.items[0]?.record.id).toBe(more.record.id);
    expect([young?.total, asked()]).toEqual([before, 1]);
    // The last page says itself how many there are.
    const last = await list(user, [at.realm], {
      ...all,
      page: { kind: 'offset', offset: before - 5, limit: 25 },
    });
    expect([last?.items.length, last?.total]).toEqual([6, before + 1]);
    await Bun.sleep(LIMITS.totalAgeMsMax + 5);
    expect((await list(user, [at.realm], all))?.total).toBe(before + 1);
    expect(asked()).toBe(3);
  });

  test('a count that fails is not kept', async () => {
    let isBroken = true;
    const reader = await openReader(path);
    const list = engine.embedded.listDelegating(async (question) => {
      if (isBroken) throw new Error('gone');
      return reader.answer(question);
    });
    expect(Promise.resolve(list(user, [at.realm], all))).rejects.toThrow('gone');
    await Bun.sleep(1);
    isBroken = false;
    expect((await list(user, [at.realm], all))?.total).toBeGreaterThan(PEOPLE);
    reader.close();
  });

  test('the oldest of too many is forgotten', async () => {
    const totals = openTotalCache();
    const questions = Array.from({ length: LIMITS.totalsCachedMax + 1 }, (_, number) => `question ${number}`);
    for (const question of questions) totals.keep(question, Promise.resolve(5));
    await Bun.sleep(1);
    expect(questions.slice(0, 3).map(totals.known)).toEqual([undefined, 5, 5]);
  });

  test('shapes beyond their bound are forgotten, and made anew', async () => {
    const { list } = await counting();
    const shapes = LIMITS.listStatementsCachedMax + 20;
    for (let round = 0; round < 2; round += 1) {
      for (let shape = 0; shape < shapes; shape += 1) {
        const digits = Array.from({ length: 10 }, (_, place) => (shape >> place) & 1);
        const filter = digits.map((digit) => `${digit ? 'gt' : 'ge'}(created_at,2020-01-01)`).join(':');
        const page = { kind: 'offset', offset: 0, limit: 1 } as const;
        const listed = await list(user, [at.realm], { filter: filterOf(user, filter), sort: NEWEST, page });
        expect(listed?.total).toBeGreaterThan(PEOPLE);
      }
    }
  });
});
