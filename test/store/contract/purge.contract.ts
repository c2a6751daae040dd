import { describe, expect, test } from 'bun:test';
import type { PurgeResult, Write } from '../../../src/directory/store.ts';
import type { Uuid } from '../../../src/domain/id.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { Key, Resource } from '../../../src/domain/resource.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  realm,
  user,
} from '../../../src/domain/resources.ts';
import { realmMembers, userMembers } from '../../support/service.ts';
import {
  anotherUser,
  commitWrites,
  commitWritten,
  createRealmFixture,
  eventsOf,
  type Insert,
  insert,
  mintId,
  NOT_FOUND,
  type OpenStore,
  oidcLink,
  openForTests,
  removalOf,
  removeRecord,
  usernameLink,
  WRITTEN,
} from './store_fixtures.ts';

/** More records than two steps remove. */
const MANY = 2 * LIMITS.cascadeRecordsMax + 10;

/** The purge of a Store, which removes in steps, as its port documents it. */
export function purgeContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`purge contract: ${name}`, () => {
    const { store, fixture } = openForTests(open);

    const step = (resource: Resource, key: Key) => store.purge(removalOf(resource, key));

    /** A user with MANY links, half of each kind, and another user with one of each. */
    async function createManyLinks() {
      const here = await createRealmFixture(store);
      const other = anotherUser(here);
      const links = [
        ...Array.from({ length: MANY / 2 }, (_, index) => oidcLink(here, `${index}`)),
        ...Array.from({ length: MANY / 2 }, (_, index) => usernameLink(here, `${index}@example.com`)),
      ];
      const owner = { ...here, user: other.key[1] as Uuid };
      const others = [oidcLink(owner, 'other'), usernameLink(owner, 'other@example.com')];
      expect(await commitWrites(store, other, ...links, ...others)).toEqual(WRITTEN);
      return { here, other, links, others };
    }

    async function purgeAll(resource: Resource, key: Key): Promise<PurgeResult[]> {
      const steps: PurgeResult[] = [];
      for (;;) {
        const done = await step(resource, key);
        steps.push(done);
        if (done.kind !== 'purged' || done.isDone) return steps;
      }
    }

    const recordsOf = (steps: readonly PurgeResult[]) =>
      steps.map((each) => (each.kind === 'purged' ? each.records : 0));

    test('a step of a purge removes no more than the limit, and the last one the record itself', async () => {
      const { here, links, others } = await createManyLinks();
      const key: Key = [here.realm, here.user];
      const before = (await eventsOf(store, here.realm)).length;
      const steps = await purgeAll(user, key);
      expect(recordsOf(steps).every((records) => records <= LIMITS.cascadeRecordsMax)).toBe(true);
      expect(recordsOf(steps).reduce((sum, records) => sum + records, 0)).toBe(MANY + 1);
      expect(steps).toHaveLength(3);
      for (const link of [links[0], links.at(-1)] as Insert[])
        expect(await store.get(link.resource, link.key)).toBeUndefined();
      for (const link of others) expect(await store.get(link.resource, link.key)).toBeDefined();
      const events = await eventsOf(store, here.realm, before);
      expect(events).toHaveLength(MANY + 1);
      expect(events.at(-1)).toBe('info.deleted');
      expect(await step(user, key)).toEqual(NOT_FOUND);
      expect(await store.countBelow(realm, [here.realm])).toBe(5);
      // The identifier can be used again: the purge left no state.
      expect(await commitWrites(store, insert(user, key, userMembers), oidcLink(here, 'again'))).toEqual(
        WRITTEN,
      );
    }, 300_000);

    test('from the first step of a purge on, the record is not_found, also for writes below it or that refer to it', async () => {
      const { here, other, links } = await createManyLinks();
      const key: Key = [here.realm, here.oidc];
      const many = Array.from({ length: LIMITS.cascadeRecordsMax }, (_, index) =>
        oidcLink({ ...here, user: other.key[1] as Uuid }, `more-${index}`),
      );
      await commitWrites(store, ...many);
      expect(await step(oidcProfile, key)).toMatchObject({ kind: 'purged', isDone: false });
      expect(await store.get(oidcProfile, key)).toBeUndefined();
      expect(await removeRecord(store, removalOf(oidcProfile, key))).toEqual(NOT_FOUND);
      const foreignKey = { kind: 'foreign_key', member: 'oidc_profile_id' } as const;
      expect(await commitWrites(store, oidcLink(here, 'during the purge'))).toEqual(foreignKey);
      const loaded = oidcLink(here, 'loaded');
      const { change } = loaded;
      const load = { write: loaded, compare: () => ({ comparison: 'same', change }) as const };
      expect(await store.load([load], false)).toEqual([foreignKey]);
      const patch = { members: {}, revision: removalOf(user, key).mintRevision(), at: 1 };
      const writes: Write[] = [
        { op: 'patch', resource: oidcProfile, key, patch },
        { op: 'replace', resource: oidcProfile, key, record: { ...anotherUser(here).record, id: here.oidc } },
      ];
      for (const write of writes) expect(await commitWrites(store, write)).toEqual(NOT_FOUND);
      // Another resource with the same identifier is not affected, and neither is another realm.
      const namesake = insert(user, [here.realm, here.oidc], userMembers);
      expect(await commitWrites(store, namesake)).toEqual(WRITTEN);
      expect(await store.get(user, namesake.key)).toBeDefined();
      expect(await commitWrites(store, oidcLink(fixture, 'elsewhere'))).toEqual(WRITTEN);

      const owner: Key = [here.realm, here.user];
      expect(await step(user, owner)).toMatchObject({ kind: 'purged', isDone: false });
      expect(await store.get(user, owner)).toBeUndefined();
      expect(await commitWrites(store, usernameLink(here, 'below@example.com'))).toEqual(NOT_FOUND);
      const areLeft = await Promise.all(links.map((link) => store.get(link.resource, link.key)));
      const left = links[areLeft.findIndex((each) => each !== undefined)] as Insert;
      expect(
        await commitWrites(store, { op: 'patch', resource: left.resource, key: left.key, patch }),
      ).toEqual(NOT_FOUND);
      // A record below it cannot be removed separately before the purge reaches it.
      expect(await store.get(left.resource, left.key)).toBeDefined();
      expect(await removeRecord(store, removalOf(left.resource, left.key))).toEqual(NOT_FOUND);

      expect(await step(realm, [here.realm])).toMatchObject({ kind: 'purged' });
      expect(await store.get(realm, [here.realm])).toBeUndefined();
      for (const removal of [
        removalOf(user, other.key),
        removalOf(many[0]?.resource as Resource, many.at(-1)?.key as Key),
      ])
        expect(await removeRecord(store, removal)).toEqual(NOT_FOUND);
      for (const write of [
        anotherUser(here),
        oidcLink({ ...here, user: other.key[1] as Uuid }, 'deep'),
        insert(passwordProfile, [here.realm, mintId()], {
          name: 'P',
          username_format: 'any',
          enable_one_time_password_token: false,
        }),
      ]) {
        expect(await commitWrites(store, write)).toEqual(NOT_FOUND);
      }
      await purgeAll(realm, [here.realm]);
      expect(await store.countBelow(realm, [here.realm])).toBe(0);
      // The purge markers of its records were deleted with the realm.
      const again = { ...here, user: mintId() };
      expect(await commitWrites(store, insert(realm, [here.realm], realmMembers))).toEqual(WRITTEN);
      expect(await commitWrites(store, anotherUser(again, here.user))).toEqual(WRITTEN);
    }, 300_000);

    test('a step of a purge touches each user that loses a link once, and no user that is removed', async () => {
      const here = await createRealmFixture(store);
      const owners = Array.from({ length: 5 }, () => anotherUser(here));
      const links = owners.flatMap(({ key }) =>
        ['a', 'b'].map((tail) => oidcLink({ ...here, user: key[1] as Uuid }, `${key[1]}-${tail}`)),
      );
      await commitWrites(store, ...owners, ...links);
      expect(await step(oidcProfile, [here.realm, here.oidc])).toEqual({
        kind: 'purged',
        records: 11,
        isDone: true,
      });
      const updated = (await store.changes(here.realm, 0, 100)).filter(({ event }) =>
        event.endsWith('.updated'),
      );
      expect(updated.map(({ id, members }) => [id, ...members]).toSorted()).toEqual(
        owners.map(({ record }) => [record.id, 'updated_at']).toSorted(),
      );
      const before = (await eventsOf(store, here.realm)).length;
      await purgeAll(realm, [here.realm]);
      const events = await eventsOf(store, here.realm, before);
      expect(events.every((event) => event.endsWith('.deleted'))).toBe(true);
    });

    test('concurrent purges of one record remove each record once', async () => {
      const { here } = await createManyLinks();
      const key: Key = [here.realm];
      const total = await store.countBelow(realm, key);
      const before = (await eventsOf(store, here.realm)).length;
      const purged = await Promise.all(Array.from({ length: 8 }, () => purgeAll(realm, key)));
      const records = purged.flatMap((steps) => recordsOf(steps)).reduce((sum, each) => sum + each, 0);
      expect(records).toBe(total + 1);
      const done = purged.flat().filter((each) => each.kind === 'purged' && each.isDone);
      expect(done).toHaveLength(1);
      expect(await eventsOf(store, here.realm, before)).toHaveLength(total + 1);
    }, 300_000);

    test('50 children created between the steps of a purge leave no orphans', async () => {
      const { here } = await createManyLinks();
      const late = Array.from({ length: 50 }, (_, index) => oidcLink(here, `late-${index}`));
      const first = step(user, [here.realm, here.user]);
      const results = await Promise.all(late.map((link) => commitWrites(store, link)));
      await first;
      expect(new Set(results.map(({ kind }) => kind))).toEqual(new Set(['not_found']));
      await purgeAll(user, [here.realm, here.user]);
      for (const { resource, key } of late) expect(await store.get(resource, key)).toBeUndefined();
      expect(await store.countBelow(realm, [here.realm])).toBe(5);
    }, 300_000);

    test('a purge of a record without dependents takes one step, and of a missing one is not_found', async () => {
      const link = await commitWritten(store, oidcLink(fixture, 'alone'));
      expect(await step(oidcProfileInfo, [fixture.realm, mintId(), link.key[2] as Uuid])).toEqual(NOT_FOUND);
      expect(await step(oidcProfileInfo, link.key)).toEqual({ kind: 'purged', records: 1, isDone: true });
      expect(await store.get(oidcProfileInfo, link.key)).toBeUndefined();
      expect(await commitWrites(store, { ...link, op: 'insert' })).toEqual(WRITTEN);
      expect(await step(passwordProfileInfo, [fixture.realm, fixture.user, mintId()])).toEqual(NOT_FOUND);
    });

    test('countBelow counts more records than a purge step removes', async () => {
      const { here } = await createManyLinks();
      expect(await store.countBelow(user, [here.realm, here.user])).toBe(MANY);
      expect(await store.countBelow(realm, [here.realm])).toBe(MANY + 2 + 4);
    }, 300_000);
  });
}
