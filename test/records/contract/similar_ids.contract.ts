import { describe, expect, test } from 'bun:test';
import type { Uuid } from '../../../src/model/id.ts';
import { oidcProfileInfo } from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import {
  commitWrites,
  createRealmFixture,
  type OpenStore,
  oidcLink,
  openForTests,
  removalOf,
  removeRecord,
  WRITTEN,
} from './store_fixtures.ts';

/** The IDs that differ from one in a single digit, one for each digit. */
function inOneDigit(id: Uuid): readonly Uuid[] {
  return [...id].flatMap((digit, at) =>
    digit === '-' ? [] : [`${id.slice(0, at)}${digit === '0' ? '1' : '0'}${id.slice(at + 1)}` as Uuid],
  );
}

/** A Store must tell similar identifiers apart: an engine may place records by a part of the identifier. */
export function similarIdsContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`similar IDs contract: ${name}`, () => {
    const { store, fixture } = openForTests(open);

    test('identifiers that differ only at their end are different records, also after one is removed', async () => {
      const stem = systemClock.mintId().slice(0, 24);
      const similar = ['0', '1', '2', '3'].map((end) =>
        oidcLink(fixture, `similar-${stem}-${end}`, `${stem}00000000000${end}` as Uuid),
      );
      const found = () =>
        Promise.all(similar.map(async ({ key }) => (await store.get(oidcProfileInfo, key))?.subject));
      const subjects = similar.map(({ record }) => record.subject as string | undefined);
      expect(await commitWrites(store, ...similar)).toEqual(WRITTEN);
      expect(await found()).toEqual(subjects);
      for (const [index, { key, resource, record }] of similar.entries()) {
        expect(
          await commitWrites(store, {
            op: 'replace',
            resource,
            key,
            record: { ...record, updated_at: record.updated_at + 1 },
          }),
        ).toEqual(WRITTEN);
        expect(await removeRecord(store, removalOf(resource, key))).toEqual({ kind: 'removed' });
        subjects[index] = undefined;
        expect(await found()).toEqual(subjects);
      }
      expect(await commitWrites(store, ...similar.toReversed())).toEqual(WRITTEN);
      expect(await found()).toEqual(similar.map(({ record }) => record.subject as string));
    });

    test('an identifier that differs from that of a record in one digit names nothing, in any place of the key', async () => {
      const { key, ...link } = oidcLink(fixture, 'similar to none');
      expect(await commitWrites(store, { ...link, key })).toEqual(WRITTEN);
      const similar = key.flatMap((id, place) =>
        inOneDigit(id as Uuid).map((other) => key.with(place, other) as unknown as typeof key),
      );
      expect(similar.length).toBe(3 * 32);
      for (const other of similar)
        expect([other, await store.get(oidcProfileInfo, other)]).toEqual([other, undefined]);
      expect((await store.get(oidcProfileInfo, key))?.subject).toBe('similar to none');
    });

    test('identifiers of no version are found, also the first and the last', async () => {
      const ids = ['0', '7', 'f'].map((digit) =>
        '00000000-0000-0000-0000-000000000000'.replaceAll('0', digit),
      );
      const links = ids.map((id) => oidcLink(fixture, `all ${id[0]}`, id as Uuid));
      expect(await commitWrites(store, ...links)).toEqual(WRITTEN);
      for (const { key, record } of links)
        expect(await store.get(oidcProfileInfo, key)).toEqual(record as never);
    });

    test('a thousand records of one millisecond and equal bits are found, and scanned in the order of their IDs', async () => {
      const own = await createRealmFixture(store);
      const stem = systemClock.mintId().slice(0, 24);
      const links = Array.from({ length: 1_000 }, (_, number) =>
        oidcLink(own, `collides ${number}`, `${stem}${number.toString(16).padStart(12, '0')}` as Uuid),
      );
      expect(await commitWrites(store, ...links.toReversed())).toEqual(WRITTEN);
      for (const { key, record } of links)
        expect(await store.get(oidcProfileInfo, key)).toEqual(record as never);
      const listing = {
        filter: [],
        sort: { by: 'created_at', isDescending: false },
        page: { kind: 'offset', offset: 0, limit: 1_000 },
      } as const;
      const page = await store.list(oidcProfileInfo, [own.realm, own.user], listing);
      expect(page?.items.map(({ record }) => record.id)).toEqual(links.map(({ key }) => key[2] as Uuid));
    });

    test('one identifier in two realms names two records', async () => {
      const otherRealm = await createRealmFixture(store);
      const id = systemClock.mintId();
      const here = oidcLink(fixture, 'in one realm', id);
      const there = oidcLink(otherRealm, 'in the other', id);
      expect(await commitWrites(store, here, there)).toEqual(WRITTEN);
      for (const { key, record } of [here, there])
        expect(await store.get(oidcProfileInfo, key)).toEqual(record as never);
      expect(await removeRecord(store, removalOf(here.resource, here.key))).toEqual({ kind: 'removed' });
      expect(await store.get(oidcProfileInfo, here.key)).toBeUndefined();
      expect(await store.get(oidcProfileInfo, there.key)).toEqual(there.record as never);
    });
  });
}
