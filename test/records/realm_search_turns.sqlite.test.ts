import { afterAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import { parseFilter } from '../../src/model/filter/filter.ts';
import { LIMITS } from '../../src/model/limits.ts';
import type { Resource } from '../../src/model/resource.ts';
import { oidcProfileInfo, user } from '../../src/model/resources.ts';
import type { Store } from '../../src/model/store.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openEngine } from '../../src/ops/store/open.ts';
import { openRealmSearches } from '../../src/records/store/lists/realm_search.ts';
import { POSTGRES, postgresStatements } from '../../src/records/store/postgres/dialect.ts';
import { SQLITE, sqliteStatements } from '../../src/records/store/sqlite/dialect.ts';
import { connectSqlite } from '../../src/sql/sqlite/connection.ts';
import type { SingleStatement } from '../../src/sql/transaction_work.ts';
import { freshFolder } from '../support/service.ts';
import { commitWrites, createRealmFixture, insert, mintId, WRITTEN } from './contract/store_fixtures.ts';

/** Which searches of all realms run where lookups run, and by which index. */

const path = join(freshFolder(), 'searches.db');
const engine = await openEngine({ engine: 'sqlite', path }, 'auto', { version: 'test', clock: systemClock });
const fixture = await createRealmFixture(engine.records);
afterAll(() => engine.close());

function requestOf(resource: Resource, text: string) {
  const filter = parseFilter(text, resource.searchAllRealms?.filterables ?? {});
  return { filter, only: undefined, after: undefined, limit: LIMITS.listRecordsInlineMax + 9 };
}

/** Creates links of one subject, each at its own issuer. */
async function createLinks(subject: string, count: number): Promise<void> {
  const { realm, user: of, oidc } = fixture;
  const links = Array.from({ length: count }, () =>
    insert(oidcProfileInfo, [realm, of, mintId()], {
      ...{ subject, issuer: `https://${mintId()}.example/`, oidc_profile_id: oidc },
    }),
  );
  for (let start = 0; start < count; start += COMMITTED_AT_ONCE) {
    const some = links.slice(start, start + COMMITTED_AT_ONCE);
    expect(await commitWrites(engine.records, ...some)).toEqual(WRITTEN);
  }
}

const COMMITTED_AT_ONCE = 500;

/** Searches; returns how many records were found here, and how many searches were delegated. */
async function search(
  resource: Resource,
  text: string,
): Promise<readonly [found: number, delegated: number]> {
  let delegated = 0;
  const delegate: Store['searchRealms'] = () => {
    delegated += 1;
    return { items: [], through: undefined };
  };
  const searchRealms = engine.embedded?.searchDelegating(delegate) as Store['searchRealms'];
  const { items } = await searchRealms(resource, requestOf(resource, text));
  return [items.length, delegated];
}

test('a search by a subject is delegated if more than listRecordsInlineMax records have it, and only then', async () => {
  await createLinks('rare', 3);
  await createLinks('common', LIMITS.listRecordsInlineMax);
  expect(await search(oidcProfileInfo, 'eq(subject,rare)')).toEqual([3, 0]);
  expect(await search(oidcProfileInfo, 'eq(subject,common)')).toEqual([LIMITS.listRecordsInlineMax, 0]);
  expect(await search(user, 'eq(name,"Jane Doe")')).toEqual([0, 1]);
  await createLinks('common', 1);
  expect(await search(oidcProfileInfo, 'eq(subject,common)')).toEqual([0, 1]);
}, 300_000);

test('a search by a subject reads the index of its hash on SQLite, where it is delegated too, and of its text on PostgreSQL', () => {
  const request = requestOf(oidcProfileInfo, 'eq(subject,anybody)');
  const statementsOf = ({ byHash, whole }: ReturnType<typeof openRealmSearches>) =>
    [byHash(oidcProfileInfo, request), whole(oidcProfileInfo, request)].map(
      (work) => work?.next().value as SingleStatement,
    );
  const db = connectSqlite(path);
  for (const { text, values } of statementsOf(openRealmSearches(sqliteStatements, SQLITE))) {
    const plan = db.query<{ detail: string }, never[]>(`explain query plan ${text}`);
    expect(plan.all(...(values as never[]))[0]?.detail).toContain('oidc_profile_info_subject_crc');
  }
  db.close();
  for (const { text } of statementsOf(openRealmSearches(postgresStatements, POSTGRES)))
    expect(text).not.toContain('subject_crc');
});

test('a search reports no total above searchCountMax', async () => {
  const totalOf = async () => {
    const request = { ...requestOf(oidcProfileInfo, 'eq(subject,many)'), limit: 1, isCounted: true };
    return (await engine.records.searchRealms(oidcProfileInfo, request)).total;
  };
  await createLinks('many', LIMITS.searchCountMax);
  expect(await totalOf()).toBe(LIMITS.searchCountMax);
  await createLinks('many', 1);
  expect(await totalOf()).toBeUndefined();
}, 300_000);
