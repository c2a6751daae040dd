import { describe, expect, test } from 'bun:test';
import type { Revision, Uuid } from '../../../src/model/id.ts';
import { changeOf } from '../../../src/model/log/change.ts';
import type { Key, Resource } from '../../../src/model/resource.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  RESOURCES,
  realm,
  user,
} from '../../../src/model/resources.ts';
import type { CommitResult, Guard, Patch, Write } from '../../../src/model/store.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { ISSUER, PASSWORD_HASH } from '../../support/service.ts';
import {
  anotherUser,
  commitWrites,
  createRealmFixture,
  type Insert,
  insert,
  mintId,
  NOT_FOUND,
  type OpenStore,
  oidcLink,
  openForTests,
  usernameLink,
  WRITTEN,
} from './store_fixtures.ts';

const { mintRevision } = systemClock;
const REVISION_MISMATCH = { kind: 'revision_mismatch' } as const;

type PatchWrite = Extract<Write, { op: 'patch' }>;

function patch(resource: Resource, key: Key, members: Patch['members'], at = systemClock.now()): PatchWrite {
  return { op: 'patch', resource, key, patch: { members, revision: mintRevision(), at } };
}

const patchedOf = (result: CommitResult) => (result.kind === 'written' ? result.patched : undefined);

/** The patches and guards of a Store, as its port documents them. */
export function patchContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`patch contract: ${name}`, () => {
    const { store, fixture } = openForTests(open);

    /** Commits the insert and returns it. */
    async function inserted(write: Insert): Promise<Insert> {
      expect(await commitWrites(store, write)).toEqual(WRITTEN);
      return write;
    }

    describe('patches of some members of a record', () => {
      test('a patch leaves other members, and `patched` holds the record as `get` returns it', async () => {
        const jane = await inserted(anotherUser(fixture));
        const write = patch(user, jane.key, { name: 'Janet', middle_name: 'Q' });
        const result = await commitWrites(store, write);
        const expected = {
          ...jane.record,
          name: 'Janet',
          middle_name: 'Q',
          updated_at: Math.max(write.patch.at, jane.record.updated_at),
          revision: write.patch.revision,
        };
        expect(result).toEqual({ kind: 'written', patched: [expected] });
        expect(await store.get(user, jane.key)).toEqual(expected as never);
        const back = patch(user, jane.key, { middle_name: null });
        expect(patchedOf(await commitWrites(store, back))?.[0]?.middle_name).toBeNull();
      });

      test('every resource can be patched, and no result holds a secret', async () => {
        const link = await inserted(oidcLink(fixture, 'patched-kind'));
        const login = await inserted(usernameLink(fixture, 'patched-kind@example.com'));
        const patches: readonly [Resource, Key, Patch['members']][] = [
          [realm, [fixture.realm], { name: 'R', redirect_uris: ['https://shop.example/cb'], preset: false }],
          [oidcProfile, [fixture.realm, fixture.oidc], { client_secret: new Uint8Array([9, 9]) }],
          [passwordProfile, [fixture.realm, fixture.passwords], { enable_one_time_password_token: false }],
          [user, [fixture.realm, fixture.user], { email: 'new@example.com' }],
          [oidcProfileInfo, link.key, { subject: 'patched' }],
          [passwordProfileInfo, login.key, { password_hash: `${PASSWORD_HASH}x`, password_normalised: true }],
        ];
        expect(patches.map(([resource]) => resource)).toEqual([...RESOURCES]);
        for (const [resource, key, members] of patches) {
          const [patched] = patchedOf(await commitWrites(store, patch(resource, key, members))) ?? [];
          expect(patched as unknown).toEqual(await store.get(resource, key));
          for (const secret of ['preset', 'client_secret', 'password_hash', 'password_normalised'])
            expect(Object.keys(patched ?? {})).not.toContain(secret);
        }
      });

      test('a patch stores secrets unchanged', async () => {
        const login = await inserted(usernameLink(fixture, 'secret@example.com'));
        const members = { password_hash: `${PASSWORD_HASH}2`, password_normalised: true };
        await commitWrites(store, patch(passwordProfileInfo, login.key, members));
        const seen: unknown[] = [];
        const change = changeOf(
          passwordProfileInfo,
          'updated',
          { key: login.key, revision: mintRevision() },
          {
            actor: 'contract',
            requestId: undefined,
            address: undefined,
            at: 1,
          },
        );
        const compare = (stored: unknown) => {
          seen.push(stored);
          return { comparison: 'same', change } as const;
        };
        await store.load([{ write: { ...login, change }, compare }], false);
        expect(seen).toEqual([expect.objectContaining({ ...members, username: 'secret@example.com' })]);
      });

      test('a patch without members changes only updated_at and revision', async () => {
        const jane = await inserted(anotherUser(fixture));
        const touch = patch(user, jane.key, {}, jane.record.updated_at + 5);
        const touched = {
          ...jane.record,
          updated_at: jane.record.updated_at + 5,
          revision: touch.patch.revision,
        };
        expect(await commitWrites(store, touch)).toEqual({ kind: 'written', patched: [touched] });
      });

      test('a patch sets updated_at to `at`, except where updated_at is already later', async () => {
        const jane = await inserted(anotherUser(fixture));
        const early = patch(user, jane.key, { name: 'Early' }, jane.record.updated_at - 60_000);
        const [patched] = patchedOf(await commitWrites(store, early)) ?? [];
        expect([patched?.updated_at, patched?.name]).toEqual([jane.record.updated_at, 'Early']);
        expect(patched?.revision as Revision).toBe(early.patch.revision);
      });

      const touch = (key: Key, at: number): PatchWrite => ({ ...patch(user, key, {}, at), isTouch: true });

      test('a touch is like a patch without members, except that `patched` does not hold its record', async () => {
        const jane = await inserted(anotherUser(fixture));
        const { key, record } = jane;
        const late = touch(key, record.updated_at + 5);
        expect(await commitWrites(store, late)).toEqual(WRITTEN);
        const touched = { ...record, updated_at: late.patch.at, revision: late.patch.revision };
        expect(await store.get(user, key)).toEqual(touched as never);
        const early = touch(key, record.updated_at - 60_000);
        const other = patch(user, [fixture.realm, fixture.user], { name: 'Not a touch' });
        const patched = patchedOf(await commitWrites(store, early, other));
        expect(patched?.map(({ id }) => id)).toEqual([fixture.user]);
        expect(await store.get(user, key)).toEqual({ ...touched, revision: early.patch.revision } as never);
      });

      test('a touch of a missing user is not_found, and undoes the other writes of its commit', async () => {
        const link = oidcLink(fixture, 'with a missing user');
        const missing = touch([fixture.realm, mintId()], systemClock.now());
        expect(await commitWrites(store, missing)).toEqual(NOT_FOUND);
        expect(await commitWrites(store, link, missing)).toEqual({ ...NOT_FOUND, index: 1 });
        expect(await store.get(oidcProfileInfo, link.key)).toBeUndefined();
      });

      test('a patch of a folded member is unique by its folded key', async () => {
        const duplicate = { kind: 'unique', members: ['password_profile_id', 'username'] } as const;
        const one = await inserted(usernameLink(fixture, 'One@example.com'));
        const two = await inserted(usernameLink(fixture, 'two@example.com'));
        expect(
          await commitWrites(store, patch(passwordProfileInfo, two.key, { username: 'ONE@example.com' })),
        ).toEqual(duplicate);
        await commitWrites(store, patch(passwordProfileInfo, one.key, { username: 'uno@example.com' }));
        expect(
          (await commitWrites(store, patch(passwordProfileInfo, two.key, { username: 'ONE@example.com' })))
            .kind,
        ).toBe('written');
      });

      test('patches of one commit are returned in order, and are written together or not at all', async () => {
        const link = oidcLink(fixture, 'with a touch');
        const names = ['a', 'b'].map((letter) =>
          patch(user, [fixture.realm, fixture.user], { name: letter }),
        );
        const result = await commitWrites(store, names[0] as Write, link, names[1] as Write);
        expect(patchedOf(result)?.map((record) => record.name as string)).toEqual(['a', 'b']);
        const ofMissing = patch(user, [fixture.realm, mintId()], {});
        expect(
          await commitWrites(store, patch(user, [fixture.realm, fixture.user], { name: 'c' }), ofMissing),
        ).toEqual({ ...NOT_FOUND, index: 1 });
        expect((await store.get(user, [fixture.realm, fixture.user]))?.name).toBe('b');
      });

      test('a patch that refers to a record of another realm is foreign_key', async () => {
        const there = await createRealmFixture(store);
        const link = await inserted(oidcLink(fixture, 'moved profile'));
        const move = (id: Uuid) => patch(oidcProfileInfo, link.key, { oidc_profile_id: id });
        const foreignKey = { kind: 'foreign_key', member: 'oidc_profile_id' } as const;
        expect(await commitWrites(store, move(there.oidc))).toEqual(foreignKey);
        expect((await store.get(oidcProfileInfo, link.key))?.oidc_profile_id).toBe(fixture.oidc);
      });
    });

    describe('not_found and revision_mismatch', () => {
      test('a patch in another realm, of another user or of another record is not_found', async () => {
        const there = await createRealmFixture(store);
        const link = await inserted(oidcLink(fixture, 'addressed'));
        const id = link.key[2] as Uuid;
        for (const key of [
          [there.realm, fixture.user, id],
          [fixture.realm, there.user, id],
          [fixture.realm, fixture.user, mintId()],
        ] as const) {
          expect(await commitWrites(store, patch(oidcProfileInfo, key, { subject: 'no' }))).toEqual(
            NOT_FOUND,
          );
          const conditional = {
            ...patch(oidcProfileInfo, key, { subject: 'no' }),
            expectedRevision: link.record.revision,
          };
          expect(await commitWrites(store, conditional)).toEqual(NOT_FOUND);
        }
        expect(await store.get(oidcProfileInfo, link.key)).toEqual(link.record as never);
      });

      test('a patch with expectedRevision is written only while the record has that revision', async () => {
        const jane = await inserted(anotherUser(fixture));
        const first = { ...patch(user, jane.key, { name: 'First' }), expectedRevision: jane.record.revision };
        expect((await commitWrites(store, first)).kind).toBe('written');
        expect(await commitWrites(store, { ...first, expectedRevision: jane.record.revision })).toEqual(
          REVISION_MISMATCH,
        );
        const second = {
          ...patch(user, jane.key, { name: 'Second' }),
          expectedRevision: first.patch.revision,
        };
        expect((await commitWrites(store, second)).kind).toBe('written');
        expect((await store.get(user, jane.key))?.name).toBe('Second');
      });

      test('of 100 concurrent patches with the same expectedRevision, one is written', async () => {
        const jane = await inserted(anotherUser(fixture));
        const results = await Promise.all(
          Array.from({ length: 100 }, (_, index) =>
            commitWrites(store, {
              ...patch(user, jane.key, { name: `n-${index}` }),
              expectedRevision: jane.record.revision,
            }),
          ),
        );
        expect(results.map(({ kind }) => kind).toSorted()).toEqual([
          ...Array(99).fill('revision_mismatch'),
          'written',
        ]);
      });
    });

    describe('guards, checked in the transaction of the write', () => {
      const emailOnly: Guard = {
        kind: 'unless',
        member: 'username',
        condition: { reference: 'password_profile_id', member: 'username_format', equals: 'email' },
      };
      const sameIssuer: Guard = {
        kind: 'same',
        member: 'issuer',
        reference: 'oidc_profile_id',
        of: 'issuer',
      };
      const settledIssuer: Guard = { kind: 'unreferenced', member: 'issuer', input: 'discovery_url' };
      const refused = (guard: Guard) => ({ kind: 'guard', guard }) as const;

      test('an unless guard refuses a write where the referenced record has the given value', async () => {
        const lax = mintId();
        await inserted(
          insert(passwordProfile, [fixture.realm, lax], {
            name: 'Lax',
            username_format: 'any',
            enable_one_time_password_token: false,
          }),
        );
        const guarded = (write: Insert): Insert => ({ ...write, guards: [emailOnly] });
        const strict = guarded(usernameLink(fixture, 'guarded'));
        expect(await commitWrites(store, strict)).toEqual(refused(emailOnly));
        expect(await store.get(passwordProfileInfo, strict.key)).toBeUndefined();
        const fine = guarded(usernameLink({ ...fixture, passwords: lax }, 'guarded'));
        expect(await commitWrites(store, fine)).toEqual(WRITTEN);
        const renamed = {
          ...patch(passwordProfileInfo, fine.key, { username: 'again' }),
          guards: [emailOnly],
        };
        expect((await commitWrites(store, renamed)).kind).toBe('written');
        await commitWrites(store, patch(passwordProfile, [fixture.realm, lax], { username_format: 'email' }));
        expect(await commitWrites(store, renamed)).toEqual(refused(emailOnly));
      });

      test('a same guard refuses a write where the referenced record has another value', async () => {
        const link = oidcLink(fixture, 'guarded issuer');
        const foreign = { ...link.record, issuer: 'https://elsewhere.example' };
        const write: Insert = { ...link, record: foreign, guards: [sameIssuer] };
        expect(await commitWrites(store, write)).toEqual(refused(sameIssuer));
        expect(await commitWrites(store, { ...link, guards: [sameIssuer] })).toEqual(WRITTEN);
        const members = { issuer: 'https://elsewhere.example' };
        expect(
          await commitWrites(store, { ...patch(oidcProfileInfo, link.key, members), guards: [sameIssuer] }),
        ).toEqual(refused(sameIssuer));
        expect((await commitWrites(store, patch(oidcProfileInfo, link.key, members))).kind).toBe('written');
      });

      test('a settled guard refuses a change of the member while a record with another value refers to this one', async () => {
        const here = await createRealmFixture(store);
        const change = (issuer: string): PatchWrite => ({
          ...patch(oidcProfile, [here.realm, here.oidc], { issuer, name: 'N' }),
          guards: [settledIssuer],
        });
        expect((await commitWrites(store, change('https://before.example'))).kind).toBe('written');
        const link = oidcLink(here, 'settles');
        await commitWrites(store, link);
        expect(await commitWrites(store, change('https://after.example'))).toEqual(refused(settledIssuer));
        expect((await commitWrites(store, change('https://before.example'))).kind).toBe('written');
        const rename = patch(oidcProfile, [here.realm, here.oidc], { name: 'Only this' });
        expect((await commitWrites(store, { ...rename, guards: [settledIssuer] })).kind).toBe('written');
        expect((await store.get(oidcProfile, [here.realm, here.oidc]))?.issuer).toBe(
          'https://before.example',
        );
        // The link carries this value already.
        expect((await commitWrites(store, change(String(link.record.issuer)))).kind).toBe('written');
        const there = await createRealmFixture(store);
        const unreferenced = patch(oidcProfile, [there.realm, there.oidc], {
          issuer: 'https://free.example',
        });
        expect((await commitWrites(store, { ...unreferenced, guards: [settledIssuer] })).kind).toBe(
          'written',
        );
      });

      test('an unchanged guard refuses a change of the member', async () => {
        const here = await createRealmFixture(store);
        const guard: Guard = { kind: 'unchanged', member: 'discovery_url', input: 'client_secret' };
        const change = (members: Record<string, unknown>): PatchWrite => ({
          ...patch(oidcProfile, [here.realm, here.oidc], members),
          guards: [guard],
        });
        const stored = await store.get(oidcProfile, [here.realm, here.oidc]);
        const moved = { discovery_url: 'https://other.example/.well-known/openid-configuration' };
        expect(await commitWrites(store, change(moved))).toEqual(refused(guard));
        for (const members of [{ discovery_url: stored?.discovery_url }, { name: 'Only this' }])
          expect((await commitWrites(store, change(members))).kind).toBe('written');
        expect(await store.get(oidcProfile, [here.realm, here.oidc])).toMatchObject({ name: 'Only this' });
      });

      test('not_found, unique and revision_mismatch are reported before a guard', async () => {
        const here = await createRealmFixture(store);
        await commitWrites(store, oidcLink(here, 'twice'));
        const duplicate: Insert = { ...oidcLink(here, 'twice'), guards: [sameIssuer] };
        expect((await commitWrites(store, duplicate)).kind).toBe('unique');
        const withoutProfile: Insert = {
          ...oidcLink({ ...here, oidc: mintId() }, 'lost'),
          guards: [sameIssuer],
        };
        expect(await commitWrites(store, withoutProfile)).toEqual({
          kind: 'foreign_key',
          member: 'oidc_profile_id',
        });
        const key: Key = [here.realm, here.oidc];
        const old = { ...patch(oidcProfile, key, { issuer: ISSUER.slice(0, -1) }), guards: [settledIssuer] };
        expect(await commitWrites(store, { ...old, expectedRevision: mintRevision() })).toEqual(
          REVISION_MISMATCH,
        );
        expect(await commitWrites(store, { ...old, key: [here.realm, mintId()] })).toEqual(NOT_FOUND);
      });

      test('a write refused by a guard undoes the other writes of its commit', async () => {
        const [fine, broken] = [oidcLink(fixture, 'neighbour'), oidcLink(fixture, 'broken')];
        const foreign = { ...broken.record, issuer: 'https://elsewhere.example' };
        const result = await commitWrites(store, fine, { ...broken, record: foreign, guards: [sameIssuer] });
        expect(result).toEqual({ ...refused(sameIssuer), index: 1 });
        expect(await store.get(oidcProfileInfo, fine.key)).toBeUndefined();
      });
    });
  });
}
