import { afterAll, afterEach, describe, expect, test } from 'bun:test';
import { openDatabase } from '../../src/app/open_database.ts';
import { changeWebhook } from '../../src/deliver/webhooks/targets.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { openLease } from '../../src/sql/job_leases.ts';
import { freshDatabase } from '../support/database.ts';
import { movableClock } from '../support/movable_clock.ts';
import { AUTHREALM, killCommands, startCommand } from '../support/processes.ts';
import { createFixture, startService } from '../support/service.ts';
import {
  addTarget,
  sequenceRange,
  startReceiver,
  type WebhookReceiver,
  webhookDeps,
} from '../support/webhook_receivers.ts';
import { CHANGES, FURTHER_CHANGES, LOOPBACK_TARGETS } from '../support/webhook_service.ts';

/** One process at a time delivers to a target; another one takes over when it ends. */

const receivers: WebhookReceiver[] = [];

afterEach(() => {
  for (const receiver of receivers.splice(0)) receiver.stop();
});

afterAll(killCommands);

function createReceiver(): WebhookReceiver {
  const opened = startReceiver();
  receivers.push(opened);
  return opened;
}

/** Of clocks that the tests advance. */
const TERM_MS = 100_000;

describe('a lease', () => {
  const twoHolders = async () => {
    const database = await freshDatabase();
    const engine = await database.open();
    const [oneClock, otherClock] = [movableClock(), movableClock()];
    // Clocks of two machines that are a day apart.
    otherClock.advance(86_400_000);
    const [one, other] = [oneClock, otherClock].map((clock) => openLease(engine.leases, 'a', TERM_MS, clock));
    if (!one || !other) throw new Error('no leases');
    return { engine, oneClock, otherClock, one, other };
  };

  test('a lease belongs to one process until it is released', async () => {
    const { engine, one, other } = await twoHolders();
    await Promise.all([one.keep(), other.keep()]);
    expect([one.isHeld(), other.isHeld()].filter(Boolean)).toHaveLength(1);
    await Promise.all([one.release(), other.release()]);
    await other.keep();
    expect([one.isHeld(), other.isHeld()]).toEqual([false, true]);
    await other.release();
    await one.keep();
    expect([one.isHeld(), other.isHeld()]).toEqual([true, false]);
    await engine.close();
  });

  test('a lease expires after a term without renewal, whatever the clocks say, and its holder learns it', async () => {
    const { engine, oneClock, otherClock, one, other } = await twoHolders();
    await one.keep();
    await other.keep();
    otherClock.advance(TERM_MS - 10_000);
    await other.keep();
    expect(other.isHeld()).toBe(false);
    oneClock.advance(30_000);
    await one.keep();
    otherClock.advance(11_000);
    await other.keep();
    expect([one.isHeld(), other.isHeld()]).toEqual([true, false]);
    oneClock.advance(TERM_MS + 1);
    expect(one.isHeld()).toBe(false);
    otherClock.advance(TERM_MS);
    await other.keep();
    expect(other.isHeld()).toBe(true);
    // The first holder renews again, and learns that the lease is lost.
    await one.keep();
    expect(one.isHeld()).toBe(false);
    await engine.close();
  });
});

test('two services over one database deliver each event once and in order, also after one of them stops', async () => {
  const hook = createReceiver();
  const one = await startService(LOOPBACK_TARGETS);
  const other = await startService({ ...LOOPBACK_TARGETS, ...one.database.flags });
  const { realm } = await createFixture(one.db);
  await addTarget(one, hook.url, { realms: new Set([realm]), from: 'oldest' });
  await hook.until(() => hook.sequences(realm).length === CHANGES);
  for (let count = 0; count < 10; count += 1) await createFixture((count % 2 ? one : other).db, { realm });
  await hook.until(() => hook.sequences(realm).length === 56);
  expect(hook.sequences(realm)).toEqual(sequenceRange(56));
  await one.server.stop();
  await createFixture(other.db, { realm });
  await hook.until(() => hook.sequences(realm).length >= 61);
  expect(hook.sequences(realm)).toEqual(sequenceRange(61));
  await other.stop();
  await one.db.engine.close();
}, 300_000);

test('targets that never answer and are disabled together delay no other target', async () => {
  const hook = createReceiver();
  const service = await startService(LOOPBACK_TARGETS);
  const { realm } = await createFixture(service.db);
  const realms = new Set([realm]);
  const silent = Array.from({ length: 4 }, createReceiver);
  for (const each of silent) each.respond(() => Bun.sleep(60_000).then(() => new Response()));
  const ids: string[] = [];
  for (const { url } of silent) {
    ids.push((await addTarget(service, url, { realms, from: 'oldest' })).webhook.webhookId);
  }
  await addTarget(service, hook.url, { realms, from: 'oldest' });
  await hook.until(
    () => silent.every(({ received }) => received.length > 0) && hook.sequences(realm).length === CHANGES,
  );
  const disabled = { disabledAt: systemClock.now() };
  for (const id of ids) await changeWebhook(webhookDeps(service), id, disabled, systemClock);
  // The next round finds them disabled.
  await Bun.sleep(2 * LIMITS.webhookPollMs);
  await createFixture(service.db, { realm });
  await hook.until(() => hook.sequences(realm).length === 11, LIMITS.webhookMsMax / 2);
}, 300_000);

test('a service that is killed while it delivers loses no event and keeps the order', async () => {
  const database = await freshDatabase();
  const hook = createReceiver();
  // Each message takes a while, so that one is always under way.
  hook.respond(async () => {
    await Bun.sleep(2);
    return new Response();
  });
  const db = await openDatabase(database.settings(), systemClock);
  const { realm } = await createFixture(db);
  const settings = database.settings({ AUTHREALM_ALLOW_PRIVATE: 'localhost 127.0.0.0/8' });
  await addTarget({ db, settings }, hook.url, { realms: new Set([realm]), from: 'oldest' });
  const command = [
    AUTHREALM,
    'serve',
    '--port',
    '0',
    '--offline',
    '--allow-private',
    'localhost 127.0.0.0/8',
    ...database.args,
  ];
  const serve = async () => {
    const running = startCommand(command);
    await running.line(/^listening on /);
    return running;
  };
  let written = CHANGES;
  const write = async (times: number) => {
    for (let count = 0; count < times; count += 1) await createFixture(db, { realm });
    written += FURTHER_CHANGES * times;
  };
  for (let round = 0; round < 3; round += 1) {
    const running = await serve();
    const before = hook.sequences(realm).length;
    const writing = write(20);
    await hook.until(() => hook.sequences(realm).length > before + 20);
    running.process.kill('SIGKILL');
    await running.process.exited;
    await writing;
    // One service waits for the end of a lease: its ten seconds.
    if (round > 0) await database.query('delete from lease');
  }
  const last = await serve();
  await hook.until(() => hook.sequences(realm).includes(written));
  const sequences = hook.sequences(realm);
  // Repeated events were under way or not yet recorded; the first deliveries are in order.
  const firstDeliveries = sequences.filter((sequence, at) => sequences.indexOf(sequence) === at);
  expect(firstDeliveries).toEqual([...sequenceRange(written)]);
  expect(sequences.length - firstDeliveries.length).toBeLessThan(3 * 400);
  expect(await last.stop()).toBe(0);
  await db.engine.close();
}, 300_000);
