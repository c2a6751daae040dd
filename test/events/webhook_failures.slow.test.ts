import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test';
import { LIMITS } from '../../src/domain/limits.ts';
import { backoffMs } from '../../src/events/webhooks/deliver_realm.ts';
import { changeWebhook, requestRedelivery } from '../../src/events/webhooks/targets.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { http, servePlain, stopAll } from '../support/outbound_servers.ts';
import { deleteTargets, openReceiver, type Receiver, roomsOf, target, upTo } from '../support/receivers.ts';
import { type Planted, plant, type Service, startService } from '../support/service.ts';

/** What becomes of messages that are not received. */

let service: Service;
let receiver: Receiver;
let planted: Planted;

beforeAll(async () => {
  service = await startService({ offline: 'true', allowLoopbackWebhooks: 'true' });
});

afterAll(() => service.stop());

beforeEach(async () => {
  receiver = openReceiver();
  planted = await plant(service.db);
});

afterEach(async () => {
  receiver.stop();
  stopAll();
  await deleteTargets(service);
});

const CHANGES = 6;
const refused = (status: number) => () => new Response('what is wrong', { status });

const deliveriesOf = (webhookId: string) =>
  service.db.engine.webhooks.deliveries(webhookId, undefined, 1_000);
const lettersOf = (webhookId: string) => service.db.engine.webhooks.deadLetters(webhookId, undefined, 1_000);

/** Resolves once something is so of what is written down. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 300; tries += 1) {
    if (await isSo()) return;
    await Bun.sleep(50);
  }
  throw new Error('it never came to that');
}

/** Has the next attempts counted as if so many had been in vain, and none be waited for. */
async function tried(webhookId: string, attempts: number): Promise<void> {
  await until(async () => {
    const set = `update webhook_progress set attempts = ${attempts}, next_at = 1 where webhook_id = ? and attempts > 0`;
    return (await service.database.spoil(set, webhookId)) > 0;
  });
}

test('it is sent again, later each time, in order, with nothing lost, and under the same identifier', async () => {
  receiver.answer(refused(503));
  const { webhook } = await target(service, receiver.url, {
    realms: new Set([planted.realm]),
    from: 'oldest',
  });
  await receiver.until(() => receiver.received.length === 3);
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  receiver.answer(() => new Response('ok'));
  await receiver.until(() => receiver.accepted.length === CHANGES);
  expect(receiver.places(planted.realm)).toEqual(upTo(CHANGES));
  await until(async () => (await deliveriesOf(webhook.webhookId)).length === receiver.received.length);
  const told = (await deliveriesOf(webhook.webhookId)).toReversed();
  expect(told.slice(0, 3).map(({ attempt, outcome, status }) => [attempt, outcome, status])).toEqual([
    [1, 'refused', 503],
    [2, 'refused', 503],
    [3, 'refused', 503],
  ]);
  expect(told.slice(4).every(({ attempt, outcome }) => attempt === 1 && outcome === 'delivered')).toBe(true);
  const [first, second, third] = told.map(({ at }) => at) as [number, number, number];
  expect(second - first).toBeGreaterThanOrEqual(backoffMs(1, 0));
  expect(third - second).toBeGreaterThanOrEqual(backoffMs(2, 0));
  expect(JSON.stringify(told)).not.toContain('what is wrong');
}, 300_000);

test('what failed is sent again as it was, under its identifier, where more has happened since', async () => {
  receiver.answer(refused(503));
  const wish = { realms: new Set([planted.realm]), from: 'oldest', eventsMax: 100 } as const;
  await target(service, receiver.url, wish);
  await receiver.until(() => receiver.received.length === 1);
  await plant(service.db, { realm: planted.realm });
  await receiver.until(() => receiver.received.length === 2);
  receiver.answer(() => new Response());
  await receiver.until(() => receiver.places(planted.realm).length >= CHANGES + 5);
  const [first, ...again] = receiver.received.map(({ body, headers }) => [headers['webhook-id'], body]);
  for (const message of again.slice(0, -1)) expect(message).toEqual(first ?? []);
  expect(again.at(-1)?.[0]).not.toBe(first?.[0]);
  expect(receiver.accepted.map(({ events }) => events.length)).toEqual([CHANGES, 5]);
  expect(receiver.places(planted.realm)).toEqual(upTo(CHANGES + 5));
}, 300_000);

