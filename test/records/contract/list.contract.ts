import { beforeAll, describe, expect, test } from 'bun:test';
import { type ParsedFilter, parseFilter } from '../../../src/model/filter/filter.ts';
import type { Uuid } from '../../../src/model/id.ts';
import { type AnyRecord, type KeyPrefix, keyColumns, type Resource } from '../../../src/model/resource.ts';
import {
  oidcProfileInfo,
  passwordProfileInfo,
  RESOURCES,
  realm,
  user,
} from '../../../src/model/resources.ts';
import type { ListPage, ListRequest, PagePosition, Sort } from '../../../src/model/store.ts';
import { foldedKey } from '../../../src/model/text/folded_key.ts';
import { realmMembers, userMembers } from '../../support/service.ts';
import {
  commitWrites,
  createRealmFixture,
  type Insert,
  insert,
  mintId,
  type OpenStore,
  oidcLink,
  openForTests,
  type RealmFixture,
  removalOf,
  removeRecord,
  usernameLink,
  WRITTEN,
} from './store_fixtures.ts';

const NEWEST: Sort = { by: 'created_at', isDescending: true };
const SORTS: readonly Sort[] = (['created_at', 'updated_at', 'id'] as const).flatMap((by) => [
  { by, isDescending: false },
  { by, isDescending: true },
]);
const FIRST_AT = Date.UTC(2026, 0, 1);
const PEOPLE = 240;

/** First letters of names, at the boundaries of UTF-8, UTF-16 and Unicode. */
const INITIALS = [
  'A',
  'b',
  'Ω',
  'ß',
  '\ud7ff',
  '\ue000',
  '\uffee',
  '😀',
  '😁',
  '\u{10ffff}',
  '%',
  '_',
  '*',
  "'",
];

/** Some persons have the same time, so that the identifier decides the order; some have no given name, and some are disabled. */
function person(fixture: RealmFixture, number: number): Insert {
  const name = `${INITIALS[number % INITIALS.length]}${number % 7} Doe`;
  const written = insert(user, [fixture.realm, mintId()], {
    ...userMembers,
    name,
    email: `p${number % 50}@${number % 3 === 0 ? 'Banks.example' : 'shop.example'}`,
    given_name: number % 4 === 0 ? null : `G${number}`,
    enabled: number % 9 !== 0,
  });
  const created_at = FIRST_AT + Math.floor(number / 3);
  const updated_at = created_at + ((number * 7919) % 1000);
  return { ...written, record: { ...written.record, created_at, updated_at } };
}

/** Filters, each with a predicate that selects the expected records. */
export const FILTERS: readonly (readonly [string, (record: AnyRecord) => boolean])[] = [
  ['eq(email,P7@SHOP.example)', is('email', (key) => key === 'p7@shop.example')],
  [
    'in(email,p1@shop.example,p2@shop.example,p3@banks.example)',
    is('email', (key) => /^p(1|2)@s|^p3@b/.test(key)),
  ],
  ['like(email,p1*)', is('email', (key) => key.startsWith('p1'))],
  ['ilike(email,*BANKS.example)', is('email', (key) => key.endsWith('banks.example'))],
  ['ilike(email,*2@s*)', is('email', (key) => key.includes('2@s'))],
  ["like(name,'%*')", is('name', (key) => key.startsWith('%'))],
  ['like(name,_*)', is('name', (key) => key.startsWith('_'))],
  ["like(name,'\\**')", is('name', (key) => key.startsWith('*'))],
  ['like(name,"*\'1 doe")', is('name', (key) => key.endsWith("'1 doe"))],
  ['like(name,😀*)', is('name', (key) => key.startsWith('😀'))],
  ['like(name,\ud7ff*)', is('name', (key) => key.startsWith('\ud7ff'))],
  ['like(name,\u{10ffff}*)', is('name', (key) => key.startsWith('\u{10ffff}'))],
  ['like(name,*😁3 DOE)', is('name', (key) => key.endsWith('😁3 doe'))],
  ['is_null(given_name)', (record) => record.given_name === null],
  ['eq(given_name,g5)', is('given_name', (key) => key === 'g5')],
  ['eq(enabled,false)', ({ enabled }) => enabled === false],
  ['eq(enabled,true):like(email,p1*)', ({ enabled, email }) => enabled === true && /^p1/.test(String(email))],
  ['gt(created_at,2026-01-01T00:00:00.040Z)', ({ created_at }) => created_at > FIRST_AT + 40],
  ['ge(updated_at,2026-01-01T00:00:00.500Z)', ({ updated_at }) => updated_at >= FIRST_AT + 500],
  [
    'ge(created_at,2026-01-01T00:00:00.010Z):lt(created_at,2026-01-01T00:00:00.020Z)',
    ({ created_at }) => created_at >= FIRST_AT + 10 && created_at < FIRST_AT + 20,
  ],
  [
    'ge(created_at,2026-01-01T00:00:00.010Z):ge(created_at,2026-01-01T00:00:00.030Z)',
    ({ created_at }) => created_at >= FIRST_AT + 30,
  ],
  [
    'gt(created_at,2026-01-01T00:00:00.010Z):le(created_at,2026-01-01T00:00:00.030Z):le(created_at,2026-01-01T00:00:00.025Z)',
    ({ created_at }) => created_at > FIRST_AT + 10 && created_at <= FIRST_AT + 25,
  ],
  ['eq(created_at,2026-01-01T00:00:00.020Z)', ({ created_at }) => created_at === FIRST_AT + 20],
  [
    '(eq(email,p1@shop.example)|eq(email,p2@shop.example)):ilike(name,*1*)',
    (record) => /^p(1|2)@shop/.test(String(record.email)) && foldedKey(String(record.name)).includes('1'),
  ],
  [
    '(ilike(email,*banks*)|is_null(given_name)|eq(name,A0 Doe)):le(updated_at,2026-01-01T00:00:00.700Z)',
    ({ email, given_name, name, updated_at }) =>
      (/banks/i.test(String(email)) || given_name === null || name === 'A0 Doe') &&
      updated_at <= FIRST_AT + 700,
  ],
  ['eq(email,p1@shop.example):eq(email,p2@shop.example)', () => false],
  [`eq(name,"x' or '1'='1")`, () => false],
  [`ilike(name,"*' or ''='*")`, () => false],
];

