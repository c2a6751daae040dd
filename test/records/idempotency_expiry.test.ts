import { afterAll, describe, expect, test } from 'bun:test';
import { startExpiry } from '../../src/app/expiry.ts';
import { openDatabase } from '../../src/app/open_database.ts';
import { Fault } from '../../src/model/fault.ts';
import { NIL_UUID } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { oidcProfile } from '../../src/model/resources.ts';
import type { IdempotencyRecord } from '../../src/model/store.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { findPort } from '../support/daemons.ts';
import { freshDatabase } from '../support/database.ts';
import { FULL_SCOPE, kindOf } from '../support/resource_cases.ts';
import { createFixture, startService } from '../support/service.ts';
import { createRealmFixture, mintId } from './contract/store_fixtures.ts';

const now = systemClock.now();
const engine = await (await freshDatabase()).open();
const { realm } = await createRealmFixture(engine.records);
afterAll(() => engine.close());

const newRecord = (): IdempotencyRecord => ({
  ...{ realm, clientId: 'client', key: mintId(), body: 'digest' },
  created: [mintId()],
  fault: undefined,
  at: now,
  expiresAt: now + LIMITS.idempotencyMsMax,
});
const save = (record: IdempotencyRecord) => engine.records.commit([], record);
/** Saves in batches: a save that waits too long is refused. */
const SAVES_AT_ONCE = 500;
async function saveAll(all: readonly IdempotencyRecord[]): Promise<void> {
  for (let start = 0; start < all.length; start += SAVES_AT_ONCE) {
    await Promise.all(all.slice(start, start + SAVES_AT_ONCE).map(save));
  }
}

describe('expired idempotency records', () => {
  const expired = () => ({ ...newRecord(), at: now - 1_000, expiresAt: now - 500 });
  const isStored = async (each: IdempotencyRecord) =>
    (await engine.records.loadIdempotencyRecord(each, now - 600)) !== undefined;
  const untilDeleted = async (each: IdempotencyRecord) => {
    while (await isStored(each)) await Bun.sleep(1);
  };

  test('expired idempotency records are deleted when a sweep starts and at every interval', async () => {
    const record = { ...newRecord(), expiresAt: now + 3_600_000 };
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
    const { records } = db.engine;
    const old = { ...expired(), realm: NIL_UUID };
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
