import { describe, expect, test } from 'bun:test';
import type { Uuid } from '../../../src/domain/id.ts';
import { oidcProfileInfo } from '../../../src/domain/resources.ts';
import { systemClock } from '../../../src/platform/clock.ts';
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
