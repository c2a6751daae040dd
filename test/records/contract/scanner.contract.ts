import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Uuid } from '../../../src/model/id.ts';
import type { Key, Resource } from '../../../src/model/resource.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  realm,
  user,
} from '../../../src/model/resources.ts';
import type { KeyedRecord, RecordSnapshot, Scanner, ScanPosition, Store } from '../../../src/model/store.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import {
  buildRecord,
  ISSUER,
  insertOf,
  PASSWORD_HASH,
  realmMembers,
  userMembers,
} from '../../support/service.ts';

export interface OpenScanner {
  readonly store: Store & Scanner;
  close(): void | Promise<void>;
}

const mintId = systemClock.mintId;
const START: ScanPosition = { realm: '', id: '' };
const LOGIN = { name: 'Login', discovery_url: ISSUER, client_id: 'shop', issuer: ISSUER };

async function insertRecord(store: Store, resource: Resource, key: Key, members: Record<string, unknown>) {
  const write = insertOf(resource, key, buildRecord(key, members));
  expect(await store.commit([write])).toEqual({ kind: 'written' });
  return { key, record: write.record };
}

async function scanAll(snapshot: RecordSnapshot, resource: Resource, limit: number, within?: Uuid) {
  const found: KeyedRecord[] = [];
  for (let after: ScanPosition = START; ; ) {
    const page = await snapshot.scan(resource, after, limit, within);
    expect(page.length).toBeLessThanOrEqual(limit);
    found.push(...page);
    const last = page.at(-1);
    if (!last) return found;
    after = { realm: last.key[0], id: last.record.id };
  }
}

/** Adds a link to each of these users of one realm. */
async function insertLinks(store: Store, owners: readonly KeyedRecord[]): Promise<KeyedRecord[]> {
  const realmId = owners[0]?.key[0] as Uuid;
  const profile = await insertRecord(store, oidcProfile, [realmId, mintId()], LOGIN);
  const links: KeyedRecord[] = [];
  for (const { key } of owners) {
    const members = { subject: mintId(), issuer: ISSUER, oidc_profile_id: profile.record.id };
    const own: Key = [realmId, key[1] as Uuid, crypto.randomUUID() as Uuid];
    links.push(await insertRecord(store, oidcProfileInfo, own, members));
  }
  return links;
}

const inOrder = (stored: readonly KeyedRecord[]): readonly KeyedRecord[] =>
  stored.toSorted((left, right) =>
    `${left.key[0]} ${left.record.id}` < `${right.key[0]} ${right.record.id}` ? -1 : 1,
  );

