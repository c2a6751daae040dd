import { describe, expect, test } from 'bun:test';
import type { Revision, Uuid } from '../../../src/model/id.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import type { AnyRecord, Key } from '../../../src/model/resource.ts';
import { oidcProfileInfo, passwordProfileInfo, user } from '../../../src/model/resources.ts';
import type { Load } from '../../../src/model/store.ts';
import { userMembers } from '../../support/service.ts';
import {
  changeFor,
  commitWrites,
  createRealmFixture,
  eventsOf,
  type Insert,
  insert,
  mintId,
  type OpenStore,
  oidcLink,
  openForTests,
  usernameLink,
} from './store_fixtures.ts';

/** The Loader, as its port documents it. */
export function loadContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`load contract: ${name}`, () => {
    const { store, fixture } = openForTests(open);

    describe('load writes each record separately, in order, in one transaction', () => {
      const loadOf = (write: Insert, comparison: 'same' | 'replace' | 'refuse' = 'refuse'): Load => ({
        write,
        compare: () => ({ comparison, change: changeFor(write, 'updated') }),
      });

      test('load returns the outcome of every record and stores a change for each written one', async () => {
        const here = await createRealmFixture(store);
        const before = (await eventsOf(store, here.realm)).length;
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
            loadOf(oidcLink({ ...here, user: mintId() }, 'l-3')),
            loadOf(oidcLink({ ...here, oidc: mintId() }, 'l-4')),
          ],
          false,
        );
        const kinds = ['written', 'same', 'differs', 'replaced', 'unique', 'not_found', 'foreign_key'];
        expect(outcomes.map(({ kind }) => kind)).toEqual(kinds as never);
        const events = (await eventsOf(store, here.realm, before)).map((event) => event.split('.')[1]);
        expect(events).toEqual(['created', 'updated']);
        expect((await store.get(oidcProfileInfo, link.key))?.subject).toBe('l-2');
      });

      test('load of more records than one batch reports the refused ones, and writes and logs all others in order', async () => {
        const here = await createRealmFixture(store);
        const stored = oidcLink(here, 'stored');
        await commitWrites(store, stored);
        const before = (await eventsOf(store, here.realm)).length;
        const end = LIMITS.insertsPerBatchMax + 100;
        const refused = new Map<number, readonly [Load, string]>([
          [3, [loadOf(oidcLink({ ...here, user: mintId() }, 'orphan')), 'not_found']],
          [640, [loadOf(oidcLink(here, 'stored')), 'unique']],
          [641, [loadOf(stored, 'same'), 'same']],
          [643, [loadOf(stored, 'refuse'), 'differs']],
          [end - 1, [loadOf(oidcLink(here, 'many-0')), 'unique']],
        ]);
        const loads = Array.from(
          { length: end },
          (_, at) => refused.get(at)?.[0] ?? loadOf(oidcLink(here, `many-${at}`)),
        );
        const outcomes = await store.load(loads, false);
        expect(outcomes.map(({ kind }): string => kind)).toEqual(
          loads.map((_, at) => refused.get(at)?.[1] ?? 'written'),
        );
        const written = loads.filter((_, at) => !refused.has(at));
        const changes = await store.changes(here.realm, before, end);
        expect(changes.map(({ id }) => id)).toEqual(written.map(({ write }) => write.record.id));
        expect(await store.getStored(oidcProfileInfo, loads[642]?.write.key as Key)).toBeDefined();
      });

      test('load passes the stored record to compare, secrets included, as getStored returns it', async () => {
        const link = usernameLink(fixture, 'compared@example.com');
        await commitWrites(store, link);
        const seen: AnyRecord[] = [];
        const load: Load = {
          ...loadOf(link),
          compare: (stored) => {
            seen.push(stored);
            return { comparison: 'same', change: changeFor(link) };
          },
        };
        await store.load([load], false);
        expect(seen).toEqual([link.record]);
        expect(await store.getStored(passwordProfileInfo, link.key)).toEqual(link.record);
      });

      test('load reports an identifier under another user as in use, even when compare returns replace', async () => {
        const here = await createRealmFixture(store);
        const other = mintId();
        await commitWrites(store, insert(user, [here.realm, other], userMembers));
        const link = oidcLink(here, 'mine');
        await commitWrites(store, link);
        const moved = oidcLink({ ...here, user: other }, 'moved', link.key[2] as Uuid);
        const [outcome] = await store.load([loadOf(moved, 'replace')], false);
        expect(outcome).toEqual({ kind: 'unique', members: ['id'] });
      });

      test('load with stopAtFirst stops at the first refusal and keeps the records before it', async () => {
        const here = await createRealmFixture(store);
        const [one, two, three] = [oidcLink(here, 's-1'), oidcLink(here, 's-1'), oidcLink(here, 's-3')];
        const outcomes = await store.load([loadOf(one), loadOf(two), loadOf(three)], true);
        expect(outcomes.map(({ kind }) => kind)).toEqual(['written', 'unique']);
        expect(await store.get(oidcProfileInfo, one.key)).toBeDefined();
        expect(await store.get(oidcProfileInfo, three.key)).toBeUndefined();
      });
    });
  });
}
