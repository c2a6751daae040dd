import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
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
  ABSENT,
  anotherUser,
  changeFor,
  eventsOf,
  type Ground,
  ground,
  type Insert,
  insert,
  LANDED,
  land,
  mint,
  type OpenStore,
  oidcLink,
  put,
  removing,
  usernameLink,
} from './store_fixtures.ts';

/** More than two steps can take. */
const MANY = 2 * LIMITS.cascadeRecordsMax + 10;

/** What a Store promises of removing step by step, in the sentences of its port. */
export function purgeContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`purge contract: ${name}`, () => {
    let opened: OpenStore;
    let store: OpenStore['store'];
    let at: Ground;
    beforeAll(async () => {
      opened = await open();
      store = opened.store;
      at = await ground(store);
    });
    afterAll(() => opened.close());

    const step = (resource: Resource, key: Key) => store.purge(removing(resource, key));

    /** A user with very many links, half of them of each kind; another user has one of each. */
    async function crowded() {
      const here = await ground(store);
      const other = anotherUser(here);
      const links = [
        ...Array.from({ length: MANY / 2 }, (_, index) => oidcLink(here, `${index}`)),
        ...Array.from({ length: MANY / 2 }, (_, index) => usernameLink(here, `${index}@example.com`)),
      ];
      const owner = { ...here, user: other.key[1] as Uuid };
      const others = [oidcLink(owner, 'other'), usernameLink(owner, 'other@example.com')];
      expect(await land(store, other, ...links, ...others)).toEqual(LANDED);
      return { here, other, links, others };
    }

    async function toItsEnd(resource: Resource, key: Key): Promise<PurgeResult[]> {
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
      const { here, links, others } = await crowded();
      const key: Key = [here.realm, here.user];
      const steps = await toItsEnd(user, key);
      expect(recordsOf(steps).every((records) => records <= LIMITS.cascadeRecordsMax)).toBe(true);
      expect(recordsOf(steps).reduce((sum, records) => sum + records, 0)).toBe(MANY + 1);
      expect(steps).toHaveLength(3);
      for (const link of [links[0], links.at(-1)] as Insert[])
        expect(await store.get(link.resource, link.key)).toBeUndefined();
      for (const link of others) expect(await store.get(link.resource, link.key)).toBeDefined();
      const events = await eventsOf(store, here.realm);
      expect(events).toHaveLength(MANY + 1);
      expect(events.at(-1)).toBe('info.deleted');
      expect(await step(user, key)).toEqual(ABSENT);
      expect(await store.countBelow(realm, [here.realm])).toBe(5);
      // Its identifier is free again, and nothing of the purge is left.
      expect(await land(store, insert(user, key, userMembers), oidcLink(here, 'again'))).toEqual(LANDED);
    }, 300_000);

    test('from the first step of a purge on, the record is not found and nothing is written to it, below it or with a reference to it', async () => {
      const { here, other, links } = await crowded();
      const key: Key = [here.realm, here.oidc];
      const many = Array.from({ length: LIMITS.cascadeRecordsMax }, (_, index) =>
        oidcLink({ ...here, user: other.key[1] as Uuid }, `more-${index}`),
      );
      await land(store, ...many);
      expect(await step(oidcProfile, key)).toMatchObject({ kind: 'purged', isDone: false });
      expect(await store.get(oidcProfile, key)).toBeUndefined();
      expect(await store.remove(removing(oidcProfile, key))).toEqual(ABSENT);
      const dangling = { kind: 'foreign_key', member: 'oidc_profile_id' } as const;
      expect(await land(store, oidcLink(here, 'beside'))).toEqual(dangling);
      const loaded = oidcLink(here, 'loaded');
      const load = {
        write: loaded,
        change: changeFor(loaded),
        compare: () => ({ comparison: 'same', change: changeFor(loaded) }) as const,
      };
      expect(await store.load([load], false)).toEqual([dangling]);
      const patch = { members: {}, revision: removing(user, key).mintRevision(), at: 1 };
      const writes: Write[] = [
        { op: 'patch', resource: oidcProfile, key, patch },
        { op: 'replace', resource: oidcProfile, key, record: { ...anotherUser(here).record, id: here.oidc } },
      ];
      for (const write of writes) expect(await land(store, write)).toEqual(ABSENT);
      // Another record of the same identifier is another one, and so is one of another realm.
      const namesake = insert(user, [here.realm, here.oidc], userMembers);
      expect(await land(store, namesake)).toEqual(LANDED);
      expect(await store.get(user, namesake.key)).toBeDefined();
      expect(await land(store, oidcLink(at, 'elsewhere'))).toEqual(LANDED);

      const last = links.at(-1) as Insert;
      const owner: Key = [here.realm, here.user];
      expect(await step(user, owner)).toMatchObject({ kind: 'purged', isDone: false });
      expect(await store.get(user, owner)).toBeUndefined();
      expect(await land(store, usernameLink(here, 'below@example.com'))).toEqual(ABSENT);
      expect(await land(store, { op: 'patch', resource: last.resource, key: last.key, patch })).toEqual(
        ABSENT,
      );
      // What is below cannot be removed by itself either, before the purge comes to it.
      expect(await store.get(last.resource, last.key)).toBeDefined();
      expect(await store.remove(removing(last.resource, last.key))).toEqual(ABSENT);

      expect(await step(realm, [here.realm])).toMatchObject({ kind: 'purged' });
      expect(await store.get(realm, [here.realm])).toBeUndefined();
      for (const removal of [
        removing(user, other.key),
        removing(many[0]?.resource as Resource, many.at(-1)?.key as Key),
      ])
        expect(await store.remove(removal)).toEqual(ABSENT);
      for (const write of [
        anotherUser(here),
        oidcLink({ ...here, user: other.key[1] as Uuid }, 'deep'),
        insert(passwordProfile, [here.realm, mint()], {
          name: 'P',
          username_format: 'any',
          enable_one_time_password_token: false,
        }),
      ]) {
        expect(await land(store, write)).toEqual(ABSENT);
      }
      await toItsEnd(realm, [here.realm]);
      expect(await store.countBelow(realm, [here.realm])).toBe(0);
      // The marks of what was being purged in it went along.
      const again = { ...here, user: mint() };
      expect(await land(store, insert(realm, [here.realm], realmMembers))).toEqual(LANDED);
      expect(await land(store, anotherUser(again, here.user))).toEqual(LANDED);
    }, 300_000);

    test('users that lose a link are touched once a step; those that go are not', async () => {
      const here = await ground(store);
      const owners = Array.from({ length: 5 }, () => anotherUser(here));
      const links = owners.flatMap(({ key }) =>
        ['a', 'b'].map((tail) => oidcLink({ ...here, user: key[1] as Uuid }, `${key[1]}-${tail}`)),
      );
      await land(store, ...owners, ...links);
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
      await toItsEnd(realm, [here.realm]);
      const events = await eventsOf(store, here.realm, before);
      expect(events.every((event) => event.endsWith('.deleted'))).toBe(true);
    });

    test('concurrent purges of one record share the steps', async () => {
      const { here } = await crowded();
      const key: Key = [here.realm];
      const total = await store.countBelow(realm, key);
      const purged = await Promise.all(Array.from({ length: 8 }, () => toItsEnd(realm, key)));
      const records = purged.flatMap((steps) => recordsOf(steps)).reduce((sum, each) => sum + each, 0);
      expect(records).toBe(total + 1);
      const done = purged.flat().filter((each) => each.kind === 'purged' && each.isDone);
      expect(done).toHaveLength(1);
      expect(await eventsOf(store, here.realm)).toHaveLength(total + 1);
    }, 300_000);

    test('50 children that are created between the steps leave no orphan', async () => {
      const { here } = await crowded();
      const late = Array.from({ length: 50 }, (_, index) => oidcLink(here, `late-${index}`));
      const first = step(user, [here.realm, here.user]);
      const verdicts = await Promise.all(late.map((link) => land(store, link)));
      await first;
      expect(new Set(verdicts.map(({ kind }) => kind))).toEqual(new Set(['not_found']));
      await toItsEnd(user, [here.realm, here.user]);
      for (const { resource, key } of late) expect(await store.get(resource, key)).toBeUndefined();
      expect(await store.countBelow(realm, [here.realm])).toBe(5);
    }, 300_000);

    test('a purge of a record without dependents takes one step, and of a missing one is not_found', async () => {
      const link = await put(store, oidcLink(at, 'alone'));
      expect(await step(oidcProfileInfo, [at.realm, mint(), link.key[2] as Uuid])).toEqual(ABSENT);
      expect(await step(oidcProfileInfo, link.key)).toEqual({ kind: 'purged', records: 1, isDone: true });
      expect(await store.get(oidcProfileInfo, link.key)).toBeUndefined();
      expect(await land(store, { ...link, op: 'insert' })).toEqual(LANDED);
      expect(await step(passwordProfileInfo, [at.realm, at.user, mint()])).toEqual(ABSENT);
    });

    test('countBelow counts many as it counts few', async () => {
      const { here } = await crowded();
      expect(await store.countBelow(user, [here.realm, here.user])).toBe(MANY);
      expect(await store.countBelow(realm, [here.realm])).toBe(MANY + 2 + 4);
    }, 300_000);
  });
}