/** The Scanner, as its port documents it. Every engine passes it unchanged. */
export function scannerContract(name: string, open: () => Promise<OpenScanner>): void {
  describe(`scanner contract: ${name}`, () => {
    let opened: OpenScanner;
    let store: Store & Scanner;
    const realms = [mintId(), mintId(), mintId()];
    const users: KeyedRecord[] = [];
    beforeAll(async () => {
      opened = await open();
      store = opened.store;
      for (const id of realms.toReversed()) {
        await insertRecord(store, realm, [id], realmMembers);
        for (let count = 0; count < 5; count += 1) {
          // Half of the identifiers have no time in them, like imported ones.
          const own = count % 2 === 0 ? mintId() : (crypto.randomUUID() as Uuid);
          users.push(await insertRecord(store, user, [id, own], { ...userMembers, name: `n-${count}` }));
        }
      }
    });
    afterAll(() => opened.close());

    test('scan returns the records after a position, by realm and identifier, at most `limit`', async () => {
      const snapshot = await store.openSnapshot();
      for (const limit of [1, 2, 5, 100])
        expect(await scanAll(snapshot, user, limit)).toEqual([...inOrder(users)]);
      expect((await scanAll(snapshot, realm, 2)).map(({ key }) => key)).toEqual(realms.map((id) => [id]));
      expect(await scanAll(snapshot, passwordProfileInfo, 2)).toEqual([]);
      snapshot.close();
    });

    test('a scan within a realm returns no record of another realm', async () => {
      const snapshot = await store.openSnapshot();
      for (const id of realms) {
        const own = inOrder(users.filter(({ key }) => key[0] === id));
        expect(await scanAll(snapshot, user, 2, id)).toEqual([...own]);
        expect((await scanAll(snapshot, realm, 2, id)).map(({ key }) => key)).toEqual([[id]]);
        expect(own).toHaveLength(5);
      }
      expect(await scanAll(snapshot, user, 2, mintId())).toEqual([]);
      snapshot.close();
    });

    test('a snapshot does not include later commits', async () => {
      const [id] = realms as [Uuid];
      const before = await store.openSnapshot();
      const late = await insertRecord(store, user, [id, mintId()], { ...userMembers, name: 'late' });
      const first = inOrder(users)[0] as KeyedRecord;
      const record = { ...first.record, name: 'renamed', revision: systemClock.mintRevision() };
      await store.commit([{ op: 'replace', resource: user, key: first.key, record }]);
      expect(await scanAll(before, user, 4)).toEqual([...inOrder(users)]);
      expect(await scanAll(before, user, 4, id)).toHaveLength(5);
      before.close();
      const after = await store.openSnapshot();
      const now = await scanAll(after, user, 4, id);
      expect(now).toContainEqual(late);
      expect(now).toContainEqual({ key: first.key, record });
      after.close();
    });

    test('scan returns records with their keys, secrets included', async () => {
      const [id] = realms as [Uuid];
      const owner = users.find(({ key }) => key[0] === id)?.key[1] as Uuid;
      const passwords = await insertRecord(store, passwordProfile, [id, mintId()], {
        name: 'P',
        username_format: 'any',
        enable_one_time_password_token: true,
      });
      const login = await insertRecord(store, oidcProfile, [id, mintId()], LOGIN);
      const link = await insertRecord(store, passwordProfileInfo, [id, owner, mintId()], {
        username: 'Jane',
        password_profile_id: passwords.record.id,
        password_hash: PASSWORD_HASH,
        password_normalised: true,
      });
      const preset = await insertRecord(store, realm, [mintId()], { ...realmMembers, preset: true });
      const snapshot = await store.openSnapshot();
      expect(await scanAll(snapshot, passwordProfile, 5)).toEqual([passwords]);
      expect(await scanAll(snapshot, oidcProfile, 5)).toEqual([login]);
      expect(await scanAll(snapshot, passwordProfileInfo, 5)).toEqual([link]);
      expect(await scanAll(snapshot, realm, 5, preset.record.id)).toEqual([preset]);
      snapshot.close();
    });

    test('scanBelow returns the records below users of one realm from one to the other, by user, time and identifier', async () => {
      const [id, other] = realms as [Uuid, Uuid];
      const owners = users
        .filter(({ key }) => key[0] === id)
        .toSorted((left, right) => (left.record.id < right.record.id ? -1 : 1));
      const links = await insertLinks(
        store,
        owners.flatMap((each) => [each, each, each]),
      );
      await insertLinks(
        store,
        users.filter(({ key }) => key[0] === other),
      );
      const placeOf = ({ key, record }: KeyedRecord) =>
        `${key[1]} ${String(record.created_at).padStart(16, '0')} ${record.id}`;
      const expected = links.toSorted((left, right) => (placeOf(left) < placeOf(right) ? -1 : 1));
      const snapshot = await store.openSnapshot();
      const [first, second, last] = [owners[0], owners[1], owners.at(-1)].map(
        (owner) => owner?.record.id,
      ) as [Uuid, Uuid, Uuid];
      expect(await snapshot.scanBelow(oidcProfileInfo, id, first, last)).toEqual(expected);
      expect(await snapshot.scanBelow(oidcProfileInfo, id, second, second)).toEqual(
        expected.filter(({ key }) => key[1] === second),
      );
      expect(await snapshot.scanBelow(oidcProfileInfo, mintId(), first, last)).toEqual([]);
      snapshot.close();
    });
  });
}
