import { describe, expect, test } from 'bun:test';
import type { EraseRequest } from '../../../src/log/store/erase.ts';
import type { Uuid } from '../../../src/model/id.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import type { Key, KeyPrefix, Resource } from '../../../src/model/resource.ts';
import { RESOURCES, realm, user } from '../../../src/model/resources.ts';
import type { Load, PageRequest, Write } from '../../../src/model/store.ts';
import { freshSeed, seededRandom } from '../../support/random.ts';
import { realmMembers, userMembers } from '../../support/service.ts';
import {
  anotherUser,
  changeFor,
  commitWrites,
  createRealmFixture,
  insert,
  mintId,
  NOT_FOUND,
  type OpenStore,
  oidcLink,
  openForTests,
  type RealmFixture,
  realmFixtureWrites,
  removalOf,
  removeRecord,
  usernameLink,
  WRITTEN,
} from './store_fixtures.ts';

const STEPS = 120;

/** The resources whose lists are of a whole realm, and realms. */
const LISTED = RESOURCES.filter(({ parent }) => parent?.parent === undefined);

/** The totals of lists, which a store need not count. */
export function totalsContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`totals contract: ${name}`, () => {
    const { store } = openForTests(open);

    function list(resource: Resource, scope: KeyPrefix, page: PageRequest) {
      return store.list(resource, scope, { filter: [], sort: { by: 'id', isDescending: false }, page });
    }

    const totalOf = async (resource: Resource, scope: KeyPrefix) =>
      (await list(resource, scope, { kind: 'offset', offset: 0, limit: 1 }))?.total;

    /** The number of records that the pages of a list have; undefined if there is no such list. */
    async function countPages(resource: Resource, scope: KeyPrefix): Promise<number | undefined> {
      let count = 0;
      for (let after: Uuid | undefined; ; ) {
        const page = await list(resource, scope, {
          kind: 'after',
          after: after && { at: undefined, id: after },
          limit: LIMITS.pageRecordsMax,
        });
        if (!page) return undefined;
        count += page.items.length;
        if (!page.hasMore) return count;
        after = page.items.at(-1)?.record.id;
      }
    }

    const totalsOf = (realms: readonly Uuid[], count: typeof totalOf) =>
      Promise.all(
        LISTED.flatMap((resource) =>
          resource.parent ? realms.map((id) => count(resource, [id])) : [count(resource, [])],
        ),
      );

    const profilesOf = (ids: RealmFixture) => realmFixtureWrites({ ...ids, oidc: mintId() }).slice(1, 2);

    function erasureOf(key: readonly [Uuid, Uuid]): EraseRequest {
      const { origin, mintRevision } = removalOf(user, key);
      return { key, origin, mintRevision, auditEntry: { ...origin, action: 'user.erased', detail: {} } };
    }

    test('after every random write, the total of each list is the number of its records', async () => {
      const seed = freshSeed();
      const random = seededRandom(seed);
      const below = (bound: number) => Math.floor(random() * bound);
      const homes = [await createRealmFixture(store), await createRealmFixture(store)] as const;
      const users = homes.map(({ user: id }) => [id]);
      const drawUser = (home: number) => users[home]?.[below(users[home]?.length ?? 0)] ?? mintId();

      function newUsers(home: number, count: number): readonly Write[] {
        const made = Array.from({ length: count }, () => anotherUser(homes[home] as RealmFixture));
        users[home]?.push(...made.map(({ record }) => record.id));
        return made;
      }

      /** New records, one that exists, and one that replaces it. */
      function loadsOf(home: number): readonly Load[] {
        const ids = homes[home] as RealmFixture;
        const known = insert(user, [ids.realm, drawUser(home)], userMembers);
        const comparisons = ['same', 'replace', 'refuse'] as const;
        return [...(newUsers(home, 2) as (typeof known)[]), known, known, oidcLink(ids, mintId())].map(
          (write) => ({
            write,
            compare: () => ({
              comparison: comparisons[below(3)] ?? 'same',
              change: changeFor(write, 'updated'),
            }),
          }),
        );
      }

      /** Each takes the number of a realm. */
      const operations: readonly ((home: number) => Promise<unknown>)[] = [
        (home) => store.commit(newUsers(home, 1 + below(4))),
        () => store.commit([...newUsers(0, 1), ...newUsers(1, 2)]),
        // The last write is refused while the other realm exists, which undoes the others.
        (home) =>
          store.commit([...newUsers(home, 2), insert(realm, [homes[1 - home]?.realm as Uuid], realmMembers)]),
        (home) => Promise.all(Array.from({ length: 6 }, () => store.commit(newUsers(home, 1 + below(2))))),
        (home) => store.load(loadsOf(home), below(2) === 0),
        (home) => {
          const ids = { ...(homes[home] as RealmFixture), user: drawUser(home) };
          const links = [oidcLink(ids, mintId()), usernameLink(ids, `${mintId()}@example.com`)];
          return store.commit([...profilesOf(ids), ...links]);
        },
        (home) => removeRecord(store, removalOf(user, [homes[home]?.realm as Uuid, drawUser(home)])),
        (home) => {
          const removal = removalOf(user, [homes[home]?.realm as Uuid, drawUser(home)]);
          return store.commit([...newUsers(home, 2), { op: 'remove', ...removal }]);
        },
        (home) => store.removePage(removalOf(user, [homes[home]?.realm as Uuid, drawUser(home)])),
        (home) => store.erase(erasureOf([homes[home]?.realm as Uuid, drawUser(home)])),
        async (home) => {
          const key: Key = [homes[home]?.realm as Uuid];
          if (below(4) > 0) return;
          const { kind } = await removeRecord(store, removalOf(realm, key));
          if (kind === 'removed' && below(2) > 0)
            await store.commit(realmFixtureWrites(homes[home] as RealmFixture));
        },
        (home) => store.commit(realmFixtureWrites(homes[home] as RealmFixture)),
      ];

      const realms = homes.map((each) => each.realm);
      for (let at = 0; at < STEPS; at += 1) {
        const operation = below(operations.length);
        await operations[operation]?.(below(2));
        expect([seed, at, operation, ...(await totalsOf(realms, totalOf))]).toEqual([
          ...[seed, at, operation],
          ...(await totalsOf(realms, countPages)),
        ]);
      }
    }, 300_000);

    test('concurrent callers leave an exact total', async () => {
      const home = await createRealmFixture(store);
      const callers = Array.from({ length: 20 }, async () => {
        const made = [anotherUser(home), anotherUser(home), anotherUser(home)] as const;
        for (const write of made) expect(await commitWrites(store, write)).toEqual(WRITTEN);
        expect(await removeRecord(store, removalOf(user, made[0].key))).toEqual({ kind: 'removed' });
      });
      await Promise.all(callers);
      expect(await totalOf(user, [home.realm])).toBe(41);
    }, 300_000);

    test('a total counts a record until the last page of its removal', async () => {
      const home = await createRealmFixture(store);
      const links = Array.from({ length: LIMITS.cascadeRecordsMax }, (_, at) => oidcLink(home, `${at}`));
      const others = Array.from({ length: 3 }, () => anotherUser(home));
      expect(await commitWrites(store, ...others, ...links)).toEqual(WRITTEN);
      expect(await totalOf(user, [home.realm])).toBe(4);
      const removal = removalOf(user, [home.realm, home.user]);
      expect(await store.removePage(removal)).toMatchObject({ kind: 'removed', isDone: false });
      expect(await totalsOf([home.realm], totalOf)).toEqual(await totalsOf([home.realm], countPages));
      expect(await totalOf(user, [home.realm])).toBe(4);
      expect(await commitWrites(store, anotherUser(home))).toEqual(WRITTEN);
      expect(await totalOf(user, [home.realm])).toBe(5);
      while ((await store.removePage(removal)).kind === 'removed');
      expect(await store.removePage(removal)).toEqual(NOT_FOUND);
      expect(await totalOf(user, [home.realm])).toBe(4);
    }, 300_000);
  });
}
