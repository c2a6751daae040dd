import { describe, expect, test } from 'bun:test';
import type { Uuid } from '../../../src/model/id.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import type { Key, Resource } from '../../../src/model/resource.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfileInfo,
  realm,
  user,
} from '../../../src/model/resources.ts';
import type { PageRemovalResult } from '../../../src/model/store.ts';
import { userMembers } from '../../support/service.ts';
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

/** More records than two pages have. */
const MANY = 2 * LIMITS.cascadeRecordsMax + 10;

/** The removal of a record by pages, as the port of a Store documents it. */
export function pageRemovalContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`page removal contract: ${name}`, () => {
    const { store, fixture } = openForTests(open);

    const page = (resource: Resource, key: Key) => store.removePage(removalOf(resource, key));

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

    async function removeAll(resource: Resource, key: Key): Promise<PageRemovalResult[]> {
      const pages: PageRemovalResult[] = [];
      for (;;) {
        const done = await page(resource, key);
        pages.push(done);
        if (done.kind !== 'removed' || done.isDone) return pages;
      }
    }

    const recordsOf = (pages: readonly PageRemovalResult[]) =>
      pages.map((each) => (each.kind === 'removed' ? each.records : 0));

    test('a page has no more records than the limit, and the last one also the record itself', async () => {
      const { here, links, others } = await createManyLinks();
      const key: Key = [here.realm, here.user];
      const before = (await eventsOf(store, here.realm)).length;
      const pages = await removeAll(user, key);
      expect(recordsOf(pages).every((records) => records <= LIMITS.cascadeRecordsMax)).toBe(true);
      expect(recordsOf(pages).reduce((sum, records) => sum + records, 0)).toBe(MANY + 1);
      expect(pages).toHaveLength(3);
      for (const link of [links[0], links.at(-1)] as Insert[])
        expect(await store.get(link.resource, link.key)).toBeUndefined();
      for (const link of others) expect(await store.get(link.resource, link.key)).toBeDefined();
      const events = await eventsOf(store, here.realm, before);
      expect(events).toHaveLength(MANY + 1);
      expect(events.at(-1)).toBe('info.deleted');
      expect(await page(user, key)).toEqual(NOT_FOUND);
      expect(await store.countBelow(realm, [here.realm])).toBe(5);
      // The identifier can be used again.
      expect(await commitWrites(store, insert(user, key, userMembers), oidcLink(here, 'again'))).toEqual(
        WRITTEN,
      );
    }, 300_000);

    test('between two pages, what is left is read and written as it is, and the next page removes what came', async () => {
      const { here, other, links } = await createManyLinks();
      const key: Key = [here.realm, here.user];
      const countLeft = () => store.countBelow(user, key);
      expect(await page(user, key)).toEqual({
        kind: 'removed',
        records: LIMITS.cascadeRecordsMax,
        isDone: false,
      });
      const before = await store.get(user, key);
      expect(before).toBeDefined();
      const areLeft = await Promise.all(links.map((link) => store.get(link.resource, link.key)));
      expect(areLeft.filter((each) => each !== undefined)).toHaveLength(MANY - LIMITS.cascadeRecordsMax);
      const left = links[areLeft.findIndex((each) => each !== undefined)] as Insert;
      const { mintRevision } = removalOf(user, key);
      const patch = { members: {}, revision: mintRevision(), at: 1 };
      const came = oidcLink(here, 'came between two pages');
      for (const write of [
        came,
        { op: 'patch', resource: user, key, patch: { ...patch, members: { name: 'Jane Roe' } } },
        { op: 'patch', resource: left.resource, key: left.key, patch },
      ] as const)
        expect(await commitWrites(store, write)).toMatchObject(WRITTEN);
      expect(await store.get(user, key)).toMatchObject({ name: 'Jane Roe' });
      expect(await removeRecord(store, removalOf(left.resource, left.key))).toEqual({ kind: 'removed' });
      expect(await countLeft()).toBe(MANY - LIMITS.cascadeRecordsMax);
      await removeAll(user, key);
      expect(await store.get(came.resource, came.key)).toBeUndefined();
      expect(await countLeft()).toBe(0);
      // The pages of a realm leave the records of another one.
      await removeAll(realm, [here.realm]);
      expect(await commitWrites(store, anotherUser(here))).toEqual(NOT_FOUND);
      expect(await store.get(user, other.key)).toBeUndefined();
      expect(await commitWrites(store, oidcLink(fixture, 'elsewhere'))).toEqual(WRITTEN);
    }, 300_000);

    test('a page touches each user that loses a link once, and no user that is removed', async () => {
      const here = await createRealmFixture(store);
      const owners = Array.from({ length: 5 }, () => anotherUser(here));
      const links = owners.flatMap(({ key }) =>
        ['a', 'b'].map((tail) => oidcLink({ ...here, user: key[1] as Uuid }, `${key[1]}-${tail}`)),
      );
      await commitWrites(store, ...owners, ...links);
      expect(await page(oidcProfile, [here.realm, here.oidc])).toEqual({
        kind: 'removed',
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
      await removeAll(realm, [here.realm]);
      const events = await eventsOf(store, here.realm, before);
      expect(events.every((event) => event.endsWith('.deleted'))).toBe(true);
    });

    test('concurrent removals of one record by pages remove each record once', async () => {
      const { here } = await createManyLinks();
      const key: Key = [here.realm];
      const total = await store.countBelow(realm, key);
      const before = (await eventsOf(store, here.realm)).length;
      const removed = await Promise.all(Array.from({ length: 8 }, () => removeAll(realm, key)));
      const records = removed.flatMap((pages) => recordsOf(pages)).reduce((sum, each) => sum + each, 0);
      expect(records).toBe(total + 1);
      const done = removed.flat().filter((each) => each.kind === 'removed' && each.isDone);
      expect(done).toHaveLength(1);
      expect(await eventsOf(store, here.realm, before)).toHaveLength(total + 1);
    }, 300_000);

    test('50 children created during the removal by pages leave no orphans', async () => {
      const { here } = await createManyLinks();
      const late = Array.from({ length: 50 }, (_, index) => oidcLink(here, `late-${index}`));
      const [, ...results] = await Promise.all([
        removeAll(user, [here.realm, here.user]),
        ...late.map((link) => commitWrites(store, link)),
      ]);
      for (const { kind } of results) expect(['written', 'not_found']).toContain(kind);
      for (const { resource, key } of late) expect(await store.get(resource, key)).toBeUndefined();
      expect(await store.countBelow(realm, [here.realm])).toBe(5);
    }, 300_000);

    test('a record without dependents is one page, and a missing one is not_found', async () => {
      const link = await commitWritten(store, oidcLink(fixture, 'alone'));
      expect(await page(oidcProfileInfo, [fixture.realm, mintId(), link.key[2] as Uuid])).toEqual(NOT_FOUND);
      expect(await page(oidcProfileInfo, link.key)).toEqual({ kind: 'removed', records: 1, isDone: true });
      expect(await store.get(oidcProfileInfo, link.key)).toBeUndefined();
      expect(await commitWrites(store, { ...link, op: 'insert' })).toEqual(WRITTEN);
      expect(await page(passwordProfileInfo, [fixture.realm, fixture.user, mintId()])).toEqual(NOT_FOUND);
    });

    test('countBelow counts more records than a page has', async () => {
      const { here } = await createManyLinks();
      expect(await store.countBelow(user, [here.realm, here.user])).toBe(MANY);
      expect(await store.countBelow(realm, [here.realm])).toBe(MANY + 2 + 4);
    }, 300_000);
  });
}
