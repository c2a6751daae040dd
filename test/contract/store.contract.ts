import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { systemAmbient } from '../../src/ambient.ts';
import type { Load, Loader, Store, Write } from '../../src/directory/store.ts';
import { type Change, changeOf } from '../../src/domain/change.ts';
import type { Revision, Uuid } from '../../src/domain/id.ts';
import type { AnyRecord, Key, Resource } from '../../src/domain/resource.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  RESOURCES,
  realm,
  user,
} from '../../src/domain/resources.ts';
import { ISSUER, PASSWORD_HASH, realmMembers, stamped, userMembers } from '../kit.ts';

export interface OpenStore {
  readonly store: Store & Loader;
  close(): void | Promise<void>;
}

const mint = systemAmbient.mintId;

type Insert = Extract<Write, { op: 'insert' }>;

function insert(resource: Resource, key: Key, members: Record<string, unknown>): Insert {
  return { op: 'insert', resource, key, record: stamped(key, members) };
}

function changeFor({ resource, key, record }: Insert, verb: 'created' | 'updated' = 'created'): Change {
  const origin = { actor: 'contract', requestId: 'r-1', at: record.updated_at };
  return changeOf(resource, verb, { key, revision: record.revision, members: Object.keys(record) }, origin);
}

/** A realm with everything a link can hang on. */
interface Ground {
  readonly realm: Uuid;
  readonly user: Uuid;
  readonly oidc: Uuid;
  readonly passwords: Uuid;
}

export async function ground(store: Store): Promise<Ground> {
  const ids = { realm: mint(), user: mint(), oidc: mint(), passwords: mint() };
  const verdict = await store.commit(
    [
      insert(realm, [ids.realm], realmMembers),
      insert(oidcProfile, [ids.realm, ids.oidc], {
        name: 'Login',
        discovery_url: `${ISSUER}.well-known/openid-configuration`,
        client_id: 'shop',
        client_secret: new Uint8Array([1, 2, 3]),
        issuer: ISSUER,
      }),
      insert(passwordProfile, [ids.realm, ids.passwords], {
        name: 'Passwords',
        username_format: 'email',
        enable_one_time_password_token: true,
      }),
      insert(user, [ids.realm, ids.user], userMembers),
    ],
    [],
  );
  expect(verdict).toEqual({ kind: 'landed' });
  return ids;
}

export const oidcLink = (at: Ground, subject: string, id = mint()) =>
  insert(oidcProfileInfo, [at.realm, at.user, id], { subject, issuer: ISSUER, oidc_profile_id: at.oidc });

const usernameLink = (at: Ground, username: string, id = mint()) =>
  insert(passwordProfileInfo, [at.realm, at.user, id], {
    username,
    password_profile_id: at.passwords,
    password_hash: PASSWORD_HASH,
  });

export const land = (store: Store, ...writes: Write[]) => store.commit(writes, []);
const LANDED = { kind: 'landed' } as const;
const ABSENT = { kind: 'absent' } as const;

/**
 * What a Store promises, in the sentences of its port. Every engine passes it unchanged: no case is skipped and none
 * asks which engine it is.
 */