test('what a realm made after the target lost is told as a dead letter, what was gone before the target is not', async () => {
  const { log, webhooks } = service.db.engine;
  await log.trim(planted.realm, systemClock.now() + 60_000);
  const realms = '*';
  const { webhook: late } = await target(service, receiver.url, { realms, from: 'oldest' });
  const { webhook } = await target(service, receiver.url, { realms });
  const enabling = roomsOf(service);
  for (const { webhookId } of [late, webhook]) {
    await changeWebhook(enabling, webhookId, { disabledAt: systemClock.now() }, systemClock);
  }
  const { realm } = await plant(service.db);
  await log.trim(realm, systemClock.now() + 60_000);
  for (const { webhookId } of [late, webhook]) {
    await changeWebhook(enabling, webhookId, { disabledAt: undefined }, systemClock);
  }
  for (const { webhookId } of [late, webhook]) {
    await until(async () => (await lettersOf(webhookId)).length > 0);
    expect(await webhooks.deadLetters(webhookId, undefined, 10)).toMatchObject([
      { realm, firstSeq: 1, lastSeq: CHANGES - 1 },
    ]);
  }
}, 300_000);

test('realms do not wait for each other', async () => {
  const other = await plant(service.db);
  receiver.answer(
    ({ events }) => new Response(null, { status: events[0]?.data.realm_id === other.realm ? 200 : 500 }),
  );
  await target(service, receiver.url, { realms: new Set([planted.realm, other.realm]), from: 'oldest' });
  await receiver.until(() => receiver.accepted.length === CHANGES);
  expect(receiver.places(other.realm)).toEqual(upTo(CHANGES));
  expect(receiver.places(planted.realm)).toEqual([]);
});

test.each([
  ['a redirect', 302],
  ['what is not there', 404],
  ['too much', 429],
])('%s is a failure, and leads nowhere', async (_, status) => {
  const inside = openReceiver();
  receiver.answer(() => new Response(null, { status, headers: { Location: inside.url } }));
  const { webhook } = await target(service, receiver.url, {
    realms: new Set([planted.realm]),
    from: 'oldest',
  });
  await until(async () => (await deliveriesOf(webhook.webhookId)).length > 0);
  const [delivery] = await deliveriesOf(webhook.webhookId);
  expect([delivery?.outcome, delivery?.status]).toEqual(['refused', status]);
  expect(inside.received).toEqual([]);
  inside.stop();
});

test('410 disables the target, which is logged', async () => {
  receiver.answer(refused(410));
  const { webhook } = await target(service, receiver.url, {
    realms: new Set([planted.realm]),
    from: 'oldest',
  });
  const { webhooks } = service.db.engine;
  await until(async () => (await webhooks.list())[0]?.disabledAt !== undefined);
  const acts = await service.database.ask<{ action: string; actor: string }>(
    'select action, actor from act where object = ? order by seq',
    webhook.webhookId,
  );
  expect(acts.at(-1)).toEqual({ action: 'webhook.changed', actor: 'webhooks' });
  expect(service.log).toContainEqual({ event: 'webhook_disabled', webhook_id: webhook.webhookId });
});

test('after about a day it is given up, the feed goes on, and it can be sent again', async () => {
  receiver.answer(
    ({ events }) => new Response(null, { status: Number(events[0]?.sequence) === 2 ? 500 : 200 }),
  );
  const { webhook } = await target(service, receiver.url, {
    realms: new Set([planted.realm]),
    from: 'oldest',
  });
  const { webhookId } = webhook;
  await tried(webhookId, LIMITS.webhookAttemptsMax - 1);
  await receiver.until(() => receiver.accepted.length === CHANGES - 1);
  expect(receiver.places(planted.realm)).toEqual([1, ...upTo(CHANGES, 3)]);
  await until(async () => (await lettersOf(webhookId)).length === 1);
  const letter = { webhookId, realm: planted.realm, firstSeq: 2, lastSeq: 2 };
  expect(await lettersOf(webhookId)).toEqual([
    { ...letter, attempts: LIMITS.webhookAttemptsMax, at: expect.any(Number), redeliveredAt: undefined },
  ]);
  expect(service.log).toContainEqual({ event: 'webhook_dead_letter', webhook_id: webhookId });

  const store = service.db.engine.webhooks;
  const first = receiver.received.find(({ events }) => Number(events[0]?.sequence) === 2);
  const before = receiver.received.length;
  expect(await requestRedelivery(store, webhookId, letter, systemClock)).toBe(1);
  await receiver.until(() => receiver.received.length > before);
  await until(async () => (await lettersOf(webhookId))[0]?.attempts === 1);
  receiver.answer(() => new Response());
  expect(await requestRedelivery(store, webhookId, undefined, systemClock)).toBe(1);
  await until(async () => (await lettersOf(webhookId))[0]?.redeliveredAt !== undefined);
  expect(receiver.places(planted.realm)).toEqual([1, ...upTo(CHANGES, 3), 2]);
  expect(receiver.accepted.at(-1)?.headers['webhook-id']).toBe(first?.headers['webhook-id'] as string);
  expect(await requestRedelivery(store, webhookId, undefined, systemClock)).toBe(0);
}, 300_000);

