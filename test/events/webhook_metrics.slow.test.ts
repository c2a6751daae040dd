import { afterAll, afterEach, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { changeWebhook, deleteWebhook, requestRedelivery } from '../../src/events/webhooks/targets.ts';
import type { Labels } from '../../src/metrics/family.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { deleteTargets, moveOn, openReceiver, type Receiver, roomsOf, target } from '../support/receivers.ts';
import { type Planted, plant, type Service, startService } from '../support/service.ts';

/** What is measured of webhook targets and of streams, in one process. */

setDefaultTimeout(300_000);

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
  await deleteTargets(service);
});

const CHANGES = 6;

const made = async () => {
  const realms = new Set([planted.realm]);
  return (await target(service, receiver.url, { realms, from: 'oldest', eventsMax: 100 })).webhook.webhookId;
};

const familyOf = async (name: string) =>
  (await service.server.metrics.readAll()).find((family) => family.name === name);

/** Undefined where it is not told. */
async function figure(name: string, labels: Labels): Promise<number | undefined> {
  const family = await familyOf(name);
  const samples = family && 'samples' in family ? family.samples : [];
  return samples.find((sample) => Bun.deepEquals(sample.labels, labels))?.value;
}

/** Resolves once a figure is such. */
async function until(name: string, labels: Labels, isSuch: (value: number | undefined) => boolean) {
  let value: number | undefined;
  for (let tries = 0; tries < 200; tries += 1) {
    value = await figure(name, labels);
    if (isSuch(value)) return;
    await Bun.sleep(50);
  }
  throw new Error(`${name} is ${value}`);
}

test('what a target received is counted, with how long it took, and it is behind in nothing', async () => {
  const webhook = await made();
  await receiver.until(() => receiver.places(planted.realm).length === CHANGES);
  const ofOutcome = (outcome: string) => figure('authrealm_webhook_deliveries_total', { webhook, outcome });
  await until('authrealm_webhook_deliveries_total', { webhook, outcome: 'delivered' }, (n) => n === 1);
  expect(await Promise.all(['refused', 'unreachable', 'expired'].map(ofOutcome))).toEqual([0, 0, 0]);
  const family = await familyOf('authrealm_webhook_delivery_duration_seconds');
  const [told] = family?.kind === 'histogram' ? family.distributions : [];
  expect(told?.labels).toEqual({ webhook });
  expect(told?.counts.reduce((sum, count) => sum + count)).toBe(1);
  await until('authrealm_webhook_lag_seconds', { webhook }, (seconds) => seconds === 0);
  expect(await figure('authrealm_webhook_lagging_realms', { webhook })).toBe(0);
  expect(await figure('authrealm_webhook_dead_letters', { webhook })).toBe(0);
  await deleteWebhook(service.db.engine.webhooks, webhook, systemClock);
  await until('authrealm_webhook_lag_seconds', { webhook }, (seconds) => seconds === undefined);
  await until(
    'authrealm_webhook_deliveries_total',
    { webhook, outcome: 'delivered' },
    (n) => n === undefined,
  );
});

test('a target that refuses is behind by the age of its oldest change, until it receives it', async () => {
  receiver.answer(() => new Response(null, { status: 503 }));
  const webhook = await made();
  await until('authrealm_webhook_lagging_realms', { webhook }, (realms) => realms === 1);
  expect(await figure('authrealm_webhook_deliveries_total', { webhook, outcome: 'refused' })).toBeGreaterThan(
    0,
  );
  service.clock.advance(100_000);
  await until('authrealm_webhook_lag_seconds', { webhook }, (seconds) => (seconds ?? 0) > 100);
  expect(await figure('authrealm_webhook_lag_seconds', { webhook })).toBeLessThan(200);
  receiver.answer(() => new Response());
  await until('authrealm_webhook_lag_seconds', { webhook }, (seconds) => seconds === 0);
  expect(await figure('authrealm_webhook_lagging_realms', { webhook })).toBe(0);
});