export function storeContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`store contract: ${name}`, () => {
    let opened: OpenStore;
    let store: Store & Loader;
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

    describe('commit: all writes and all changes land together, or none does', () => {
      test('a refused write takes its neighbours and their changes with it', async () => {
        const first = await ground(store);
        const kept = oidcLink(first, 'kept');
        await land(store, kept);
        const fine = oidcLink(first, 'fine');
        const double = oidcLink(first, 'kept');
        const verdict = await store.commit([fine, double], [changeFor(fine), changeFor(double)]);
        expect(verdict).toEqual({ kind: 'taken', members: ['issuer', 'subject'] });
        expect(await store.get(oidcProfileInfo, fine.key)).toBeUndefined();
        expect(await store.changes(first.realm, 0, 10)).toEqual([]);
      });

      test('a refused commit leaves the others of its tick alone', async () => {
        const links = ['t-1', 't-2', 't-1', 't-3'].map((subject) => oidcLink(at, subject));
        const verdicts = await Promise.all(links.map((link) => land(store, link)));
        expect(verdicts.map(({ kind }) => kind)).toEqual(['landed', 'landed', 'taken', 'landed']);
      });

      test('a read between two commits of one tick answers, however many there are', async () => {
        const links = Array.from({ length: 1_500 }, (_, index) => oidcLink(at, `many-${index}`));
        const read = links.map(async (link) => {
          expect(await land(store, link)).toEqual(LANDED);
          return (await store.get(oidcProfileInfo, link.key))?.subject;
        });
        expect(await Promise.all(read)).toEqual(links.map(({ record }) => record.subject as string));
      });

      test('update replaces, and with `seen` only while that revision is there', async () => {
        const link = oidcLink(at, 'before');
        await land(store, link);
        const next = (subject: string): AnyRecord => ({
          ...link.record,
          subject,
          revision: systemAmbient.mintRevision(),
        });
        const update = { op: 'update', resource: oidcProfileInfo, key: link.key } as const;
        const first = next('first');
        expect(await land(store, { ...update, record: first, seen: link.record.revision })).toEqual(LANDED);
        const stale = { ...update, record: next('stale'), seen: link.record.revision };
        expect(await land(store, stale)).toEqual(ABSENT);
        expect(await store.get(oidcProfileInfo, link.key)).toEqual(first as never);
        expect(await land(store, { ...update, record: next('last') })).toEqual(LANDED);
        const elsewhere: Key = [at.realm, mint(), link.key[2] as Uuid];
        expect(await land(store, { ...update, key: elsewhere, record: next('moved') })).toEqual(ABSENT);
      });

      test('delete removes exactly this key; a record that is still named stays', async () => {
        const here = await ground(store);
        const link = oidcLink(here, 'doomed');
        await land(store, link);
        const remove = (resource: Resource, key: Key): Write => ({ op: 'delete', resource, key });
        const dangling = { kind: 'dangling', member: 'id' } as const;
        expect(await land(store, remove(user, [here.realm, here.user]))).toEqual(dangling);
        expect(await land(store, remove(oidcProfile, [here.realm, here.oidc]))).toEqual(dangling);
        expect(await land(store, remove(oidcProfileInfo, [here.realm, mint(), link.key[2] as Uuid]))).toEqual(
          ABSENT,
        );
        expect(await land(store, remove(oidcProfileInfo, link.key))).toEqual(LANDED);
        expect(await store.get(oidcProfileInfo, link.key)).toBeUndefined();
        expect(await land(store, remove(oidcProfileInfo, link.key))).toEqual(ABSENT);
      });
    });

    describe('verdicts: in the words of the directory', () => {
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
        expect(await land(store, double)).toEqual({ kind: 'taken', members: ['issuer', 'subject'] });
        const there = await ground(store);
        expect(await land(store, oidcLink(there, 'same'))).toEqual(LANDED);
      });

      test('subjects that differ in case, composition or width are distinct', async () => {
        for (const subject of ['Abc', 'abc', 'ａｂｃ', 'a\u0301bc', 'ábc', 'abc\u200b']) {
          expect(await land(store, oidcLink(at, subject))).toEqual(LANDED);
        }
      });

      test('one record per password profile and username key', async () => {
        const taken = { kind: 'taken', members: ['password_profile_id', 'username'] } as const;
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

      test('an identifier is taken once per realm, and free in another', async () => {
        const link = oidcLink(at, 'identifier');
        await land(store, link);
        const double = oidcLink(at, 'identifier-2', link.key[2] as Uuid);
        expect(await land(store, double)).toEqual({ kind: 'taken', members: ['id'] });
        const there = await ground(store);
        expect(await land(store, oidcLink(there, 'identifier', link.key[2] as Uuid))).toEqual(LANDED);
      });

      test('a missing parent is absence, a missing profile is named', async () => {
        const there = await ground(store);
        expect(await land(store, oidcLink({ ...at, user: mint() }, 'no-user'))).toEqual(ABSENT);
        expect(await land(store, oidcLink({ ...at, realm: mint() }, 'no-realm'))).toEqual(ABSENT);
        expect(await land(store, oidcLink({ ...at, user: there.user }, 'other-realm'))).toEqual(ABSENT);
        expect(await land(store, insert(user, [mint(), mint()], userMembers))).toEqual(ABSENT);
        const lost = oidcLink({ ...at, oidc: there.oidc }, 'profile-of-another-realm');
        expect(await land(store, lost)).toEqual({ kind: 'dangling', member: 'oidc_profile_id' });
        const noProfile = usernameLink({ ...at, passwords: mint() }, 'no-profile');
        expect(await land(store, noProfile)).toEqual({ kind: 'dangling', member: 'password_profile_id' });
      });
    });

    describe("changes: each gets the next place in its realm's order", () => {
      test('they come back as they were, oldest first, after a place, at most `limit`', async () => {
        const here = await ground(store);
        const links = ['c-1', 'c-2', 'c-3'].map((subject) => oidcLink(here, subject));
        for (const link of links) await store.commit([link], [changeFor(link)]);
        const all = await store.changes(here.realm, 0, 10);
        expect(all).toEqual(links.map((link, index) => ({ ...changeFor(link), seq: index + 1 })));
        expect(await store.changes(here.realm, 1, 1)).toEqual(all.slice(1, 2));
        expect(await store.changes(mint(), 0, 10)).toEqual([]);
      });

      test('two realms in one commit keep an order each, without gaps', async () => {
        const [here, there] = [await ground(store), await ground(store)];
        const links = [oidcLink(here, 'x'), oidcLink(there, 'y'), oidcLink(here, 'z')];
        await store.commit(
          links,
          links.map((link) => changeFor(link)),
        );
        expect((await store.changes(here.realm, 0, 10)).map(({ seq }) => seq)).toEqual([1, 2]);
        expect((await store.changes(there.realm, 0, 10)).map(({ seq }) => seq)).toEqual([1]);
      });
    });

    describe('load: each record by itself, in order, in one transaction', () => {
      const loadOf = (write: Insert, judgement: 'same' | 'replace' | 'refuse' = 'refuse'): Load => ({
        write,
        change: changeFor(write),
        judge: () => ({ judgement, change: changeFor(write, 'updated') }),
      });

      test('tells the outcome of every record and leaves a change for each that was written', async () => {
        const here = await ground(store);
        const link = oidcLink(here, 'l-1');
        const changed: Insert = {
          ...link,
          record: { ...link.record, subject: 'l-2', revision: '0123456789abcdef' as Revision },
        };
        const outcomes = await store.load(
          [
            loadOf(link),
            loadOf(link, 'same'),
            loadOf(changed, 'refuse'),
            loadOf(changed, 'replace'),
            loadOf(oidcLink(here, 'l-2')),
            loadOf(oidcLink({ ...here, user: mint() }, 'l-3')),
            loadOf(oidcLink({ ...here, oidc: mint() }, 'l-4')),
          ],
          false,
        );
        const kinds = ['landed', 'same', 'differs', 'replaced', 'taken', 'absent', 'dangling'];
        expect(outcomes.map(({ kind }) => kind)).toEqual(kinds as never);
        const events = (await store.changes(here.realm, 0, 10)).map(({ event }) => event.split('.')[1]);
        expect(events).toEqual(['created', 'updated']);
        expect((await store.get(oidcProfileInfo, link.key))?.subject).toBe('l-2');
      });

      test('hands the stored record to the judge, secrets included', async () => {
        const link = usernameLink(at, 'judged@example.com');
        await land(store, link);
        const seen: AnyRecord[] = [];
        const judged: Load = {
          ...loadOf(link),
          judge: (stored) => {
            seen.push(stored);
            return { judgement: 'same', change: changeFor(link) };
          },
        };
        await store.load([judged], false);
        expect(seen).toEqual([link.record]);
      });

      test('an identifier under another user is taken, whatever the judge would say', async () => {
        const here = await ground(store);
        const other = mint();
        await land(store, insert(user, [here.realm, other], userMembers));
        const link = oidcLink(here, 'mine');
        await land(store, link);
        const moved = oidcLink({ ...here, user: other }, 'moved', link.key[2] as Uuid);
        const [outcome] = await store.load([loadOf(moved, 'replace')], false);
        expect(outcome).toEqual({ kind: 'taken', members: ['id'] });
      });

      test('stopAtFirst ends with the first refusal and keeps what came before', async () => {
        const here = await ground(store);
        const [one, two, three] = [oidcLink(here, 's-1'), oidcLink(here, 's-1'), oidcLink(here, 's-3')];
        const outcomes = await store.load([loadOf(one), loadOf(two), loadOf(three)], true);
        expect(outcomes.map(({ kind }) => kind)).toEqual(['landed', 'taken']);
        expect(await store.get(oidcProfileInfo, one.key)).toBeDefined();
        expect(await store.get(oidcProfileInfo, three.key)).toBeUndefined();
      });
    });

    test('ready: settles when a read would succeed', async () => {
      expect(await store.ready()).toBeUndefined();
    });
  });
}
