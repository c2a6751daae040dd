import { afterAll, describe, expect, test } from 'bun:test';
import { z } from 'zod';
import { resource as described, type Resource, reference } from '../../src/model/resource.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  RESOURCES,
  realm,
  user,
} from '../../src/model/resources.ts';
import { type Engine, reopenEngine } from '../../src/ops/store/open.ts';
import { dependentsOf } from '../../src/records/store/cascade.ts';
import { POSTGRES } from '../../src/records/store/postgres/dialect.ts';
import { freshDatabase } from '../support/database.ts';
import {
  anotherUser,
  commitWritten,
  createUserWithLinks,
  mintId,
  oidcLink,
  realmFixtureWrites,
  removalOf,
  removeRecord,
} from './contract/store_fixtures.ts';

const tablesOf = (removed: Resource, all: readonly Resource[] = RESOURCES) =>
  dependentsOf(removed, all, POSTGRES).map(({ resource }) => resource);

describe('dependents are derived from the resource descriptions', () => {
  test.each([
    [realm, [passwordProfileInfo, oidcProfileInfo, user, passwordProfile, oidcProfile], []],
    [user, [passwordProfileInfo, oidcProfileInfo], []],
    [oidcProfile, [oidcProfileInfo], [user]],
    [passwordProfile, [passwordProfileInfo], [user]],
    [oidcProfileInfo, [], []],
    [passwordProfileInfo, [], []],
  ] as const)(
    'the dependents of $name are those that its description implies',
    (removed, dependents, touchedParents) => {
      expect(tablesOf(removed)).toEqual([...dependents]);
      const touched = dependentsOf(removed, RESOURCES, POSTGRES).flatMap(
        ({ touchedParent }) => touchedParent ?? [],
      );
      expect(touched).toEqual([...touchedParents]);
    },
  );

  test('a new resource is a dependent of its parents and of the resources it refers to, at any depth', () => {
    const plain = {
      bodyId: 'own',
      number: 9,
      selfPrefix: '/v2',
      scope: 's',
      summary: 'S.',
      words: ['thing', 'things'],
      unique: [],
    } as const;
    const badge = described({
      ...plain,
      ...{ name: 'badge', type: 'badge', collection: 'badges', table: 'badge', parent: user },
      members: { title: z.string(), link_id: reference(oidcProfileInfo.name) },
    });
    const stamp = described({
      ...plain,
      ...{ name: 'stamp', type: 'stamp', collection: 'stamps', table: 'stamp', parent: realm },
      members: { badge_id: reference('badge') },
    });
    const all = [...RESOURCES, badge, stamp];
    expect(tablesOf(badge, all)).toEqual([stamp]);
    expect(tablesOf(oidcProfileInfo, all)).toEqual([stamp, badge]);
    expect(tablesOf(oidcProfile, all)).toEqual([stamp, badge, oidcProfileInfo]);
    expect(tablesOf(user, all)).toEqual([stamp, badge, passwordProfileInfo, oidcProfileInfo]);
    expect(tablesOf(realm, all).slice(0, 2)).toEqual([stamp, badge]);
    const [first] = dependentsOf(oidcProfile, all, POSTGRES);
    expect(first?.count).toBe(
      'select count(*) as n from stamp where realm_id = ?1 and badge_id in (select id from badge where ' +
        'realm_id = ?1 and link_id in (select id from oidc_profile_info where ' +
        'realm_id = ?1 and oidc_profile_id = ?2))',
    );
  });
});

describe('cascades with two engines open on one database', async () => {
  const database = await freshDatabase();
  const first = await database.open();
  const second = await reopenEngine(database.address);
  afterAll(async () => {
    await first.close();
    await second.close();
    expect(await database.findInconsistencies()).toEqual([]);
  });

  test('records and changes agree after every page of a removal by any process', async () => {
    const ids = await createUserWithLinks(first.records, 1_200);
    const key = [ids.realm, ids.user] as const;
    const pages: unknown[] = [];
    for (const { records } of [first, second, first]) {
      for (const engine of [first, second]) expect(await engine.records.get(user, key)).toBeDefined();
      pages.push(await records.removePage(removalOf(user, key)));
      expect(await database.findInconsistencies()).toEqual([]);
    }
    for (const engine of [first, second]) expect(await engine.records.get(user, key)).toBeUndefined();
    expect(pages).toEqual([
      { kind: 'removed', records: 1_000, isDone: false },
      { kind: 'removed', records: 1_000, isDone: false },
      { kind: 'removed', records: 401, isDone: true },
    ]);
    expect(await second.records.countBelow(realm, [ids.realm])).toBe(2);
  }, 300_000);

  test('two engines that remove a realm by pages during concurrent writes leave no records', async () => {
    const ids = await createUserWithLinks(first.records, 1_000);
    const key = [ids.realm] as const;
    const removeAll = async ({ records }: Engine) => {
      while ((await records.removePage(removalOf(realm, key))).kind === 'removed');
    };
    const late = Array.from({ length: 50 }, (_, index) => oidcLink(ids, `late-${index}`));
    const [, , ...kinds] = await Promise.all([
      removeAll(first),
      removeAll(second),
      ...late.map(async (link) => (await first.records.commit([link])).kind),
    ]);
    expect(kinds.every((kind) => kind === 'written' || kind === 'not_found')).toBe(true);
    for (const { records } of [first, second]) {
      expect(await records.get(realm, key)).toBeUndefined();
      expect(await records.countBelow(realm, key)).toBe(0);
    }
  }, 300_000);

  test('a record created again after its removal agrees with its changes', async () => {
    const ids = await createUserWithLinks(first.records, 1);
    await removeRecord(first.records, removalOf(user, [ids.realm, ids.user]));
    await commitWritten(first.records, anotherUser(ids, ids.user));
    expect(await database.findInconsistencies()).toEqual([]);
  });

  test('removals in one realm leave records with the same IDs in another realm unchanged', async () => {
    const ids = await createUserWithLinks(first.records, 1);
    const twin = { ...ids, realm: mintId() };
    for (const write of realmFixtureWrites(twin)) await commitWritten(second.records, write);
    await first.records.removePage(removalOf(oidcProfile, [ids.realm, ids.oidc]));
    await removeRecord(first.records, removalOf(user, [ids.realm, ids.user]));
    for (const [kind, id] of [
      [oidcProfile, ids.oidc],
      [user, ids.user],
    ] as const) {
      expect(await second.records.get(kind, [twin.realm, id])).toBeDefined();
      expect(await second.records.get(kind, [ids.realm, id])).toBeUndefined();
    }
  });
});
