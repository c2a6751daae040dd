import { expect } from 'bun:test';
import type { Loader, Store, Write } from '../../../src/directory/store.ts';
import { type Change, changeOf } from '../../../src/domain/change.ts';
import type { Uuid } from '../../../src/domain/id.ts';
import type { Key, Resource } from '../../../src/domain/resource.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  realm,
  user,
} from '../../../src/domain/resources.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { ISSUER, PASSWORD_HASH, realmMembers, stamped, userMembers } from '../../support/service.ts';

export interface OpenStore {
  readonly store: Store & Loader;
  close(): void | Promise<void>;
}

export type Insert = Extract<Write, { op: 'insert' }>;

export const mint = systemClock.mintId;
export const LANDED = { kind: 'written' } as const;
export const ABSENT = { kind: 'not_found' } as const;

export function insert(resource: Resource, key: Key, members: Record<string, unknown>): Insert {
  return { op: 'insert', resource, key, record: stamped(key, members) };
}

export function changeFor(
  { resource, key, record }: Insert,
  verb: 'created' | 'updated' = 'created',
): Change {
  const origin = { actor: 'contract', requestId: 'r-1', address: undefined, at: record.updated_at };
  return changeOf(resource, verb, { key, revision: record.revision, members: Object.keys(record) }, origin);
}

/** A write that the log reports. */
export function logged<W extends Insert>(write: W): W {
  return { ...write, change: changeFor(write) };
}

/** Lands one write with its change. */
export async function put<W extends Insert>(store: Store, write: W): Promise<W> {
  expect(await store.commit([logged(write)])).toEqual(LANDED);
  return write;
}

/** A realm with everything a link can hang on. */
export interface Ground {
  readonly realm: Uuid;
  readonly user: Uuid;
  readonly oidc: Uuid;
  readonly passwords: Uuid;
}

export async function ground(store: Store): Promise<Ground> {
  const ids = { realm: mint(), user: mint(), oidc: mint(), passwords: mint() };
  const verdict = await store.commit(groundWrites(ids));
  expect(verdict).toEqual({ kind: 'written' });
  return ids;
}

/** What a ground is made of, parents first. */
export function groundWrites(ids: Ground): readonly Insert[] {
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

type LinkGround = Pick<Ground, 'realm' | 'user' | 'oidc'>;

export const oidcLink = (at: LinkGround, subject: string, id = mint()): Insert =>
  insert(oidcProfileInfo, [at.realm, at.user, id], { subject, issuer: ISSUER, oidc_profile_id: at.oidc });

export const usernameLink = (at: Omit<Ground, 'oidc'>, username: string, id = mint()): Insert =>
  insert(passwordProfileInfo, [at.realm, at.user, id], {
    username,
    password_profile_id: at.passwords,
    password_hash: PASSWORD_HASH,
  });

export const anotherUser = (at: Ground, id = mint()): Insert => insert(user, [at.realm, id], userMembers);

export const land = (store: Store, ...writes: Write[]) => store.commit(writes);

/** The events of a realm's changes, oldest first, without the common beginning of the links' names. */
export async function eventsOf(store: Store, realmId: Uuid, after = 0): Promise<readonly string[]> {
  const changes = await store.changes(realmId, after, 100_000);
  return changes.map(({ event }) => event.replace('user-authentication-', ''));
}

/** Who removes, and with which revisions for those that lose something. */
export const removing = (resource: Resource, key: Key) => ({
  resource,
  key,
  origin: { actor: 'remover', requestId: 'r-9', address: undefined, at: systemClock.now() },
  mintRevision: systemClock.mintRevision,
});

/** A ground whose one user has so many links of either kind. */
export async function crowdedGround(store: Store, count: number): Promise<Ground> {
  const ids = { realm: mint(), user: mint(), oidc: mint(), passwords: mint() };
  for (const write of groundWrites(ids)) await put(store, write);
  const links = Array.from({ length: count }, (_, index) => [
    oidcLink(ids, `subject-${index}`),
    usernameLink(ids, `user-${index}@example.com`),
  ]).flat();
  await Promise.all(links.map((link) => put(store, link)));
  return ids;
}
