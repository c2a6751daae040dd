import { describe, expect, test } from 'bun:test';
import { parseFilter } from '../../../src/model/filter/filter.ts';
import type { AnyRecord, Key, LookupKey, Resource } from '../../../src/model/resource.ts';
import { oidcProfileInfo, passwordProfile, passwordProfileInfo } from '../../../src/model/resources.ts';
import type { RealmSearch } from '../../../src/model/store.ts';
import { foldedKey } from '../../../src/model/text/folded_key.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { ISSUER } from '../../support/service.ts';
import {
  commitWrites,
  createRealmFixture,
  insert,
  mintId,
  type OpenStore,
  oidcLink,
  openForTests,
  removalOf,
  removeRecord,
  usernameLink,
} from './store_fixtures.ts';

/** The lookup key with these members, in the order of the resource's description. */
export function lookupKeyOf(resource: Resource, values: Readonly<Record<string, string>>): LookupKey {
  const names = Object.keys(values).sort().join();
  const members = resource.reverseLookup?.by.find((each) => [...each].sort().join() === names);
  if (!members) throw new Error(`${resource.name} has no reverse lookup by ${names}`);
  return { members, values: members.map((name) => values[name] as string) };
}

const identity = (subject: string, issuer = ISSUER) => lookupKeyOf(oidcProfileInfo, { issuer, subject });
const username = (name: string) => lookupKeyOf(passwordProfileInfo, { username: foldedKey(name) });

