import { afterAll, expect } from 'bun:test';
import { openDatabase } from '../../src/app/open_database.ts';
import type { Uuid } from '../../src/model/id.ts';
import type { AnyRecord, Resource } from '../../src/model/resource.ts';
import { oidcProfile, oidcProfileInfo, realm, user } from '../../src/model/resources.ts';
import type { Loader, Store } from '../../src/model/store.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openDirectory } from '../../src/records/directory.ts';
import { type LinkedIdentity, openIdentityLinking } from '../../src/records/identity_linking.ts';
import { openFreshDatabase } from '../support/database.ts';
import { insertRecord, realmMembers } from '../support/service.ts';

/** The client of the sign-ins, and that of other writes. */
export const SHOP = { actor: 'client:shop', requestId: 'r-1', address: '192.0.2.1' };
export const OPERATOR = { actor: 'client:operator', requestId: 'r-2', address: undefined };
const ISSUER = 'https://login.example.com/';
export const OTHER_ISSUER = 'https://other.example.net/';

export type Identity = Parameters<ReturnType<typeof openIdentityLinking>['link']>[0];

/** A new subject, whose address is verified. */
export function identityOf(more: Partial<Identity> = {}): Identity {
  return {
    ...{ issuer: ISSUER, subject: `auth0|${systemClock.mintId()}`, email: 'mike@github.com' },
    ...{ isEmailVerified: true, names: {}, amr: undefined },
    ...more,
  };
}

/** A place to link at: a realm with a profile. */
export interface Place {
  readonly realm: AnyRecord;
  readonly profileId: Uuid;
  readonly mayCreate: true;
}

export type LinkingFixture = Awaited<ReturnType<typeof openLinkingFixture>>;

export type Contents = Awaited<ReturnType<LinkingFixture['contentsOf']>>;

/** Identity linking on a database of its own, and what surrounds it. After the tests of a file the database is consistent. */
export async function openLinkingFixture() {
  const { database, db } = await openFreshDatabase();
  const other = await openDatabase(database.settings(), systemClock);
  afterAll(async () => {
    await Promise.all([db.engine.close(), other.engine.close()]);
    expect(await database.findInconsistencies()).toEqual([]);
  });
  const { records: store, access } = db.engine;
  const settings = { installation: await access.storeId(), issuersMatch: true };
  const writing = (over: Store) => {
    const unused = () => expect.unreachable();
    const deps = { seal: unused, hashPassword: unused, discoverIssuer: undefined, get: over.get };
    return openDirectory(over, deps, settings, systemClock);
  };
  const writeRecords = writing(store);

  async function createProfile(realmId: Uuid, issuer: string): Promise<Uuid> {
    const id = systemClock.mintId();
    const discovery_url = `${issuer}.well-known/openid-configuration`;
    const members = { name: 'Login', discovery_url, client_id: 'shop', issuer };
    await insertRecord(db, oidcProfile, [realmId, id], members);
    return id;
  }

  return {
    store,
    /** `replaced`: functions of the store that the test replaces, to write between two steps. */
    open: (replaced: Partial<Store & Loader> = {}) =>
      openIdentityLinking({ store: { ...store, ...replaced }, writeRecords }),
    /** The same over connections of its own, as another process has them. */
    openOther: () =>
      openIdentityLinking({ store: other.engine.records, writeRecords: writing(other.engine.records) }),
    createProfile,
    async createPlace(duplicate_email_policy: string, issuer = ISSUER): Promise<Place> {
      const id = systemClock.mintId();
      const record = await insertRecord(db, realm, [id], { ...realmMembers, duplicate_email_policy });
      return { realm: record, profileId: await createProfile(id, issuer), mayCreate: true };
    },
    async createUser(realmId: Uuid, email: string, email_vouched = true): Promise<Uuid> {
      const body = { data: { type: user.type, name: 'Mike', email } };
      const fixed = { email_vouched };
      const request = { verb: 'create', resource: user, scope: [realmId], body, fixed } as const;
      return (await writeRecords([request], OPERATOR))?.created[0]?.record.id as Uuid;
    },
    async changeUser(realmId: Uuid, id: Uuid, members: object): Promise<void> {
      const body = { data: { type: user.type, ...members } };
      const key = [realmId, id] as const;
      await writeRecords(
        [{ verb: 'update', resource: user, key, expectedRevision: undefined, body }],
        OPERATOR,
      );
    },
    async remove(resource: Resource, key: readonly [Uuid, Uuid]): Promise<void> {
      await writeRecords([{ verb: 'remove', resource, key, expectedRevision: undefined }], OPERATOR);
    },
    /** The users of a realm with their hidden members, their links, and all changes. */
    async contentsOf(realmId: Uuid) {
      const snapshot = await store.openSnapshot();
      try {
        const scan = (resource: Resource) => snapshot.scan(resource, { realm: '', id: '' }, 1_000, realmId);
        const users = (await scan(user)).map(({ record }) => record);
        return { users, links: await scan(oidcProfileInfo), changes: await store.changes(realmId, 0, 1_000) };
      } finally {
        snapshot.close();
      }
    },
  };
}

/** The result of an identity that was linked. */
export function linkedOf(result: LinkedIdentity | string): LinkedIdentity {
  if (typeof result === 'string') throw new Error(`refused: ${result}`);
  return result;
}

/** The events since `before`; all of them are of the client of the sign-in. */
export function eventsSince(before: Contents, { changes }: Contents): readonly string[] {
  const added = changes.slice(before.changes.length);
  expect(new Set(added.map(({ actor }) => actor))).toEqual(new Set([SHOP.actor]));
  return added.map(({ event }) => event);
}

export const LINKED = ['user-authentication-oidc-profile-info.created', 'user-authentication-info.updated'];
