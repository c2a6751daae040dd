import { afterAll, describe, expect, test } from 'bun:test';
import { type Keyring, keyCheckOf, openKeyring } from '../../src/auth/keys/keyring.ts';
import type { IdempotencyRecord, Patch } from '../../src/directory/store.ts';
import { createAuditEntry } from '../../src/domain/audit_entry.ts';
import { Fault } from '../../src/domain/fault.ts';
import { NIL_UUID } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { oidcProfile } from '../../src/domain/resources.ts';
import { startExpiry } from '../../src/jobs/expiry.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openDatabase } from '../../src/service/open_database.ts';
import { findPort } from '../support/daemons.ts';
import { freshDatabase } from '../support/database.ts';
import { FULL_SCOPE, kindOf } from '../support/resource_cases.ts';
import { createFixture, startService } from '../support/service.ts';
import {
  commitWrites,
  commitWritten,
  mintId,
  realmFixtureWrites,
  WRITTEN,
} from './contract/store_fixtures.ts';

const keyringOf = () => openKeyring(systemClock.randomBytes(32), systemClock);
const now = systemClock.now();
const database = await freshDatabase();
const first = keyringOf();
/** The keyring whose key check the database holds. */
let current = first;

const engine = await database.open();
const ids = { realm: mintId(), user: mintId(), oidc: mintId(), passwords: mintId() };
for (const write of realmFixtureWrites(ids).filter(({ resource }) => resource !== oidcProfile))
  await commitWritten(engine.records, write);
await engine.access.insertKeyCheck(keyCheckOf(first), now);
afterAll(() => engine.close());

/** An idempotency record whose answer is sealed by this keyring. */
function newRecord(keyring: Keyring): IdempotencyRecord {
  const scope = { realm: ids.realm, clientId: 'client', key: keyring.digest('idempotency-key', mintId()) };
  const at = { table: 'idempotency', column: 'answer_sealed', realm: ids.realm, id: scope.key };
  return {
    ...scope,
    body: keyring.digest('request-body', '{}'),
    status: 201,
    recordId: mintId(),
    user: ids.user,
    sealed: keyring.seal('remembered-answer', at, '{"status":201}'),
    at: now,
    expiresAt: now + LIMITS.idempotencyMsMax,
  };
}

const save = (record: IdempotencyRecord) => engine.records.commit([], record);
/** Saves in batches: a save that waits too long is refused. */
const SAVES_AT_ONCE = 500;
async function saveAll(all: readonly IdempotencyRecord[]): Promise<void> {
  for (let start = 0; start < all.length; start += SAVES_AT_ONCE) {
    await Promise.all(all.slice(start, start + SAVES_AT_ONCE).map(save));
  }
}
const expectUnavailable = async (work: Promise<unknown>) => {
  const fault = await work.catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(Fault);
  expect((fault as Fault).code).toBe('unavailable');
};

const changed = createAuditEntry('master-key.changed', { detail: {} }, systemClock);

describe('idempotency records and the master key', () => {
  test('an idempotency record sealed by a key without a key check is refused', async () => {
    const unproven = keyringOf();
    const record = newRecord(unproven);
    await expectUnavailable(save(record));
    expect(await engine.records.loadIdempotencyRecord(record, now)).toBeUndefined();
    expect(await save(newRecord(first))).toEqual(WRITTEN);
  });

  test('a patch with a secret sealed by a key without a key check is refused', async () => {
    const profile = realmFixtureWrites(ids)[1];
    if (!profile) throw new Error('no profile');
    const { client_secret, ...members } = profile.record;
    await commitWritten(engine.records, { ...profile, record: members as typeof profile.record });
    const at = { table: 'oidc_profile', column: 'client_secret_sealed', realm: ids.realm, id: ids.oidc };
    const commitPatch = (keyring: Keyring) => {
      const secret = keyring.seal('oidc-client-secret', at, 'of the provider');
      const patch: Patch = {
        members: { client_secret: secret },
        revision: systemClock.mintRevision(),
        at: now,
      };
      return commitWrites(engine.records, { op: 'patch', resource: oidcProfile, key: profile.key, patch });
    };
    await expectUnavailable(commitPatch(keyringOf()));
    expect((await commitPatch(first)).kind).toBe('written');
    const stored = await engine.sealed.values(undefined, undefined, 10);
    expect(stored.map(({ location, sealed }) => first.open('oidc-client-secret', location, sealed))).toEqual([
      'of the provider',
    ]);
  });

  test('a change of the master key deletes the old key check and its idempotency records', async () => {
    const next = keyringOf();
    const [old, fresh] = [newRecord(first), newRecord(next)];
    await save(old);
    expect(await engine.sealed.addKeyCheck(keyCheckOf(next), now)).toBe(true);
    await save(fresh);
    // Idempotency records are not sealed again, other values are.
    const values = await engine.sealed.values(next.keyId, undefined, 10);
    expect(values.map(({ location }) => location.table)).toEqual(['oidc_profile']);
    expect(await engine.sealed.retireOtherKeys(next.keyId, changed)).toBe(false);
    expect(await engine.records.loadIdempotencyRecord(old, now)).toEqual(old);
    await engine.sealed.replace(
      values.map(({ location, sealed: seen }) => {
        const plain = first.open('oidc-client-secret', location, seen);
        return { location, seen, sealed: next.seal('oidc-client-secret', location, plain) };
      }),
    );
    expect(await engine.sealed.retireOtherKeys(next.keyId, changed)).toBe(true);
    expect(await engine.records.loadIdempotencyRecord(old, now)).toBeUndefined();
    expect(await engine.records.loadIdempotencyRecord(fresh, now)).toEqual(fresh);
    await expectUnavailable(save(newRecord(first)));
    current = next;
  });

  test('the idempotency records of an old master key are deleted before its key check, a thousand per commit', async () => {
    const next = keyringOf();
    const many = Array.from({ length: 3 * LIMITS.cascadeRecordsMax }, () => newRecord(current));
    await saveAll(many);
    await engine.sealed.addKeyCheck(keyCheckOf(next), now);
    const values = await engine.sealed.values(next.keyId, undefined, 10);
    await engine.sealed.replace(
      values.map(({ location, sealed: seen }) => {
        const plain = current.open('oidc-client-secret', location, seen);
        return { location, seen, sealed: next.seal('oidc-client-secret', location, plain) };
      }),
    );
    const counts = new Set<number>();
    let isOver = false;
    const { ask, close } = database.connect();
    const count = async () => {
      const [row] = await ask<{ n: number }>('select count(*) as n from idempotency');
      return row?.n ?? 0;
    };
    const before = await count();
    const retiring = engine.sealed.retireOtherKeys(next.keyId, changed).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await Bun.sleep(0);
      counts.add(await count());
    }
    expect(await retiring).toBe(true);
    current = next;
    // Another connection may miss a step, but never sees a count between two steps.
    const steps = [1_000, 2_000, 3_000].map((deleted) => before - deleted);
    expect([before, ...steps, await count()]).toEqual(expect.arrayContaining([...counts]));
    expect(steps.some((left) => counts.has(left))).toBe(true);
    await close();
    expect((await engine.access.keyChecks()).map(({ keyId }) => keyId)).toEqual([next.keyId]);
  });
});