/** A target that is told nothing but its one dead letter, the first change of the realm. */
async function withLetter(): Promise<string> {
  const { webhook } = await target(service, receiver.url, { realms: new Set([planted.realm]) });
  await service.database.spoil(
    `insert into dead_letter (webhook_id, realm_id, first_seq, last_seq, attempts, at) values (?, ?, 1, 1, 9, 1)`,
    webhook.webhookId,
    planted.realm,
  );
  return webhook.webhookId;
}

test('a dead letter is sent again once, however long its receiver takes', async () => {
  let most = 0;
  let underWay = 0;
  receiver.answer(async () => {
    underWay += 1;
    most = Math.max(most, underWay);
    await Bun.sleep(4 * LIMITS.webhookPollMs);
    underWay -= 1;
    return new Response();
  });
  const webhookId = await withLetter();
  await requestRedelivery(service.db.engine.webhooks, webhookId, undefined, systemClock);
  await until(async () => (await lettersOf(webhookId))[0]?.redeliveredAt !== undefined);
  await Bun.sleep(2 * LIMITS.webhookPollMs);
  expect([receiver.received.length, most]).toEqual([1, 1]);
}, 300_000);

test('410 disables the target where a dead letter is sent again, too', async () => {
  receiver.answer(refused(410));
  const webhookId = await withLetter();
  const { webhooks } = service.db.engine;
  await requestRedelivery(webhooks, webhookId, undefined, systemClock);
  await until(async () => (await webhooks.list())[0]?.disabledAt !== undefined);
  await until(async () => (await lettersOf(webhookId))[0]?.attempts === 1);
  expect((await lettersOf(webhookId))[0]?.redeliveredAt).toBeUndefined();
  expect(receiver.received).toHaveLength(1);
}, 300_000);

test('a database in trouble is no fault of ours, and what was not told meanwhile is told then', async () => {
  receiver.answer(() => new Response(null, { status: 503 }));
  await target(service, receiver.url, { realms: new Set([planted.realm]), from: 'oldest' });
  await service.database.ask('alter table change rename to elsewhere');
  receiver.answer(() => new Response());
  await Bun.sleep(4 * LIMITS.webhookPollMs);
  await service.database.ask('alter table elsewhere rename to change');
  await receiver.until(() => receiver.accepted.length === CHANGES);
  expect(service.log.filter(({ event }) => event === 'fault')).toEqual([]);
}, 300_000);

test('what is not kept any more is told as a dead letter, and cannot be sent again', async () => {
  receiver.answer(
    ({ events }) => new Response(null, { status: Number(events[0]?.sequence) === 2 ? 500 : 200 }),
  );
  const { webhook } = await target(service, receiver.url, {
    realms: new Set([planted.realm]),
    from: 'oldest',
  });
  await receiver.until(() => receiver.received.length === 2);
  await until(async () => (await deliveriesOf(webhook.webhookId)).length >= 2);
  await service.db.engine.log.trim(planted.realm, systemClock.now() + 60_000);
  await tried(webhook.webhookId, 1);
  await receiver.until(() => receiver.places(planted.realm).includes(CHANGES));
  await until(async () => (await lettersOf(webhook.webhookId)).length === 1);
  expect(await lettersOf(webhook.webhookId)).toMatchObject([{ firstSeq: 2, lastSeq: CHANGES - 1 }]);
  await requestRedelivery(service.db.engine.webhooks, webhook.webhookId, undefined, systemClock);
  await until(async () => (await deliveriesOf(webhook.webhookId))[0]?.outcome === 'expired');
  await until(async () => (await lettersOf(webhook.webhookId))[0]?.attempts === 1);
}, 300_000);

test('an answer of which nothing ends is read no further than its bound, and its status counts', async () => {
  let written = 0;
  const server = await servePlain((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 104857600\r\n\r\n');
    const piece = 'x'.repeat(16_384);
    const pump = (): void => {
      while (!socket.destroyed && written < 104_857_600) {
        written += piece.length;
        if (!socket.write(piece)) return void socket.once('drain', pump);
      }
    };
    pump();
  });
  const url = `http://127.0.0.1:${server.port}/`;
  const { webhook } = await target(service, url, {
    realms: new Set([planted.realm]),
    from: 'oldest',
    eventsMax: 100,
  });
  await until(async () => (await deliveriesOf(webhook.webhookId))[0]?.outcome === 'delivered');
  expect(written).toBeLessThan(16 * 1_048_576);
});