function is(member: string, matches: (key: string) => boolean) {
  return (record: AnyRecord) => record[member] !== null && matches(foldedKey(String(record[member])));
}

function sorted(records: readonly AnyRecord[], { by, isDescending }: Sort): readonly Uuid[] {
  const ascending = [...records].sort((left, right) => {
    const byTime = by === 'id' ? 0 : left[by] - right[by];
    return byTime || (left.id < right.id ? -1 : 1);
  });
  return (isDescending ? ascending.toReversed() : ascending).map(({ id }) => id);
}

const idsOf = (listed: ListPage | undefined) => listed?.items.map(({ record }) => record.id);
const filtered = (text: string, resource: Resource = user): ParsedFilter =>
  parseFilter(text, resource.filterables ?? resource.reverseLookup?.filterables ?? {});

/** The lists of a Store, as its port documents them. */
export function listContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`list contract: ${name}`, () => {
    const { store, fixture } = openForTests(open);
    let people: readonly AnyRecord[];
    beforeAll(async () => {
      // Another realm with the same people, which no list may return.
      const other = await createRealmFixture(store);
      const numbers = Array.from({ length: PEOPLE }, (_, number) => number);
      const [own, others] = [numbers.map((n) => person(fixture, n)), numbers.map((n) => person(other, n))];
      expect(await commitWrites(store, ...own, ...others)).toEqual(WRITTEN);
      const owner = (await store.get(user, [fixture.realm, fixture.user])) as AnyRecord;
      people = [...own.map(({ record }) => record), owner];
    });

    const list = (resource: Resource, scope: KeyPrefix, listing: Partial<ListRequest> = {}) =>
      store.list(resource, scope, {
        filter: [],
        sort: NEWEST,
        page: { kind: 'offset', offset: 0, limit: 100 },
        ...listing,
      });

    /** Every identifier, read page by page, each after the last one of the page before. */
    async function listAfter(listing: Partial<ListRequest>, limit: number): Promise<readonly Uuid[]> {
      const found: Uuid[] = [];
      let after: PagePosition | undefined;
      for (;;) {
        const page = { kind: 'after', after, limit } as const;
        const listed = (await list(user, [fixture.realm], { ...listing, page })) as ListPage;
        expect(listed.total).toBeUndefined();
        expect(listed.items.length).toBeLessThanOrEqual(limit);
        found.push(...listed.items.map(({ record }) => record.id));
        const last = listed.items.at(-1)?.record;
        if (!listed.hasMore || !last) return found;
        const by = listing.sort?.by ?? 'created_at';
        after = { at: by === 'id' ? undefined : last[by], id: last.id };
      }
    }

    test('every resource is listed as get returns it, with its key', async () => {
      await commitWrites(store, oidcLink(fixture, 'listed'), usernameLink(fixture, 'listed@example.com'));
      for (const resource of RESOURCES) {
        const scope = [fixture.realm, fixture.user].slice(0, keyColumns(resource).length - 1);
        const listed = await list(resource, scope);
        expect(listed?.items.length).toBeGreaterThan(0);
        for (const { key, record } of listed?.items ?? [])
          expect(await store.get(resource, key)).toEqual(record as never);
      }
    });

    for (const sort of SORTS) {
      test(`a list sorted by ${sort.by}, ${sort.isDescending ? 'descending' : 'ascending'}, has consistent pages`, async () => {
        const expected = sorted(people, sort);
        for (const offset of [0, 1, 99, 200, PEOPLE, PEOPLE + 1, 5_000]) {
          const page = { kind: 'offset', offset, limit: 100 } as const;
          const listed = await list(user, [fixture.realm], { sort, page });
          expect(idsOf(listed)).toEqual(expected.slice(offset, offset + 100) as Uuid[]);
          expect(listed?.total).toBe(expected.length);
          expect(listed?.hasMore).toBe(offset + 100 < expected.length);
        }
        expect(await listAfter({ sort }, 7)).toEqual(expected);
      });
    }

    for (const [text, matches] of FILTERS) {
      test(`a list with the filter ${text} returns exactly the matching records`, async () => {
        const matching = people.filter(matches);
        for (const sort of [NEWEST, { by: 'updated_at', isDescending: false }] as const) {
          const expected = sorted(matching, sort);
          const listed = await list(user, [fixture.realm], { filter: filtered(text), sort });
          expect(idsOf(listed)).toEqual(expected.slice(0, 100) as Uuid[]);
          expect(listed?.total).toBe(expected.length);
          expect(await listAfter({ filter: filtered(text), sort }, 9)).toEqual(expected);
        }
      });
    }

    test('a list position from a wider list is valid in every narrower one', async () => {
      const bounds = [10, 40].map((ms) => new Date(FIRST_AT + ms).toISOString());
      const filter = filtered(`ge(created_at,${bounds[0]}):lt(created_at,${bounds[1]})`);
      const inside = people.filter(({ created_at: at }) => at >= FIRST_AT + 10 && at < FIRST_AT + 40);
      for (const sort of SORTS.filter(({ by }) => by === 'created_at')) {
        const all = sorted(people, sort);
        const expected = sorted(inside, sort);
        for (const [index, id] of all.entries()) {
          const created = people.find((each) => each.id === id)?.created_at;
          const page = { kind: 'after', after: { at: created, id }, limit: 5 } as const;
          const after = expected.filter((each) => all.indexOf(each) > index);
          expect(idsOf(await list(user, [fixture.realm], { filter, sort, page }))).toEqual(
            after.slice(0, 5) as Uuid[],
          );
        }
      }
    });

    test('an identifier filter takes one, many or a range, and finds none of another realm', async () => {
      const [one, two, three] = people.map(({ id }) => id) as [Uuid, Uuid, Uuid];
      const [stranger] = idsOf(await list(user, [(await createRealmFixture(store)).realm])) ?? [];
      const cases = [
        [`eq(id,${one.toUpperCase()})`, [one]],
        [`in(id,${one},${two},${three},${stranger},${mintId()})`, [one, two, three]],
        [`gt(id,${one}):le(id,${three})`, people.map(({ id }) => id).filter((id) => id > one && id <= three)],
      ] as const;
      for (const [text, expected] of cases) {
        const listed = await list(user, [fixture.realm], { filter: filtered(text) });
        expect(new Set(idsOf(listed))).toEqual(new Set(expected));
        expect(listed?.total).toBe(expected.length);
      }
    });

    test('a reverse lookup finds the one link, and compares subjects code point for code point', async () => {
      const link = oidcLink(fixture, 'auth0|Ünïcode');
      await commitWrites(store, link);
      const find = (subject: string) =>
        list(oidcProfileInfo, [fixture.realm], {
          filter: filtered(`eq(issuer,${link.record.issuer}):eq(subject,'${subject}')`, oidcProfileInfo),
        });
      expect((await find('auth0|Ünïcode'))?.items).toEqual([{ key: link.key, record: link.record }]);
      for (const other of ['auth0|ünïcode', 'auth0|Ünïcode'.normalize('NFD'), 'auth0|Ünïcode ']) {
        expect(await find(other)).toEqual({ items: [], hasMore: false, total: 0 });
      }
      const named = usernameLink(fixture, 'Löwe@example.com');
      await commitWrites(store, named);
      const filter = filtered('eq(username,LÖWE@EXAMPLE.COM)', passwordProfileInfo);
      expect(idsOf(await list(passwordProfileInfo, [fixture.realm], { filter }))).toEqual([named.record.id]);
    });

    test('a page after a record is complete when other records were created and removed', async () => {
      const here = await createRealmFixture(store);
      const early = Array.from({ length: 30 }, (_, number) => person(here, number * 3));
      await commitWrites(store, ...early);
      const page = (after?: PagePosition) =>
        store.list(user, [here.realm], {
          filter: [],
          sort: NEWEST,
          page: { kind: 'after', after, limit: 10 },
        });
      const first = (await page()) as ListPage;
      const last = first.items.at(-1)?.record as AnyRecord;
      await commitWrites(store, person(here, 300), person(here, 301));
      await removeRecord(store, removalOf(user, first.items[0]?.key as [Uuid, Uuid]));
      const second = (await page({ at: last.created_at, id: last.id })) as ListPage;
      // The first page has the user of the fixture and nine of these.
      const expected = sorted(
        early.map(({ record }) => record),
        NEWEST,
      );
      expect(idsOf(first)?.slice(1)).toEqual(expected.slice(0, 9) as Uuid[]);
      expect(idsOf(second)).toEqual(expected.slice(9, 19) as Uuid[]);
    });

    test('a list of realms returns all realms, or only the given ones', async () => {
      const named = [fixture.realm, (await createRealmFixture(store)).realm];
      const page = { kind: 'offset', offset: 0, limit: 1 } as const;
      const listed = await list(realm, [], { only: [...named, mintId()], page });
      expect(idsOf(listed)).toEqual([named[1] as Uuid]);
      expect(listed?.total).toBe(2);
      expect(await list(realm, [], { only: [] })).toEqual({ items: [], hasMore: false, total: 0 });
      expect((await list(realm, []))?.total).toBeGreaterThan(2);
    });

    test('a list is undefined when its parent is missing, and empty when its parent has no records', async () => {
      const empty = mintId();
      await commitWrites(store, insert(user, [fixture.realm, empty], userMembers));
      expect(await list(oidcProfileInfo, [fixture.realm, empty])).toEqual({
        items: [],
        hasMore: false,
        total: 0,
      });
      const elsewhere = await createRealmFixture(store);
      const scopes: KeyPrefix[] = [
        [mintId()],
        [fixture.realm, mintId()],
        [elsewhere.realm, fixture.user],
        [mintId(), fixture.user],
      ];
      for (const scope of scopes) {
        expect(await list(scope.length === 1 ? user : oidcProfileInfo, scope)).toBeUndefined();
      }
      const unknownUsername = filtered('eq(username,unknown)', passwordProfileInfo);
      expect(await list(passwordProfileInfo, [mintId()], { filter: unknownUsername })).toBeUndefined();
      expect((await list(passwordProfileInfo, [fixture.realm], { filter: unknownUsername }))?.total).toBe(0);
    });

    test('the total of a list counts every record, also on deep pages', async () => {
      const { realm: id } = await createRealmFixture(store);
      const writes = Array.from({ length: 2_500 }, () => insert(user, [id, mintId()], userMembers));
      expect(await commitWrites(store, ...writes)).toEqual(WRITTEN);
      const filter = filtered('eq(name,Jane Doe)');
      for (const listing of [{}, { filter }, { filter: filtered('ilike(email,*example*)') }]) {
        const page = { kind: 'offset', offset: 2_450, limit: 100 } as const;
        const listed = await list(user, [id], { ...listing, page });
        expect(listed?.total).toBe(2_501);
        expect(listed?.items).toHaveLength(51);
        expect((await list(user, [id], listing))?.total).toBe(2_501);
      }
    });

    test('a preset realm is listed without its hidden members', async () => {
      const id = mintId();
      await commitWrites(store, insert(realm, [id], { ...realmMembers, preset: true }));
      const [item] = (await list(realm, [], { only: [id] }))?.items ?? [];
      expect(item?.record).not.toHaveProperty('preset');
    });
  });
}
