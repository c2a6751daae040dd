import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Uuid } from '../../../src/domain/id.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { AnyRecord, Key } from '../../../src/domain/resource.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  RESOURCES,
  realm,
  user,
} from '../../../src/domain/resources.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { ISSUER, realmMembers, userMembers } from '../../support/service.ts';
import {
  ABSENT,
  changeFor,
  type Ground,
  ground,
  type Insert,
  insert,
  LANDED,
  land,
  logged,
  mint,
  type OpenStore,
  oidcLink,
  usernameLink,
} from './store_fixtures.ts';

/**
 * What a Store promises, in the sentences of its port. Every engine passes it unchanged: no case is skipped and none
 * asks which engine it is.
 */
export function storeContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`store contract: ${name}`, () => {
    let opened: OpenStore;
    let store: OpenStore['store'];
    let at: Ground;
    beforeAll(async () => {
      opened = await open();
      store = opened.store;
      at = await ground(store);
    });
    afterAll(() => opened.close());

    describe('get: the record at exactly this key, or undefined', () => {
      test('answers every kind with the members that were written, secrets left out', async () => {
        const written: Insert[] = [
          insert(realm, [mint()], {
            ...realmMembers,
            redirect_uris: ['https://shop.example/cb'],
            origin: { data: { id: 'x', type: 'merchant-realm-mappings' } },
          }),
          insert(oidcProfile, [at.realm, mint()], {
            name: 'Login',
            discovery_url: 'https://a.example/.well-known/openid-configuration',
            client_id: 'c',
            issuer: 'https://a.example',
          }),
          insert(passwordProfile, [at.realm, mint()], {
            name: 'P',
            username_format: 'any',
            enable_one_time_password_token: false,
          }),
          insert(user, [at.realm, mint()], userMembers),
          oidcLink(at, 'every-kind'),
          usernameLink(at, 'every-kind@example.com'),
        ];
        expect(written.map(({ resource }) => resource)).toEqual([...RESOURCES]);
        for (const write of written) {
          expect(await land(store, write)).toEqual(LANDED);
          const { password_hash, ...visible } = write.record;
          expect(await store.get(write.resource, write.key)).toEqual(visible as never);
        }
      });

      test('answers each of many that ask at once, for one record as well', async () => {
        const [a, b] = [oidcLink(at, 'one of many'), oidcLink(at, 'another')];
        await land(store, a, b);
        const none: Key = [at.realm, at.user, mint()];
        const links = await Promise.all(
          [a.key, none, b.key, a.key].map(async (key) => (await store.get(oidcProfileInfo, key))?.subject),
        );
        expect(links).toEqual(['one of many', undefined, 'another', 'one of many']);
        const realms = await Promise.all(
          [at.realm, at.realm, mint(), at.realm].map(async (id) => (await store.get(realm, [id]))?.name),
        );
        const { name } = realmMembers;
        expect(realms).toEqual([name, name, undefined, name]);
      });

      test('answers undefined for another realm, another user and another record', async () => {
        const there = await ground(store);
        const link = oidcLink(at, 'chain');
        await land(store, link);
        const [, , id] = link.key;
        const elsewhere: Key[] = [
          [there.realm, at.user, id as Uuid],
          [at.realm, there.user, id as Uuid],
          [there.realm, there.user, id as Uuid],
          [at.realm, at.user, mint()],
        ];
        for (const key of elsewhere) expect(await store.get(oidcProfileInfo, key)).toBeUndefined();
        expect(await store.get(passwordProfileInfo, link.key)).toBeUndefined();
      });

      test('keeps text letter for letter', async () => {
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
          const link = oidcLink(at, text);
          await land(store, link);
          expect((await store.get(oidcProfileInfo, link.key))?.subject).toBe(text);
        }
      });
    });

    describe('commit: all writes and changes, or none', () => {
      test('a refused write undoes the other writes of its commit and their changes', async () => {
        const first = await ground(store);
        const kept = oidcLink(first, 'kept');
        await land(store, kept);
        const fine = oidcLink(first, 'fine');
        const double = oidcLink(first, 'kept');
        const verdict = await store.commit([logged(fine), logged(double)]);
        expect(verdict).toEqual({ kind: 'unique', members: ['issuer', 'subject'] });
        expect(await store.get(oidcProfileInfo, fine.key)).toBeUndefined();
        expect(await store.changes(first.realm, 0, 10)).toEqual([]);
      });

      test('a refused commit leaves the others of its tick alone', async () => {
        const links = ['t-1', 't-2', 't-1', 't-3'].map((subject) => oidcLink(at, subject));
        const verdicts = await Promise.all(links.map((link) => land(store, link)));
        expect(verdicts.map(({ kind }) => kind)).toEqual(['written', 'written', 'unique', 'written']);
      });

      test('a read between two commits of one tick answers, however many there are', async () => {
        const links = Array.from({ length: LIMITS.writesGroupedMax + 1 }, (_, index) =>
          oidcLink(at, `many-${index}`),
        );
        const read = links.map(async (link) => {
          expect(await land(store, link)).toEqual(LANDED);
          return (await store.get(oidcProfileInfo, link.key))?.subject;
        });
        expect(await Promise.all(read)).toEqual(links.map(({ record }) => record.subject as string));
      });

      test('replace puts a whole record in the place of the stored one, at exactly this key', async () => {
        const link = oidcLink(at, 'before');
        await land(store, link);
        const next = (subject: string): AnyRecord => ({
          ...link.record,
          subject,
          revision: systemClock.mintRevision(),
        });
        const replace = { op: 'replace', resource: oidcProfileInfo, key: link.key } as const;
        const last = next('last');
        expect(await land(store, { ...replace, record: last })).toEqual(LANDED);
        expect(await store.get(oidcProfileInfo, link.key)).toEqual(last as never);
        const elsewhere: Key = [at.realm, mint(), link.key[2] as Uuid];
        expect(await land(store, { ...replace, key: elsewhere, record: next('moved') })).toEqual(ABSENT);
      });
    });

    describe('results of commits', () => {
      test('one record per realm, issuer and subject, whichever profile and user', async () => {
        const here = await ground(store);
        const [other, profile] = [mint(), mint()];
        await land(store, insert(user, [here.realm, other], userMembers));
        await land(
          store,
          insert(oidcProfile, [here.realm, profile], {
            name: 'Second',
            discovery_url: 'https://b.example/',
            client_id: 'c',
            issuer: ISSUER,
          }),
        );
        await land(store, oidcLink(here, 'same'));
        const double = oidcLink({ ...here, user: other, oidc: profile }, 'same');
        expect(await land(store, double)).toEqual({ kind: 'unique', members: ['issuer', 'subject'] });
        const there = await ground(store);
        expect(await land(store, oidcLink(there, 'same'))).toEqual(LANDED);
      });

      test('subjects that differ in case, composition or width are distinct', async () => {
        for (const subject of ['Abc', 'abc', 'ａｂｃ', 'a\u0301bc', 'ábc', 'abc\u200b']) {
          expect(await land(store, oidcLink(at, subject))).toEqual(LANDED);
        }
      });

      test('one record per password profile and username key', async () => {
        const taken = { kind: 'unique', members: ['password_profile_id', 'username'] } as const;
        expect(await land(store, usernameLink(at, 'Straße@Example.com'))).toEqual(LANDED);
        for (const same of [
          'STRASSE@example.com',
          'straße@EXAMPLE.com',
          'ｓtrasse@example.com',
          'stra\u00adsse@example.com',
        ]) {
          expect(await land(store, usernameLink(at, same))).toEqual(taken);
        }
        expect(await land(store, usernameLink(at, 'strаsse@example.com'))).toEqual(LANDED);
        const there = await ground(store);
        expect(await land(store, usernameLink(there, 'straße@example.com'))).toEqual(LANDED);
      });

      test('an identifier is unique in its realm, and free in another', async () => {
        const link = oidcLink(at, 'identifier');
        await land(store, link);
        const double = oidcLink(at, 'identifier-2', link.key[2] as Uuid);
        expect(await land(store, double)).toEqual({ kind: 'unique', members: ['id'] });
        const there = await ground(store);
        expect(await land(store, oidcLink(there, 'identifier', link.key[2] as Uuid))).toEqual(LANDED);
      });

      test('a missing parent is not_found, and a missing profile is foreign_key', async () => {
        const there = await ground(store);
        expect(await land(store, oidcLink({ ...at, user: mint() }, 'no-user'))).toEqual(ABSENT);
        expect(await land(store, oidcLink({ ...at, realm: mint() }, 'no-realm'))).toEqual(ABSENT);
        expect(await land(store, oidcLink({ ...at, user: there.user }, 'other-realm'))).toEqual(ABSENT);
        expect(await land(store, insert(user, [mint(), mint()], userMembers))).toEqual(ABSENT);
        const lost = oidcLink({ ...at, oidc: there.oidc }, 'profile-of-another-realm');
        expect(await land(store, lost)).toEqual({ kind: 'foreign_key', member: 'oidc_profile_id' });
        const noProfile = usernameLink({ ...at, passwords: mint() }, 'no-profile');
        expect(await land(store, noProfile)).toEqual({ kind: 'foreign_key', member: 'password_profile_id' });
      });
    });

    describe("changes: each gets the next place in its realm's order", () => {
      test('they come back as they were, oldest first, after a place, at most `limit`', async () => {
        const here = await ground(store);
        const links = ['c-1', 'c-2', 'c-3'].map((subject) => oidcLink(here, subject));
        for (const link of links) await store.commit([logged(link)]);
        const all = await store.changes(here.realm, 0, 10);
        expect(all).toEqual(links.map((link, index) => ({ ...changeFor(link), seq: index + 1 })));
        expect(all.map(({ members }) => members)).toEqual([[], [], []]);
        expect(await store.changes(here.realm, 1, 1)).toEqual(all.slice(1, 2));
        expect(await store.changes(mint(), 0, 10)).toEqual([]);
      });

      test('two realms in one commit keep an order each, without gaps', async () => {
        const [here, there] = [await ground(store), await ground(store)];
        const links = [oidcLink(here, 'x'), oidcLink(there, 'y'), oidcLink(here, 'z')];
        await store.commit(links.map(logged));
        expect((await store.changes(here.realm, 0, 10)).map(({ seq }) => seq)).toEqual([1, 2]);
        expect((await store.changes(there.realm, 0, 10)).map(({ seq }) => seq)).toEqual([1]);
      });
    });

    test('ready: settles when a read would succeed', async () => {
      expect(await store.ready()).toBeUndefined();
    });
  });
}