test('one that never answers holds up neither others nor itself for ever', async () => {
  const silent = await servePlain(() => undefined);
  const url = `http://127.0.0.1:${silent.port}/`;
  const { webhook } = await target(service, url, { realms: new Set([planted.realm]), from: 'oldest' });
  await target(service, receiver.url, { realms: new Set([planted.realm]), from: 'oldest', eventsMax: 100 });
  await receiver.until(() => receiver.accepted.length === 1, 5_000);
  await until(async () => (await deliveriesOf(webhook.webhookId)).length > 0).catch(() => undefined);
  await until(async () => (await deliveriesOf(webhook.webhookId)).length > 0);
  const [delivery] = (await deliveriesOf(webhook.webhookId)).toReversed();
  expect([delivery?.outcome, delivery?.status]).toEqual(['unreachable', undefined]);
  expect(delivery?.durationMs).toBeWithin(LIMITS.webhookMsMax - 100, LIMITS.webhookMsMax + 3_000);
}, 300_000);

test('a message of many events is cut where it would be too long', async () => {
  const other = await plant(service.db);
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
  await target(service, receiver.url, {
    realms,
    from: 'oldest',
    withData: true,
    eventsMax: LIMITS.webhookEventsMax,
  });
  await receiver.until(() => receiver.places(other.realm).length === CHANGES + 100);
  expect(receiver.places(other.realm)).toEqual(upTo(CHANGES + 100));
  const sizes = receiver.accepted.map(({ body }) => Buffer.byteLength(body));
  expect(Math.max(...sizes)).toBeLessThanOrEqual(LIMITS.webhookBodyBytesMax + 1);
  expect(Math.max(...sizes)).toBeGreaterThan(LIMITS.webhookBodyBytesMax / 2);
}, 300_000);

test('the wait doubles up to its bound, a quarter more or less, and comes to about a day', () => {
  expect([1, 2, 3, 4].map((attempts) => backoffMs(attempts, 0.5))).toEqual([1_000, 2_000, 4_000, 8_000]);
  expect([backoffMs(1, 0), backoffMs(1, 1)]).toEqual([750, 1_250]);
  expect(backoffMs(10_000, 0.5)).toBe(LIMITS.webhookBackoffMsMax);
  const waits = Array.from({ length: LIMITS.webhookAttemptsMax - 1 }, (_, at) => backoffMs(at + 1, 0.5));
  const hours = waits.reduce((sum, wait) => sum + wait) / 3_600_000;
  expect(hours).toBeWithin(23.5, 24.5);
});

test('the log of deliveries keeps the newest', async () => {
  const { webhook } = await target(service, receiver.url, { realms: new Set([planted.realm]) });
  const { webhookId } = webhook;
  const { webhooks, leases } = service.db.engine;
  const lease = { name: 'test', holder: 'test' };
  await leases.replace({ ...lease, until: 1 }, undefined);
  const of = { webhookId, messageId: 'msg', realm: planted.realm, firstSeq: 1, lastSeq: 1, attempt: 1 };
  const delivery = () => ({
    ...of,
    deliveryId: systemClock.mintId() as string,
    outcome: 'delivered' as const,
    status: 200,
    durationMs: 1,
    at: systemClock.now(),
  });
  for (let done = 0; done < LIMITS.deliveriesKeptMax + 1_000; done += 1_000) {
    const deliveries = Array.from({ length: 1_000 }, delivery);
    expect(await webhooks.saveResults(lease, { webhookId, progress: [], deliveries, deadLetters: [] })).toBe(
      true,
    );
  }
  while ((await webhooks.trim(0)) > 0);
  const [kept] = await service.database.ask<{ n: number }>(
    'select count(*) as n from delivery where webhook_id = ?',
    webhookId,
  );
  expect(kept?.n).toBe(LIMITS.deliveriesKeptMax);
  // Who lost the lease writes nothing down.
  const late = { webhookId, progress: [], deliveries: [delivery()], deadLetters: [] };
  expect(await webhooks.saveResults({ ...lease, holder: 'other' }, late)).toBe(false);
}, 300_000);

test('plain answers without a body, or cut short, count by their status', async () => {
  const server = await servePlain(http('204 No Content', ''));
  const cut = await servePlain((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc'));
  for (const { port } of [server, cut]) {
    const url = `http://127.0.0.1:${port}/`;
    const wish = { realms: new Set([planted.realm]), from: 'oldest', eventsMax: 100 } as const;
    const { webhook } = await target(service, url, wish);
    await until(async () => (await deliveriesOf(webhook.webhookId))[0]?.outcome === 'delivered');
  }
});
