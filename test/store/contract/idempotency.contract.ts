import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { IdempotencyRecord } from '../../../src/directory/store.ts';
import { NIL_UUID, type Uuid } from '../../../src/domain/id.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { oidcProfileInfo, realm, user } from '../../../src/domain/resources.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import {
  ABSENT,
  anotherUser,
  type Ground,
  ground,
  LANDED,
  land,
  logged,
  mint,
  type OpenStore,
  oidcLink,
  removing,
} from './store_fixtures.ts';

const REMEMBERED = { kind: 'already_answered' } as const;
const KEPT_AT_ONCE = 50;

/** What a Store promises of answers it remembers, in the sentences of its port. */
export function memoryContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`idempotency contract: ${name}`, () => {
    let opened: OpenStore;
    let store: OpenStore['store'];
    let at: Ground;
    beforeAll(async () => {
      opened = await open();
      store = opened.store;
      at = await ground(store);
    });
    afterAll(() => opened.close());

    const now = systemClock.now();
    const memory = (more: Partial<IdempotencyRecord> = {}): IdempotencyRecord => ({
      realm: at.realm,
      clientId: 'client',
      key: mint(),
      body: 'digest',
      status: 201,
      recordId: mint(),
      user: undefined,
      sealed: new Uint8Array([1, 2, 3, 4]),
      at: now,
      expiresAt: now + LIMITS.idempotencyMsMax,
      ...more,
    });
    const keep = (kept: IdempotencyRecord) => store.commit([], kept);
    /** So many at once that none waits until it is given up, however slow the machine and the way to the server are. */
    const keepAll = async (all: readonly IdempotencyRecord[]) => {
      for (let from = 0; from < all.length; from += KEPT_AT_ONCE)
        await Promise.all(all.slice(from, from + KEPT_AT_ONCE).map(keep));
    };

    test('an idempotency record is returned unchanged until it expires', async () => {
      for (const kept of [memory({ user: at.user }), memory({ recordId: undefined, status: 422 })]) {
        expect(await keep(kept)).toEqual(LANDED);
        expect(await store.loadIdempotencyRecord(kept, now)).toEqual(kept);
        expect(await store.loadIdempotencyRecord(kept, kept.expiresAt - 1)).toEqual(kept);
        expect(await store.loadIdempotencyRecord(kept, kept.expiresAt)).toBeUndefined();
      }
    });

    test('an idempotency record is found by realm, client and key together', async () => {
      const there = await ground(store);
      const kept = memory();
      await keep(kept);
      for (const other of [
        { ...kept, realm: there.realm },
        { ...kept, realm: NIL_UUID },
        { ...kept, clientId: 'other' },
        { ...kept, key: mint() },
      ]) {
        expect(await store.loadIdempotencyRecord(other, now)).toBeUndefined();
        expect(await keep(other)).toEqual(LANDED);
      }
    });

    test('an idempotency record is committed with its writes or not at all', async () => {
      const [link, kept] = [oidcLink(at, 'already_answered'), memory()];
      expect(await store.commit([logged(link)], kept)).toEqual(LANDED);
      expect(await store.loadIdempotencyRecord(kept, now)).toEqual(kept);
      const [double, other] = [oidcLink(at, 'already_answered'), memory()];
      expect((await store.commit([logged(double)], other)).kind).toBe('unique');
      expect(await store.loadIdempotencyRecord(other, now)).toBeUndefined();
      const lost = oidcLink({ ...at, user: mint() }, 'no user');
      expect(await store.commit([lost], other)).toEqual(ABSENT);
      expect(await store.loadIdempotencyRecord(other, now)).toBeUndefined();
    });

    test('a commit with a stored idempotency record writes nothing and reports it before any violated rule', async () => {
      const kept = memory();
      const link = oidcLink(at, 'once');
      await store.commit([logged(link)], kept);
      const [again, another] = [oidcLink(at, 'once'), oidcLink(at, 'another')];
      const changed = { ...kept, body: 'other', sealed: new Uint8Array([9]) };
      expect(await store.commit([logged(again)], changed)).toEqual(REMEMBERED);
      expect(await store.commit([logged(another)], changed)).toEqual(REMEMBERED);
      expect(await store.get(oidcProfileInfo, another.key)).toBeUndefined();
      expect(await store.loadIdempotencyRecord(kept, now)).toEqual(kept);
    });

    test('of 200 concurrent commits with one idempotency key, one is written', async () => {
      const kept = memory();
      const links = Array.from({ length: 200 }, (_, index) => oidcLink(at, `raced-${index}`));
      const verdicts = await Promise.all(links.map((link) => store.commit([link], kept)));
      expect(verdicts.map(({ kind }) => kind).toSorted()).toEqual([
        ...Array(199).fill('already_answered'),
        'written',
      ]);
    });

    test('an expired idempotency record is replaced', async () => {
      const old = memory({ at: now - 10, expiresAt: now });
      await keep(old);
      const fresh = { ...memory(), key: old.key, body: 'fresh' };
      expect(await keep(fresh)).toEqual(LANDED);
      expect(await store.loadIdempotencyRecord(old, now)).toEqual(fresh);
    });

    test('each save deletes a few expired idempotency records', async () => {
      const clientId = 'swept';
      const old = Array.from({ length: 25 }, (_, index) =>
        memory({ clientId, at: now - 1_000, expiresAt: now - 500 + index }),
      );
      for (const each of old) await keep(each);
      const left = async () => {
        const found = await Promise.all(old.map((each) => store.loadIdempotencyRecord(each, now - 600)));
        return found.filter((each) => each !== undefined).length;
      };
      expect(await left()).toBe(25);
      const counts: number[] = [];
      for (let count = 0; count < 3; count += 1) {
        await keep(memory({ clientId }));
        counts.push(await left());
      }
      expect(counts.every((count, index) => count < (counts[index - 1] ?? 25))).toBe(true);
      expect(counts[0]).toBeGreaterThan(0);
      expect(counts.at(-1)).toBe(0);
    });

    test('a sweep deletes all expired idempotency records in bounded commits, and no others', async () => {
      const clientId = 'expired';
      const expiresAt = now - 500;
      const all = Array.from({ length: LIMITS.cascadeRecordsMax + 5 }, () =>
        memory({ clientId, at: now - 1_000, expiresAt }),
      );
      await store.sweepIdempotency(now);
      await keepAll(all);
      const kept = memory({ clientId, expiresAt: now + 1 });
      await keep({ ...kept, at: now - 2_000 });
      const counts: number[] = [];
      do counts.push(await store.sweepIdempotency(now));
      while (counts.at(-1) !== 0);
      // The last one that was kept swept some itself.
      expect(counts[0]).toBe(LIMITS.cascadeRecordsMax);
      for (const each of all) expect(await store.loadIdempotencyRecord(each, expiresAt - 1)).toBeUndefined();
      expect(await store.loadIdempotencyRecord(kept, now)).toBeDefined();
    });

    test('a step of a purge also deletes expired idempotency records', async () => {
      const [here, old] = [await ground(store), memory({ at: now - 1_000, expiresAt: now - 500 })];
      await keep(old);
      await store.purge(removing(user, [here.realm, here.user]));
      expect(await store.loadIdempotencyRecord(old, now - 600)).toBeUndefined();
    });

    test('one idempotency record too many deletes the oldest one of its client only', async () => {
      const [clientId, others] = ['busy', memory({ clientId: 'idle' })];
      await keep(others);
      const all = Array.from({ length: LIMITS.idempotencyKeysPerClientMax }, () => memory({ clientId }));
      await keepAll(all);
      const isKept = async (each: IdempotencyRecord | undefined) =>
        (await store.loadIdempotencyRecord(each as IdempotencyRecord, now)) !== undefined;
      expect([await isKept(all[0]), await isKept(all[1])]).toEqual([true, true]);
      await keep(memory({ clientId }));
      expect([await isKept(all[0]), await isKept(all[1]), await isKept(all.at(-1))]).toEqual([
        false,
        true,
        true,
      ]);
      expect(await isKept(others)).toBe(true);
    }, 300_000);

    test('removing a user deletes the idempotency records about it, and no others', async () => {
      const here = await ground(store);
      const owner = anotherUser(here);
      await land(store, owner);
      const id = owner.key[1] as Uuid;
      const gone = [
        memory({ realm: here.realm, user: id }),
        memory({ realm: here.realm, user: id, recordId: id }),
        memory({ realm: here.realm, recordId: id }),
      ];
      const kept = [
        memory({ realm: here.realm, user: here.user }),
        memory({ realm: here.realm }),
        memory({ realm: at.realm, user: id }),
      ];
      for (const each of [...gone, ...kept]) await keep(each);
      expect(await store.remove(removing(user, owner.key))).toEqual({ kind: 'removed' });
      for (const each of gone) expect(await store.loadIdempotencyRecord(each, now)).toBeUndefined();
      for (const each of kept) expect(await store.loadIdempotencyRecord(each, now)).toEqual(each);
    });

    const GOING = [
      ['is removed', (key: readonly [Uuid]) => store.remove(removing(realm, key))],
      ['is purged', (key: readonly [Uuid]) => store.purge(removing(realm, key))],
    ] as const;
    test.each(GOING)(
      'what was remembered in a realm goes when it %s, its creation included',
      async (_, go) => {
        const [here, there] = [await ground(store), await ground(store)];
        const [inside, made] = [
          memory({ realm: here.realm, user: here.user }),
          memory({ realm: NIL_UUID, recordId: here.realm }),
        ];
        const kept = [memory({ realm: there.realm }), memory({ realm: NIL_UUID, recordId: there.realm })];
        for (const each of [inside, made, ...kept]) await keep(each);
        await go([here.realm]);
        expect(await store.get(realm, [here.realm])).toBeUndefined();
        for (const each of [inside, made])
          expect(await store.loadIdempotencyRecord(each, now)).toBeUndefined();
        for (const each of kept) expect(await store.loadIdempotencyRecord(each, now)).toEqual(each);
      },
    );

    test.each([
      ['a user', user],
      ['a realm', realm],
    ] as const)(
      '%s that more answers tell about than go in one commit is crowded, and is purged',
      async (_, kind) => {
        const here = await ground(store);
        const all = Array.from({ length: LIMITS.cascadeRecordsMax + 1 }, () =>
          memory({ realm: here.realm, user: here.user, clientId: `many-${kind.name}` }),
        );
        await keepAll(all);
        const removal = removing(kind, kind === realm ? [here.realm] : [here.realm, here.user]);
        expect(await store.remove(removal)).toEqual({ kind: 'too_many' });
        expect(await store.loadIdempotencyRecord(all[0] as IdempotencyRecord, now)).toBeDefined();
        await store.purge(removal);
        expect(await store.purge(removal)).toMatchObject({ isDone: true });
        for (const each of all) expect(await store.loadIdempotencyRecord(each, now)).toBeUndefined();
      },
    );

    test('as many idempotency records as fit in one commit do not prevent a removal', async () => {
      const here = await ground(store);
      const all = Array.from({ length: LIMITS.cascadeRecordsMax }, () =>
        memory({ realm: here.realm, user: here.user, clientId: 'just enough' }),
      );
      await keepAll(all);
      expect(await store.remove(removing(user, [here.realm, here.user]))).toEqual({ kind: 'removed' });
      for (const each of all) expect(await store.loadIdempotencyRecord(each, now)).toBeUndefined();
    });

    test('from the first step of a purge on, no idempotency record of its user or realm is loaded', async () => {
      const here = await ground(store);
      const links = Array.from({ length: LIMITS.cascadeRecordsMax }, (_, index) =>
        oidcLink(here, `${index}`),
      );
      expect(await land(store, ...links)).toEqual(LANDED);
      const ofUser = [
        memory({ realm: here.realm, user: here.user }),
        memory({ realm: here.realm, recordId: here.user }),
      ];
      const ofRealm = [memory({ realm: here.realm }), memory({ realm: NIL_UUID, recordId: here.realm })];
      const elsewhere = [memory({ user: here.user }), memory({ realm: NIL_UUID, recordId: here.user })];
      for (const each of [...ofUser, ...ofRealm, ...elsewhere]) await keep(each);
      const told = (all: readonly IdempotencyRecord[]) =>
        Promise.all(all.map(async (each) => (await store.loadIdempotencyRecord(each, now)) !== undefined));
      expect(await store.purge(removing(user, [here.realm, here.user]))).toMatchObject({ isDone: false });
      expect([await told(ofUser), await told(ofRealm)]).toEqual([
        [false, false],
        [true, true],
      ]);
      // A repetition is a request like any other: it is refused for what is not there, not for what is remembered.
      const link = oidcLink(here, 'again');
      expect(await store.commit([logged(link)], ofUser[0])).toEqual(ABSENT);
      expect(await keep({ ...(ofUser[0] as IdempotencyRecord), status: 404 })).toEqual(LANDED);
      const more = anotherUser(here);
      const others = Array.from({ length: LIMITS.cascadeRecordsMax }, (_, index) =>
        oidcLink({ ...here, user: more.key[1] as Uuid }, `more-${index}`),
      );
      expect(await land(store, more, ...others)).toEqual(LANDED);
      expect(await store.purge(removing(realm, [here.realm]))).toMatchObject({ isDone: false });
      expect(await told([...ofUser, ...ofRealm])).toEqual([false, false, false, false]);
      expect(await told(elsewhere)).toEqual([true, true]);
    });

    test('a step of a purge deletes no more idempotency records than records', async () => {
      const here = await ground(store);
      const all = Array.from({ length: LIMITS.cascadeRecordsMax + 1 }, () =>
        memory({ realm: here.realm, clientId: 'many' }),
      );
      await keepAll(all);
      const step = () => store.purge(removing(realm, [here.realm]));
      expect(await step()).toEqual({ kind: 'purged', records: 3, isDone: false });
      expect(await step()).toEqual({ kind: 'purged', records: 1, isDone: true });
      for (const each of all) expect(await store.loadIdempotencyRecord(each, now)).toBeUndefined();
    });
  });
}
