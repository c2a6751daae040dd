import type { Database } from 'bun:sqlite';
import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { Fault } from '../../src/model/fault.ts';
import { parseFilter } from '../../src/model/filter/filter.ts';
import { NIL_UUID, type Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import type { Key, Resource } from '../../src/model/resource.ts';
import { oidcProfileInfo, realm, user } from '../../src/model/resources.ts';
import type { MaybePromise } from '../../src/model/store.ts';
import { reopenEngine } from '../../src/ops/store/open.ts';
import { openRealmNumbers } from '../../src/records/store/sqlite/realm_numbers.ts';
import { allRows, copiedRowCount, freshDatabaseOf, newMasterKey, runCopy } from '../support/copy_fixtures.ts';
import type { TestDatabase } from '../support/database.ts';
import { bytesOf, realmLines } from '../support/import_fixtures.ts';
import { ofUser } from '../support/log_rows.ts';
import { runAuthrealm } from '../support/processes.ts';
import { verifyCleanRecords } from '../support/record_verification.ts';
import { realmMembers } from '../support/service.ts';
import {
  anotherUser,
  commitWritten,
  createRealmFixture,
  insert,
  mintId,
  oidcLink,
  realmFixtureWrites,
  removalOf,
  removeRecord,
} from './contract/store_fixtures.ts';

/** On SQLite a realm is a number in the tables of records and of their log. */

setDefaultTimeout(300_000);

async function numbersIn({ query }: TestDatabase): Promise<ReadonlyMap<string, number>> {
  const rows = await query<{ realm_id: string; number: number }>('select realm_id, number from realm_clock');
  return new Map(rows.map(({ realm_id, number }) => [realm_id, number]));
}

describe('two processes on one file', async () => {
  const database = await freshDatabaseOf('sqlite', newMasterKey());
  const engine = await database.open();
  const second = await reopenEngine(database.address);
  const store = engine.records;
  afterAll(async () => {
    await engine.close();
    await second.close();
  });

  test('a realm that is deleted and created again keeps its number, which no other realm gets', async () => {
    const ids = await createRealmFixture(store);
    const link = await commitWritten(store, oidcLink(ids, 'kept'));
    const number = (await numbersIn(database)).get(ids.realm);
    const find = {
      members: oidcProfileInfo.reverseLookup?.by[0] ?? [],
      values: [link.record.issuer, 'kept'],
    };
    for (const { records } of [engine, second]) {
      expect(await records.get(oidcProfileInfo, link.key)).toMatchObject({ subject: 'kept' });
      expect(await records.find(oidcProfileInfo, ids.realm, find as never)).toMatchObject({ key: link.key });
    }
    await removeRecord(store, removalOf(realm, [ids.realm]));
    const other = await createRealmFixture(second.records);
    for (const { records } of [engine, second]) {
      expect(await records.get(realm, [ids.realm])).toBeUndefined();
      expect(await records.get(oidcProfileInfo, link.key)).toBeUndefined();
      expect(await records.find(oidcProfileInfo, ids.realm, find as never)).toBeUndefined();
      expect(await records.get(user, [other.realm, other.user])).toBeDefined();
      expect(await records.get(user, [ids.realm, other.user])).toBeUndefined();
    }
    expect(await second.records.commit([...realmFixtureWrites(ids), oidcLink(ids, 'made again')])).toEqual({
      kind: 'written',
    });
    for (const { records } of [engine, second]) {
      expect(await records.get(realm, [ids.realm])).toMatchObject({ id: ids.realm });
      expect(await records.get(user, [ids.realm, ids.user])).toBeDefined();
      expect(await records.get(user, [other.realm, ids.user])).toBeUndefined();
      expect(await records.get(oidcProfileInfo, link.key)).toBeUndefined();
    }
    const numbers = await numbersIn(database);
    expect(numbers.get(ids.realm)).toBe(number as number);
    expect(new Set(numbers.values()).size).toBe(numbers.size);
    expect(await database.findInconsistencies()).toEqual([]);
  });

  test('a realm whose creation is rolled back has no number, and is found once it is created', async () => {
    const refused = mintId();
    const result = await store.commit([
      insert(realm, [refused], realmMembers),
      anotherUser({ realm: refused }),
      anotherUser({ realm: mintId() }),
    ]);
    expect(result).toMatchObject({ kind: 'not_found', index: 2 });
    expect((await numbersIn(database)).has(refused)).toBe(false);
    const made = await createRealmFixture(store);
    for (const { records } of [engine, second]) {
      expect(await records.get(realm, [refused])).toBeUndefined();
      expect(await records.get(user, [refused, made.user])).toBeUndefined();
    }
    await commitWritten(store, insert(realm, [refused], realmMembers));
    for (const { records } of [engine, second]) {
      expect(await records.get(realm, [refused])).toBeDefined();
      expect(await records.get(user, [refused, made.user])).toBeUndefined();
    }
  });

  test('all realms are scanned in the order of their IDs, and not of their numbers, from any position', async () => {
    const stem = mintId().slice(0, -1);
    const realms = ['5', '3', '9', '1'].map((digit) => `${stem}${digit}` as Uuid);
    for (const id of realms) {
      await commitWritten(store, insert(realm, [id], realmMembers));
      for (let count = 0; count < 5; count += 1) await commitWritten(store, anotherUser({ realm: id }));
    }
    const snapshot = await store.openSnapshot();
    const scanned = (resource: Resource) =>
      keysIn((after) =>
        snapshot.scan(resource, { realm: after?.[0] ?? NIL_UUID, id: after?.at(-1) ?? NIL_UUID }, 2),
      );
    const search = { filter: [], only: undefined, limit: 2, isCounted: false };
    const searched = () =>
      keysIn(async (after) => {
        const page = await store.searchRealms(user, { ...search, after: after?.[0], afterId: after?.at(-1) });
        return page.items;
      });
    for (const [found, count] of [
      [await scanned(realm), 4],
      [await scanned(user), 20],
      [await searched(), 20],
    ] as const) {
      expect(found).toEqual(found.toSorted());
      expect(new Set(found).size).toBe(found.length);
      expect(found.filter((each) => each.startsWith(stem)).length).toBe(count);
    }
    await snapshot.close();
  });
});

describe('rows that another program wrote', () => {
  test('a realm whose number another row has is refused, and nothing of it is stored', async () => {
    const database = await freshDatabaseOf('sqlite', newMasterKey());
    const engine = await database.open();
    const fixture = await createRealmFixture(engine.records);
    const copied = 'name, redirect_uris, duplicate_email_policy, preset, created_at, updated_at, revision';
    const inserted = await database.tamper(
      `insert into realm (slot, realm_id, ${copied})
       select (select max(number) + 1 from realm_clock), unhex(?, '-'), ${copied} from realm`,
      mintId(),
    );
    expect(inserted).toBe(1);
    const refused = mintId();
    const writes = [insert(realm, [refused], realmMembers), anotherUser({ realm: refused })];
    const thrown = await Promise.resolve(engine.records.commit(writes)).catch((error) => error);
    expect(thrown).toBeInstanceOf(Fault);
    expect(String(thrown.cause)).toContain('UNIQUE constraint failed: realm.slot');
    expect((await numbersIn(database)).has(refused)).toBe(false);
    expect((await database.query<object>('select * from user_info')).length).toBe(1);
    const again = [insert(realm, [fixture.realm], realmMembers)];
    expect(await engine.records.commit(again)).toEqual({ kind: 'unique', members: ['id'] });
    await engine.close();
  });

  test('records whose realm does not exist do not stop searches of all realms', async () => {
    const database = await freshDatabaseOf('sqlite', newMasterKey());
    const engine = await database.open();
    const ids = [await createRealmFixture(engine.records), await createRealmFixture(engine.records)] as const;
    const links: Uuid[] = [];
    for (const each of ids)
      links.push((await commitWritten(engine.records, oidcLink(each, 'same'))).record.id);
    for (const { table } of [user, oidcProfileInfo]) {
      const moved = await database.tamper(
        `update ${table} set realm_id = 1000 where realm_id = (select number from realm_clock where realm_id = ?)`,
        ids[0].realm,
      );
      expect(moved).toBe(1);
    }
    const find = async (resource: Resource, text: string, more: object = {}) => {
      const filter = parseFilter(text, resource.searchAllRealms?.filterables ?? {});
      const search = { filter, only: undefined, after: undefined, limit: 10, isCounted: false, ...more };
      return (await engine.records.searchRealms(resource, search)).items.map(({ key }) => key);
    };
    const words = 'match(text,jane)';
    const users: readonly [Key, Key] = [
      [NIL_UUID, ids[0].user],
      [ids[1].realm, ids[1].user],
    ];
    expect(await find(user, words)).toEqual([...users]);
    expect(await find(user, words, { only: [ids[1].realm] })).toEqual([users[1]]);
    expect(await find(user, words, { after: NIL_UUID, afterId: ids[0].user })).toEqual([users[1]]);
    expect(await find(oidcProfileInfo, 'eq(subject,"same")')).toEqual([
      [NIL_UUID, ids[0].user, links[0] as Uuid],
      [...users[1], links[1] as Uuid],
    ]);
    await engine.close();
  });
});

/** The keys on all pages. */
async function keysIn(
  pageAfter: (last: Key | undefined) => MaybePromise<readonly { readonly key: Key }[]>,
): Promise<readonly string[]> {
  const found: string[] = [];
  for (let last: Key | undefined; ; ) {
    const page = await pageAfter(last);
    found.push(...page.map(({ key }) => key.join(' ')));
    if (page.length === 0) return found;
    last = page.at(-1)?.key;
  }
}

const textOf = ({ all }: ReturnType<typeof realmLines>) => Buffer.from(bytesOf(all)).toString();

test('a copy gives realms other numbers, keeps the log of each, and erases the users of one realm alone', async () => {
  const key = newMasterKey();
  const [source, target] = [await freshDatabaseOf('sqlite', key), await freshDatabaseOf('sqlite', key)];
  await runAuthrealm(['init', ...source.args]);
  const [later, earlier] = [realmLines(), realmLines()].toSorted((one, other) =>
    one.ids.realm < other.ids.realm ? 1 : -1,
  ) as [ReturnType<typeof realmLines>, ReturnType<typeof realmLines>];
  // One user ID in both realms.
  const twin = textOf(earlier).replaceAll(earlier.ids.user, later.ids.user);
  for (const text of [textOf(later), twin]) {
    const imported = await runAuthrealm(['import', '-', ...source.args], {}, text);
    expect([imported.stderr, imported.code]).toEqual([expect.anything(), 0]);
  }
  const copied = await runCopy(source, target);
  expect([copied.stderr, copied.code]).toEqual(['', 0]);
  expect(copiedRowCount(copied.stdout)).toBeGreaterThan(20);
  const [before, after] = [await numbersIn(source), await numbersIn(target)];
  expect([...after.keys()].sort()).toEqual([...before.keys()].sort());
  expect(after.get(later.ids.realm)).not.toBe(before.get(later.ids.realm) as number);
  expect(await allRows(target)).toEqual(await allRows(source));
  expect(await verifyCleanRecords(target)).toEqual(await verifyCleanRecords(source));
  expect(await target.findInconsistencies()).toEqual([]);
  const erased = await runAuthrealm([
    'erase',
    'user',
    later.ids.realm,
    later.ids.user,
    '--yes',
    ...target.args,
  ]);
  expect([erased.stderr, erased.code]).toEqual([expect.anything(), 0]);
  await verifyCleanRecords(target);
  const salts = await target.query<{ realm_id: number }>(
    `select realm_id from user_salt where ${ofUser('sqlite')}`,
    later.ids.user,
  );
  expect(salts).toEqual([{ realm_id: after.get(earlier.ids.realm) as number }]);
});

test('the numbers of realms are remembered up to a bound, and only those that exist', () => {
  const reads: string[] = [];
  const get = (id: string) => {
    reads.push(id);
    return id.startsWith('none') ? null : { number: Number(id) };
  };
  const numbers = openRealmNumbers({ prepare: () => ({ get }) } as unknown as Pick<Database, 'prepare'>);
  const numberOf = (realm: Uuid) => numbers.known.get(realm) ?? numbers.find(realm);
  const found = (id: number) => numberOf(String(id) as Uuid);
  for (let id = 1; id <= LIMITS.realmNumbersKnownMax; id += 1) expect(found(id)).toBe(id);
  expect([found(1), reads.length]).toEqual([1, LIMITS.realmNumbersKnownMax]);
  for (let count = 0; count < 2; count += 1) expect(numberOf('none' as Uuid)).toBeUndefined();
  expect(reads.filter((id) => id === 'none').length).toBe(2);
  expect(found(LIMITS.realmNumbersKnownMax + 1)).toBe(LIMITS.realmNumbersKnownMax + 1);
  reads.length = 0;
  expect([found(2), reads]).toEqual([2, []]);
  expect([found(1), reads]).toEqual([1, ['1']]);
});
