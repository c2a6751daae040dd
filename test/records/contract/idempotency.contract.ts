import { describe, expect, test } from 'bun:test';
import { NIL_UUID } from '../../../src/model/id.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import { oidcProfileInfo, realm, user } from '../../../src/model/resources.ts';
import type { IdempotencyRecord, Removal } from '../../../src/model/store.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { doWithRetry } from '../../support/retry.ts';
import {
  createRealmFixture,
  mintId,
  NOT_FOUND,
  type OpenStore,
  oidcLink,
  openForTests,
  removalOf,
  removeRecord,
  WRITTEN,
} from './store_fixtures.ts';

const ALREADY_ANSWERED = { kind: 'already_answered' } as const;
const SAVES_AT_ONCE = 50;

/** The rows of a client in a realm that expire with this record. */
function whereOf({ realm: realmId, clientId, expiresAt }: IdempotencyRecord): string {
  return `realm_id = '${realmId}' and client_id = '${clientId}' and expires_at = ${expiresAt}`;
}

/** The idempotency records of a Store, as its port documents them. */
export function idempotencyContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`idempotency contract: ${name}`, () => {
    const { opened, store, fixture } = openForTests(open);

    const now = systemClock.now();
    const newRecord = (more: Partial<IdempotencyRecord> = {}): IdempotencyRecord => ({
      realm: fixture.realm,
      clientId: 'client',
      key: mintId(),
      body: 'digest',
      created: [mintId()],
      fault: undefined,
      at: now,
      expiresAt: now + LIMITS.idempotencyMsMax,
      ...more,
    });
    const save = (record: IdempotencyRecord) => store.commit([], record);
    /** Saves in batches, so that no save times out on a slow machine or connection. */
    const saveAll = async (records: readonly IdempotencyRecord[]) => {
      for (let from = 0; from < records.length; from += SAVES_AT_ONCE)
        await Promise.all(records.slice(from, from + SAVES_AT_ONCE).map(save));
    };

    /**
     * Saves as many records as a client may have. Over a network that takes half a minute: there the third record becomes the last
     * one, as if those between had been saved.
     */
    const saveUpToLimit = async (clientId: string) => {
      const max = LIMITS.idempotencyKeysPerClientMax;
      const all = Array.from({ length: opened.execute ? 3 : max }, () => newRecord({ clientId }));
      if (!opened.execute) await saveAll(all);
      else {
        for (const each of all) await save(each);
        await opened.execute(`update idempotency set ordinal = ${max}
          where realm_id = '${fixture.realm}' and client_id = '${clientId}' and ordinal = ${all.length}`);
      }
      return all;
    };

    /**
     * Saves records that differ in their keys alone. With `execute` it saves one and copies it, because a thousand commits take most
     * of the time of a test.
     */
    const saveMany = async (count: number, more: Partial<IdempotencyRecord>) => {
      if (!opened.execute) {
        const all = Array.from({ length: count }, () => newRecord(more));
        await saveAll(all);
        return all;
      }
      const first = newRecord(more);
      await save(first);
      const numbers = Array.from({ length: count - 1 }, (_, index) => index + 1);
      const copied = await opened.execute(`insert into idempotency
        (realm_id, client_id, key, ordinal, body, created, fault, at, expires_at)
        select realm_id, client_id, key || '-' || column1, ordinal + column1, body, created, fault, at, expires_at
        from idempotency, (values ${numbers.map((number) => `(${number})`).join()}) as numbers
        where ${whereOf(first)}`);
      expect(copied).toBe(count - 1);
      return [first, ...numbers.map((number) => ({ ...first, key: `${first.key}-${number}` }))];
    };

    /** Expects that none of these records, which are of one realm and client and expire together, is stored. */
    const expectNoneOf = async (all: readonly IdempotencyRecord[]) => {
      const [first] = all as [IdempotencyRecord];
      const checked = opened.execute ? [first, all.at(-1) as IdempotencyRecord] : all;
      for (const each of checked)
        expect(await store.loadIdempotencyRecord(each, each.expiresAt - 1)).toBeUndefined();
      if (opened.execute)
        expect(await opened.execute(`delete from idempotency where ${whereOf(first)}`)).toBe(0);
    };

    test('an idempotency record is returned unchanged until it expires', async () => {
      for (const record of [
        newRecord({ created: [mintId(), mintId(), mintId()] }),
        newRecord({ created: [], fault: 'conflict' }),
      ]) {
        expect(await save(record)).toEqual(WRITTEN);
        expect(await store.loadIdempotencyRecord(record, now)).toEqual(record);
        expect(await store.loadIdempotencyRecord(record, record.expiresAt - 1)).toEqual(record);
        expect(await store.loadIdempotencyRecord(record, record.expiresAt)).toBeUndefined();
      }
    });

    test('an idempotency record is found by realm, client and key together', async () => {
      const there = await createRealmFixture(store);
      const record = newRecord();
      await save(record);
      for (const other of [
        { ...record, realm: there.realm },
        { ...record, realm: NIL_UUID },
        { ...record, clientId: 'other' },
        { ...record, key: mintId() },
      ]) {
        expect(await store.loadIdempotencyRecord(other, now)).toBeUndefined();
        expect(await save(other)).toEqual(WRITTEN);
      }
    });

    test('an idempotency record is committed with its writes or not at all', async () => {
      const [link, record] = [oidcLink(fixture, 'already_answered'), newRecord()];
      expect(await store.commit([link], record)).toEqual(WRITTEN);
      expect(await store.loadIdempotencyRecord(record, now)).toEqual(record);
      const [double, other] = [oidcLink(fixture, 'already_answered'), newRecord()];
      expect((await store.commit([double], other)).kind).toBe('unique');
      expect(await store.loadIdempotencyRecord(other, now)).toBeUndefined();
      const withoutUser = oidcLink({ ...fixture, user: mintId() }, 'no user');
      expect(await store.commit([withoutUser], other)).toEqual(NOT_FOUND);
      expect(await store.loadIdempotencyRecord(other, now)).toBeUndefined();
    });

    test('a commit with a stored idempotency record writes nothing and reports it before any violated rule', async () => {
      const record = newRecord();
      const link = oidcLink(fixture, 'once');
      await store.commit([link], record);
      const [again, another] = [oidcLink(fixture, 'once'), oidcLink(fixture, 'another')];
      const changed = { ...record, body: 'other' };
      expect(await store.commit([again], changed)).toEqual(ALREADY_ANSWERED);
      expect(await store.commit([another], changed)).toEqual(ALREADY_ANSWERED);
      expect(await store.get(oidcProfileInfo, another.key)).toBeUndefined();
      expect(await store.loadIdempotencyRecord(record, now)).toEqual(record);
    });

    test('of 200 concurrent commits with one idempotency key, one is written', async () => {
      const record = newRecord();
      const links = Array.from({ length: 200 }, (_, index) => oidcLink(fixture, `raced-${index}`));
      const results = await Promise.all(links.map((link) => doWithRetry(() => store.commit([link], record))));
      expect(results.map(({ kind }) => kind).toSorted()).toEqual([
        ...Array(199).fill('already_answered'),
        'written',
      ]);
    });

    test('an expired idempotency record is replaced', async () => {
      const old = newRecord({ at: now - 10, expiresAt: now });
      await save(old);
      const fresh = { ...newRecord(), key: old.key, body: 'fresh' };
      expect(await save(fresh)).toEqual(WRITTEN);
      expect(await store.loadIdempotencyRecord(old, now)).toEqual(fresh);
    });

    test('a sweep deletes all expired idempotency records in bounded commits, and no others', async () => {
      const clientId = 'expired';
      const expiresAt = now - 500;
      await store.sweepIdempotency(now);
      const count = LIMITS.cascadeRecordsMax + 5;
      const all = await saveMany(count, { clientId, at: now - 1_000, expiresAt });
      const record = newRecord({ clientId, expiresAt: now + 1 });
      await save({ ...record, at: now - 2_000 });
      const counts: number[] = [];
      do counts.push(await store.sweepIdempotency(now));
      while (counts.at(-1) !== 0);
      expect(counts[0]).toBe(LIMITS.cascadeRecordsMax);
      await expectNoneOf(all);
      expect(await store.loadIdempotencyRecord(record, now)).toBeDefined();
    });

    test('an idempotency record beyond the limit deletes only the oldest one of the same client and realm', async () => {
      const [clientId, elsewhere] = ['busy', await createRealmFixture(store)];
      const others = [newRecord({ clientId: 'idle' }), newRecord({ clientId, realm: elsewhere.realm })];
      for (const each of others) await save(each);
      const all = await saveUpToLimit(clientId);
      const isStored = async (each: IdempotencyRecord | undefined) =>
        (await store.loadIdempotencyRecord(each as IdempotencyRecord, now)) !== undefined;
      expect([await isStored(all[0]), await isStored(all[1])]).toEqual([true, true]);
      await save(newRecord({ clientId }));
      expect([await isStored(all[0]), await isStored(all[1]), await isStored(all.at(-1))]).toEqual([
        false,
        true,
        true,
      ]);
      for (const each of others) expect(await isStored(each)).toBe(true);
    }, 300_000);

    test.each([
      ['removed', removeRecord],
      ['removed by pages', (_: unknown, removal: Removal) => store.removePage(removal)],
    ] as const)(
      'an idempotency record outlives the realm and its records when they are %s',
      async (_, remove) => {
        const here = await createRealmFixture(store);
        const all = [
          newRecord({ realm: here.realm, created: [here.user] }),
          newRecord({ realm: here.realm }),
          newRecord({ realm: NIL_UUID, created: [here.realm] }),
        ];
        for (const each of all) await save(each);
        await remove(store, removalOf(user, [here.realm, here.user]));
        await remove(store, removalOf(realm, [here.realm]));
        expect(await store.get(realm, [here.realm])).toBeUndefined();
        for (const each of all) expect(await store.loadIdempotencyRecord(each, now)).toEqual(each);
      },
    );
  });
}
