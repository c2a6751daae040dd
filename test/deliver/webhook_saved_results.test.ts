import { afterEach, beforeEach, expect, test } from 'bun:test';
import { type OpenDatabase, openDatabase } from '../../src/app/open_database.ts';
import type { DeliveryDeps } from '../../src/deliver/webhooks/send_message.ts';
import { openSubscription, type Subscription } from '../../src/deliver/webhooks/subscription.ts';
import type { Delivery, Webhook } from '../../src/deliver/webhooks/webhook.ts';
import { Fault } from '../../src/model/fault.ts';
import type { Uuid } from '../../src/model/id.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { freshDatabase } from '../support/database.ts';
import { createFixture } from '../support/service.ts';
import { addTarget, sequenceRange } from '../support/webhook_receivers.ts';
import { CHANGES, holdLease, untilStored } from '../support/webhook_service.ts';

/** When the result of a message is stored, and what happens while it cannot be. */

let db: OpenDatabase;
let webhook: Webhook;
let realm: Uuid;
let lease: Awaited<ReturnType<typeof holdLease>>;
/** The sequence numbers of the sent changes. */
let sent: number[];
let errors: unknown[];
let subscription: Subscription;

beforeEach(async () => {
  const database = await freshDatabase();
  const settings = database.settings({ AUTHREALM_ALLOW_PRIVATE: 'localhost 127.0.0.0/8' });
  db = await openDatabase(settings, systemClock);
  ({ realm } = await createFixture(db));
  const options = { realms: new Set([realm]), from: 'oldest' } as const;
  ({ webhook } = await addTarget({ db, settings }, 'http://127.0.0.1:9/', options));
  lease = await holdLease({ db });
  sent = [];
  errors = [];
});

afterEach(async () => {
  await subscription.stop(0);
  await db.engine.close();
});

/** Delivers to a receiver that accepts everything. */
async function deliver(saveResult = db.engine.webhooks.saveResult): Promise<void> {
  const send: DeliveryDeps['send'] = async (
    { webhookId },
    message,
    { realm, attempt },
  ): Promise<Delivery> => {
    sent.push(message.firstSeq);
    const { id: messageId, firstSeq, lastSeq } = message;
    const range = { webhookId, messageId, realm, firstSeq, lastSeq, attempt };
    const result = { outcome: 'delivered', status: 204, durationMs: 1, at: systemClock.now() } as const;
    return { deliveryId: systemClock.mintId(), ...range, ...result };
  };
  const deps: DeliveryDeps = {
    store: { ...db.engine.webhooks, saveResult },
    changes: db.engine.records.changes,
    writeEvents: async (changes) => changes.map(({ seq }) => String(seq)),
    send,
    clock: systemClock,
    disable: async () => undefined,
    onDelivery: () => undefined,
    onDeadLetter: () => undefined,
    onError: (error) => errors.push(error),
  };
  subscription = openSubscription(deps, webhook, { ...lease, isHeld: () => true });
  await subscription.poll(webhook);
}

const progress = async () => (await db.engine.webhooks.progress(webhook.webhookId, realm)).seq;

test('a result that an unavailable database rejects is stored later, and its message is sent once', async () => {
  let rejections = 0;
  await deliver(async (...result) => {
    rejections += 1;
    if (rejections <= 2) throw new Fault('unavailable');
    return db.engine.webhooks.saveResult(...result);
  });
  await untilStored(async () => (await progress()) === CHANGES);
  expect([sent, errors]).toEqual([[...sequenceRange(CHANGES)], []]);
});

test('a result whose commit had an unknown outcome is stored again without a second delivery', async () => {
  let isFirst = true;
  await deliver(async (...result) => {
    const isStored = await db.engine.webhooks.saveResult(...result);
    if (!isFirst) return isStored;
    isFirst = false;
    throw new Fault('unknown_outcome');
  });
  await untilStored(async () => (await progress()) === CHANGES);
  expect(await db.engine.webhooks.deliveries(webhook.webhookId, undefined, 100)).toHaveLength(CHANGES);
});

test('a process that lost the lease stores no result and sends nothing more', async () => {
  await db.engine.leases.release(lease.name, lease.holder);
  await deliver();
  await untilStored(async () => subscription.isOver());
  expect([sent, await progress()]).toEqual([[1], 0]);
});

test('an unexpected error while a result is stored is reported, and delivery pauses', async () => {
  await deliver(() => Promise.reject(new TypeError('ours')));
  await untilStored(async () => errors.length > 0);
  expect(errors[0]).toBeInstanceOf(TypeError);
  expect(sent).toEqual([1]);
});
