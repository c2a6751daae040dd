import { expect, test } from 'bun:test';
import { backoffMs } from '../../src/deliver/webhooks/backoff.ts';
import { changeWebhook, requestRedelivery } from '../../src/deliver/webhooks/targets.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { httpResponse, servePlain } from '../support/outbound_servers.ts';
import { createFixture } from '../support/service.ts';
import {
  addTarget,
  insertDeadLetter,
  sequenceRange,
  startReceiver,
  webhookDeps,
} from '../support/webhook_receivers.ts';
import { CHANGES, holdLease, startWebhookService, untilStored } from '../support/webhook_service.ts';

/** Retries, dead letters and redelivery. */

const hooks = await startWebhookService();
const { service } = hooks;

const respondWith = (status: number) => () => new Response('error details', { status });

const { deliveries: deliveriesOf, deadLetters: deadLettersOf } = hooks;

/** Sets the number of failed attempts, and makes the next attempt due at once. */
async function setFailedAttempts(webhookId: string, attempts: number): Promise<void> {
  await untilStored(async () => {
    const set = `update webhook_progress set attempts = ${attempts}, next_at = 1 where webhook_id = ? and attempts > 0`;
    return (await service.database.tamper(set, webhookId)) > 0;
  });
}

test('a failed message is retried with backoff under the same webhook-id, in order and without loss', async () => {
  hooks.receiver.respond(respondWith(503));
  const webhookId = await hooks.addReceiver({ from: 'oldest' });
  await hooks.receiver.until(() => hooks.receiver.received.length >= 3);
  expect(new Set(hooks.receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  hooks.receiver.respond(() => new Response('ok'));
  await hooks.receiver.until(() => hooks.receiver.accepted.length === CHANGES);
  expect(hooks.receiver.sequences(hooks.fixture.realm)).toEqual(sequenceRange(CHANGES));
  await untilStored(async () => (await deliveriesOf(webhookId)).length === hooks.receiver.received.length);
  const deliveries = (await deliveriesOf(webhookId)).toReversed();
  expect(deliveries.slice(0, 3).map(({ attempt, outcome, status }) => [attempt, outcome, status])).toEqual([
    [1, 'refused', 503],
    [2, 'refused', 503],
    [3, 'refused', 503],
  ]);
  expect(deliveries.slice(4).every(({ attempt, outcome }) => attempt === 1 && outcome === 'delivered')).toBe(
    true,
  );
  const [first, second, third] = deliveries.map(({ at }) => at) as [number, number, number];
  expect(second - first).toBeGreaterThanOrEqual(backoffMs(1, 0));
  expect(third - second).toBeGreaterThanOrEqual(backoffMs(2, 0));
  expect(JSON.stringify(deliveries)).not.toContain('error details');
}, 300_000);

test('a failed message is retried unchanged under its webhook-id although later changes exist', async () => {
  hooks.receiver.respond(respondWith(503));
  await hooks.addReceiver({ from: 'oldest', eventsMax: 100 });
  await hooks.receiver.until(() => hooks.receiver.received.length === 1);
  await createFixture(service.db, { realm: hooks.fixture.realm });
  await hooks.receiver.until(() => hooks.receiver.received.length >= 2);
  hooks.receiver.respond(() => new Response());
  await hooks.receiver.until(() => hooks.receiver.sequences(hooks.fixture.realm).length >= CHANGES + 5);
  const [first, ...again] = hooks.receiver.received.map(({ body, headers }) => [headers['webhook-id'], body]);
  for (const message of again.slice(0, -1)) expect(message).toEqual(first ?? []);
  expect(again.at(-1)?.[0]).not.toBe(first?.[0]);
  expect(hooks.receiver.accepted.map(({ events }) => events.length)).toEqual([CHANGES, 5]);
  expect(hooks.receiver.sequences(hooks.fixture.realm)).toEqual(sequenceRange(CHANGES + 5));
}, 300_000);

test('changes trimmed before delivery are a dead letter, unless they were trimmed before the target existed', async () => {
  const { log } = service.db.engine;
  await log.trim(hooks.fixture.realm, systemClock.now() + 60_000);
  const { webhook: late } = await addTarget(service, hooks.receiver.url, { realms: '*', from: 'oldest' });
  const { webhook } = await addTarget(service, hooks.receiver.url, { realms: '*' });
  const setDisabled = async (disabledAt: number | undefined) => {
    for (const { webhookId } of [late, webhook])
      await changeWebhook(webhookDeps(service), webhookId, { disabledAt }, systemClock);
  };
  const isDelivering = async () =>
    (await service.database.query(`select 1 from lease where name = 'webhooks'`)).length > 0;
  await untilStored(isDelivering);
  await setDisabled(systemClock.now());
  // The service has noticed, and sends no later change.
  await untilStored(async () => !(await isDelivering()));
  const { realm } = await createFixture(service.db);
  await log.trim(realm, systemClock.now() + 60_000);
  await setDisabled(undefined);
  for (const { webhookId } of [late, webhook]) {
    await untilStored(async () => (await deadLettersOf(webhookId)).length > 0);
    expect(await deadLettersOf(webhookId)).toMatchObject([{ realm, firstSeq: 1, lastSeq: CHANGES - 1 }]);
  }
}, 300_000);

test('a realm whose messages fail does not delay another realm', async () => {
  const other = await createFixture(service.db);
  hooks.receiver.respond(
    ({ events }) => new Response(null, { status: events[0]?.data.realm_id === other.realm ? 200 : 500 }),
  );
  await addTarget(service, hooks.receiver.url, {
    realms: new Set([hooks.fixture.realm, other.realm]),
    from: 'oldest',
  });
  await hooks.receiver.until(() => hooks.receiver.accepted.length === CHANGES);
  expect(hooks.receiver.sequences(other.realm)).toEqual(sequenceRange(CHANGES));
  expect(hooks.receiver.sequences(hooks.fixture.realm)).toEqual([]);
});

test.each([
  ['a redirect', 302],
  ['a missing resource', 404],
  ['a rate limit', 429],
])('a webhook answer of %s is a failed delivery and is not followed', async (_, status) => {
  const internal = startReceiver();
  hooks.receiver.respond(() => new Response(null, { status, headers: { Location: internal.url } }));
  const webhookId = await hooks.addReceiver({ from: 'oldest' });
  await untilStored(async () => (await deliveriesOf(webhookId)).length > 0);
  const [delivery] = await deliveriesOf(webhookId);
  expect([delivery?.outcome, delivery?.status]).toEqual(['refused', status]);
  expect(internal.received).toEqual([]);
});

test('a webhook answer of 410 disables the target and is logged', async () => {
  hooks.receiver.respond(respondWith(410));
  const webhookId = await hooks.addReceiver({ from: 'oldest' });
  const { webhooks } = service.db.engine;
  await untilStored(async () => (await webhooks.list())[0]?.disabledAt !== undefined);
  const entries = await service.database.query<{ action: string; actor: string }>(
    'select action, actor from act where object = ? order by seq',
    webhookId,
  );
  expect(entries.at(-1)).toEqual({ action: 'webhook.changed', actor: 'webhooks' });
  expect(service.log).toContainEqual({ event: 'webhook_disabled', webhook_id: webhookId });
});

test('a message is a dead letter after its last attempt, blocks no later one, and can be redelivered', async () => {
  hooks.receiver.respond(
    ({ events }) => new Response(null, { status: Number(events[0]?.sequence) === 2 ? 500 : 200 }),
  );
  const webhookId = await hooks.addReceiver({ from: 'oldest' });
  await setFailedAttempts(webhookId, LIMITS.webhookAttemptsMax - 1);
  await hooks.receiver.until(() => hooks.receiver.accepted.length === CHANGES - 1);
  expect(hooks.receiver.sequences(hooks.fixture.realm)).toEqual([1, ...sequenceRange(CHANGES, 3)]);
  await untilStored(async () => (await deadLettersOf(webhookId)).length === 1);
  const deadLetter = { webhookId, realm: hooks.fixture.realm, firstSeq: 2, lastSeq: 2 };
  expect(await deadLettersOf(webhookId)).toEqual([
    { ...deadLetter, attempts: LIMITS.webhookAttemptsMax, at: expect.any(Number) },
  ]);
  expect(service.log).toContainEqual({ event: 'webhook_dead_letter', webhook_id: webhookId });

  const store = service.db.engine.webhooks;
  const first = hooks.receiver.received.find(({ events }) => Number(events[0]?.sequence) === 2);
  const before = hooks.receiver.received.length;
  expect((await requestRedelivery(store, webhookId, deadLetter, systemClock)).deadLetters).toBe(1);
  await hooks.receiver.until(() => hooks.receiver.received.length > before);
  await untilStored(async () => (await deadLettersOf(webhookId))[0]?.attempts === 1);
  hooks.receiver.respond(() => new Response());
  expect((await requestRedelivery(store, webhookId, undefined, systemClock)).deadLetters).toBe(1);
  await untilStored(async () => (await deadLettersOf(webhookId)).length === 0);
  expect(hooks.receiver.sequences(hooks.fixture.realm)).toEqual([1, ...sequenceRange(CHANGES, 3), 2]);
  expect(hooks.receiver.accepted.at(-1)?.headers['webhook-id']).toBe(first?.headers['webhook-id'] as string);
  expect((await requestRedelivery(store, webhookId, undefined, systemClock)).deadLetters).toBe(0);
}, 300_000);

/** A target whose only message is one dead letter, the first change of the realm. */
async function targetWithDeadLetter(): Promise<string> {
  const webhookId = await hooks.addReceiver();
  await insertDeadLetter(service, webhookId, hooks.fixture.realm);
  return webhookId;
}

test('a dead letter is redelivered once, however long its receiver takes', async () => {
  let maxInFlight = 0;
  let inFlight = 0;
  hooks.receiver.respond(async () => {
    inFlight += 1;
    maxInFlight = Math.max(maxInFlight, inFlight);
    await Bun.sleep(4 * LIMITS.webhookPollMs);
    inFlight -= 1;
    return new Response();
  });
  const webhookId = await targetWithDeadLetter();
  await requestRedelivery(service.db.engine.webhooks, webhookId, undefined, systemClock);
  await untilStored(async () => (await deadLettersOf(webhookId)).length === 0);
  await Bun.sleep(2 * LIMITS.webhookPollMs);
  expect([hooks.receiver.received.length, maxInFlight]).toEqual([1, 1]);
}, 300_000);

test('an answer of 410 to a redelivered dead letter disables the target', async () => {
  hooks.receiver.respond(respondWith(410));
  const webhookId = await targetWithDeadLetter();
  const { webhooks } = service.db.engine;
  await requestRedelivery(webhooks, webhookId, undefined, systemClock);
  await untilStored(async () => (await webhooks.list())[0]?.disabledAt !== undefined);
  await untilStored(async () => (await deadLettersOf(webhookId))[0]?.attempts === 1);
  expect(hooks.receiver.received).toHaveLength(1);
}, 300_000);

test('a database error during delivery logs no fault, and delivery continues when it is over', async () => {
  hooks.receiver.respond(() => new Response(null, { status: 503 }));
  await hooks.addReceiver({ from: 'oldest' });
  await service.database.query('alter table log_entry rename to elsewhere');
  hooks.receiver.respond(() => new Response());
  await Bun.sleep(4 * LIMITS.webhookPollMs);
  await service.database.query('alter table elsewhere rename to log_entry');
  await hooks.receiver.until(() => hooks.receiver.accepted.length === CHANGES);
  expect(service.log.filter(({ event }) => event === 'fault')).toEqual([]);
}, 300_000);

test('undelivered changes removed by retention are a dead letter, and cannot be redelivered', async () => {
  hooks.receiver.respond(
    ({ events }) => new Response(null, { status: Number(events[0]?.sequence) === 2 ? 500 : 200 }),
  );
  const webhookId = await hooks.addReceiver({ from: 'oldest' });
  await hooks.receiver.until(() => hooks.receiver.received.length >= 2);
  await untilStored(async () => (await deliveriesOf(webhookId)).length >= 2);
  await service.db.engine.log.trim(hooks.fixture.realm, systemClock.now() + 60_000);
  await setFailedAttempts(webhookId, 1);
  await hooks.receiver.until(() => hooks.receiver.sequences(hooks.fixture.realm).includes(CHANGES));
  await untilStored(async () => (await deadLettersOf(webhookId)).length === 1);
  expect(await deadLettersOf(webhookId)).toMatchObject([{ firstSeq: 2, lastSeq: CHANGES - 1 }]);
  await requestRedelivery(service.db.engine.webhooks, webhookId, undefined, systemClock);
  await untilStored(async () => (await deliveriesOf(webhookId))[0]?.outcome === 'expired');
  await untilStored(async () => (await deadLettersOf(webhookId))[0]?.attempts === 1);
}, 300_000);

test('a target that never answers times out and delays no other target', async () => {
  const silent = await servePlain(() => undefined);
  const url = `http://127.0.0.1:${silent.port}/`;
  const webhookId = await hooks.addReceiver({ url, from: 'oldest' });
  await hooks.addReceiver({ from: 'oldest', eventsMax: 100 });
  await hooks.receiver.until(() => hooks.receiver.accepted.length === 1);
  expect(await deliveriesOf(webhookId)).toEqual([]);
  await untilStored(async () => (await deliveriesOf(webhookId)).length > 0);
  const [delivery] = (await deliveriesOf(webhookId)).toReversed();
  expect([delivery?.outcome, delivery?.status]).toEqual(['unreachable', undefined]);
  expect(delivery?.durationMs).toBeWithin(LIMITS.webhookMsMax - 100, LIMITS.webhookMsMax + 10_000);
}, 300_000);

test('many events are split into webhook messages below the size limit', async () => {
  const other = await createFixture(service.db);
  const token = await service.token('users:write users:read');
  const users = `/v2/authentication-realms/${other.realm}/user-authentication-info`;
  const name = '語'.repeat(255);
  const data = {
    type: 'user_authentication_info',
    email: 'jane@example.com',
    name,
    given_name: name,
    family_name: name,
  };
  for (let count = 0; count < 100; count += 1) {
    expect((await service.post(users, token, { data: { ...data, middle_name: name } })).status).toBe(201);
  }
  const realms = new Set([other.realm]);
  await addTarget(service, hooks.receiver.url, {
    realms,
    from: 'oldest',
    withData: true,
    eventsMax: LIMITS.webhookEventsMax,
  });
  await hooks.receiver.until(() => hooks.receiver.sequences(other.realm).length === CHANGES + 100);
  expect(hooks.receiver.sequences(other.realm)).toEqual(sequenceRange(CHANGES + 100));
  const sizes = hooks.receiver.accepted.map(({ body }) => Buffer.byteLength(body));
  expect(Math.max(...sizes)).toBeLessThanOrEqual(LIMITS.webhookBodyBytesMax + 1);
  expect(Math.max(...sizes)).toBeGreaterThan(LIMITS.webhookBodyBytesMax / 2);
}, 300_000);

test('the webhook backoff doubles up to its bound with a jitter of a quarter, and adds up to about a day', () => {
  expect([1, 2, 3, 4].map((attempts) => backoffMs(attempts, 0.5))).toEqual([1_000, 2_000, 4_000, 8_000]);
  expect([backoffMs(1, 0), backoffMs(1, 1)]).toEqual([750, 1_250]);
  expect(backoffMs(10_000, 0.5)).toBe(LIMITS.webhookBackoffMsMax);
  const waits = Array.from({ length: LIMITS.webhookAttemptsMax - 1 }, (_, at) => backoffMs(at + 1, 0.5));
  const hours = waits.reduce((sum, wait) => sum + wait) / 3_600_000;
  expect(hours).toBeWithin(23.5, 24.5);
});

test('the delivery log keeps the newest deliveries', async () => {
  const webhookId = await hooks.addReceiver();
  const { webhooks } = service.db.engine;
  const lease = await holdLease(service);
  const base = {
    webhookId,
    messageId: 'msg',
    realm: hooks.fixture.realm,
    firstSeq: 1,
    lastSeq: 1,
    attempt: 1,
  };
  const delivery = () => ({
    ...base,
    deliveryId: systemClock.mintId() as string,
    outcome: 'delivered' as const,
    status: 200,
    durationMs: 1,
    at: systemClock.now(),
  });
  const columns = `insert into delivery (webhook_id, delivery_id, message_id, realm_id, first_seq, last_seq, attempt,
    outcome, status, duration_ms, at) values `;
  for (let done = 0; done < LIMITS.deliveriesKeptMax + 1_000; done += 100) {
    const rows = Array.from(
      { length: 100 },
      () =>
        `('${webhookId}', '${systemClock.mintId()}', 'msg', '${base.realm}', 1, 1, 1, 'delivered', 200, 1, 1)`,
    );
    await service.database.tamper(columns + rows.join());
  }
  while ((await webhooks.trim(0)) > 0);
  const [row] = await service.database.query<{ n: number }>(
    'select count(*) as n from delivery where webhook_id = ?',
    webhookId,
  );
  expect(row?.n).toBe(LIMITS.deliveriesKeptMax);
  // A process that lost the lease saves nothing.
  const result = { webhookId, delivery: delivery() };
  expect(await webhooks.saveResult({ ...lease, holder: 'other' }, result)).toBe(false);
  expect(await webhooks.saveResult(lease, result)).toBe(true);
}, 300_000);

test('webhook answers without a body, or cut short, count by their status', async () => {
  const server = await servePlain(httpResponse('204 No Content', ''));
  const cut = await servePlain((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc'));
  for (const { port } of [server, cut]) {
    const url = `http://127.0.0.1:${port}/`;
    const webhookId = await hooks.addReceiver({ url, from: 'oldest', eventsMax: 100 });
    await untilStored(async () => (await deliveriesOf(webhookId))[0]?.outcome === 'delivered');
  }
});
