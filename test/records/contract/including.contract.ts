import { describe, expect, test } from 'bun:test';
import { LIMITS } from '../../../src/model/limits.ts';
import type { Key } from '../../../src/model/resource.ts';
import { oidcProfileInfo, passwordProfileInfo, user } from '../../../src/model/resources.ts';
import {
  anotherUser,
  commitWrites,
  createUserWithLinks,
  type OpenStore,
  oidcLink,
  openForTests,
  type RealmFixture,
  usernameLink,
} from './store_fixtures.ts';

/** `getIncluding` of the Store, as its port documents it. */
export function includingContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`records with records below: ${name}`, () => {
    const { store, fixture } = openForTests(open);

    const LINKS = [oidcProfileInfo, passwordProfileInfo];
    const keyOf = ({ realm, user: id }: RealmFixture): Key => [realm, id];

    test('getIncluding returns the record and its children as get returns them, newest first', async () => {
      const texts = ['"\\/ \u2028', 'İıſK é e\u0301', '👩‍👩‍👧 {"json": [1]}'];
      const oidc = texts.map((subject) => oidcLink(fixture, subject));
      const names = [usernameLink(fixture, 'one@example.com')];
      await commitWrites(store, ...oidc, ...names);
      const other = anotherUser(fixture);
      await commitWrites(store, other, oidcLink({ ...fixture, user: other.record.id }, 'of another'));
      const found = await store.getIncluding(user, keyOf(fixture), LINKS);
      expect(found?.record).toEqual((await store.get(user, keyOf(fixture))) as never);
      const stored = (of: typeof oidc) =>
        Promise.all(of.toReversed().map(({ resource, key }) => store.get(resource, key)));
      expect(found?.included).toEqual([
        { resource: oidcProfileInfo, records: (await stored(oidc)) as never, hasMore: false },
        { resource: passwordProfileInfo, records: (await stored(names)) as never, hasMore: false },
      ]);
      const [first] = LINKS;
      const one = await store.getIncluding(user, keyOf(fixture), first ? [first] : []);
      expect(one?.included.map(({ resource }) => resource)).toEqual([oidcProfileInfo]);
    });

    test('getIncluding returns no more children than the limit, and whether there are more', async () => {
      const most = LIMITS.includedRecordsMax;
      const here = await createUserWithLinks(store, most);
      const counts = async () =>
        (await store.getIncluding(user, keyOf(here), LINKS))?.included.map(({ records, hasMore }) => [
          records.length,
          hasMore,
        ]);
      expect(await counts()).toEqual([
        [most, false],
        [most, false],
      ]);
      const newest = oidcLink(here, 'newest');
      await commitWrites(store, newest);
      expect(await counts()).toEqual([
        [most, true],
        [most, false],
      ]);
      const found = await store.getIncluding(user, keyOf(here), [oidcProfileInfo]);
      expect(found?.included[0]?.records[0]?.id).toBe(newest.record.id);
    });

    test('getIncluding returns undefined for an absent record and in another realm', async () => {
      const there = await createUserWithLinks(store, 1);
      expect(await store.getIncluding(user, keyOf(there), LINKS)).toBeDefined();
      for (const key of [
        [fixture.realm, there.user],
        [there.realm, fixture.user],
      ] as const)
        expect(await store.getIncluding(user, key, LINKS)).toBeUndefined();
    });

    test('concurrent calls of getIncluding each return their own record, also if several read the same one', async () => {
      const users = Array.from({ length: 3 }, () => anotherUser(fixture));
      await commitWrites(store, ...users);
      const links = users.map(({ record: { id } }) => oidcLink({ ...fixture, user: id }, `only of ${id}`));
      await commitWrites(store, ...links);
      const keys = [...users, ...users].map(({ key }) => key);
      const found = await Promise.all(keys.map(async (key) => store.getIncluding(user, key, LINKS)));
      const subjects = found.map((each) => each?.included[0]?.records.map(({ subject }) => subject));
      expect(subjects).toEqual(keys.map(([, id]) => [`only of ${id}`]));
    });
  });
}
