import { expect, test } from 'bun:test';
import { NIL_UUID, type Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { user } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { removeOld, startRetention } from '../../src/ops/retention.ts';
import { openLease } from '../../src/sql/job_leases.ts';
import {
  buildRecord,
  createFixture,
  insertOf,
  type Service,
  startService,
  userMembers,
} from '../support/service.ts';
import { addTarget, insertDeadLetter } from '../support/webhook_receivers.ts';
import { holdLease } from '../support/webhook_service.ts';

/** Removal of expired changes, entries, deliveries and dead letters. */

const DAY_MS = 86_400_000;

const noWait = async () => undefined;

const retentionDeps = ({ db, clock }: Service, days: number) => ({
  log: db.engine.log,
  webhooks: db.engine.webhooks,
  clock,
  days,
  mayContinue: () => true,
  pause: noWait,
  onTampered: (_: Uuid, error: unknown) => {
    throw error;
  },
});

test('retention removes expired changes, entries, deliveries and dead letters, but the newest change of a realm', async () => {
  const service = await startService({ offline: 'true', allowPrivate: 'localhost 127.0.0.0/8' });
  const { engine } = service.db;
  const { realm } = await createFixture(service.db);
  const loads = Array.from({ length: 2_500 }, () => {
    const key = [realm, systemClock.mintId()] as const;
    const record = buildRecord(key, userMembers);
    const write = insertOf(user, key, record);
    return { write, compare: () => ({ comparison: 'same' as const, change: write.change }) };
  });
  await engine.records.load(loads, false);
  const { webhook } = await addTarget(service, 'http://127.0.0.1:9/', {
    realms: new Set([systemClock.mintId()]),
  });
  const { webhookId } = webhook;
  const lease = await holdLease(service);
  const base = { webhookId, realm, firstSeq: 1, lastSeq: 1, at: systemClock.now() };
  const delivery = {
    ...base,
    deliveryId: systemClock.mintId(),
    messageId: 'msg',
    attempt: 1,
    outcome: 'refused' as const,
  };
  await engine.webhooks.saveResult(lease, {
    webhookId,
    delivery: { ...delivery, status: 500, durationMs: 1 },
    deadLetter: { ...base, attempts: 3 },
  });
  const left = async () => ({
    changes: (await engine.records.changes(realm, 0, 10_000)).length,
    deliveries: (await engine.webhooks.deliveries(webhookId, undefined, 10)).length,
    deadLetters: (await engine.webhooks.deadLetters(webhookId, undefined, 10)).length,
  });
  const all = { changes: 2_506, deliveries: 1, deadLetters: 1 };
  await removeOld(retentionDeps(service, 90));
  expect(await left()).toEqual(all);
  service.clock.advance(89 * DAY_MS);
  await removeOld(retentionDeps(service, 90));
  expect(await left()).toEqual(all);
  service.clock.advance(2 * DAY_MS);
  let commits = 0;
  const deps = retentionDeps(service, 90);
  const pause = async () => {
    commits += 1;
  };
  await removeOld({ ...deps, pause });
  expect(await left()).toEqual({ changes: 1, deliveries: 0, deadLetters: 0 });
  expect(commits).toBeGreaterThanOrEqual(3);
  const entries = await service.database.query<{ realm_id: string | null; detail: string }>(
    `select realm_id, detail from act where action = 'log.trimmed' order by seq`,
  );
  expect(entries.map(({ realm_id, detail }) => [realm_id, JSON.parse(detail).entries])).toContainEqual([
    realm,
    2_505,
  ]);
  expect((await engine.log.head(NIL_UUID))?.chain?.anchor.seq).toBeGreaterThan(0);
});

test('one process at a time runs retention, again and again, until it is stopped', async () => {
  const service = await startService({ offline: 'true' });
  const { engine } = service.db;
  const { realm } = await createFixture(service.db);
  const errors: unknown[] = [];
  const lease = () => openLease(engine.leases, 'retention', 3_000, systemClock);
  const other = lease();
  await other.keep();
  service.clock.advance(91 * DAY_MS);
  const deps = { ...retentionDeps(service, 90), lease: lease() };
  const retention = startRetention({ ...deps, onError: (error) => errors.push(error) }, 50);
  const count = async () => (await engine.records.changes(realm, 0, 100)).length;
  // Longer than a term.
  for (let times = 0; times < 40; times += 1) {
    await Bun.sleep(100);
    await other.keep();
  }
  expect(await count()).toBe(6);
  await other.release();
  while ((await count()) > 1) await Bun.sleep(50);
  await retention.stop();
  expect(errors).toEqual([]);
}, 300_000);

test('retention reports a tampered log and continues with the others', async () => {
  const service = await startService({ offline: 'true', allowPrivate: 'localhost 127.0.0.0/8' });
  const { engine } = service.db;
  const realms = [(await createFixture(service.db)).realm, (await createFixture(service.db)).realm].sort();
  const [tampered, other] = realms as [Uuid, Uuid];
  const { webhook } = await addTarget(service, 'http://127.0.0.1:9/', { realms: new Set([tampered]) });
  const { webhookId } = webhook;
  await insertDeadLetter(service, webhookId, tampered);
  await service.database.tamper(
    'update realm_clock set anchor_seq = anchor_seq + 1 where realm_id = ?',
    tampered,
  );
  service.clock.advance(91 * DAY_MS);
  const reported: Uuid[] = [];
  const errors: unknown[] = [];
  const store = engine.leases;
  const retention = startRetention(
    {
      ...retentionDeps(service, 90),
      lease: openLease(store, 'retention', LIMITS.webhookLeaseMs, systemClock),
      onTampered: (log) => reported.push(log),
      onError: (error) => errors.push(error),
    },
    500,
  );
  const left = async () => (await engine.webhooks.deadLetters(webhookId, undefined, 10)).length;
  while ((await left()) > 0) await Bun.sleep(20);
  await retention.stop();
  expect([new Set(reported), errors]).toEqual([new Set([tampered]), []]);
  const changes = async (realm: Uuid) => (await engine.records.changes(realm, 0, 100)).length;
  expect([await changes(tampered), await changes(other)]).toEqual([6, 1]);
  expect((await store.list()).filter(({ name }) => name === 'retention')).toEqual([]);
}, 300_000);

test('retention releases its lease after an error', async () => {
  const service = await startService({ offline: 'true' });
  const { engine } = service.db;
  const errors: unknown[] = [];
  const broken = { ...engine.log, heads: () => Promise.reject(new Error('a bug')) };
  const retention = startRetention(
    {
      ...{ ...retentionDeps(service, 90), log: broken },
      lease: openLease(engine.leases, 'retention', LIMITS.webhookLeaseMs, systemClock),
      onError: (error) => errors.push(error),
    },
    50,
  );
  while (errors.length === 0) await Bun.sleep(20);
  await retention.stop();
  expect((await engine.leases.list()).filter(({ name }) => name === 'retention')).toEqual([]);
});
