import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Uuid } from '../../../src/domain/id.ts';
import { oidcProfileInfo } from '../../../src/domain/resources.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { ground, LANDED, land, type OpenStore, oidcLink, removing } from './store_fixtures.ts';

/** What a Store promises of identifiers that are nearly the same: an engine may place records by a part of theirs. */
export function alikeContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`alike contract: ${name}`, () => {
    let opened: OpenStore;
    let store: OpenStore['store'];
    let at: Awaited<ReturnType<typeof ground>>;
    beforeAll(async () => {
      opened = await open();
      store = opened.store;
      at = await ground(store);
    });
    afterAll(() => opened.close());

    test('identifiers that differ only at their end are different records, also after one is removed', async () => {
      const stem = systemClock.mintId().slice(0, 24);
      const alike = ['0', '1', '2', '3'].map((end) =>
        oidcLink(at, `alike-${stem}-${end}`, `${stem}00000000000${end}` as Uuid),
      );
      const found = () =>
        Promise.all(alike.map(async ({ key }) => (await store.get(oidcProfileInfo, key))?.subject));
      const subjects = alike.map(({ record }) => record.subject as string | undefined);
      expect(await land(store, ...alike)).toEqual(LANDED);
      expect(await found()).toEqual(subjects);
      for (const [index, { key, resource, record }] of alike.entries()) {
        expect(
          await land(store, {
            op: 'replace',
            resource,
            key,
            record: { ...record, updated_at: record.updated_at + 1 },
          }),
        ).toEqual(LANDED);
        expect(await store.remove(removing(resource, key))).toEqual({ kind: 'removed' });
        subjects[index] = undefined;
        expect(await found()).toEqual(subjects);
      }
      expect(await land(store, ...alike.toReversed())).toEqual(LANDED);
      expect(await found()).toEqual(alike.map(({ record }) => record.subject as string));
    });

    test('one identifier in two realms names two records', async () => {
      const there = await ground(store);
      const id = systemClock.mintId();
      const here = oidcLink(at, 'in one realm', id);
      const beyond = oidcLink(there, 'in the other', id);
      expect(await land(store, here, beyond)).toEqual(LANDED);
      for (const { key, record } of [here, beyond])
        expect(await store.get(oidcProfileInfo, key)).toEqual(record as never);
      expect(await store.remove(removing(here.resource, here.key))).toEqual({ kind: 'removed' });
      expect(await store.get(oidcProfileInfo, here.key)).toBeUndefined();
      expect(await store.get(oidcProfileInfo, beyond.key)).toEqual(beyond.record as never);
    });
  });
}
