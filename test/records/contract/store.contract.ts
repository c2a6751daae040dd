import { describe, expect, test } from 'bun:test';
import type { Uuid } from '../../../src/model/id.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import type { AnyRecord, Key } from '../../../src/model/resource.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  RESOURCES,
  realm,
  user,
} from '../../../src/model/resources.ts';
import type { RemovalWrite, Write } from '../../../src/model/store.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { ISSUER, realmMembers, userMembers } from '../../support/service.ts';
import {
  anotherUser,
  commitWrites,
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
  removalOf,
  usernameLink,
  WRITTEN,
} from './store_fixtures.ts';

/** The removal of a link that does not exist. */
const missingLink = ({ realm: id, user: userId }: RealmFixture): RemovalWrite => ({
  op: 'remove',
  ...removalOf(oidcProfileInfo, [id, userId, mintId()]),
});

/**
 * The Store, as its port documents it. Every engine passes it unchanged: no case is skipped or depends on the engine.
 */
export function storeContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`store contract: ${name}`, () => {
    const { store, fixture } = openForTests(open);

    describe('get returns the record at exactly this key, or undefined', () => {
      test('get returns every resource with the members that were written, without secrets', async () => {
        const written: Insert[] = [
          insert(realm, [mintId()], {
            ...realmMembers,
            redirect_uris: ['https://shop.example/cb'],
            origin: { data: { id: 'x', type: 'merchant-realm-mappings' } },
          }),
          insert(oidcProfile, [fixture.realm, mintId()], {
            name: 'Login',
            discovery_url: 'https://a.example/.well-known/openid-configuration',
            client_id: 'c',
            issuer: 'https://a.example',
          }),
          insert(passwordProfile, [fixture.realm, mintId()], {
            name: 'P',
            username_format: 'any',
            enable_one_time_password_token: false,
          }),
          anotherUser(fixture),
          oidcLink(fixture, 'every-kind'),
          usernameLink(fixture, 'every-kind@example.com'),
        ];
        expect(written.map(({ resource }) => resource)).toEqual([...RESOURCES]);
        for (const write of written) {
          expect(await commitWrites(store, write)).toEqual(WRITTEN);
          const { password_hash, ...visible } = write.record;
          expect(await store.get(write.resource, write.key)).toEqual(visible as never);
        }
      });

      test('concurrent gets each return their own record, also when several read one record', async () => {
        const [a, b] = [oidcLink(fixture, 'one of many'), oidcLink(fixture, 'another')];
        await commitWrites(store, a, b);
        const none: Key = [fixture.realm, fixture.user, mintId()];
        const links = await Promise.all(
          [a.key, none, b.key, a.key].map(async (key) => (await store.get(oidcProfileInfo, key))?.subject),
        );
        expect(links).toEqual(['one of many', undefined, 'another', 'one of many']);
        const realms = await Promise.all(
          [fixture.realm, fixture.realm, mintId(), fixture.realm].map(
            async (id) => (await store.get(realm, [id]))?.name,
          ),
        );
        const { name } = realmMembers;
        expect(realms).toEqual([name, name, undefined, name]);
      });

      test('get returns undefined for another realm, another user and another record', async () => {
        const there = await createRealmFixture(store);
        const link = oidcLink(fixture, 'chain');
        await commitWrites(store, link);
        const [, , id] = link.key;
        const elsewhere: Key[] = [
          [there.realm, fixture.user, id as Uuid],
          [fixture.realm, there.user, id as Uuid],
          [there.realm, there.user, id as Uuid],
          [fixture.realm, fixture.user, mintId()],
        ];
        for (const key of elsewhere) expect(await store.get(oidcProfileInfo, key)).toBeUndefined();
        expect(await store.get(passwordProfileInfo, link.key)).toBeUndefined();
      });

      test('get returns text unchanged, code point for code point', async () => {
        const texts = [
          '  spaced  ',
          'Ünï\u0301',
          'e\u0301 é',
          '"\\/',
          "'; drop table realm; --",
          '👩‍👩‍👧',
          'İıſK',
        ];
        for (const text of texts) {
          const link = oidcLink(fixture, text);
          await commitWrites(store, link);
          expect((await store.get(oidcProfileInfo, link.key))?.subject).toBe(text);
        }
      });
    });

    describe('commit writes all records and changes, or none', () => {
      test('a refused write undoes the other writes of its commit and their changes', async () => {
        const first = await createRealmFixture(store);
        const stored = oidcLink(first, 'stored');
        await commitWrites(store, stored);
        const before = await eventsOf(store, first.realm);
        const fine = oidcLink(first, 'fine');
        const double = oidcLink(first, 'stored');
        const result = await store.commit([fine, double]);
        expect(result).toEqual({ kind: 'unique', members: ['issuer', 'subject'], index: 1 });
        expect(await store.get(oidcProfileInfo, fine.key)).toBeUndefined();
        expect(await eventsOf(store, first.realm)).toEqual(before);
      });

      test('a refused commit does not affect the other commits of its tick', async () => {
        const links = ['t-1', 't-2', 't-1', 't-3'].map((subject) => oidcLink(fixture, subject));
        const results = await Promise.all(links.map((link) => commitWrites(store, link)));
        expect(results.map(({ kind }) => kind)).toEqual(['written', 'written', 'unique', 'written']);
      });

      test.each([
        ['a constraint', (at: RealmFixture) => oidcLink(at, 'linked')],
        ['a read', (at: RealmFixture) => missingLink(at)],
      ] as const)(
        'a commit whose last write is refused by %s is undone alone among the commits of its tick',
        async (_, refusedBelow) => {
          const home = await createRealmFixture(store);
          const linked = oidcLink(home, 'linked');
          await commitWrites(store, linked);
          // Where commits share a transaction, the first of a tick begins one alone.
          const written = ['first', 'before', 'after'].map((subject) => oidcLink(home, subject));
          const undone = oidcLink(home, 'undone');
          const commits = written.map((link): readonly (Write | RemovalWrite)[] => [link]);
          commits.splice(2, 0, [undone, refusedBelow(home)]);
          const results = await Promise.all(commits.map((writes) => store.commit(writes)));
          expect(results.map((result) => ('index' in result ? result.index : result.kind))).toEqual([
            'written',
            'written',
            1,
            'written',
          ]);
          for (const { key } of written) expect(await store.get(oidcProfileInfo, key)).toBeDefined();
          expect(await store.get(oidcProfileInfo, undone.key)).toBeUndefined();
          const links = (await store.changes(home.realm, 0, 100)).filter(({ id }) =>
            [linked, undone, ...written].some(({ record }) => record.id === id),
          );
          expect(links.map(({ id }) => id)).toEqual([linked, ...written].map(({ record }) => record.id));
        },
      );

      test('a read after one of many commits of one tick returns the committed record', async () => {
        const links = Array.from({ length: LIMITS.writesGroupedMax + 1 }, (_, index) =>
          oidcLink(fixture, `many-${index}`),
        );
        const read = links.map(async (link) => {
          expect(await commitWrites(store, link)).toEqual(WRITTEN);
          return (await store.get(oidcProfileInfo, link.key))?.subject;
        });
        expect(await Promise.all(read)).toEqual(links.map(({ record }) => record.subject as string));
      });

      test('replace overwrites the whole record at exactly this key', async () => {
        const link = oidcLink(fixture, 'before');
        await commitWrites(store, link);
        const next = (subject: string): AnyRecord => ({
          ...link.record,
          subject,
          revision: systemClock.mintRevision(),
        });
        const replace = { op: 'replace', resource: oidcProfileInfo, key: link.key } as const;
        const last = next('last');
        expect(await commitWrites(store, { ...replace, record: last })).toEqual(WRITTEN);
        expect(await store.get(oidcProfileInfo, link.key)).toEqual(last as never);
        const elsewhere: Key = [fixture.realm, mintId(), link.key[2] as Uuid];
        expect(await commitWrites(store, { ...replace, key: elsewhere, record: next('moved') })).toEqual(
          NOT_FOUND,
        );
      });
    });

    describe('results of commits', () => {
      test('issuer and subject are unique in a realm across profiles and users', async () => {
        const here = await createRealmFixture(store);
        const [other, profile] = [mintId(), mintId()];
        await commitWrites(store, insert(user, [here.realm, other], userMembers));
        await commitWrites(
          store,
          insert(oidcProfile, [here.realm, profile], {
            name: 'Second',
            discovery_url: 'https://b.example/',
            client_id: 'c',
            issuer: ISSUER,
          }),
        );
        await commitWrites(store, oidcLink(here, 'same'));
        const double = oidcLink({ ...here, user: other, oidc: profile }, 'same');
        expect(await commitWrites(store, double)).toEqual({ kind: 'unique', members: ['issuer', 'subject'] });
        const there = await createRealmFixture(store);
        expect(await commitWrites(store, oidcLink(there, 'same'))).toEqual(WRITTEN);
      });

      test('subjects that differ in case, composition or width are distinct', async () => {
        for (const subject of ['Abc', 'abc', 'ａｂｃ', 'a\u0301bc', 'ábc', 'abc\u200b']) {
          expect(await commitWrites(store, oidcLink(fixture, subject))).toEqual(WRITTEN);
        }
      });

      test('the folded username is unique in a password profile', async () => {
        const duplicate = { kind: 'unique', members: ['password_profile_id', 'username'] } as const;
        expect(await commitWrites(store, usernameLink(fixture, 'Straße@Example.com'))).toEqual(WRITTEN);
        for (const same of [
          'STRASSE@example.com',
          'straße@EXAMPLE.com',
          'ｓtrasse@example.com',
          'stra\u00adsse@example.com',
          'STRAẞE@example.com ',
          '\u2800\u00a0straße@example.com',
        ]) {
          expect(await commitWrites(store, usernameLink(fixture, same))).toEqual(duplicate);
        }
        expect(await commitWrites(store, usernameLink(fixture, 'strаsse@example.com'))).toEqual(WRITTEN);
        const there = await createRealmFixture(store);
        expect(await commitWrites(store, usernameLink(there, 'straße@example.com'))).toEqual(WRITTEN);
      });

      test('an identifier is unique in its realm, and can be used in another realm', async () => {
        const link = oidcLink(fixture, 'identifier');
        await commitWrites(store, link);
        const double = oidcLink(fixture, 'identifier-2', link.key[2] as Uuid);
        expect(await commitWrites(store, double)).toEqual({ kind: 'unique', members: ['id'] });
        const there = await createRealmFixture(store);
        expect(await commitWrites(store, oidcLink(there, 'identifier', link.key[2] as Uuid))).toEqual(
          WRITTEN,
        );
      });

      test('a missing parent is not_found, and a missing profile is foreign_key', async () => {
        const there = await createRealmFixture(store);
        expect(await commitWrites(store, oidcLink({ ...fixture, user: mintId() }, 'no-user'))).toEqual(
          NOT_FOUND,
        );
        expect(await commitWrites(store, oidcLink({ ...fixture, realm: mintId() }, 'no-realm'))).toEqual(
          NOT_FOUND,
        );
        expect(await commitWrites(store, oidcLink({ ...fixture, user: there.user }, 'other-realm'))).toEqual(
          NOT_FOUND,
        );
        expect(await commitWrites(store, insert(user, [mintId(), mintId()], userMembers))).toEqual(NOT_FOUND);
        const foreignProfile = oidcLink({ ...fixture, oidc: there.oidc }, 'profile-of-another-realm');
        expect(await commitWrites(store, foreignProfile)).toEqual({
          kind: 'foreign_key',
          member: 'oidc_profile_id',
        });
        const noProfile = usernameLink({ ...fixture, passwords: mintId() }, 'no-profile');
        expect(await commitWrites(store, noProfile)).toEqual({
          kind: 'foreign_key',
          member: 'password_profile_id',
        });
      });
    });

    describe('changes have consecutive sequence numbers in their realm', () => {
      test('changes are returned as committed, oldest first, after a sequence number, at most `limit`', async () => {
        const here = await createRealmFixture(store);
        const links = ['c-1', 'c-2', 'c-3'].map((subject) => oidcLink(here, subject));
        const before = (await eventsOf(store, here.realm)).length;
        for (const link of links) await store.commit([link]);
        const all = await store.changes(here.realm, before, 10);
        expect(all).toEqual(links.map(({ change }, index) => ({ ...change, seq: before + index + 1 })));
        expect(all.map(({ members }) => members)).toEqual([[], [], []]);
        expect(await store.changes(here.realm, before + 1, 1)).toEqual(all.slice(1, 2));
        expect(await store.changes(mintId(), 0, 10)).toEqual([]);
      });

      test('the changes of two realms in one commit are numbered separately, without gaps', async () => {
        const [here, there] = [await createRealmFixture(store), await createRealmFixture(store)];
        const links = [oidcLink(here, 'x'), oidcLink(there, 'y'), oidcLink(here, 'z')];
        const before = (await eventsOf(store, here.realm)).length;
        await store.commit(links);
        const sequences = async (id: Uuid) => (await store.changes(id, before, 10)).map(({ seq }) => seq);
        expect(await sequences(here.realm)).toEqual([before + 1, before + 2]);
        expect(await sequences(there.realm)).toEqual([before + 1]);
      });
    });

    test('ready resolves when a read would succeed', async () => {
      const nodes = await store.ready();
      expect(nodes?.reachable).toBe(nodes?.total);
    });
  });
}
