import { describe, expect, test } from 'bun:test';
import type { Revision, Uuid } from '../../../src/model/id.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import type { SequencedChange } from '../../../src/model/log/change.ts';
import type { Key, Resource } from '../../../src/model/resource.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  realm,
  user,
} from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { realmMembers } from '../../support/service.ts';
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
  type RealmFixture,
  realmFixtureWrites,
  removalOf,
  removeRecord,
  usernameLink,
} from './store_fixtures.ts';

const REMOVED = { kind: 'removed' } as const;

/** The removal of a Store in one commit, as its port documents it. */
export function removeContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`remove contract: ${name}`, () => {
    const { store, fixture } = openForTests(open);

    const remove = (resource: Resource, key: Key) => removeRecord(store, removalOf(resource, key));
    const newest = async (here: RealmFixture, count: number): Promise<readonly SequencedChange[]> =>
      (await store.changes(here.realm, 0, 100_000)).slice(-count);

    /** A realm with a change of every record, and two users with a link of each kind. */
    async function createTwoUsers() {
      const ids = { realm: mintId(), user: mintId(), oidc: mintId(), passwords: mintId() };
      for (const write of realmFixtureWrites(ids)) await commitWritten(store, write);
      const jane = ids.user;
      const john = (await commitWritten(store, anotherUser(ids))).key[1] as Uuid;
      const links: Insert[] = [];
      for (const owner of [jane, john]) {
        links.push(await commitWritten(store, oidcLink({ ...ids, user: owner }, owner)));
        links.push(await commitWritten(store, usernameLink({ ...ids, user: owner }, `${owner}@example.com`)));
      }
      return { ids, jane, john, links };
    }

    describe('removing a record without dependents', () => {
      test('a record is removed at exactly its key, and its change carries its last revision', async () => {
        const { ids, jane, links } = await createTwoUsers();
        const [link] = links as [Insert];
        const id = link.key[2] as Uuid;
        for (const key of [
          [mintId(), jane, id],
          [fixture.realm, jane, id],
          [ids.realm, mintId(), id],
          [ids.realm, jane, mintId()],
        ] as const) {
          expect(await remove(oidcProfileInfo, key)).toEqual(NOT_FOUND);
        }
        const removal = removalOf(oidcProfileInfo, link.key);
        expect(await removeRecord(store, removal)).toEqual(REMOVED);
        expect(await store.get(oidcProfileInfo, link.key)).toBeUndefined();
        const [deleted] = await newest(ids, 2);
        expect(deleted).toMatchObject({
          event: 'user-authentication-oidc-profile-info.deleted',
          realm: ids.realm,
          user: jane,
          id,
          revision: link.record.revision,
          members: [],
          ...removal.origin,
        });
        expect(await remove(oidcProfileInfo, link.key)).toEqual(NOT_FOUND);
        expect((await commitWrites(store, oidcLink(ids, jane))).kind).toBe('written');
      });

      test('removing a link updates its user: updated_at, revision and a change', async () => {
        const { ids, jane, links } = await createTwoUsers();
        const before = await store.get(user, [ids.realm, jane]);
        const removal = removalOf(oidcProfileInfo, (links[0] as Insert).key);
        const later = { ...removal, origin: { ...removal.origin, at: removal.origin.at + 60_000 } };
        await removeRecord(store, later);
        const after = await store.get(user, [ids.realm, jane]);
        expect(after?.updated_at).toBe(later.origin.at);
        expect(after?.revision).not.toBe(before?.revision as Revision);
        const [touched] = await newest(ids, 1);
        expect(touched).toMatchObject({
          event: 'user-authentication-info.updated',
          user: jane,
          id: jane,
          revision: after?.revision as Revision,
          members: ['updated_at'],
          ...later.origin,
        });
      });
    });

    describe('removing a record removes its dependents', () => {
      test('removing a user removes its links, children first, and no other user', async () => {
        const { ids, jane, john, links } = await createTwoUsers();
        const before = (await eventsOf(store, ids.realm)).length;
        expect(await remove(user, [ids.realm, jane])).toEqual(REMOVED);
        expect(await eventsOf(store, ids.realm, before)).toEqual([
          'password-profile-info.deleted',
          'oidc-profile-info.deleted',
          'info.deleted',
        ]);
        for (const { resource, key } of links) {
          expect((await store.get(resource, key)) !== undefined).toBe(key[1] === john);
        }
        expect(await store.get(user, [ids.realm, jane])).toBeUndefined();
      });

      test.each([
        [oidcProfile, 'oidc', oidcProfileInfo],
        [passwordProfile, 'passwords', passwordProfileInfo],
      ] as const)('removing $name removes its links and touches their users', async (profile, id, kind) => {
        const { ids, jane, john, links } = await createTwoUsers();
        const bystander = (await commitWritten(store, anotherUser(ids))).record;
        const revisions = () =>
          Promise.all(
            [jane, john].map(async (owner) => (await store.get(user, [ids.realm, owner]))?.revision),
          );
        const before = await revisions();
        const count = (await eventsOf(store, ids.realm)).length;
        expect(await remove(profile, [ids.realm, ids[id]])).toEqual(REMOVED);
        const events = await eventsOf(store, ids.realm, count);
        expect(events.map((event) => event.split('.')[1] as string)).toEqual([
          ...['deleted', 'deleted', 'deleted'],
          ...['updated', 'updated'],
        ]);
        expect(events[2]).toBe(`${profile.name}.deleted`);
        for (const { resource, key } of links) {
          expect((await store.get(resource, key)) === undefined).toBe(resource === kind);
        }
        const after = await revisions();
        expect(after.every((revision, index) => revision && revision !== before[index])).toBe(true);
        expect((await newest(ids, 2)).map(({ revision }) => revision).toSorted()).toEqual(
          (after as Revision[]).toSorted(),
        );
        expect(await store.get(user, [ids.realm, bystander.id])).toEqual(bystander as never);
      });

      test('a user that loses several links is touched once', async () => {
        const { ids, jane } = await createTwoUsers();
        await commitWritten(store, oidcLink(ids, 'a second one'));
        const count = (await eventsOf(store, ids.realm)).length;
        await remove(oidcProfile, [ids.realm, ids.oidc]);
        const changes = await store.changes(ids.realm, count, 100);
        expect(changes.filter(({ event, id }) => event.endsWith('.updated') && id === jane)).toHaveLength(1);
      });

      test('removing a realm removes everything in it, touches no user and leaves other realms unchanged', async () => {
        const [{ ids, links }, there] = [await createTwoUsers(), await createTwoUsers()];
        const count = (await eventsOf(store, ids.realm)).length;
        expect(await remove(realm, [ids.realm])).toEqual(REMOVED);
        const events = await eventsOf(store, ids.realm, count);
        expect(events).toHaveLength(9);
        expect(events.every((event) => event.endsWith('.deleted'))).toBe(true);
        expect(events.at(-1)).toBe('authentication-realm.deleted');
        for (const { resource, key } of links) expect(await store.get(resource, key)).toBeUndefined();
        expect(await store.get(realm, [ids.realm])).toBeUndefined();
        for (const { resource, key, record } of there.links) {
          const { password_hash, ...visible } = record;
          expect(await store.get(resource, key)).toEqual(visible as never);
        }
        expect((await eventsOf(store, there.ids.realm)).every((event) => event.endsWith('.created'))).toBe(
          true,
        );
      });

      test('the changes of a removed realm delete every record that they created', async () => {
        const { ids } = await createTwoUsers();
        await remove(realm, [ids.realm]);
        const events = await eventsOf(store, ids.realm);
        const resourcesOf = (verb: string) =>
          events.filter((event) => event.endsWith(verb)).map((event) => event.split('.')[0]);
        expect(resourcesOf('.created').toSorted()).toEqual(resourcesOf('.deleted').toSorted());
      });
    });

    describe('removals and writes in one commit', () => {
      const removalWrite = (key: Key, resource: Resource = user) =>
        ({ op: 'remove', ...removalOf(resource, key) }) as const;

      test('removals and writes are done in their order, each with its change', async () => {
        const { ids, jane, john, links } = await createTwoUsers();
        const [oidc] = links as [Insert];
        const again = oidcLink({ ...ids, user: john }, jane);
        const before = (await store.changes(ids.realm, 0, 100)).length;
        // The subject is free once its link is removed.
        const removal = removalWrite(oidc.key, oidcProfileInfo);
        expect(await store.commit([again, removal])).toMatchObject({ kind: 'unique' });
        const result = await store.commit([removal, again, removalWrite([ids.realm, jane])]);
        expect(result).toEqual({ kind: 'written' });
        expect(await store.get(oidcProfileInfo, again.key)).toEqual(again.record as never);
        expect(await store.get(user, [ids.realm, jane])).toBeUndefined();
        expect((await eventsOf(store, ids.realm)).slice(before)).toEqual([
          'oidc-profile-info.deleted',
          'info.updated',
          'oidc-profile-info.created',
          'password-profile-info.deleted',
          'info.deleted',
        ]);
      });

      test('a refused removal undoes the other writes of its commit, and has its index', async () => {
        const { ids, jane } = await createTwoUsers();
        const [link, other] = [oidcLink({ ...ids, user: jane }, 'undone'), anotherUser(ids)];
        const stale = { ...removalWrite([ids.realm, jane]), expectedRevision: systemClock.mintRevision() };
        expect(await store.commit([link, other, stale])).toEqual({ kind: 'revision_mismatch', index: 2 });
        expect(await store.commit([other, removalWrite([ids.realm, mintId()])])).toEqual({
          ...NOT_FOUND,
          index: 1,
        });
        expect(await store.get(oidcProfileInfo, link.key)).toBeUndefined();
        expect(await store.get(user, other.key)).toBeUndefined();
      });

      test('several removals share the limit of one', async () => {
        const half = LIMITS.cascadeRecordsMax / 2;
        const [one, two] = [anotherUser(fixture), anotherUser(fixture)];
        await commitWrites(store, one, two);
        for (const { record } of [one, two]) {
          const owner = { ...fixture, user: record.id };
          const links = Array.from({ length: half - 1 }, (_, at) => oidcLink(owner, `${record.id} ${at}`));
          expect(await commitWrites(store, ...links)).toEqual({ kind: 'written' });
        }
        const more = oidcLink({ ...fixture, user: two.record.id }, 'one more');
        await commitWrites(store, more);
        const removals = [removalWrite(one.key), removalWrite(two.key)];
        expect(await store.commit(removals)).toEqual({ kind: 'too_many', index: 1 });
        expect(await store.get(user, one.key)).toBeDefined();
        const removal = removalWrite(more.key, oidcProfileInfo);
        await store.commit([removal]);
        expect(await store.commit(removals)).toEqual({ kind: 'written' });
      });
    });

    describe('revision_mismatch, protected and too_many', () => {
      test('a removal with expectedRevision is written only while the record has that revision', async () => {
        const jane = await commitWritten(store, anotherUser(fixture));
        const link = await commitWritten(store, oidcLink({ ...fixture, user: jane.key[1] as Uuid }, 'seen'));
        const stale = { ...removalOf(user, jane.key), expectedRevision: systemClock.mintRevision() };
        expect(await removeRecord(store, stale)).toEqual({ kind: 'revision_mismatch' });
        expect(await store.get(oidcProfileInfo, link.key)).toEqual(link.record as never);
        expect(await removeRecord(store, { ...stale, key: [fixture.realm, mintId()] })).toEqual(NOT_FOUND);
        expect(await removeRecord(store, { ...stale, expectedRevision: jane.record.revision })).toEqual(
          REMOVED,
        );
      });

      test('a protected record is not removed, nor anything below it', async () => {
        const id = mintId();
        await commitWrites(store, insert(realm, [id], { ...realmMembers, preset: true }));
        const inside = insert(user, [id, mintId()], anotherUser(fixture).record);
        await commitWrites(store, inside);
        expect(await remove(realm, [id])).toEqual({ kind: 'protected' });
        expect(await store.removePage(removalOf(realm, [id]))).toEqual({ kind: 'protected' });
        expect(await store.get(realm, [id])).toBeDefined();
        expect(await store.get(user, inside.key)).toBeDefined();
        expect(await eventsOf(store, id)).toEqual([`${realm.name}.created`, 'info.created']);
      });

      test('as many records as the limit are removed in one commit; one more is too_many, and nothing changes', async () => {
        const here = await createRealmFixture(store);
        const links = Array.from({ length: LIMITS.cascadeRecordsMax + 1 }, (_, at) =>
          oidcLink(here, `${at}`),
        );
        expect((await commitWrites(store, ...links)).kind).toBe('written');
        const before = await store.get(user, [here.realm, here.user]);
        const count = (await eventsOf(store, here.realm)).length;
        for (const [resource, id] of [
          [user, here.user],
          [oidcProfile, here.oidc],
        ] as const) {
          expect(await remove(resource, [here.realm, id])).toEqual({ kind: 'too_many' });
          expect(await store.countBelow(resource, [here.realm, id])).toBe(LIMITS.cascadeRecordsMax + 1);
        }
        expect(await remove(realm, [here.realm])).toEqual({ kind: 'too_many' });
        expect(await store.get(user, [here.realm, here.user])).toEqual(before as never);
        expect(await eventsOf(store, here.realm, count)).toEqual([]);
        await remove(oidcProfileInfo, (links[0] as Insert).key);
        expect(await remove(oidcProfile, [here.realm, here.oidc])).toEqual(REMOVED);
        expect(await store.countBelow(user, [here.realm, here.user])).toBe(0);
        const events = await eventsOf(store, here.realm, count);
        // The first link, its user, all other links, the profile, its user.
        expect(events).toHaveLength(2 + LIMITS.cascadeRecordsMax + 2);
      }, 300_000);
    });

    describe('countBelow', () => {
      test('countBelow counts the records of every resource that a removal would remove', async () => {
        const [{ ids, jane }] = [await createTwoUsers(), await createTwoUsers()];
        const count = (resource: Resource, ...key: Key) => store.countBelow(resource, key);
        expect(await count(realm, ids.realm)).toBe(8);
        expect(await count(oidcProfile, ids.realm, ids.oidc)).toBe(2);
        expect(await count(passwordProfile, ids.realm, ids.passwords)).toBe(2);
        expect(await count(user, ids.realm, jane)).toBe(2);
        expect(await count(user, fixture.realm, jane)).toBe(0);
        expect(await count(oidcProfileInfo, ids.realm, jane, mintId())).toBe(0);
      });
    });

    test('50 children created while their parent is removed leave no orphans', async () => {
      for (const [resource, id] of [
        [user, 'user'],
        [oidcProfile, 'oidc'],
      ] as const) {
        const here = await createRealmFixture(store);
        const links = Array.from({ length: 50 }, (_, index) => oidcLink(here, `raced-${index}`));
        const half = links.splice(0, 25).map((link) => commitWritten(store, link));
        const removed = remove(resource, [here.realm, here[id]]);
        const late = links.map((link) => commitWrites(store, link));
        await Promise.all(half);
        expect(await removed).toEqual(REMOVED);
        const results = (await Promise.all(late)).map(({ kind }) => kind);
        expect(results).toEqual(Array(25).fill(id === 'user' ? 'not_found' : 'foreign_key'));
        expect(await store.countBelow(realm, [here.realm])).toBe(2);
      }
    });
  });
}
