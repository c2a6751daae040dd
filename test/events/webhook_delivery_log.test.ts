import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { Fault } from '../../src/domain/fault.ts';
import { NIL_UUID, type Uuid } from '../../src/domain/id.ts';
import { type DeliveryLog, openDeliveryLog } from '../../src/events/webhooks/delivery_log.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { type OpenDatabase, openDatabase } from '../../src/service/open_database.ts';
import { freshDatabase } from '../support/database.ts';
import { createFixture } from '../support/service.ts';
import { addTarget } from '../support/webhook_receivers.ts';

/** When the results of deliveries are stored, and when waiting for that ends. */

setDefaultTimeout(300_000);

const LEASE = { name: 'test', holder: 'test' };

let db: OpenDatabase;
let webhookId: string;
let log: DeliveryLog;
let one: Uuid;
let busy: Uuid;

beforeEach(async () => {
  const database = await freshDatabase();
  const settings = database.settings({ AUTHREALM_ALLOW_PRIVATE: 'localhost 127.0.0.0/8' });
  db = await openDatabase(settings, systemClock);
  [one, busy] = (await Promise.all([createFixture(db), createFixture(db)])).map(({ realm }) => realm) as [
    Uuid,
    Uuid,
  ];
  ({ webhookId } = (await addTarget({ db, settings }, 'http://127.0.0.1:9/')).webhook);
  await db.engine.leases.replace({ ...LEASE, until: 1 }, undefined);
  log = openDeliveryLog(db.engine.webhooks, webhookId, LEASE);
});

afterEach(async () => {
  log.close();
  await log.stored().catch(() => undefined);
  await db.engine.close();
});

function addProgress(realm: Uuid, seq: number): void {
  log.addProgress({ realm, seq, attempts: 0, nextAt: 0, failedSeq: 0, behindSince: 0 });
}

async function progressOf(realm: Uuid): Promise<number | undefined> {
  const cursors = await db.engine.webhooks.realmsAfter(webhookId, NIL_UUID, 10);
  return cursors.find((cursor) => cursor.realm === realm)?.seq;
}

test("waiting for the store ends with the caller's batch, however much is added concurrently", async () => {
  let isOver = false;
  let seq = 0;
  const addMore = (): void => {
    seq += 1;
    addProgress(busy, seq);
    if (!isOver) setImmediate(addMore);
  };
  addProgress(one, 3);
  addMore();
  const isStored = await Promise.race([log.stored().then(() => true), Bun.sleep(10_000)]);
  isOver = true;
  expect(isStored).toBe(true);
  expect(await progressOf(one)).toBe(3);
  await log.stored();
  expect(await progressOf(busy)).toBe(seq);
});

test('waiting for the store ends when another process holds the lease', async () => {
  await log.stored();
  addProgress(one, 2);
  await log.stored();
  await db.engine.leases.release(LEASE.name, LEASE.holder);
  addProgress(one, 3);
  await log.stored();
  expect(log.isClosed()).toBe(true);
  addProgress(one, 4);
  await log.stored();
  expect(await progressOf(one)).toBe(2);
});

test('a batch that an unavailable database rejects is stored later, and newer progress wins', async () => {
  const store = db.engine.webhooks;
  let faults = 0;
  const saveResults: typeof store.saveResults = (...args) => {
    faults += 1;
    if (faults > 1) return store.saveResults(...args);
    // Newer progress is added while the older is being stored.
    addProgress(one, 3);
    return Promise.reject(new Fault('unavailable'));
  };
  log = openDeliveryLog({ trim: store.trim, saveResults }, webhookId, LEASE);
  addProgress(one, 2);
  addProgress(busy, 4);
  await log.stored();
  expect(faults).toBe(2);
  expect([await progressOf(one), await progressOf(busy)]).toEqual([3, 4]);
});

test('waiting for the store rejects on an unexpected error', async () => {
  const { trim } = db.engine.webhooks;
  log = openDeliveryLog({ trim, saveResults: () => Promise.reject(new TypeError('ours')) }, webhookId, LEASE);
  addProgress(one, 2);
  expect(await log.stored().catch((error: unknown) => error)).toBeInstanceOf(TypeError);
});