describe('expired idempotency records', () => {
  const expired = () => ({ ...newRecord(current), at: now - 1_000, expiresAt: now - 500 });
  const isStored = async (each: IdempotencyRecord) =>
    (await engine.records.loadIdempotencyRecord(each, now - 600)) !== undefined;
  const untilDeleted = async (each: IdempotencyRecord) => {
    while (await isStored(each)) await Bun.sleep(1);
  };

  test('expired idempotency records are deleted when a sweep starts and at every interval', async () => {
    const record = { ...newRecord(current), expiresAt: now + 3_600_000 };
    const old = [expired(), expired(), expired()] as const;
    await save(record);
    await saveAll([old[0]]);
    const sweeping = startExpiry([engine.records.sweepIdempotency], systemClock, 5);
    await untilDeleted(old[0]);
    await saveAll([old[1]]);
    await untilDeleted(old[1]);
    await sweeping.stop();
    await saveAll([old[2]]);
    await Bun.sleep(50);
    expect([await isStored(old[2]), await isStored(record)]).toEqual([true, true]);
  });

  test('any number of expired idempotency records is deleted, a thousand per commit', async () => {
    const many = Array.from({ length: 2 * LIMITS.cascadeRecordsMax + 1 }, expired);
    await saveAll(many);
    const sweeping = startExpiry([engine.records.sweepIdempotency], systemClock, 3_600_000);
    await untilDeleted(many.at(-1) as IdempotencyRecord);
    await sweeping.stop();
  });

  test('a sweep that fails does not prevent later sweeps', async () => {
    const [old, faults] = [expired(), [new Fault('unavailable'), new Fault('unavailable')]];
    await saveAll([old]);
    const sweep = (at: number) => {
      const fault = faults.pop();
      return fault ? Promise.reject(fault) : engine.records.sweepIdempotency(at);
    };
    const sweeping = startExpiry([sweep], systemClock, 5);
    await untilDeleted(old);
    await sweeping.stop();
  });

  test('expired idempotency records are deleted when a service starts', async () => {
    const swept = await freshDatabase();
    const db = await openDatabase(swept.settings(), systemClock);
    const { keyring } = db;
    const { records } = db.engine;
    const location = { table: 'idempotency', column: 'answer_sealed', realm: NIL_UUID, id: 'key' };
    const old = {
      ...expired(),
      realm: NIL_UUID,
      sealed: keyring.seal('remembered-answer', location, '{}'),
    };
    await records.commit([], old);
    await db.engine.close();
    const service = await startService(swept.flags);
    while (await service.db.engine.records.loadIdempotencyRecord(old, now - 600)) await Bun.sleep(1);
  });
});

test('a refusal for an unreachable provider is not replayed: the same request succeeds once it answers', async () => {
  const service = await startService({ allowPrivate: 'localhost 127.0.0.0/8' });
  const token = await service.token(FULL_SCOPE);
  const { realm: id } = await createFixture(service.db);
  const port = findPort();
  const issuer = `http://127.0.0.1:${port}`;
  const home = { realm: id, oidcProfile: '', passwordProfile: '', user: '' };
  const profile = {
    ...kindOf(oidcProfile).fresh(home),
    discovery_url: `${issuer}/.well-known/openid-configuration`,
  };
  const key = { 'Idempotency-Key': mintId() };
  const post = (data: object) =>
    service.post(`/v2/authentication-realms/${id}/oidc-profiles`, token, { data }, key);
  expect((await post(profile)).status).toBe(422);
  const provider = Bun.serve({ hostname: '127.0.0.1', port, fetch: () => Response.json({ issuer }) });
  expect((await post(profile)).status).toBe(201);
  await provider.stop(true);
});
