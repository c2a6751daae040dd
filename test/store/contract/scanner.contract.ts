import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type {
  RecordSnapshot,
  Scanner,
  ScanPosition,
  Store,
  StoredRecord,
  Write,
} from '../../../src/directory/store.ts';
import type { Uuid } from '../../../src/domain/id.ts';
import type { Key, Resource } from '../../../src/domain/resource.ts';
import {
  oidcProfile,
  passwordProfile,
  passwordProfileInfo,
  realm,
  user,
} from '../../../src/domain/resources.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { ISSUER, PASSWORD_HASH, realmMembers, stamped, userMembers } from '../../support/service.ts';

export interface OpenScanner {
  readonly store: Store & Scanner;
  close(): void | Promise<void>;
}

const mint = systemClock.mintId;
const BEGINNING: ScanPosition = { realm: '', id: '' };

async function plantAt(store: Store, resource: Resource, key: Key, members: Record<string, unknown>) {
  const write: Write = { op: 'insert', resource, key, record: stamped(key, members) };
  expect(await store.commit([write])).toEqual({ kind: 'written' });
  return { key, record: write.record };
}

async function all(picture: RecordSnapshot, resource: Resource, limit: number, within?: Uuid) {
  const found: StoredRecord[] = [];
  for (let after: ScanPosition = BEGINNING; ; ) {
    const page = await picture.scan(resource, after, limit, within);
    expect(page.length).toBeLessThanOrEqual(limit);
    found.push(...page);
    const last = page.at(-1);
    if (!last) return found;
    after = { realm: last.key[0], id: last.record.id };
  }
}

const inOrder = (stored: readonly StoredRecord[]): readonly StoredRecord[] =>
  stored.toSorted((left, right) =>
    `${left.key[0]} ${left.record.id}` < `${right.key[0]} ${right.record.id}` ? -1 : 1,
  );

/** What a Scanner promises, in the sentences of its port. Every engine passes it unchanged. */
export function scannerContract(name: string, open: () => Promise<OpenScanner>): void {
  describe(`scanner contract: ${name}`, () => {
    let opened: OpenScanner;
    let store: Store & Scanner;
    const realms = [mint(), mint(), mint()];
    const planted: StoredRecord[] = [];
    beforeAll(async () => {
      opened = await open();
      store = opened.store;
      for (const id of realms.toReversed()) {
        await plantAt(store, realm, [id], realmMembers);
        for (let count = 0; count < 5; count += 1) {
          // Half of them are of no particular time, as identifiers from elsewhere are.
          const own = count % 2 === 0 ? mint() : (crypto.randomUUID() as Uuid);
          planted.push(await plantAt(store, user, [id, own], { ...userMembers, name: `n-${count}` }));
        }
      }
    });
    afterAll(() => opened.close());

    test('records behind a place, in the order of realm and identifier, at most `limit`', async () => {
      const picture = await store.openSnapshot();
      for (const limit of [1, 2, 5, 100])
        expect(await all(picture, user, limit)).toEqual([...inOrder(planted)]);
      expect((await all(picture, realm, 2)).map(({ key }) => key)).toEqual(realms.map((id) => [id]));
      expect(await all(picture, passwordProfileInfo, 2)).toEqual([]);
      picture.close();
    });

    test('with `within` none of another realm', async () => {
      const picture = await store.openSnapshot();
      for (const id of realms) {
        const own = inOrder(planted.filter(({ key }) => key[0] === id));
        expect(await all(picture, user, 2, id)).toEqual([...own]);
        expect((await all(picture, realm, 2, id)).map(({ key }) => key)).toEqual([[id]]);
        expect([await picture.count(user, id), await picture.count(realm, id)]).toEqual([5, 1]);
      }
      expect(await all(picture, user, 2, mint())).toEqual([]);
      expect([await picture.count(user), await picture.count(user, mint())]).toEqual([15, 0]);
      picture.close();
    });

    test('all records as of one moment: what is committed afterwards is not in it', async () => {
      const [id] = realms as [Uuid];
      const before = await store.openSnapshot();
      const late = await plantAt(store, user, [id, mint()], { ...userMembers, name: 'late' });
      const first = inOrder(planted)[0] as StoredRecord;
      const record = { ...first.record, name: 'renamed', revision: systemClock.mintRevision() };
      await store.commit([{ op: 'replace', resource: user, key: first.key, record }]);
      expect(await all(before, user, 4)).toEqual([...inOrder(planted)]);
      expect(await before.count(user, id)).toBe(5);
      before.close();
      const after = await store.openSnapshot();
      const now = await all(after, user, 4, id);
      expect(now).toContainEqual(late);
      expect(now).toContainEqual({ key: first.key, record });
      after.close();
    });

    test('one record with its address, secrets as they are stored', async () => {
      const [id] = realms as [Uuid];
      const owner = planted.find(({ key }) => key[0] === id)?.key[1] as Uuid;
      const passwords = await plantAt(store, passwordProfile, [id, mint()], {
        name: 'P',
        username_format: 'any',
        enable_one_time_password_token: true,
      });
      const login = await plantAt(store, oidcProfile, [id, mint()], {
        name: 'Login',
        discovery_url: ISSUER,
        client_id: 'shop',
        issuer: ISSUER,
      });
      const link = await plantAt(store, passwordProfileInfo, [id, owner, mint()], {
        username: 'Jane',
        password_profile_id: passwords.record.id,
        password_hash: PASSWORD_HASH,
        password_normalised: true,
      });
      const preset = await plantAt(store, realm, [mint()], { ...realmMembers, preset: true });
      const picture = await store.openSnapshot();
      expect(await all(picture, passwordProfile, 5)).toEqual([passwords]);
      expect(await all(picture, oidcProfile, 5)).toEqual([login]);
      expect(await all(picture, passwordProfileInfo, 5)).toEqual([link]);
      expect(await all(picture, realm, 5, preset.record.id)).toEqual([preset]);
      picture.close();
    });
  });
}
