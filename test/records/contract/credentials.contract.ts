import { describe, expect, test } from 'bun:test';
import type { Uuid } from '../../../src/model/id.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import { createAuditEntry } from '../../../src/model/log/audit_entry.ts';
import { changeOf } from '../../../src/model/log/change.ts';
import { passwordProfile, passwordProfileInfo } from '../../../src/model/resources.ts';
import { systemClock } from '../../../src/ops/process/clock.ts';
import type { Credential, CredentialStore } from '../../../src/sign_in/store/credentials.ts';
import { PASSWORD_HASH } from '../../support/service.ts';
import {
  anotherUser,
  changeFor,
  commitWritten,
  createRealmFixture,
  type Insert,
  insert,
  mintId,
  type OpenStore,
  oidcLink,
  openForTests,
  removalOf,
  removeRecord,
  usernameLink,
  WRITTEN,
} from './store_fixtures.ts';

const { mintRevision, now } = systemClock;

export interface OpenCredentials extends OpenStore {
  readonly credentials: CredentialStore;
}

const OTHER_HASH = PASSWORD_HASH.replace('Zm9y', 'Zm9z');
const BCRYPT = `$2b$10$${'.'.repeat(53)}`;
const MADE = { hash: OTHER_HASH, isNormalised: true } as const;
const AUDIT_ENTRY = createAuditEntry('password.rehashed', { detail: {} }, { now });

function credentialOf(found: Credential | undefined): Credential {
  if (!found) throw new Error('no credential');
  return found;
}

function neverCompared(): never {
  throw new Error('the record exists already');
}

