import { afterEach, expect, test } from 'bun:test';
import { systemClock } from '../../../src/ops/process/clock.ts';
import { createDeadLetters } from '../../support/dead_letter_fixtures.ts';
import { createFixture } from '../../support/service.ts';
import { sequenceRange, startReceiver, verifySignature } from '../../support/webhook_receivers.ts';
import { CHANGES, untilStored } from '../../support/webhook_service.ts';
import { startAdminApi } from './admin_api.ts';

/** How a target is doing, and what an administrator can do about it. */

const api = await startAdminApi({ allowPrivate: 'localhost 127.0.0.0/8' });
afterEach(async () => {
  for (const { id } of await api.listAll('/webhooks')) await api.request('DELETE', `/webhooks/${id}`);
});

/** `status`: that of each answer of its receiver. */
async function createTarget(more: object = {}, status = 204) {
  const receiver = startReceiver();
  receiver.respond(() => new Response(null, { status }));
  const { realm } = await createFixture(api.service.db);
  const data = { name: 'Search', url: receiver.url, events: '*', realms: [realm], from: 'oldest', ...more };
  const { body } = await api.request('POST', '/webhooks', { data });
  const { id, secret } = body.data;
  return { id, path: `/webhooks/${id}`, secret: String(secret), receiver, realm };
}

const statusOf = async (path: string) => (await api.request('GET', `${path}/status`)).body.data;

test('a target that received everything is behind nothing, and names its last delivery', async () => {
  const { id, path, receiver, realm } = await createTarget({ events_max: 100 });
  await receiver.until(() => receiver.accepted.length === 1);
  await untilStored(async () => (await statusOf(path)).behind_since === null);
  const { links: _, ...status } = (await statusOf(path)) as Record<string, unknown>;
  expect(status).toEqual({
    id,
    type: 'webhook_status',
    last_delivery: expect.objectContaining({ outcome: 'delivered', status: 204, realm_id: realm }),
    last_error: null,
    behind_since: null,
    failing_realms: 0,
    dead_letters: 0,
  });
});

test('a target that fails names its last error, its failing realms and its oldest undelivered change', async () => {
  const before = systemClock.now();
  const { id, path, realm } = await createTarget({}, 500);
  await untilStored(async () => (await statusOf(path)).failing_realms === 1);
  await createDeadLetters(api.service, id, 2, realm);
  const status = await statusOf(path);
  expect(status).toMatchObject({
    last_delivery: { outcome: 'refused', status: 503 },
    last_error: { outcome: 'refused', status: 503 },
    failing_realms: 1,
    dead_letters: 2,
  });
  const since = Date.parse(String(status.behind_since));
  expect(since).toBeWithin(before - 1, systemClock.now() + 1);
  const [listed] = await api.listAll('/webhooks');
  expect(listed).toMatchObject({
    failing_realms: 1,
    dead_letters: 2,
    behind_since: status.behind_since ?? '',
  });
});

test('the changes of a disabled target are behind since the oldest of them', async () => {
  const { path } = await createTarget();
  await api.request('POST', `${path}/disable`);
  const { path: waiting, realm } = await createTarget({ name: 'Waiting', from: 'present' });
  await api.request('POST', `${waiting}/disable`);
  expect((await statusOf(waiting)).behind_since).toBeNull();
  await createFixture(api.service.db, { realm });
  expect(await statusOf(waiting)).toMatchObject({ behind_since: expect.any(String), last_delivery: null });
});

test.each([
  [204, 'delivered'],
  [500, 'refused'],
])('test-webhook sends a signed event once, and returns a response of %p as %s', async (status, outcome) => {
  const { id, path, secret, receiver } = await createTarget({ from: 'present', events_max: 4 });
  receiver.respond(() => new Response(null, { status }));
  const { body, status: answered } = await api.request('POST', `${path}/test`);
  const result = { id, type: 'webhook_test', outcome, status, duration_ms: expect.any(Number) };
  expect([answered, body.data as object]).toEqual([200, result]);
  expect(receiver.received).toHaveLength(1);
  const [message] = receiver.received;
  if (!message) throw new Error('nothing was received');
  verifySignature(secret, message);
  expect(message.events).toMatchObject([{ specversion: '1.0', type: 'webhook.test' }] as object[]);
  expect(await api.listAll(`${path}/deliveries`)).toEqual([]);
});

test('test-webhook reports a target that cannot be reached, and tests a disabled one', async () => {
  const { path, receiver } = await createTarget({ from: 'present' });
  await api.request('POST', `${path}/disable`);
  expect((await api.request('POST', `${path}/test`)).body.data.outcome).toBe('delivered');
  receiver.stop();
  const { status, body } = await api.request('POST', `${path}/test`);
  expect([status, body.data.outcome, body.data.status ?? null]).toEqual([200, 'unreachable', null]);
});

test('redeliver-webhook sends a failed message at once, in its place in the order', async () => {
  const { path, receiver, realm } = await createTarget({}, 500);
  await untilStored(async () => (await statusOf(path)).failing_realms === 1);
  const postpone = () =>
    api.service.database.tamper(
      'update webhook_progress set next_at = ? where next_at > 0',
      String(systemClock.now() + 3_600_000),
    );
  while ((await postpone()) === 0) await Bun.sleep(20);
  const send = async (message: string) =>
    (await api.request('POST', `${path}/redeliver`, { data: { message } })).status;
  expect(await send(`${realm}.2`)).toBe(422);
  receiver.respond(() => new Response());
  expect(await send(`${realm}.1`)).toBe(202);
  await receiver.until(() => receiver.accepted.length === CHANGES);
  expect(receiver.sequences(realm)).toEqual(sequenceRange(CHANGES));
  expect(await send(`${realm}.1`)).toBe(422);
});