test('a target that has not answered yet is behind too, with what waits for a place', async () => {
  receiver.answer(() => Bun.sleep(60_000).then(() => new Response()));
  const webhook = await made();
  await receiver.until(() => receiver.received.length === 1);
  service.clock.advance(100_000);
  expect(await figure('authrealm_webhook_lag_seconds', { webhook })).toBeGreaterThan(100);
  // It is told no more, and of nobody's.
  await changeWebhook(roomsOf(service), webhook, { disabledAt: systemClock.now() }, systemClock);
  await until('authrealm_webhook_lag_seconds', { webhook }, (seconds) => seconds === undefined);
});

test('what waits for a place counts by its own age', async () => {
  receiver.answer(() => Bun.sleep(60_000).then(() => new Response()));
  const others = await Promise.all([1, 2, 3].map(() => plant(service.db)));
  // Made last, so that it is looked at last.
  const late = await plant(service.db);
  await service.database.spoil('update change set at = at - 5000000 where realm_id = ?', late.realm);
  const realms = new Set([planted, late, ...others].map(({ realm }) => realm));
  const wish = { realms, from: 'oldest', eventsMax: 100 } as const;
  await moveOn(service.database);
  const { webhook } = await target(service, receiver.url, wish);
  await receiver.until(() => receiver.received.length === 4);
  const told = receiver.received.flatMap(({ events }) => events.map(({ data }) => data.realm_id));
  expect(told).not.toContain(late.realm);
  const labels = { webhook: webhook.webhookId };
  const ahead = (service.clock.now() - systemClock.now()) / 1_000;
  await until('authrealm_webhook_lag_seconds', labels, (seconds) => (seconds ?? 0) > ahead + 5_000);
});

test('what cannot be sent because of us counts by its age as well, until it is sent', async () => {
  const shared = service;
  service = await startService({ offline: 'true', allowLoopbackWebhooks: 'true' });
  planted = await plant(service.db);
  const webhook = await made();
  await receiver.until(() => receiver.places(planted.realm).length === CHANGES);
  const kept = (await service.db.engine.webhooks.list()).find(({ webhookId }) => webhookId === webhook);
  const put = (secret: string) =>
    service.database.spoil(`update webhook set secret_sealed = ${secret} where webhook_id = ?`, webhook);
  const bytes = (hex: string) =>
    service.database.address.engine === 'sqlite' ? `x'${hex}'` : `decode('${hex}', 'hex')`;
  const sealed = Buffer.from(kept?.secretSealed ?? []);
  const spoilt = Buffer.from(sealed);
  spoilt[spoilt.length - 1] = (spoilt.at(-1) ?? 0) ^ 1;
  await put(bytes(spoilt.toString('hex')));
  await Bun.sleep(1_000);
  await plant(service.db, { realm: planted.realm });
  // Longer than it takes to find out.
  await until('authrealm_webhook_lag_seconds', { webhook }, (seconds) => (seconds ?? 0) > 2);
  await put(bytes(sealed.toString('hex')));
  await until('authrealm_webhook_lag_seconds', { webhook }, (seconds) => seconds === 0);
  expect(receiver.places(planted.realm).length).toBeGreaterThan(CHANGES);
  // It says what it found.
  expect(await service.stop().catch(String)).toContain('keyring.ts');
  service = shared;
});

test('dead letters are counted until they are received', async () => {
  const webhook = await made();
  await receiver.until(() => receiver.places(planted.realm).length === CHANGES);
  await service.database.spoil(
    'insert into dead_letter (webhook_id, realm_id, first_seq, last_seq, attempts, at) values (?, ?, 1, 1, 9, 1)',
    webhook,
    planted.realm,
  );
  expect(await figure('authrealm_webhook_dead_letters', { webhook })).toBe(1);
  await requestRedelivery(service.db.engine.webhooks, webhook, undefined, systemClock);
  await until('authrealm_webhook_dead_letters', { webhook }, (letters) => letters === 0);
});

test('streams are counted while they are open', async () => {
  const token = await service.token('changes:read');
  const ending = new AbortController();
  const url = `${service.url}/v2/authentication-realms/${planted.realm}/changes`;
  const headers = { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' };
  const answer = await fetch(url, { headers, signal: ending.signal });
  expect(answer.status).toBe(200);
  expect(await figure('authrealm_change_streams', {})).toBe(1);
  ending.abort();
  await until('authrealm_change_streams', {}, (streams) => streams === 0);
});
