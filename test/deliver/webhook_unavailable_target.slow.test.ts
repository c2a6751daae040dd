import { beforeEach, expect, test } from 'bun:test';
import { changeWebhook, requestRedelivery } from '../../src/deliver/webhooks/targets.ts';
import type { Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { createFixture, type Fixture } from '../support/service.ts';
import { addTarget, insertDeadLetter, sequenceRange, webhookDeps } from '../support/webhook_receivers.ts';
import { CHANGES, startWebhookService } from '../support/webhook_service.ts';

/** A target that refuses connections, or answers 503. */

const REALMS = 60;
/** The first three attempts of a message are within this time: 1.25 and 2.5 s apart at most. */
const OBSERVED_MS = 3_000;
/** The second realm that fails suspends the target, and four more realms are tried after 1.25 s; each is tried three times. */
const ATTEMPTS_MAX = REALMS / 2;
const REFUSING_URL = 'http://127.0.0.1:9/';

const hooks = await startWebhookService();
const { service } = hooks;

let fixtures: readonly Fixture[];
let realms: ReadonlySet<Uuid>;

beforeEach(async () => {
  fixtures = await Promise.all(Array.from({ length: REALMS }, () => createFixture(service.db)));
  realms = new Set(fixtures.map(({ realm }) => realm));
});

async function attemptsOf(webhookId: string): Promise<readonly number[]> {
  const deliveries = await hooks.deliveries(webhookId);
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
  const { webhook } = await addTarget(service, REFUSING_URL, { realms, from: 'oldest', eventsMax: 100 });
  const { webhookId } = webhook;
  expect(await observeAttempts(webhookId)).toBeLessThanOrEqual(ATTEMPTS_MAX);
  await changeWebhook(webhookDeps(service), webhookId, { url: hooks.receiver.url }, systemClock);
  await hooks.receiver.until(() => hooks.receiver.accepted.length === REALMS);
  for (const { realm } of fixtures) expect(hooks.receiver.sequences(realm)).toEqual(sequenceRange(CHANGES));
}, 300_000);

test('a target that answers 503 is tried at growing intervals, not once for each realm', async () => {
  hooks.receiver.respond(() => new Response(null, { status: 503 }));
  const { webhook } = await addTarget(service, hooks.receiver.url, {
    realms,
    from: 'oldest',
    eventsMax: 100,
  });
  expect(await observeAttempts(webhook.webhookId)).toBeLessThanOrEqual(ATTEMPTS_MAX);
}, 300_000);

test('a dead letter is redelivered during the backoff of its target, which then receives everything', async () => {
  let isAvailable = false;
  hooks.receiver.respond(({ events }) => {
    // Only the redelivery has a single event.
    isAvailable ||= events.length === 1;
    return new Response(null, { status: isAvailable ? 204 : 503 });
  });
  const { webhook } = await addTarget(service, hooks.receiver.url, {
    realms,
    from: 'oldest',
    eventsMax: 100,
  });
  const { webhookId } = webhook;
  // Then the retries pause for 8 s, and the redelivery does not wait for them.
  await hooks.receiver.until(() => hooks.receiver.received.length >= 4 * LIMITS.webhookRealmsAtOnceMax);
  await insertDeadLetter(service, webhookId, fixtures[0]?.realm as string);
  await requestRedelivery(service.db.engine.webhooks, webhookId, undefined, systemClock);
  await hooks.receiver.until(() => hooks.receiver.accepted.length > 0, 6_000);
  await hooks.receiver.until(() => hooks.receiver.accepted.length === REALMS + 1);
}, 300_000);
