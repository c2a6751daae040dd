import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Store } from '../../../src/directory/store.ts';
import type { AnyRecord, Key, LookupKey, Resource } from '../../../src/domain/resource.ts';
import { oidcProfileInfo, passwordProfile, passwordProfileInfo } from '../../../src/domain/resources.ts';
import { foldedKey } from '../../../src/domain/text/folding.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { ISSUER } from '../../support/service.ts';
import {
  type Ground,
  ground,
  insert,
  land,
  mint,
  type OpenStore,
  oidcLink,
  removing,
  usernameLink,
} from './store_fixtures.ts';

/** What is sought, by the words of the description. */
export function sought(resource: Resource, values: Readonly<Record<string, string>>): LookupKey {
  const names = Object.keys(values).sort().join();
  const members = resource.reverseLookup?.by.find((each) => [...each].sort().join() === names);
  if (!members) throw new Error(`not found by ${names}`);
  return { members, values: members.map((name) => values[name] as string) };
}

const identity = (subject: string, issuer = ISSUER) => sought(oidcProfileInfo, { issuer, subject });
const username = (name: string) => sought(passwordProfileInfo, { username: foldedKey(name) });

/** The one record of a realm that says what is sought, as `get` would answer it. */
export function findContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`find contract: ${name}`, () => {
    let opened: OpenStore;
    let store: Store;
    let at: Ground;
    beforeAll(async () => {
      opened = await open();
      store = opened.store;
      at = await ground(store);
    });
    afterAll(() => opened.close());

    const patch = (resource: Resource, key: Key, members: Readonly<Record<string, unknown>>) => {
      const what = { members, revision: systemClock.mintRevision(), at: systemClock.now() };
      return land(store, { op: 'patch', resource, key, patch: what });
    };

    test('distinctValues returns each value of the realm once and in order', async () => {
      const own = await ground(store);
      const issuers = ['https://b.example', 'https://a.example', 'https://b.example', 'https://ü.example'];
      for (const [place, issuer] of issuers.entries()) {
        const { key } = oidcLink(own, 'any');
        const members = { subject: `s-${place}`, issuer, oidc_profile_id: own.oidc };
        await land(store, insert(oidcProfileInfo, key, members));
      }
      const told = (limit: number, realm = own.realm) =>
        store.distinctValues(oidcProfileInfo, realm, 'issuer', limit);
      const all = ['https://a.example', 'https://b.example', 'https://ü.example'];
      expect(await told(9)).toEqual(all);
      expect(await told(2)).toEqual(all.slice(0, 2));
      expect(await told(9, mint())).toEqual([]);
    });

    test('find returns the record with its key, and nothing for another realm, letter case or issuer', async () => {
      const link = oidcLink(at, 'auth0|Found');
      await land(store, link);
      const there = await ground(store);
      const found = await store.find(oidcProfileInfo, at.realm, identity('auth0|Found'));
      expect(found).toEqual({
        key: link.key,
        record: (await store.get(oidcProfileInfo, link.key)) as AnyRecord,
      });
      for (const [realm, what] of [
        [there.realm, identity('auth0|Found')],
        [at.realm, identity('auth0|found')],
        [at.realm, identity('auth0|Found', 'https://login.example.com')],
        [mint(), identity('auth0|Found')],
      ] as const) {
        expect(await store.find(oidcProfileInfo, realm, what)).toBeUndefined();
      }
    });

    test('concurrent finds each get their own result, whatever characters their values hold', async () => {
      const there = await ground(store);
      const subjects = ['a"b', 'a\\b', '{a,b}', 'NULL', ' a', "o'a", 'ä€😀'];
      const links = subjects.map((subject) => oidcLink(there, subject));
      await land(store, ...links);
      const asked = [...subjects, 'nobody', ...subjects.toReversed()];
      const found = await Promise.all(
        asked.map((subject) => store.find(oidcProfileInfo, there.realm, identity(subject))),
      );
      const keys = links.map(({ key }) => key);
      expect(found.map((each) => each?.key)).toEqual([...keys, undefined, ...keys.toReversed()]);
      expect(found.map((each) => each?.record.subject)).toEqual([
        ...subjects,
        undefined,
        ...subjects.toReversed(),
      ]);
      const byId = links.map(({ record: { id } }) =>
        store.find(oidcProfileInfo, there.realm, sought(oidcProfileInfo, { id })),
      );
      expect((await Promise.all(byId)).map((each) => each?.key)).toEqual(keys);
    });

    test('concurrent finds of a value that two records have return neither', async () => {
      const there = await ground(store);
      const second = insert(passwordProfile, [there.realm, mint()], {
        name: 'Others',
        username_format: 'any',
        enable_one_time_password_token: false,
      });
      const twice = usernameLink(there, 'twice');
      const once = usernameLink(there, 'once');
      const { realm, user: owner } = there;
      const again = usernameLink({ realm, user: owner, passwords: second.record.id }, 'Twice');
      await land(store, second, twice, once, again);
      const found = await Promise.all(
        ['twice', 'once', 'twice'].map((name) => store.find(passwordProfileInfo, realm, username(name))),
      );
      expect(found.map((each) => each?.key)).toEqual([undefined, once.key, undefined]);
    });

    test('find returns a patched record by its new value and not by its old one', async () => {
      const link = oidcLink(at, 'before');
      const name = usernameLink(at, 'Before@example.com');
      await land(store, link, name);
      await patch(oidcProfileInfo, link.key, { subject: 'after' });
      await patch(passwordProfileInfo, name.key, { username: 'After@example.com' });
      expect((await store.find(oidcProfileInfo, at.realm, identity('after')))?.key).toEqual(link.key);
      expect(await store.find(oidcProfileInfo, at.realm, identity('before'))).toBeUndefined();
      const renamed = await store.find(passwordProfileInfo, at.realm, username('AFTER@example.com'));
      expect(renamed?.key).toEqual(name.key);
      expect(await store.find(passwordProfileInfo, at.realm, username('before@example.com'))).toBeUndefined();
      await patch(oidcProfileInfo, link.key, { issuer: 'https://other.example' });
      const moved = identity('after', 'https://other.example');
      expect((await store.find(oidcProfileInfo, at.realm, moved))?.key).toEqual(link.key);
    });

    test('find returns nothing where several records match, and each by what distinguishes it', async () => {
      const other = insert(passwordProfile, [at.realm, mint()], {
        name: 'Others',
        username_format: 'any',
        enable_one_time_password_token: false,
      });
      const here = usernameLink(at, 'twice@example.com');
      const there = usernameLink({ ...at, passwords: other.record.id }, 'Twice@Example.com');
      await land(store, other, here, there);
      expect(await store.find(passwordProfileInfo, at.realm, username('twice@example.com'))).toBeUndefined();
      for (const { key, record } of [here, there]) {
        const exactly = sought(passwordProfileInfo, {
          username: foldedKey(record.username as string),
          password_profile_id: record.password_profile_id as string,
        });
        expect((await store.find(passwordProfileInfo, at.realm, exactly))?.key).toEqual(key);
      }
    });

    test('find by identifier returns no removed record', async () => {
      const link = oidcLink(at, 'removed');
      await land(store, link);
      const byId = sought(oidcProfileInfo, { id: link.record.id });
      expect((await store.find(oidcProfileInfo, at.realm, byId))?.key).toEqual(link.key);
      await store.remove(removing(oidcProfileInfo, link.key));
      expect(await store.find(oidcProfileInfo, at.realm, byId)).toBeUndefined();
      expect(await store.find(oidcProfileInfo, at.realm, identity('removed'))).toBeUndefined();
    });
  });
}
