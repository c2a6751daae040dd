import { afterAll, expect, test } from 'bun:test';
import { type Keyring, keyCheckOf, openKeyring } from '../../src/access/keys/keyring.ts';
import { Fault } from '../../src/model/fault.ts';
import { createAuditEntry } from '../../src/model/log/audit_entry.ts';
import { oidcProfile } from '../../src/model/resources.ts';
import type { Patch } from '../../src/model/store.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import {
  commitWrites,
  commitWritten,
  mintId,
  realmFixtureWrites,
} from '../records/contract/store_fixtures.ts';
import { freshDatabase } from '../support/database.ts';

/** A store refuses secrets that were sealed by a replaced master key. */

const keyringOf = () => openKeyring([systemClock.randomBytes(32)], systemClock);
const now = systemClock.now();
const first = keyringOf();
const engine = await (await freshDatabase()).open();
afterAll(() => engine.close());

const ids = { realm: mintId(), user: mintId(), oidc: mintId(), passwords: mintId() };
const [, profile] = realmFixtureWrites(ids);
if (!profile) throw new Error('no profile');
for (const write of realmFixtureWrites(ids)) {
  const { client_secret, ...members } = write.record;
  await commitWritten(engine.records, { ...write, record: members as typeof write.record });
}
await engine.access.insertKeyCheck(keyCheckOf(first), now);

const location = { table: 'oidc_profile', column: 'client_secret_sealed', realm: ids.realm, id: ids.oidc };
const sealBy = (keyring: Keyring) => keyring.seal('oidc-client-secret', location, 'of the provider');

function commitSecret(keyring: Keyring) {
  const members = { client_secret: sealBy(keyring) };
  const patch: Patch = { members, revision: systemClock.mintRevision(), at: now };
  const key = [ids.realm, ids.oidc] as const;
  return commitWrites(engine.records, { op: 'patch', resource: oidcProfile, key, patch });
}

async function expectUnavailable(work: Promise<unknown>): Promise<void> {
  const fault = await work.catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(Fault);
  expect((fault as Fault).code).toBe('unavailable');
}

test('a secret is stored if the key that sealed it has a key check, also while the key is changed, and not after that', async () => {
  const [next, unproven] = [keyringOf(), keyringOf()];
  await expectUnavailable(commitSecret(unproven));
  expect((await commitSecret(first)).kind).toBe('written');
  const stored = await engine.sealed.values(undefined, undefined, 10);
  expect(stored.map(({ location: at, sealed }) => first.open('oidc-client-secret', at, sealed))).toEqual([
    'of the provider',
  ]);

  expect(await engine.sealed.addKeyCheck(keyCheckOf(next), now)).toBe(true);
  const changed = createAuditEntry('master-key.changed', { detail: {} }, systemClock);
  expect(await engine.sealed.retireOtherKeys(next.keyId, changed)).toBe(false);
  await engine.sealed.replace([{ location, seen: stored[0]?.sealed as Uint8Array, sealed: sealBy(next) }]);
  expect(await engine.sealed.retireOtherKeys(next.keyId, changed)).toBe(true);
  expect((await engine.access.keyChecks()).map(({ keyId }) => keyId)).toEqual([next.keyId]);
  await expectUnavailable(commitSecret(first));
  expect((await commitSecret(next)).kind).toBe('written');
});
