import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { z } from 'zod';
import { resource as described, type Resource, reference } from '../../src/domain/resource.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  RESOURCES,
  realm,
  user,
} from '../../src/domain/resources.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { type Engine, reopenEngine } from '../../src/store/open.ts';
import { dependentsOf } from '../../src/store/records/cascade.ts';
import { freshDatabase, type TestDatabase } from '../support/database.ts';
import {
  anotherUser,
  crowdedGround,
  groundWrites,
  mint,
  oidcLink,
  put,
  removing,
} from './contract/store_fixtures.ts';

const tablesOf = (gone: Resource, all: readonly Resource[] = RESOURCES) =>
  dependentsOf(gone, all).map(({ resource }) => resource);

describe('dependents follow from the descriptions', () => {
  test.each([
    [realm, [passwordProfileInfo, oidcProfileInfo, user, passwordProfile, oidcProfile], []],
    [user, [passwordProfileInfo, oidcProfileInfo], []],
    [oidcProfile, [oidcProfileInfo], [user]],
    [passwordProfile, [passwordProfileInfo], [user]],
    [oidcProfileInfo, [], []],
    [passwordProfileInfo, [], []],
  ] as const)('$name', (gone, taken, bereft) => {
    expect(tablesOf(gone)).toEqual([...taken]);
    const touched = dependentsOf(gone, RESOURCES).flatMap(({ touchedParent: bereaves }) => bereaves ?? []);
    expect(touched).toEqual([...bereft]);
  });

  test('a new resource is a dependent of its parents and of what it refers to, at any depth', () => {
    const plain = { bodyId: 'own', selfPrefix: '/v2', scope: 's', summary: 'S.', unique: [] } as const;
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
    const [first] = dependentsOf(oidcProfile, all);
    expect(first?.count).toBe(
      'select count(*) as n from stamp where realm_id = ?1 and badge_id in (select id from badge where ' +
        'realm_id = ?1 and link_id in (select id from oidc_profile_info where ' +
        'realm_id = ?1 and oidc_profile_id = ?2))',
    );
  });
});

describe('on a disk, with others at it', () => {
  let database: TestDatabase;
  let ours: Engine;
  let theirs: Engine;
  beforeAll(async () => {
    database = await freshDatabase();
    ours = await database.open();
    theirs = await reopenEngine(database.address, { version: 'test', clock: systemClock });
  });
  afterAll(async () => {
    await ours.close();
    await theirs.close();
    expect(await database.disagreements()).toEqual([]);
  });

  test('records and changes agree after every step of a purge by any process', async () => {
    const ids = await crowdedGround(ours.records, 1_200);
    const key = [ids.realm, ids.user] as const;
    const steps: unknown[] = [];
    for (const { records } of [ours, theirs, ours]) {
      steps.push(await records.purge(removing(user, key)));
      expect(await database.disagreements()).toEqual([]);
      for (const engine of [ours, theirs]) expect(await engine.records.get(user, key)).toBeUndefined();
    }
    expect(steps).toEqual([
      { kind: 'purged', records: 1_000, isDone: false },
      { kind: 'purged', records: 1_000, isDone: false },
      { kind: 'purged', records: 401, isDone: true },
    ]);
    expect(await theirs.records.countBelow(realm, [ids.realm])).toBe(2);
  }, 300_000);

  test('two processes that purge a realm, while a third one writes into it, leave nothing', async () => {
    const ids = await crowdedGround(ours.records, 1_000);
    const key = [ids.realm] as const;
    const purge = async ({ records }: Engine) => {
      for (let step = await records.purge(removing(realm, key)); step.kind === 'purged'; )
        step = await records.purge(removing(realm, key));
    };
    const late = Array.from({ length: 50 }, (_, index) => oidcLink(ids, `late-${index}`));
    const [, , ...kinds] = await Promise.all([
      purge(ours),
      purge(theirs),
      ...late.map(async (link) => (await ours.records.commit([link])).kind),
    ]);
    expect(kinds.every((kind) => kind === 'not_found')).toBe(true);
    for (const { records } of [ours, theirs]) {
      expect(await records.get(realm, key)).toBeUndefined();
      expect(await records.countBelow(realm, key)).toBe(0);
    }
  }, 300_000);

  test('a record that is imported again after its removal agrees with its changes', async () => {
    const ids = await crowdedGround(ours.records, 1);
    await ours.records.remove(removing(user, [ids.realm, ids.user]));
    const again = { ...anotherUser(ids, ids.user) };
    await put(ours.records, again);
    expect(await database.disagreements()).toEqual([]);
  });

  test('records of the same identifiers in another realm stay what they are', async () => {
    const ids = await crowdedGround(ours.records, 1);
    const twin = { ...ids, realm: mint() };
    for (const write of groundWrites(twin)) await put(theirs.records, write);
    await ours.records.purge(removing(oidcProfile, [ids.realm, ids.oidc]));
    await ours.records.remove(removing(user, [ids.realm, ids.user]));
    for (const [kind, id] of [
      [oidcProfile, ids.oidc],
      [user, ids.user],
    ] as const) {
      expect(await theirs.records.get(kind, [twin.realm, id])).toBeDefined();
      expect(await theirs.records.get(kind, [ids.realm, id])).toBeUndefined();
    }
  });
});
