import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Guard, Patch, Write, WriteResult } from '../../../src/directory/store.ts';
import { changeOf } from '../../../src/domain/change.ts';
import type { Revision, Uuid } from '../../../src/domain/id.ts';
import type { Key, Resource } from '../../../src/domain/resource.ts';
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
import { ISSUER, PASSWORD_HASH } from '../../support/service.ts';
import {
  ABSENT,
  anotherUser,
  type Ground,
  ground,
  type Insert,
  insert,
  LANDED,
  land,
  mint,
  type OpenStore,
  oidcLink,
  usernameLink,
} from './store_fixtures.ts';

const { mintRevision } = systemClock;
const STALE = { kind: 'revision_mismatch' } as const;

type PatchWrite = Extract<Write, { op: 'patch' }>;

function patch(resource: Resource, key: Key, members: Patch['members'], at = systemClock.now()): PatchWrite {
  return { op: 'patch', resource, key, patch: { members, revision: mintRevision(), at } };
}

const patchedOf = (verdict: WriteResult) => (verdict.kind === 'written' ? verdict.patched : undefined);

/** What a Store promises of patches and guards, in the sentences of its port. */
export function patchContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`patch contract: ${name}`, () => {
    let opened: OpenStore;
    let store: OpenStore['store'];
    let at: Ground;
    beforeAll(async () => {
      opened = await open();
      store = opened.store;
      at = await ground(store);
    });
    afterAll(() => opened.close());

    /** The record as `get` answers it: of this kind nothing is secret. */
    async function planted(write: Insert): Promise<Insert> {
      expect(await land(store, write)).toEqual(LANDED);
      return write;
    }

    describe('some members of a record become something else', () => {
      test('a patch leaves other members, and `patched` holds the record as `get` returns it', async () => {
        const jane = await planted(anotherUser(at));
        const write = patch(user, jane.key, { name: 'Janet', middle_name: 'Q' });
        const verdict = await land(store, write);
        const expected = {
          ...jane.record,
          name: 'Janet',
          middle_name: 'Q',
          updated_at: Math.max(write.patch.at, jane.record.updated_at),
          revision: write.patch.revision,
        };
        expect(verdict).toEqual({ kind: 'written', patched: [expected] });
        expect(await store.get(user, jane.key)).toEqual(expected as never);
        const back = patch(user, jane.key, { middle_name: null });
        expect(patchedOf(await land(store, back))?.[0]?.middle_name).toBeNull();
      });

      test('every kind can be patched, and no answer holds a secret', async () => {
        const link = await planted(oidcLink(at, 'patched-kind'));
        const login = await planted(usernameLink(at, 'patched-kind@example.com'));
        const patches: readonly [Resource, Key, Patch['members']][] = [
          [realm, [at.realm], { name: 'R', redirect_uris: ['https://shop.example/cb'], preset: false }],
          [oidcProfile, [at.realm, at.oidc], { client_secret: new Uint8Array([9, 9]) }],
          [passwordProfile, [at.realm, at.passwords], { enable_one_time_password_token: false }],
          [user, [at.realm, at.user], { email: 'new@example.com' }],
          [oidcProfileInfo, link.key, { subject: 'patched' }],
          [passwordProfileInfo, login.key, { password_hash: `${PASSWORD_HASH}x`, password_normalised: true }],
        ];
        expect(patches.map(([resource]) => resource)).toEqual([...RESOURCES]);
        for (const [resource, key, members] of patches) {
          const [left] = patchedOf(await land(store, patch(resource, key, members))) ?? [];
          expect(left as unknown).toEqual(await store.get(resource, key));
          for (const secret of ['preset', 'client_secret', 'password_hash', 'password_normalised'])
            expect(Object.keys(left ?? {})).not.toContain(secret);
        }
      });

      test('secrets are stored as they are given', async () => {
        const login = await planted(usernameLink(at, 'secret@example.com'));
        const members = { password_hash: `${PASSWORD_HASH}2`, password_normalised: true };
        await land(store, patch(passwordProfileInfo, login.key, members));
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
        const judge = (stored: unknown) => {
          seen.push(stored);
          return { comparison: 'same', change } as const;
        };
        await store.load([{ write: login, change, compare: judge }], false);
        expect(seen).toEqual([expect.objectContaining({ ...members, username: 'secret@example.com' })]);
      });

      test('a patch without members only touches the record', async () => {
        const jane = await planted(anotherUser(at));
        const touch = patch(user, jane.key, {}, jane.record.updated_at + 5);
        const touched = {
          ...jane.record,
          updated_at: jane.record.updated_at + 5,
          revision: touch.patch.revision,
        };
        expect(await land(store, touch)).toEqual({ kind: 'written', patched: [touched] });
      });

      test('`at` becomes `updated_at`, unless that is later already', async () => {
        const jane = await planted(anotherUser(at));
        const early = patch(user, jane.key, { name: 'Early' }, jane.record.updated_at - 60_000);
        const [left] = patchedOf(await land(store, early)) ?? [];
        expect([left?.updated_at, left?.name]).toEqual([jane.record.updated_at, 'Early']);
        expect(left?.revision as Revision).toBe(early.patch.revision);
      });

      test('a folded member keeps its key: what was unique stays so', async () => {
        const taken = { kind: 'unique', members: ['password_profile_id', 'username'] } as const;
        const one = await planted(usernameLink(at, 'One@example.com'));
        const two = await planted(usernameLink(at, 'two@example.com'));
        expect(
          await land(store, patch(passwordProfileInfo, two.key, { username: 'ONE@example.com' })),
        ).toEqual(taken);
        await land(store, patch(passwordProfileInfo, one.key, { username: 'uno@example.com' }));
        expect(
          (await land(store, patch(passwordProfileInfo, two.key, { username: 'ONE@example.com' }))).kind,
        ).toBe('written');
      });

      test('patches of one commit are answered in their order, and land together or not at all', async () => {
        const link = oidcLink(at, 'with a touch');
        const names = ['a', 'b'].map((letter) => patch(user, [at.realm, at.user], { name: letter }));
        const verdict = await land(store, names[0] as Write, link, names[1] as Write);
        expect(patchedOf(verdict)?.map((record) => record.name as string)).toEqual(['a', 'b']);
        const lost = patch(user, [at.realm, mint()], {});
        expect(await land(store, patch(user, [at.realm, at.user], { name: 'c' }), lost)).toEqual(ABSENT);
        expect((await store.get(user, [at.realm, at.user]))?.name).toBe('b');
      });

      test('a member that names another record must name one of the realm', async () => {
        const there = await ground(store);
        const link = await planted(oidcLink(at, 'moved profile'));
        const move = (id: Uuid) => patch(oidcProfileInfo, link.key, { oidc_profile_id: id });
        const dangling = { kind: 'foreign_key', member: 'oidc_profile_id' } as const;
        expect(await land(store, move(there.oidc))).toEqual(dangling);
        expect((await store.get(oidcProfileInfo, link.key))?.oidc_profile_id).toBe(at.oidc);
      });
    });

    describe('not_found and revision_mismatch', () => {
      test('a patch in another realm, of another user or of another record is not_found', async () => {
        const there = await ground(store);
        const link = await planted(oidcLink(at, 'addressed'));
        const id = link.key[2] as Uuid;
        for (const key of [
          [there.realm, at.user, id],
          [at.realm, there.user, id],
          [at.realm, at.user, mint()],
        ] as const) {
          expect(await land(store, patch(oidcProfileInfo, key, { subject: 'no' }))).toEqual(ABSENT);
          const seen = {
            ...patch(oidcProfileInfo, key, { subject: 'no' }),
            expectedRevision: link.record.revision,
          };
          expect(await land(store, seen)).toEqual(ABSENT);
        }
        expect(await store.get(oidcProfileInfo, link.key)).toEqual(link.record as never);
      });

      test('a patch with expectedRevision is written only while the record has that revision', async () => {
        const jane = await planted(anotherUser(at));
        const first = { ...patch(user, jane.key, { name: 'First' }), expectedRevision: jane.record.revision };
        expect((await land(store, first)).kind).toBe('written');
        expect(await land(store, { ...first, expectedRevision: jane.record.revision })).toEqual(STALE);
        const second = {
          ...patch(user, jane.key, { name: 'Second' }),
          expectedRevision: first.patch.revision,
        };
        expect((await land(store, second)).kind).toBe('written');
        expect((await store.get(user, jane.key))?.name).toBe('Second');
      });

      test('of 100 concurrent patches with the same expectedRevision, one is written', async () => {
        const jane = await planted(anotherUser(at));
        const verdicts = await Promise.all(
          Array.from({ length: 100 }, (_, index) =>
            land(store, {
              ...patch(user, jane.key, { name: `n-${index}` }),
              expectedRevision: jane.record.revision,
            }),
          ),
        );
        expect(verdicts.map(({ kind }) => kind).toSorted()).toEqual([
          ...Array(99).fill('revision_mismatch'),
          'written',
        ]);
      });
    });

    describe('guards: looked at in the transaction of the write', () => {
      const emailOnly: Guard = {
        kind: 'unless',
        member: 'username',
        saying: { reference: 'password_profile_id', member: 'username_format', equals: 'email' },
      };
      const sameIssuer: Guard = {
        kind: 'same',
        member: 'issuer',
        reference: 'oidc_profile_id',
        of: 'issuer',
      };
      const settled: Guard = { kind: 'settled', member: 'issuer', saidAs: 'discovery_url' };
      const refused = (guard: Guard) => ({ kind: 'guard', guard }) as const;

      test('unless: refused where the record that is referred to says so', async () => {
        const lax = mint();
        await planted(
          insert(passwordProfile, [at.realm, lax], {
            name: 'Lax',
            username_format: 'any',
            enable_one_time_password_token: false,
          }),
        );
        const guarded = (write: Insert): Insert => ({ ...write, guards: [emailOnly] });
        const strict = guarded(usernameLink(at, 'guarded'));
        expect(await land(store, strict)).toEqual(refused(emailOnly));
        expect(await store.get(passwordProfileInfo, strict.key)).toBeUndefined();
        const fine = guarded(usernameLink({ ...at, passwords: lax }, 'guarded'));
        expect(await land(store, fine)).toEqual(LANDED);
        const renamed = {
          ...patch(passwordProfileInfo, fine.key, { username: 'again' }),
          guards: [emailOnly],
        };
        expect((await land(store, renamed)).kind).toBe('written');
        await land(store, patch(passwordProfile, [at.realm, lax], { username_format: 'email' }));
        expect(await land(store, renamed)).toEqual(refused(emailOnly));
      });

      test('same: refused where the record that is referred to has another value', async () => {
        const link = oidcLink(at, 'guarded issuer');
        const foreign = { ...link.record, issuer: 'https://elsewhere.example' };
        const write: Insert = { ...link, record: foreign, guards: [sameIssuer] };
        expect(await land(store, write)).toEqual(refused(sameIssuer));
        expect(await land(store, { ...link, guards: [sameIssuer] })).toEqual(LANDED);
        const members = { issuer: 'https://elsewhere.example' };
        expect(
          await land(store, { ...patch(oidcProfileInfo, link.key, members), guards: [sameIssuer] }),
        ).toEqual(refused(sameIssuer));
        expect((await land(store, patch(oidcProfileInfo, link.key, members))).kind).toBe('written');
      });

      test('settled: a member does not change while a record refers to this one', async () => {
        const here = await ground(store);
        const change = (issuer: string): PatchWrite => ({
          ...patch(oidcProfile, [here.realm, here.oidc], { issuer, name: 'N' }),
          guards: [settled],
        });
        expect((await land(store, change('https://before.example'))).kind).toBe('written');
        const link = oidcLink(here, 'settles');
        await land(store, link);
        expect(await land(store, change('https://after.example'))).toEqual(refused(settled));
        expect((await land(store, change('https://before.example'))).kind).toBe('written');
        const rename = patch(oidcProfile, [here.realm, here.oidc], { name: 'Only this' });
        expect((await land(store, { ...rename, guards: [settled] })).kind).toBe('written');
        expect((await store.get(oidcProfile, [here.realm, here.oidc]))?.issuer).toBe(
          'https://before.example',
        );
        const there = await ground(store);
        const beyond = patch(oidcProfile, [there.realm, there.oidc], { issuer: 'https://free.example' });
        expect((await land(store, { ...beyond, guards: [settled] })).kind).toBe('written');
      });

      test('not_found, unique and revision_mismatch are reported before a guard', async () => {
        const here = await ground(store);
        await land(store, oidcLink(here, 'twice'));
        const again: Insert = { ...oidcLink(here, 'twice'), guards: [sameIssuer] };
        expect((await land(store, again)).kind).toBe('unique');
        const lost: Insert = { ...oidcLink({ ...here, oidc: mint() }, 'lost'), guards: [sameIssuer] };
        expect(await land(store, lost)).toEqual({ kind: 'foreign_key', member: 'oidc_profile_id' });
        const key: Key = [here.realm, here.oidc];
        const old = { ...patch(oidcProfile, key, { issuer: ISSUER.slice(0, -1) }), guards: [settled] };
        expect(await land(store, { ...old, expectedRevision: mintRevision() })).toEqual(STALE);
        expect(await land(store, { ...old, key: [here.realm, mint()] })).toEqual(ABSENT);
      });

      test('a refused write takes its neighbours with it', async () => {
        const [fine, broken] = [oidcLink(at, 'neighbour'), oidcLink(at, 'broken')];
        const foreign = { ...broken.record, issuer: 'https://elsewhere.example' };
        const verdict = await land(store, fine, { ...broken, record: foreign, guards: [sameIssuer] });
        expect(verdict).toEqual(refused(sameIssuer));
        expect(await store.get(oidcProfileInfo, fine.key)).toBeUndefined();
      });
    });
  });
}
