import { Database } from 'bun:sqlite';
import { afterAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { type ParsedFilter, parseFilter } from '../../src/model/filter/filter.ts';
import { NIL_UUID, type Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { keyColumns, type Resource } from '../../src/model/resource.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  RESOURCES,
  realm,
  user,
} from '../../src/model/resources.ts';
import type { Sort } from '../../src/model/store.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine } from '../../src/ops/store/open.ts';
import { clauseOf } from '../../src/records/store/lists/filters.ts';
import {
  type ListPlan,
  type ListStatement,
  listTable,
  planList,
} from '../../src/records/store/lists/list_plans.ts';
import { startAtCursor } from '../../src/records/store/lists/list_reading.ts';
import { SQLITE, sqliteStatements } from '../../src/records/store/sqlite/dialect.ts';
import { indexesOf } from '../../src/records/store/sqlite/lists.ts';
import { freshFolder } from '../support/folder.ts';
import { FILTERS } from './contract/list.contract.ts';
import { mintId } from './contract/store_fixtures.ts';

/** The index of every statement of a list, as SQLite explains it. */

const path = join(freshFolder(), 'plans.db');
const engine = await openEngine({ engine: 'sqlite', path }, 'auto', { version: 'test', clock: systemClock });
await engine.close();
const db = new Database(path);
const analyzed = openAnalyzed();
afterAll(() => {
  analyzed.close();
  db.close();
});

/** The same tables, with statistics as of ANALYZE. */
function openAnalyzed(): Database {
  const copy = `${path}-analyzed`;
  db.run('vacuum into ?', [copy]);
  const file = new Database(copy);
  file.run('analyze');
  for (const { table } of RESOURCES) {
    for (const { name } of indexesOf(file, table))
      file.run('insert into sqlite_stat1 (tbl, idx) values (?, ?)', [table, name]);
  }
  return file;
}

/** Makes all entries of an index look equal, and those of the others unique. */
function discredit(index: string): void {
  analyzed.run(
    "update sqlite_stat1 set stat = '1000000 ' || iif(idx = ?, '1000000 1000000 1000000', '1 1 1')",
    [index],
  );
  analyzed.run('analyze sqlite_schema');
}

interface ListCase {
  readonly resource: Resource;
  readonly depth: number;
  readonly filter?: string;
  readonly sort?: Sort;
  readonly only?: true;
}

const NEWEST: Sort = { by: 'created_at', isDescending: true };
const UPDATED: Sort = { by: 'updated_at', isDescending: false };

const filterOf = ({ filterables, reverseLookup }: Resource, text: string | undefined) =>
  text ? parseFilter(text, filterables ?? reverseLookup?.filterables ?? {}) : [];

function planOf(
  { resource, depth, filter: text, sort = NEWEST, only }: ListCase,
  filter: ParsedFilter = filterOf(resource, text),
): ListPlan {
  const table = listTable(resource, sqliteStatements(resource), indexesOf(db, resource.table), SQLITE);
  const { text: where } = clauseOf(filter, table.columnOf, SQLITE);
  const { gatheredMax } = SQLITE.lists;
  return planList(table, { depth, filter, hasOnly: only === true, sort, where, gatheredMax }, SQLITE);
}

/**
 * The index by which a statement reads the table, and the conditions that it searches there besides those of the scope; `sorted` if
 * it sorts.
 */
function indexOf(of: ListCase, plan: ListPlan, statement: ListStatement, from = db): string {
  const { table } = of.resource;
  const text = plan.texts[statement].replace('limit ?', 'limit 26');
  const steps = from
    .prepare<{ detail: string }, []>(`explain query plan ${text}`)
    .all()
    .map(({ detail }) => detail);
  const scope = keyColumns(of.resource)
    .slice(0, of.depth)
    .map((column) => `${column}=?`)
    .join(' AND ');
  const reads = steps
    .filter((step) => new RegExp(`^(SEARCH|SCAN) ${table}( |$)`).test(step))
    .map((step) =>
      step
        .replace(/^(?:SEARCH|SCAN) \w+ USING (?:COVERING )?INDEX /, '')
        .replace(`sqlite_autoindex_${table}_1`, 'key')
        .replace(new RegExp(`^${table}_`), '')
        .replace(new RegExp(` \\(${scope.replaceAll('?', '\\?')}(?: AND )?(.*)\\)$`), ' $1')
        .trim(),
    );
  const isSorted = steps.some((step) => step.includes('TEMP B-TREE'));
  return [...reads, ...(isSorted ? ['sorted'] : [])].join(', ');
}

type Place = 'ordered' | 'found' | 'scanned';

/** Where a list is read: `ordered` and `found` in this process, `scanned` in a reader process. */
function placeOf({ isOrdered, isFound }: ListPlan): Place {
  if (isOrdered) return 'ordered';
  return isFound ? 'found' : 'scanned';
}

const IDS = Array.from({ length: 100 }, mintId);
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff' as Uuid;
const VALUES = Array.from({ length: 100 }, (_, number) => `v${number}`);

const NAME = 'by_name name_key>? AND name_key<?';
const CREATED = 'created created_at>? AND created_at<?';

/**
 * Filters of users: where the newest page is read; the index of the records; that of the newest page; that of the page by
 * `updated_at`.
 */
const FILTERED: Readonly<Record<string, string>> = {
  'eq(email,P7@SHOP.example)': 'found; by_email email_key=?; created; updated',
  'in(email,p1@shop.example,p2@shop.example,p3@banks.example)':
    'found; by_email email_key=?; created; updated',
  [`in(email,${VALUES})`]: 'found; by_email email_key=?; created; updated',
  "eq(name,\"x' or '1'='1\")": 'found; by_name name_key=?; created; updated',
  'eq(created_at,2026-01-01T00:00:00.020Z)': 'found; created created_at=?; created created_at=?; updated',
  [`in(id,${IDS})`]: 'found; key id=?; created; updated',
  [`in(id,${IDS}):ilike(name,*x*):is_null(given_name)`]: 'found; key id=?; created; updated',
  [`eq(id,${IDS[0]}):match(text,x)`]: 'scanned; key id=?; key id=?; key id=?',
  'gt(created_at,2026-01-01T00:00:00.040Z)':
    'ordered; created created_at>?; created created_at>?; created created_at>?, sorted',
  'ge(created_at,2026-01-01T00:00:00.010Z):ge(created_at,2026-01-01T00:00:00.030Z)':
    'ordered; created created_at>?; created created_at>?; created created_at>?, sorted',
  'ge(created_at,2026-01-01T00:00:00.010Z):lt(created_at,2026-01-01T00:00:00.020Z)': `ordered; ${CREATED}; ${CREATED}; ${CREATED}, sorted`,
  'gt(created_at,2026-01-01T00:00:00.010Z):le(created_at,2026-01-01T00:00:00.030Z):le(created_at,2026-01-01T00:00:00.025Z)': `ordered; ${CREATED}; ${CREATED}; ${CREATED}, sorted`,
  'ge(updated_at,2026-01-01T00:00:00.500Z)':
    'scanned; updated updated_at>?; updated updated_at>?, sorted; updated updated_at>?',
  [`gt(id,${IDS[0]})`]: 'scanned; key id>?; key id>?, sorted; key id>?, sorted',
  'like(email,p1*)': `scanned; ${NAME}; ${NAME}, sorted; ${NAME}, sorted`.replaceAll('name', 'email'),
  "like(name,'%*')": `scanned; ${NAME}; ${NAME}, sorted; ${NAME}, sorted`,
  'like(name,_*)': `scanned; ${NAME}; ${NAME}, sorted; ${NAME}, sorted`,
  "like(name,'\\**')": `scanned; ${NAME}; ${NAME}, sorted; ${NAME}, sorted`,
  'like(name,😀*)': `scanned; ${NAME}; ${NAME}, sorted; ${NAME}, sorted`,
  'like(name,\ud7ff*)': `scanned; ${NAME}; ${NAME}, sorted; ${NAME}, sorted`,
  'like(name,\u{10ffff}*)':
    'scanned; by_name name_key>?; by_name name_key>?, sorted; by_name name_key>?, sorted',
  'ilike(email,*BANKS.example)': 'scanned; by_email; created; updated',
  'ilike(email,*2@s*)': 'scanned; by_email; created; updated',
  'like(name,"*\'1 doe")': 'scanned; by_name; created; updated',
  'like(name,*😁3 DOE)': 'scanned; by_name; created; updated',
  "ilike(name,\"*' or ''='*\")": 'scanned; by_name; created; updated',
  'is_null(given_name)': 'scanned; key; created; updated',
  'eq(given_name,g5)': 'scanned; key; created; updated',
  'eq(enabled,false)': 'scanned; key; created; updated',
  'eq(enabled,true):like(email,p1*)': `scanned; ${NAME}; ${NAME}, sorted; ${NAME}, sorted`.replaceAll(
    'name',
    'email',
  ),
  'eq(email,x):is_null(given_name)': 'scanned; by_email email_key=?; created; updated',
  'eq(email,x):eq(name,y)': 'scanned; by_name name_key=?; created; updated',
  'eq(email,x):ge(created_at,2026-01-01)':
    'scanned; created created_at>?; created created_at>?; created created_at>?, sorted',
  'like(email,x*):ge(created_at,2026-01-01)':
    'scanned; by_email email_key>? AND email_key<?; created created_at>?; by_email email_key>? AND email_key<?, sorted',
  'like(email,x*):like(email,xy*)': `scanned; ${NAME}; ${NAME}, sorted; ${NAME}, sorted`.replaceAll(
    'name',
    'email',
  ),
  [`eq(id,${IDS[0]}):ge(created_at,2026-01-01)`]: 'found; key id=?; key id=?; key id=?',
  'eq(email,p1@shop.example):eq(email,p2@shop.example)': 'scanned; by_email email_key=?; created; updated',
  '(eq(email,p1@shop.example)|eq(email,p2@shop.example)):ilike(name,*1*)':
    'scanned; by_email email_key=?; created; updated',
  '(eq(email,x)|eq(name,y))': 'scanned; key; created; updated',
  '(eq(email,x)|ilike(email,*y*))': 'scanned; by_email; created; updated',
  '(ge(created_at,2026-01-01)|eq(email,y))': 'scanned; key; created; updated',
  '(ilike(email,*banks*)|is_null(given_name)|eq(name,A0 Doe)):le(updated_at,2026-01-01T00:00:00.700Z)':
    'scanned; updated updated_at<?; updated updated_at<?, sorted; updated updated_at<?',
  'match(text,x)': 'scanned; by_name; created; updated',
  '(match(text,x)|eq(email,y))': 'scanned; key; created; updated',
};

describe('the statements of a filtered list of users', () => {
  test('every filter of the contract is explained', () => {
    expect(FILTERS.map(([text]) => text).filter((text) => !(text in FILTERED))).toEqual([]);
  });

  test.each(Object.entries(FILTERED))('the filter %s reads the expected indexes', (filter, expected) => {
    const list = { resource: user, depth: 1, filter };
    const [newest, updated] = [planOf(list), planOf({ ...list, sort: UPDATED })];
    const indexes = [
      indexOf(list, newest, 'gather'),
      indexOf(list, newest, 'offset'),
      indexOf(list, updated, 'offset'),
    ];
    expect([placeOf(newest), ...indexes].join('; ')).toBe(expected);
    expect(indexOf(list, newest, 'count')).toBe(indexes[0] as string);
    if (newest.isFound) expect(indexOf(list, newest, 'probe')).toBe(indexes[0] as string);
    // A page after a record follows the index of its order, or that of the ID.
    expect(indexOf(list, newest, 'after')).toMatch(/^(created( |$)|key id=\?$)/);
    expect(indexOf(list, updated, 'after')).toMatch(/^(updated( |$)|key id=\?$)/);
  });
});

const links = (filter: string): ListCase => ({ resource: oidcProfileInfo, depth: 1, filter });
const usernames = (filter: string): ListCase => ({ resource: passwordProfileInfo, depth: 1, filter });
const IDENTITY = 'subject issuer=? AND subject=?';
const USERNAME = 'username password_profile_id=? AND username_key=?';
const SORTS: readonly Sort[] = (['created_at', 'updated_at', 'id'] as const).flatMap((by) => [
  { by, isDescending: true },
  { by, isDescending: false },
]);

/** Other lists: where the newest page is read; the index of the records; that of the page. */
const OTHERS: readonly (readonly [string, ListCase, string])[] = [
  ['all realms', { resource: realm, depth: 0 }, 'ordered; created; created'],
  ['some realms', { resource: realm, depth: 0, only: true }, 'found; key realm_id=?; key realm_id=?, sorted'],
  ['OIDC profiles', { resource: oidcProfile, depth: 1 }, 'ordered; created; created'],
  ['password profiles', { resource: passwordProfile, depth: 1 }, 'ordered; created; created'],
  ['links of a user', { resource: oidcProfileInfo, depth: 2 }, 'ordered; of_user; of_user'],
  ['usernames of a user', { resource: passwordProfileInfo, depth: 2 }, 'ordered; of_user; of_user'],
  ['an identity', links('eq(issuer,https://a.example):eq(subject,s)'), `found; ${IDENTITY}; ${IDENTITY}`],
  ['links by ID', links(`in(id,${IDS})`), 'found; key id=?; key id=?, sorted'],
  [
    'links of an OIDC profile',
    links(`eq(oidc_profile_id,${IDS[0]})`),
    'ordered; of_oidc_profile oidc_profile_id=?; of_oidc_profile oidc_profile_id=?',
  ],
  [
    'a username',
    usernames('eq(username,x)'),
    'found; by_username username_key=?; by_username username_key=?, sorted',
  ],
  [
    'a username of a profile',
    usernames(`eq(username,x):eq(password_profile_id,${IDS[0]})`),
    `found; ${USERNAME}; ${USERNAME}`,
  ],
  ['usernames by ID', usernames(`in(id,${IDS})`), 'found; key id=?; key id=?, sorted'],
  [
    'usernames of a profile',
    usernames(`eq(password_profile_id,${IDS[0]})`),
    'ordered; of_password_profile password_profile_id=?; of_password_profile password_profile_id=?',
  ],
  ...SORTS.map((sort): readonly [string, ListCase, string] => {
    const index = sort.by === 'id' ? 'key' : sort.by.replace('_at', '');
    return [
      `users ${JSON.stringify(sort)}`,
      { resource: user, depth: 1, sort },
      `ordered; ${index}; ${index}`,
    ];
  }),
];

describe('the statements of another list', () => {
  test.each(OTHERS)('%s', (_, list, expected) => {
    const plan = planOf(list);
    const indexes = [indexOf(list, plan, 'gather'), indexOf(list, plan, 'offset')];
    expect([placeOf(plan), ...indexes].join('; ')).toBe(expected);
    expect(indexOf(list, plan, 'probe')).toBe(indexes[0] as string);
  });

  test('the links of a hundred users are found by the index of their user', () => {
    for (const resource of [oidcProfileInfo, passwordProfileInfo]) {
      const list = { resource, depth: 1 };
      const ofUsers = { kind: 'one_of', member: 'user_id', compared: 'identifier', values: IDS } as const;
      const plan = planOf(list, [[ofUsers]]);
      expect([placeOf(plan), indexOf(list, plan, 'gather')]).toEqual(['found', 'of_user user_id=?']);
    }
  });
});

const INLINE: readonly (readonly [string, ListCase])[] = [
  ...Object.keys(FILTERED).map((filter) => [filter, { resource: user, depth: 1, filter }] as const),
  ...OTHERS.map(([title, list]) => [title, list] as const),
].filter(([, list]) => placeOf(planOf(list)) !== 'scanned');

test.each(INLINE)('a list that is read here has the same indexes with any statistics: %s', (_, list) => {
  const plan = planOf(list);
  const statements = plan.isOrdered
    ? (['offset', 'after', 'probe'] as const)
    : (['few', 'gather', 'probe'] as const);
  const indexesIn = (file: Database) => statements.map((statement) => indexOf(list, plan, statement, file));
  for (const { name } of indexesOf(db, list.resource.table)) {
    discredit(name);
    expect(indexesIn(analyzed)).toEqual(indexesIn(db));
  }
});

test('no filter has more values for the columns of an index than are searched here', () => {
  for (const resource of RESOURCES) {
    const { columnOf } = listTable(resource, sqliteStatements(resource), [], SQLITE);
    const filterables = Object.entries(resource.filterables ?? resource.reverseLookup?.filterables ?? {});
    const searched = filterables.flatMap(([member, { compared, operators }]) =>
      compared !== 'words' && operators.includes('in')
        ? [columnOf({ kind: 'one_of', member, compared, values: IDS })]
        : [],
    );
    for (const { columns } of indexesOf(db, resource.table)) {
      const severalOf = columns.filter((column) => searched.includes(column));
      expect(LIMITS.filterValuesMax ** severalOf.length).toBeLessThanOrEqual(LIMITS.listRecordsInlineMax);
    }
  }
});

const RANGES: readonly (readonly [string, Sort])[] = [
  ['ge(created_at,2026-01-01)', NEWEST],
  ['ge(created_at,2026-01-01):lt(created_at,2026-02-01)', NEWEST],
  ['le(created_at,2026-02-01)', NEWEST],
  ['ge(updated_at,2026-01-01)', UPDATED],
  [`gt(id,${NIL_UUID})`, { by: 'id', isDescending: false }],
  [`gt(id,${NIL_UUID})`, { by: 'id', isDescending: true }],
];
const CURSORS: readonly ListCase[] = [
  ...OTHERS.map(([, list]) => list).filter((list) => planOf(list).isOrdered),
  ...RANGES.map(([filter, sort]) => ({ resource: user, depth: 1, filter, sort })),
];

test.each(CURSORS.map((list) => [list.resource.name, list.filter, list.sort ?? NEWEST, list] as const))(
  'a page after a record starts at that record in the index of its order: %s %s %o',
  (_, text, sort, list) => {
    const { by } = sort;
    const after = { at: by === 'id' ? undefined : Date.UTC(2026, 0, 10), id: LAST_ID };
    const page = { kind: 'after', after, limit: 5 } as const;
    const { filter } = startAtCursor({ filter: filterOf(list.resource, text), sort, page });
    const read = indexOf(list, planOf(list, filter), 'after');
    expect(read).toMatch(by === 'id' ? /[ (](realm_)?id[<>]\?/ : /\(\w+_at,\w*id\)[<>]\(\?,\?\)/);
    const ranges = filter.flat().filter(({ kind }) => kind === 'range');
    expect(read.match(/[<>]/g)).toHaveLength(1 + ranges.length);
    expect(read).not.toContain('sorted');
  },
);
