import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import type { RealmSearchPage, Store } from '../../src/directory/store.ts';
import { parseFilter } from '../../src/domain/filter/filter.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { passwordProfileInfo, realm, user } from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { type Engine, openEngine } from '../../src/store/open.ts';
import { freshFolder, realmMembers, userMembers } from '../support/service.ts';
import { insert, mintId } from './contract/store_fixtures.ts';

/** Searches for words that too many records have to find and sort them all. */

const COUNT = 25_000;
/** Every how many users have the rarer words. */
const RARE = 1_000;

let engine: Engine;
let store: Store;
const [home = mintId(), other = mintId()] = [mintId(), mintId()].sort();

beforeAll(async () => {
  const path = join(freshFolder(), 'words.db');
  engine = await openEngine({ engine: 'sqlite', path }, 'auto', { version: 'test', clock: systemClock });
  store = engine.records;
  for (const id of [home, other]) await store.commit([insert(realm, [id], realmMembers)]);
  await store.commit([insert(user, [other, mintId()], { ...userMembers, name: 'Common Last' })]);
  // As another program would write them: triggers write the words.
  const db = new Database(path);
  db.run('pragma busy_timeout = 5000');
  db.prepare(
    `with recursive n (i) as (select 1 union all select i + 1 from n where i < ?2)
     insert into user_info (realm_id, id, name, email, creation_status, name_key, email_key, unicode_version,
       created_at, updated_at, revision)
     select ?1, printf('%08x-0000-4000-8000-000000000000', i), 'x', 'x', 'COMPLETE',
       'common usual ' || case when i % ?3 = 0 then 'rare' || i else 'much' end, 'x', '', i, i, '0000000000000000' from n`,
  ).run(home, COUNT, RARE);
  db.close();
}, 60_000);
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

test('a search of another kind of record is not affected', async () => {
  const filter = parseFilter('match(text,common)', passwordProfileInfo.searchAllRealms?.filterables ?? {});
  const request = { filter, only: undefined, after: undefined, limit: 10, isCounted: true };
  expect(await store.searchRealms(passwordProfileInfo, request)).toMatchObject({ items: [], total: 0 });
});
