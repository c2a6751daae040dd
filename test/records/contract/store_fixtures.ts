import { afterAll, beforeAll, expect } from 'bun:test';
import type { Eraser } from '../../../src/log/store/erase.ts';
import type { Uuid } from '../../../src/model/id.ts';
import { type Change, changeOf } from '../../../src/model/log/change.ts';
import type { Key, Resource } from '../../../src/model/resource.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  realm,
  user,
} from '../../../src/model/resources.ts';
import type { CommitRefusal, Loader, Removal, Store, Write } from '../../../src/model/store.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { buildRecord, ISSUER, PASSWORD_HASH, realmMembers, userMembers } from '../../support/service.ts';

export interface OpenStore {
  readonly store: Store & Loader & Eraser;
  /** Executes SQL past the store, where a second connection can reach the database. Returns the number of rows written. */
  readonly execute?: ((sql: string) => Promise<number>) | undefined;
  close(): void | Promise<void>;
}

/** A store and a realm in it, which the tests of a contract share: opened before them and closed after them. */
export function openForTests<O extends OpenStore>(open: () => Promise<O>) {
  const opened = {} as O;
  const store = {} as O['store'];
  const fixture = {} as RealmFixture;
  beforeAll(async () => {
    Object.assign(opened, await open());
    Object.assign(store, opened.store);
    Object.assign(fixture, await createRealmFixture(store));
  });
  afterAll(() => opened.close());
  return { opened, store, fixture };
}

export type Insert = Extract<Write, { op: 'insert' }>;

export const mintId = systemClock.mintId;
export const WRITTEN = { kind: 'written' } as const;
export const NOT_FOUND = { kind: 'not_found' } as const;

export function insert(resource: Resource, key: Key, members: Record<string, unknown>): Insert {
  const write = { op: 'insert', resource, key, record: buildRecord(key, members) } as const;
  return { ...write, change: changeFor(write) };
}

export function changeFor(
  { resource, key, record }: Omit<Insert, 'change'>,
  verb: 'created' | 'updated' = 'created',
): Change {
  const origin = { actor: 'contract', requestId: 'r-1', address: undefined, at: record.updated_at };
  return changeOf(resource, verb, { key, revision: record.revision, members: Object.keys(record) }, origin);
}

/** Commits one write. */
export async function commitWritten<W extends Insert>(store: Store, write: W): Promise<W> {
  expect(await store.commit([write])).toEqual(WRITTEN);
  return write;
}

/** The IDs of a realm, a user and the two profiles that a link needs. */
export interface RealmFixture {
  readonly realm: Uuid;
  readonly user: Uuid;
  readonly oidc: Uuid;
  readonly passwords: Uuid;
}

export async function createRealmFixture(store: Store): Promise<RealmFixture> {
  const ids = { realm: mintId(), user: mintId(), oidc: mintId(), passwords: mintId() };
  const result = await store.commit(realmFixtureWrites(ids));
  expect(result).toEqual({ kind: 'written' });
  return ids;
}

/** The records of the fixture, parents first. */
export function realmFixtureWrites(ids: RealmFixture): readonly Insert[] {
  return [
    insert(realm, [ids.realm], realmMembers),
    insert(oidcProfile, [ids.realm, ids.oidc], {
      name: 'Login',
      discovery_url: `${ISSUER}.well-known/openid-configuration`,
      client_id: 'shop',
      client_secret: new Uint8Array([1, 2, 3]),
      issuer: ISSUER,
    }),
    insert(passwordProfile, [ids.realm, ids.passwords], {
      name: 'Passwords',
      username_format: 'email',
      enable_one_time_password_token: true,
    }),
    insert(user, [ids.realm, ids.user], userMembers),
  ];
}

type LinkParents = Pick<RealmFixture, 'realm' | 'user' | 'oidc'>;

export const oidcLink = (at: LinkParents, subject: string, id = mintId()): Insert =>
  insert(oidcProfileInfo, [at.realm, at.user, id], { subject, issuer: ISSUER, oidc_profile_id: at.oidc });

export const usernameLink = (at: Omit<RealmFixture, 'oidc'>, username: string, id = mintId()): Insert =>
  insert(passwordProfileInfo, [at.realm, at.user, id], {
    username,
    password_profile_id: at.passwords,
    password_hash: PASSWORD_HASH,
  });

/** The members of a user that a read returns. */
const { email_vouched: _, ...shownUserMembers } = userMembers;

export const anotherUser = (fixture: Pick<RealmFixture, 'realm'>, id = mintId()): Insert =>
  insert(user, [fixture.realm, id], shownUserMembers);

export const commitWrites = (store: Store, ...writes: Write[]) => store.commit(writes);

/** The events of a realm's changes, oldest first, without the common prefix. */
export async function eventsOf(store: Store, realmId: Uuid, after = 0): Promise<readonly string[]> {
  const changes = await store.changes(realmId, after, 100_000);
  return changes.map(({ event }) => event.replace('user-authentication-', ''));
}

/** A removal request for this record. */
export const removalOf = (resource: Resource, key: Key) => ({
  resource,
  key,
  origin: { actor: 'remover', requestId: 'r-9', address: undefined, at: systemClock.now() },
  mintRevision: systemClock.mintRevision,
});

/** Commits one removal. */
export async function removeRecord(
  store: Pick<Store, 'commit'>,
  removal: Removal,
): Promise<{ readonly kind: 'removed' } | CommitRefusal> {
  const result = await store.commit([{ op: 'remove', ...removal }]);
  if (result.kind === 'already_answered') throw new Error('a removal has no idempotency record');
  return result.kind === 'written' ? { kind: 'removed' } : result;
}

/** A realm fixture whose user has `count` links of each kind. */
export async function createUserWithLinks(store: Store, count: number): Promise<RealmFixture> {
  const ids = { realm: mintId(), user: mintId(), oidc: mintId(), passwords: mintId() };
  for (const write of realmFixtureWrites(ids)) await commitWritten(store, write);
  const links = Array.from({ length: count }, (_, index) => [
    oidcLink(ids, `subject-${index}`),
    usernameLink(ids, `user-${index}@example.com`),
  ]).flat();
  // A cluster commits a few hundred writes of a realm before the last of them would time out.
  for (let start = 0; start < links.length; start += CONCURRENT_COMMITS) {
    await Promise.all(
      links.slice(start, start + CONCURRENT_COMMITS).map((link) => commitWritten(store, link)),
    );
  }
  return ids;
}

const CONCURRENT_COMMITS = 200;
