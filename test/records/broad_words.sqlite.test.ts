import { Database } from 'bun:sqlite';
import { afterAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import { parseFilter } from '../../src/model/filter/filter.ts';
import type { Uuid } from '../../src/model/id.ts';
import { passwordProfileInfo, realm, user } from '../../src/model/resources.ts';
import type { RealmSearchPage } from '../../src/model/store.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine } from '../../src/ops/store/open.ts';
import { clauseOf } from '../../src/records/store/lists/filters.ts';
import { type ListStatement, listTable, planList } from '../../src/records/store/lists/list_plans.ts';
import { openListReading } from '../../src/records/store/lists/lists.ts';
import { SQLITE, sqliteStatements } from '../../src/records/store/sqlite/dialect.ts';
import { indexesOf } from '../../src/records/store/sqlite/lists.ts';
import type { Statement } from '../../src/sql/transaction_work.ts';
import { freshFolder, realmMembers, userMembers } from '../support/service.ts';
import { insert, mintId } from './contract/store_fixtures.ts';

/** Searches for words that too many records have to find and sort them all. */

const COUNT = 25_000;
/** Every how many users have the rarer words. */
const RARE = 1_000;

const path = join(freshFolder(), 'words.db');
const [home = mintId(), other = mintId()] = [mintId(), mintId()].sort();

const engine = await openEngine({ engine: 'sqlite', path }, 'auto', { version: 'test', clock: systemClock });
const store = engine.records;
for (const id of [home, other]) await store.commit([insert(realm, [id], realmMembers)]);
await store.commit([insert(user, [other, mintId()], { ...userMembers, name: 'Common Last' })]);
const db = new Database(path);
db.run('pragma busy_timeout = 5000');
db.prepare(
  `with recursive n (i) as (select 1 union all select i + 1 from n where i < ?2)
     insert into user_info (realm_id, id, name, email, creation_status, email_vouched, enabled, name_key, email_key,
       unicode_version, created_at, updated_at, revision, words)
     select (select number from realm_clock where realm_id = ?1), unhex(printf('%08x000040008000000000000000', i)), 'x', 'x', 'COMPLETE', 1,
       1, 'x', 'x', '', i, i, '0000000000000000',
       'common usual ' || case when i % ?3 = 0 then 'rare' || i else 'much' end from n`,
).run(home, COUNT, RARE);
db.close();
afterAll(() => engine.close());

function search(text: string, more: object = {}): Promise<RealmSearchPage> | RealmSearchPage {
  const filter = parseFilter(`match(text,${text})`, user.searchAllRealms?.filterables ?? {});
  const request = { filter, only: undefined, after: undefined, limit: 10, isCounted: true, ...more };
  return store.searchRealms(user, request);
}

const idsOf = ({ items }: RealmSearchPage) => items.map(({ record }) => record.id);
const numbered = (number: number) =>
  `${number.toString(16).padStart(8, '0')}-0000-4000-8000-000000000000` as Uuid;

test.each(['comm', 'comm usual', 'usual com mu'])(
  'a search for words that most users have returns them in their order, without a total: %s',
  async (text) => {
    const page = await search(text);
    expect(idsOf(page)).toEqual(Array.from({ length: 10 }, (_, at) => numbered(at + 1)));
    expect(page.total).toBeUndefined();
    const { key } = page.items[9] ?? { key: [] };
    const next = await search(text, { after: key[0], afterId: key[1] });
    expect(idsOf(next)[0]).toBe(numbered(11));
  },
);

test('a search finds the users with a rare word among those with a common one, and counts them', async () => {
  const page = await search('common rare');
  expect(idsOf(page)).toEqual(Array.from({ length: 10 }, (_, at) => numbered((at + 1) * RARE)));
  expect(page.total).toBe(COUNT / RARE);
  expect(idsOf(await search(`usual rare${RARE} comm`))).toContain(numbered(RARE));
  expect((await search('common absent')).items).toEqual([]);
});

test('a search for common words is limited to realms, and finds the last one', async () => {
  const page = await search('common', { only: [other] });
  expect(page.items.map(({ record }) => record.name)).toEqual(['Common Last']);
  expect((await search('common', { after: home })).items.length).toBe(1);
});

/** The steps of the plan of a list of users in a realm. */
function planOf(text: string, isByWord: boolean, statement: ListStatement): string {
  const db = new Database(path, { readonly: true });
  const table = listTable(user, sqliteStatements(user), indexesOf(db, 'user_info'), SQLITE);
  const filter = parseFilter(text, user.filterables ?? {});
  const { text: where } = clauseOf(filter, table.columnOf, SQLITE);
  const sort = { by: 'created_at', isDescending: true } as const;
  const shape = { depth: 1, filter, hasOnly: false, isByWord, sort, where, gatheredMax: 1_000 };
  const plan = planList(table, shape, SQLITE);
  const steps = db.query<{ detail: string }, []>(`explain query plan ${plan.texts[statement]}`).all();
  db.close();
  return steps.map(({ detail }) => detail).join();
}

test('a list of a realm is found by the row IDs of a rare word, and by the realm for a common one', () => {
  for (const statement of ['gather', 'count', 'offset', 'after'] as const) {
    expect(planOf('match(text,rare comm)', true, statement)).toMatch(
      /^(CO-ROUTINE [^ ]+,)?SEARCH user_info USING INTEGER PRIMARY KEY \(rowid=\?\)/,
    );
    expect(planOf('match(text,comm usu)', false, statement)).toMatch(
      /^(CO-ROUTINE [^ ]+,)?SEARCH user_info USING [A-Z ]*INDEX \w+ \(realm_id=/,
    );
  }
  expect(planOf(`eq(id,${mintId()}):match(text,comm)`, true, 'gather')).toContain('(realm_id=? AND id=?');
});

test('the statement for a rare word is not that for a common one', () => {
  const db = new Database(path, { readonly: true });
  const indexes = indexesOf(db, 'user_info');
  db.close();
  const { unbounded } = openListReading({
    of: sqliteStatements,
    dialect: SQLITE,
    indexesOf: () => indexes,
    forget: () => undefined,
  });
  const listing = {
    filter: parseFilter('match(text,x)', user.filterables ?? {}),
    sort: { by: 'created_at', isDescending: true },
    page: { kind: 'offset', offset: 0, limit: 2 },
  } as const;
  const [rare, common] = [1, COUNT].map((n) => {
    const work = unbounded({ resource: user, scope: [home], listing }, 'whole');
    work.next();
    return (work.next({ rows: [{ n }], count: 0 }).value as Statement).text;
  });
  expect(rare).toContain(`+realm_id = ${SQLITE.realm('?1')}`);
  expect(common).not.toContain('+realm_id');
});

test.each([
  ['common rare', COUNT / RARE],
  ['comm usual', COUNT],
])('a list of a realm finds and counts the users with these words: %s', async (words, total) => {
  const request = {
    filter: parseFilter(`match(text,${words})`, user.filterables ?? {}),
    sort: { by: 'id', isDescending: false },
    page: { kind: 'offset', offset: 0, limit: 2 },
  } as const;
  const page = await store.list(user, [home], request);
  const every = COUNT / total;
  expect([page?.total, page?.items.map(({ record }) => record.id)]).toEqual([
    total,
    [numbered(every), numbered(2 * every)],
  ]);
  expect((await store.list(user, [other], request))?.total).toBe(0);
});

test('a search of another kind of record is not affected', async () => {
  const filter = parseFilter('match(text,common)', passwordProfileInfo.searchAllRealms?.filterables ?? {});
  const request = { filter, only: undefined, after: undefined, limit: 10, isCounted: true };
  expect(await store.searchRealms(passwordProfileInfo, request)).toMatchObject({ items: [], total: 0 });
});