/** The credentials of a store, as their port documents them. */
export function credentialsContract(name: string, open: () => Promise<OpenCredentials>): void {
  describe(`credentials contract: ${name}`, () => {
    const { opened, store, fixture } = openForTests(open);

    const createLink = (username: string, members: Record<string, unknown> = {}): Promise<Insert> => {
      const write = usernameLink(fixture, username);
      return commitWritten(store, { ...write, record: { ...write.record, ...members } });
    };
    const idOf = (write: Insert) => write.key.at(-1) as Uuid;
    const get = async (write: Insert) => opened.credentials.get(fixture.realm, fixture.user, idOf(write));
    const find = async (key: string, profile = fixture.passwords, realm = fixture.realm) =>
      opened.credentials.find(realm, profile, key);
    const versionOf = async (write: Insert) => (await get(write))?.version;

    async function patch(write: Insert, members: Record<string, unknown>): Promise<void> {
      const patched = { members, revision: mintRevision(), at: now() };
      const { resource, key } = write;
      const result = await store.commit([{ op: 'patch', resource, key, patch: patched }]);
      expect(result.kind).toBe('written');
    }

    /** Patches a user. Resolves to the patch, and to the changes that it leaves. */
    async function patchUser({ resource, key }: Insert, members: Record<string, unknown>) {
      const patched = { members, revision: mintRevision(), at: now() };
      const origin = { actor: 'contract', requestId: 'r-1', address: undefined, at: patched.at };
      const named = { key, revision: patched.revision, members: Object.keys(members) };
      const change = changeOf(resource, 'updated', named, origin);
      const { length } = await store.changes(fixture.realm, 0, 100_000);
      const result = await store.commit([{ op: 'patch', resource, key, patch: patched, change }]);
      expect(result.kind).toBe('written');
      const left = (await store.changes(fixture.realm, 0, 100_000)).slice(length);
      return { ...patched, changes: left.map((each) => [each.id, each.members, each.revision]) };
    }

    /** Imports the record with other members. */
    async function replace(write: Insert, members: Record<string, unknown>): Promise<void> {
      const record = { ...write.record, ...members, revision: mintRevision() };
      const { resource, key } = write;
      const change = changeFor({ op: 'insert', resource, key, record }, 'updated');
      const compare = () => ({ comparison: 'replace', change, record }) as const;
      const load = { write: { op: 'insert', resource, key, record, change: write.change }, compare } as const;
      expect(await store.load([load], true)).toEqual([{ kind: 'replaced' }]);
    }

    test('a credential is found by the folded username in its profile, and by its ID', async () => {
      const link = await createLink('Jäne@Example.com');
      const expected = {
        realmId: fixture.realm,
        profileId: fixture.passwords,
        userId: fixture.user,
        infoId: idOf(link),
        hash: PASSWORD_HASH,
        isNormalised: false,
        version: link.record.revision,
      };
      expect(await find('jäne@example.com')).toEqual(expected);
      expect(await get(link)).toEqual(expected);
      expect(await find('Jäne@Example.com')).toBeUndefined();
      expect(await find('jane@example.com')).toBeUndefined();
      expect(await opened.credentials.get(fixture.realm, mintId(), idOf(link))).toBeUndefined();
      expect(await opened.credentials.get(fixture.realm, fixture.user, mintId())).toBeUndefined();
    });

    test('a credential is not found in another realm or profile, also where their IDs are the same', async () => {
      const link = await createLink('two-realms@example.com');
      const other = await createRealmFixture(store);
      const second = insert(passwordProfile, [fixture.realm, mintId()], {
        name: 'Second',
        username_format: 'email',
        enable_one_time_password_token: false,
      });
      await commitWritten(store, second);
      expect(await find('two-realms@example.com', idOf(second))).toBeUndefined();
      expect(await find('two-realms@example.com', fixture.passwords, other.realm)).toBeUndefined();
      expect(await opened.credentials.get(other.realm, fixture.user, idOf(link))).toBeUndefined();
      // Another realm may import records with the same IDs.
      const copies = { ...other, passwords: fixture.passwords, user: fixture.user };
      await commitWritten(store, insert(passwordProfile, [other.realm, fixture.passwords], second.record));
      await commitWritten(store, anotherUser(copies, copies.user));
      const twin = usernameLink(copies, 'two-realms@example.com', idOf(link));
      await commitWritten(store, { ...twin, record: { ...twin.record, password_hash: BCRYPT } });
      expect((await find('two-realms@example.com'))?.hash).toBe(PASSWORD_HASH);
      expect((await find('two-realms@example.com', fixture.passwords, other.realm))?.hash).toBe(BCRYPT);
      expect((await opened.credentials.get(other.realm, fixture.user, idOf(link)))?.realmId).toBe(
        other.realm,
      );
    });

    test('a credential has no hash where there is none, and where it costs more than a check may', async () => {
      const hashes = [
        undefined,
        `$2b$13$${'.'.repeat(53)}`,
        PASSWORD_HASH.replace('m=19456,t=2', 'm=262144,t=3'),
      ];
      for (const [index, password_hash] of hashes.entries()) {
        const link = await createLink(`no-hash-${index}@example.com`, { password_hash });
        expect(await get(link)).toMatchObject({ hash: undefined, isNormalised: false });
        expect(await opened.credentials.rehash(credentialOf(await get(link)), MADE, AUDIT_ENTRY)).toBe(false);
        expect(await get(link)).toMatchObject({ hash: undefined });
      }
    });

    test('a credential has another version after each write of its password, and after no other write', async () => {
      const link = await createLink('versions@example.com');
      const versions = [await versionOf(link)];
      await patch(link, { username: 'versions-2@example.com' });
      expect(await versionOf(link)).toBe(versions[0] as string);
      await patch(link, { password_hash: OTHER_HASH, password_normalised: true });
      versions.push(await versionOf(link));
      await patch(link, {});
      expect(await versionOf(link)).toBe(versions[1] as string);
      // The same hash again is another password: who set it meant to end what the old one began.
      await patch(link, { password_hash: OTHER_HASH });
      versions.push(await versionOf(link));
      expect(new Set(versions).size).toBe(3);
      for (const version of versions) expect(version).toMatch(/^[0-9a-f]{16}$/);
    });

    test('a credential has another version after an import of another hash, and after no other import', async () => {
      const link = await createLink('imported@example.com');
      const first = await versionOf(link);
      await replace(link, { username: 'imported-2@example.com' });
      expect(await get(link)).toMatchObject({ version: first as string, hash: PASSWORD_HASH });
      await replace(link, { password_hash: BCRYPT });
      const second = await versionOf(link);
      expect(second).not.toBe(first);
      await replace(link, { password_hash: undefined });
      expect(await get(link)).toMatchObject({ hash: undefined, version: '' });
      await replace(link, { password_hash: PASSWORD_HASH });
      const third = await versionOf(link);
      expect(third).toMatch(/^[0-9a-f]{16}$/);
      expect([first, second]).not.toContain(third);
    });

    test('a disabled user has no credential, and once enabled again one of another version', async () => {
      const jane = await commitWritten(store, anotherUser(fixture));
      const at = { ...fixture, user: jane.record.id };
      const link = await commitWritten(store, usernameLink(at, 'disabled@example.com'));
      const own = async () => opened.credentials.get(at.realm, at.user, idOf(link));
      const before = credentialOf(await own());
      await patchUser(jane, { enabled: false });
      expect([await own(), await find('disabled@example.com')]).toEqual([undefined, undefined]);
      expect(await opened.credentials.rehash(before, MADE, AUDIT_ENTRY)).toBe(false);
      await patchUser(jane, { enabled: true });
      const after = credentialOf(await own());
      expect(after).toEqual({ ...before, version: expect.stringMatching(/^[0-9a-f]{16}$/) });
      expect(after.version).not.toBe(before.version);
      expect(await find('disabled@example.com')).toEqual(after);
    });

    test('a patch that disables a user gives each link of the user its revision, and no other patch does', async () => {
      const jane = await commitWritten(store, anotherUser(fixture));
      const at = { ...fixture, user: jane.record.id };
      const links = [
        await commitWritten(store, oidcLink(at, 'of a disabled user')),
        await commitWritten(store, usernameLink(at, 'of-a-disabled-user@example.com')),
        await commitWritten(store, oidcLink(fixture, 'of another user')),
      ];
      const read = () => Promise.all(links.map(({ resource, key }) => store.get(resource, key)));
      const before = await read();
      const { revision, at: time, changes } = await patchUser(jane, { enabled: false });
      const after = await read();
      expect(after.map((record) => record?.revision)).toEqual([revision, revision, before[2]?.revision]);
      expect(after[0]?.updated_at).toBe(Math.max(time, before[0]?.updated_at ?? 0));
      expect(changes[0]).toEqual([jane.record.id, ['enabled'], revision]);
      const touched = links.slice(0, 2).map(({ record }) => [record.id, ['updated_at'], revision]);
      expect(changes.slice(1).sort()).toEqual(touched.sort());
      for (const members of [{ enabled: false, name: 'Again' }, { enabled: true }, { enabled: true }, {}])
        expect((await patchUser(jane, members)).changes).toHaveLength(1);
      expect(await read()).toEqual(after);
    });

    test('a new hash replaces the stored one only if that is still the same, and nothing else changes', async () => {
      const link = await createLink('rehashed@example.com');
      const before = await store.get(passwordProfileInfo, link.key);
      const changes = await store.changes(fixture.realm, 0, 100_000);
      const credential = credentialOf(await get(link));
      expect(await opened.credentials.rehash({ ...credential, hash: BCRYPT }, MADE, AUDIT_ENTRY)).toBe(false);
      expect(await get(link)).toEqual(credential);
      const results = await Promise.all(
        Array.from({ length: 5 }, () => opened.credentials.rehash(credential, MADE, AUDIT_ENTRY)),
      );
      expect(results.filter(Boolean).length).toBe(1);
      expect(await get(link)).toEqual({ ...credential, ...MADE });
      expect(await store.get(passwordProfileInfo, link.key)).toEqual(before);
      expect(await store.changes(fixture.realm, 0, 100_000)).toEqual(changes);
    });

    test('a new hash is not stored for a link that was removed or got another password meanwhile', async () => {
      const removed = await createLink('removed@example.com');
      const credential = credentialOf(await get(removed));
      expect(await removeRecord(store, removalOf(passwordProfileInfo, removed.key))).toEqual({
        kind: 'removed',
      });
      expect(await opened.credentials.rehash(credential, MADE, AUDIT_ENTRY)).toBe(false);
      expect(await get(removed)).toBeUndefined();
      const changed = await createLink('changed@example.com');
      const stale = credentialOf(await get(changed));
      await patch(changed, { password_hash: BCRYPT, password_normalised: true });
      expect(await opened.credentials.rehash(stale, MADE, AUDIT_ENTRY)).toBe(false);
      expect((await get(changed))?.hash).toBe(BCRYPT);
    });

    /** A realm, and how to create usernames in its profile. */
    async function createProfile() {
      const at = await createRealmFixture(store);
      return {
        at,
        kinds: () => opened.credentials.hashKinds(at.realm, at.passwords),
        linkOf(username: string, password_hash?: string, password_normalised?: boolean) {
          const link = usernameLink(at, username);
          return { ...link, record: { ...link.record, password_hash, password_normalised } };
        },
      };
    }

    test('the kinds of hashes are counted among the first 1,000 usernames of a profile, in an order of their own', async () => {
      const { at, kinds, linkOf } = await createProfile();
      expect(await kinds()).toEqual([]);
      const other = insert(passwordProfile, [at.realm, mintId()], {
        ...{ name: 'Other', username_format: 'any', enable_one_time_password_token: false },
      });
      const elsewhere = usernameLink({ ...at, passwords: idOf(other) }, 'elsewhere');
      const links = [
        linkOf('d@example.com', BCRYPT),
        linkOf('c@example.com'),
        linkOf('b@example.com', OTHER_HASH),
        linkOf('a@example.com', OTHER_HASH, true),
        linkOf('e@example.com', BCRYPT),
        { ...elsewhere, record: { ...elsewhere.record, password_hash: BCRYPT } },
      ];
      expect(await store.commit([other, ...links])).toEqual(WRITTEN);
      const argon2id = '$argon2id$v=19$m=19456,t=2,p=1$';
      expect(await kinds()).toEqual([
        { kind: '$2b$10$', isNormalised: false, count: 2 },
        { kind: argon2id, isNormalised: false, count: 1 },
        { kind: argon2id, isNormalised: true, count: 1 },
      ]);
      expect(await opened.credentials.hashKinds(at.realm, mintId())).toEqual([]);
      const loads = Array.from({ length: LIMITS.listRecordsInlineMax }, (_, index) => ({
        write: linkOf(`many-${index}@example.com`, OTHER_HASH),
        compare: () => neverCompared(),
      }));
      expect((await store.load(loads, true)).every(({ kind }) => kind === 'written')).toBe(true);
      // One of the first usernames has no hash.
      const total = (await kinds()).reduce((sum, { count }) => sum + count, 0);
      expect(total).toBe(LIMITS.listRecordsInlineMax - 1);
    });

    test('a hash counts as its kind, and one whose parameters are spelled as no check accepts them as no hash', async () => {
      const { at, kinds, linkOf } = await createProfile();
      const [salt, digest] = ['A'.repeat(22), 'A'.repeat(43)];
      const counted: readonly (readonly [kind: string, rest: string])[] = [
        ['$2a$04$', '.'.repeat(53)],
        ['$2y$12$', '.'.repeat(53)],
        ['$argon2i$v=19$m=256,t=3,p=1$', `${salt}$${digest}`],
        ['$argon2id$v=19$m=64,t=2,p=8$', `${salt}$${digest}`],
        ['$argon2id$v=19$m=65536,t=1,p=1$', `${'A'.repeat(11)}$${'A'.repeat(16)}`],
        ['$argon2id$v=19$m=65536,t=2,p=1$', `${'A'.repeat(86)}$${'A'.repeat(86)}`],
      ];
      const uncounted = [
        'm=256,p=1,t=3',
        'p=1,m=256,t=3',
        't=3,m=256,p=1',
        'm=256,t=3,p=01',
        'm=256,t=3,p=9',
      ].map((parameters) => `$argon2id$v=19$${parameters}$${salt}$${digest}`);
      uncounted.push('$2b$13$'.padEnd(60, '.'), `$argon2id$m=256,t=3,p=1$${salt}$${digest}`);
      const hashes = [...counted.map((parts) => parts.join('')), ...uncounted];
      expect(await store.commit(hashes.map((hash, index) => linkOf(`name-${index}`, hash)))).toEqual(WRITTEN);
      for (const [index, hash] of hashes.entries())
        expect((await find(`name-${index}`, at.passwords, at.realm))?.hash).toBe(
          index < counted.length ? hash : undefined,
        );
      const found = (await kinds()).map(({ kind, count }) => [kind, count]);
      expect(found.sort()).toEqual(counted.map(([kind]) => [kind, 1]));
    });
  });
}