/** `find` returns the one record of a realm with a lookup key, as `get` would return it. */
export function findContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`find contract: ${name}`, () => {
    const { store, fixture } = openForTests(open);

    const patch = (resource: Resource, key: Key, members: Readonly<Record<string, unknown>>) => {
      const revision = systemClock.mintRevision();
      return commitWrites(store, {
        op: 'patch',
        resource,
        key,
        patch: { members, revision, at: systemClock.now() },
      });
    };

    test('find throws for members by which another resource is looked up', () => {
      const lookup = async () => store.find(passwordProfileInfo, fixture.realm, identity('subject'));
      return expect(lookup()).rejects.toThrow('has no reverse lookup by');
    });

    test('searchRealms finds a subject in every realm, in the order of realms, and in none other than the named ones', async () => {
      const homes = [await createRealmFixture(store), await createRealmFixture(store)];
      const subject = `everywhere ${mintId()}`;
      for (const home of homes) await commitWrites(store, oidcLink(home, subject));
      const realms = homes.map(({ realm }) => realm).sort();
      const search = async (more: Partial<RealmSearch> = {}) => {
        const filter = parseFilter(
          `eq(subject,"${subject}")`,
          oidcProfileInfo.searchAllRealms?.filterables ?? {},
        );
        const request = { filter, only: undefined, after: undefined, limit: 9, ...more };
        const { items, through } = await store.searchRealms(oidcProfileInfo, request);
        expect(through).toBeUndefined();
        return items.map(({ key: [realm] }) => realm);
      };
      expect(await search()).toEqual(realms);
      expect(await search({ limit: 1 })).toEqual(realms.slice(0, 1));
      expect(await search({ after: realms[0] })).toEqual(realms.slice(1));
      expect(await search({ only: realms.slice(1) })).toEqual(realms.slice(1));
      expect(await search({ only: [mintId()] })).toEqual([]);
    });

    test('find returns the record with its key, and nothing for another realm, letter case or issuer', async () => {
      const link = oidcLink(fixture, 'auth0|Found');
      await commitWrites(store, link);
      const there = await createRealmFixture(store);
      const found = await store.find(oidcProfileInfo, fixture.realm, identity('auth0|Found'));
      expect(found).toEqual({
        key: link.key,
        record: (await store.get(oidcProfileInfo, link.key)) as AnyRecord,
      });
      for (const [realm, key] of [
        [there.realm, identity('auth0|Found')],
        [fixture.realm, identity('auth0|found')],
        [fixture.realm, identity('auth0|Found', 'https://login.example.com')],
        [mintId(), identity('auth0|Found')],
      ] as const) {
        expect(await store.find(oidcProfileInfo, realm, key)).toBeUndefined();
      }
    });

    test('concurrent finds each get their own result, whatever characters their values hold', async () => {
      const there = await createRealmFixture(store);
      const subjects = ['a"b', 'a\\b', '{a,b}', 'NULL', ' a', "o'a", 'ä€😀'];
      const links = subjects.map((subject) => oidcLink(there, subject));
      await commitWrites(store, ...links);
      const lookups = [...subjects, 'unknown', ...subjects.toReversed()];
      const found = await Promise.all(
        lookups.map((subject) => store.find(oidcProfileInfo, there.realm, identity(subject))),
      );
      const keys = links.map(({ key }) => key);
      expect(found.map((each) => each?.key)).toEqual([...keys, undefined, ...keys.toReversed()]);
      expect(found.map((each) => each?.record.subject)).toEqual([
        ...subjects,
        undefined,
        ...subjects.toReversed(),
      ]);
      const byId = links.map(({ record: { id } }) =>
        store.find(oidcProfileInfo, there.realm, lookupKeyOf(oidcProfileInfo, { id })),
      );
      expect((await Promise.all(byId)).map((each) => each?.key)).toEqual(keys);
    });

    test('concurrent finds of a value that two records have return neither', async () => {
      const there = await createRealmFixture(store);
      const second = insert(passwordProfile, [there.realm, mintId()], {
        name: 'Others',
        username_format: 'any',
        enable_one_time_password_token: false,
      });
      const twice = usernameLink(there, 'twice');
      const once = usernameLink(there, 'once');
      const { realm, user: owner } = there;
      const again = usernameLink({ realm, user: owner, passwords: second.record.id }, 'Twice');
      await commitWrites(store, second, twice, once, again);
      const found = await Promise.all(
        ['twice', 'once', 'twice'].map((name) => store.find(passwordProfileInfo, realm, username(name))),
      );
      expect(found.map((each) => each?.key)).toEqual([undefined, once.key, undefined]);
    });

    test('find returns a patched record by its new value and not by its old one', async () => {
      const link = oidcLink(fixture, 'before');
      const name = usernameLink(fixture, 'Before@example.com');
      await commitWrites(store, link, name);
      await patch(oidcProfileInfo, link.key, { subject: 'after' });
      await patch(passwordProfileInfo, name.key, { username: 'After@example.com' });
      expect((await store.find(oidcProfileInfo, fixture.realm, identity('after')))?.key).toEqual(link.key);
      expect(await store.find(oidcProfileInfo, fixture.realm, identity('before'))).toBeUndefined();
      const renamed = await store.find(passwordProfileInfo, fixture.realm, username('AFTER@example.com'));
      expect(renamed?.key).toEqual(name.key);
      expect(
        await store.find(passwordProfileInfo, fixture.realm, username('before@example.com')),
      ).toBeUndefined();
      await patch(oidcProfileInfo, link.key, { issuer: 'https://other.example' });
      const moved = identity('after', 'https://other.example');
      expect((await store.find(oidcProfileInfo, fixture.realm, moved))?.key).toEqual(link.key);
    });

    test('find returns nothing when several records match, and each of them by its full key', async () => {
      const other = insert(passwordProfile, [fixture.realm, mintId()], {
        name: 'Others',
        username_format: 'any',
        enable_one_time_password_token: false,
      });
      const here = usernameLink(fixture, 'twice@example.com');
      const there = usernameLink({ ...fixture, passwords: other.record.id }, 'Twice@Example.com');
      await commitWrites(store, other, here, there);
      expect(
        await store.find(passwordProfileInfo, fixture.realm, username('twice@example.com')),
      ).toBeUndefined();
      for (const { key, record } of [here, there]) {
        const exactly = lookupKeyOf(passwordProfileInfo, {
          username: foldedKey(record.username as string),
          password_profile_id: record.password_profile_id as string,
        });
        expect((await store.find(passwordProfileInfo, fixture.realm, exactly))?.key).toEqual(key);
      }
    });

    test('find by identifier returns no removed record', async () => {
      const link = oidcLink(fixture, 'removed');
      await commitWrites(store, link);
      const byId = lookupKeyOf(oidcProfileInfo, { id: link.record.id });
      expect((await store.find(oidcProfileInfo, fixture.realm, byId))?.key).toEqual(link.key);
      await removeRecord(store, removalOf(oidcProfileInfo, link.key));
      expect(await store.find(oidcProfileInfo, fixture.realm, byId)).toBeUndefined();
      expect(await store.find(oidcProfileInfo, fixture.realm, identity('removed'))).toBeUndefined();
    });
  });
}
