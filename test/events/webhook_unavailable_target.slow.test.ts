import { beforeEach, expect, test } from 'bun:test';
import { LIMITS } from '../../src/domain/limits.ts';
import { changeWebhook, requestRedelivery } from '../../src/events/webhooks/targets.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createFixture, type Fixture, type Service, startService } from '../support/service.ts';
import {
  addTarget,
  insertDeadLetter,
  sequenceRange,
  startReceiver,
  type WebhookReceiver,
  webhookDeps,
} from '../support/webhook_receivers.ts';

/** A target that refuses connections, or answers 503. */

const REALMS = 30;
/** Changes in the realm of a fixture. */
const CHANGES = 6;
/** The first two backoffs are 1.25 and 2.5 s long: two rounds of attempts begin within this time. */
const OBSERVED_MS = 3_000;
/** The second realm that fails begins the backoff; until then the first one has made room for one more. */
const ATTEMPTS_MAX = 2 * LIMITS.webhookRealmsAtOnceMax + 1;
const REFUSING_URL = 'http://127.0.0.1:9/';

let service: Service;
let receiver: WebhookReceiver;
let fixtures: readonly Fixture[];

beforeEach(async () => {
  service = await startService({ offline: 'true', allowPrivate: 'localhost 127.0.0.0/8' });
  receiver = startReceiver();
  fixtures = await Promise.all(Array.from({ length: REALMS }, () => createFixture(service.db)));
});

async function attemptsOf(webhookId: string): Promise<readonly number[]> {
  const deliveries = await service.db.engine.webhooks.deliveries(webhookId, undefined, 1_000);
  return deliveries.map(({ at }) => at).toSorted();
}

/** The number of attempts within the observed time. */
async function observeAttempts(webhookId: string): Promise<number> {
  while ((await attemptsOf(webhookId)).length <= LIMITS.webhookRealmsAtOnceMax) await Bun.sleep(50);
  await Bun.sleep(OBSERVED_MS);
  const attempts = await attemptsOf(webhookId);
  const end = (attempts[0] ?? 0) + OBSERVED_MS;
  return attempts.filter((at) => at < end).length;
}

test('an unreachable target is tried at growing intervals, not once for each realm, until it is changed', async () => {
  const { webhook } = await addTarget(service, REFUSING_URL, { from: 'oldest', eventsMax: 100 });
  const { webhookId } = webhook;
  expect(await observeAttempts(webhookId)).toBeLessThanOrEqual(ATTEMPTS_MAX);
  await changeWebhook(webhookDeps(service), webhookId, { url: receiver.url }, systemClock);
  await receiver.until(() => receiver.accepted.length === REALMS);
  for (const { realm } of fixtures) expect(receiver.sequences(realm)).toEqual(sequenceRange(CHANGES));
}, 300_000);

test('a target that answers 503 is tried at growing intervals, not once for each realm', async () => {
  receiver.respond(() => new Response(null, { status: 503 }));
  const { webhook } = await addTarget(service, receiver.url, { from: 'oldest', eventsMax: 100 });
  expect(await observeAttempts(webhook.webhookId)).toBeLessThanOrEqual(ATTEMPTS_MAX);
}, 300_000);

test('a dead letter is redelivered during the backoff of its target, which then receives everything', async () => {
  let isAvailable = false;
  receiver.respond(({ events }) => {
    // Only the redelivery has a single event.
    isAvailable ||= events.length === 1;
    return new Response(null, { status: isAvailable ? 204 : 503 });
  });
  const { webhook } = await addTarget(service, receiver.url, { from: 'oldest', eventsMax: 100 });
  const { webhookId } = webhook;
  // The fourth backoff is 10 s long, and the redelivery does not wait for its end.
  await receiver.until(() => receiver.received.length > ATTEMPTS_MAX + LIMITS.webhookRealmsAtOnceMax);
  await insertDeadLetter(service, webhookId, fixtures[0]?.realm as string);
  await requestRedelivery(service.db.engine.webhooks, webhookId, undefined, systemClock);
  await receiver.until(() => receiver.accepted.length > 0, 8_000);
  await receiver.until(() => receiver.accepted.length === REALMS + 1);
}, 300_000);
