import { expect, setDefaultTimeout, test } from 'bun:test';
import { changeWebhook, deleteWebhook, requestRedelivery } from '../../src/deliver/webhooks/targets.ts';
import { LIMITS } from '../../src/model/limits.ts';
import type { Labels } from '../../src/ops/metrics/family.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { ofRealm } from '../support/log_rows.ts';
import { createFixture, type Service, startService } from '../support/service.ts';
import { sqlLiteral } from '../support/tampered_logs.ts';
import { addTarget, endRecentWrites, insertDeadLetter, webhookDeps } from '../support/webhook_receivers.ts';
import { CHANGES, LOOPBACK_TARGETS, startWebhookService } from '../support/webhook_service.ts';

/** Metrics of webhook targets and change streams, in one process. */

// PostgreSQL numbers transactions by server: those of other suites would count as recent here.
delete process.env.AUTHREALM_TEST_POSTGRES;

setDefaultTimeout(300_000);

const hooks = await startWebhookService();
const { service } = hooks;

const familyOf = async (name: string, { server }: Pick<Service, 'server'> = service) =>
  (await server.metrics.readAll()).find((family) => family.name === name);

/** Undefined where the family has no such sample. */
async function sampleOf(name: string, labels: Labels, of = service): Promise<number | undefined> {
  const family = await familyOf(name, of);
  const samples = family && 'samples' in family ? family.samples : [];
  return samples.find((sample) => Bun.deepEquals(sample.labels, labels))?.value;
}

/** Resolves once the value of a sample matches. */
async function until(
  name: string,
  labels: Labels,
  matches: (value: number | undefined) => boolean,
  of = service,
) {
  while (!matches(await sampleOf(name, labels, of))) await Bun.sleep(50);
}

test('deliveries are counted with their duration, and a target that received all has no lag', async () => {
  const webhook = await hooks.addReceiver({ from: 'oldest', eventsMax: 100 });
  await hooks.receiver.until(() => hooks.receiver.sequences(hooks.fixture.realm).length === CHANGES);
  const ofOutcome = (outcome: string) => sampleOf('authrealm_webhook_deliveries_total', { webhook, outcome });
  await until('authrealm_webhook_deliveries_total', { webhook, outcome: 'delivered' }, (n) => n === 1);
  expect(await Promise.all(['refused', 'unreachable', 'expired'].map(ofOutcome))).toEqual([0, 0, 0]);
  const family = await familyOf('authrealm_webhook_delivery_duration_seconds');
  const [distribution] = family?.kind === 'histogram' ? family.distributions : [];
  expect(distribution?.labels).toEqual({ webhook });
  expect(distribution?.counts.reduce((sum, count) => sum + count)).toBe(1);
  await until('authrealm_webhook_lag_seconds', { webhook }, (seconds) => seconds === 0);
  expect(await sampleOf('authrealm_webhook_lagging_realms', { webhook })).toBe(0);
  expect(await sampleOf('authrealm_webhook_dead_letters', { webhook })).toBe(0);
  await deleteWebhook(service.db.engine.webhooks, webhook, systemClock);
  await until('authrealm_webhook_lag_seconds', { webhook }, (seconds) => seconds === undefined);
  await until(
    'authrealm_webhook_deliveries_total',
    { webhook, outcome: 'delivered' },
    (n) => n === undefined,
  );
});

test('a target that rejects messages lags by the age of its oldest change until it accepts it', async () => {
  hooks.receiver.respond(() => new Response(null, { status: 503 }));
  const webhook = await hooks.addReceiver({ from: 'oldest', eventsMax: 100 });
  await until('authrealm_webhook_lagging_realms', { webhook }, (realms) => realms === 1);
  expect(
    await sampleOf('authrealm_webhook_deliveries_total', { webhook, outcome: 'refused' }),
  ).toBeGreaterThan(0);
  service.clock.advance(100_000);
  await until('authrealm_webhook_lag_seconds', { webhook }, (seconds = 0) => seconds > 100 && seconds < 200);
  hooks.receiver.respond(() => new Response());
  await until('authrealm_webhook_lag_seconds', { webhook }, (seconds) => seconds === 0);
  expect(await sampleOf('authrealm_webhook_lagging_realms', { webhook })).toBe(0);
});

test('a target that has not answered yet lags, and a disabled target reports no lag', async () => {
  hooks.receiver.respond(() => Bun.sleep(60_000).then(() => new Response()));
  const webhook = await hooks.addReceiver({ from: 'oldest', eventsMax: 100 });
  await hooks.receiver.until(() => hooks.receiver.received.length === 1);
  service.clock.advance(100_000);
  // The moved clock has ended the lease, which the service then takes again.
  await until('authrealm_webhook_lag_seconds', { webhook }, (seconds) => (seconds ?? 0) > 100);
  // A disabled target receives nothing and has no lag.
  await changeWebhook(webhookDeps(service), webhook, { disabledAt: systemClock.now() }, systemClock);
  await until('authrealm_webhook_lag_seconds', { webhook }, (seconds) => seconds === undefined);
});

test('a realm that waits for a slot counts into the lag by the age of its own changes', async () => {
  hooks.receiver.respond(() => Bun.sleep(60_000).then(() => new Response()));
  const others = await Promise.all([1, 2, 3].map(() => createFixture(service.db)));
  // Created last, so that it is read last.
  const late = await createFixture(service.db);
  const { database } = service;
  const where = ofRealm(database.address.engine);
  await database.tamper(`update log_entry set at = at - 5000000 where ${where}`, late.realm);
  const realms = new Set([hooks.fixture, late, ...others].map(({ realm }) => realm));
  const options = { realms, from: 'oldest', eventsMax: 100 } as const;
  await endRecentWrites(service.database);
  const { webhook } = await addTarget(service, hooks.receiver.url, options);
  await hooks.receiver.until(() => hooks.receiver.received.length === 4);
  const realmIds = hooks.receiver.received.flatMap(({ events }) => events.map(({ data }) => data.realm_id));
  expect(realmIds).not.toContain(late.realm);
  const labels = { webhook: webhook.webhookId };
  const ahead = (service.clock.now() - systemClock.now()) / 1_000;
  await until('authrealm_webhook_lag_seconds', labels, (seconds) => (seconds ?? 0) > ahead + 5_000);
});

test('changes that an internal error keeps from being sent count into the lag until they are sent', async () => {
  // It stops with the error, so it is a service of its own.
  const other = await startService(LOOPBACK_TARGETS);
  const { realm } = await createFixture(other.db);
  const options = { realms: new Set([realm]), from: 'oldest', eventsMax: 100 } as const;
  const { webhookId: webhook } = (await addTarget(other, hooks.receiver.url, options)).webhook;
  await hooks.receiver.until(() => hooks.receiver.sequences(realm).length === CHANGES);
  const stored = (await other.db.engine.webhooks.list()).find(({ webhookId }) => webhookId === webhook);
  const setSecret = (secret: Uint8Array) => {
    const literal = sqlLiteral(other.database, secret);
    return other.database.tamper(
      `update webhook set secret_sealed = ${literal} where webhook_id = ?`,
      webhook,
    );
  };
  const sealed = Buffer.from(stored?.secretSealed ?? []);
  const damaged = Buffer.from(sealed);
  damaged[damaged.length - 1] = (damaged.at(-1) ?? 0) ^ 1;
  await setSecret(damaged);
  // Then the service has read it.
  await Bun.sleep(6 * LIMITS.webhookPollMs);
  await createFixture(other.db, { realm });
  // Longer than it takes to detect.
  await until('authrealm_webhook_lag_seconds', { webhook }, (seconds) => (seconds ?? 0) > 2, other);
  await setSecret(sealed);
  await until('authrealm_webhook_lag_seconds', { webhook }, (seconds) => seconds === 0, other);
  expect(hooks.receiver.sequences(realm).length).toBeGreaterThan(CHANGES);
  // The stop reports the error.
  expect(await other.stop().catch(String)).toContain('keyring.ts');
});

test('dead letters are counted until they are redelivered', async () => {
  const webhook = await hooks.addReceiver({ from: 'oldest', eventsMax: 100 });
  await hooks.receiver.until(() => hooks.receiver.sequences(hooks.fixture.realm).length === CHANGES);
  await insertDeadLetter(service, webhook, hooks.fixture.realm);
  expect(await sampleOf('authrealm_webhook_dead_letters', { webhook })).toBe(1);
  await requestRedelivery(service.db.engine.webhooks, webhook, undefined, systemClock);
  await until('authrealm_webhook_dead_letters', { webhook }, (deadLetters) => deadLetters === 0);
});

test('change streams are counted while they are open', async () => {
  const token = await service.token('changes:read');
  const ending = new AbortController();
  const url = `${service.url}/v2/authentication-realms/${hooks.fixture.realm}/changes`;
  const headers = { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' };
  const answer = await fetch(url, { headers, signal: ending.signal });
  expect(answer.status).toBe(200);
  expect(await sampleOf('authrealm_change_streams', {})).toBe(1);
  ending.abort();
  await until('authrealm_change_streams', {}, (streams) => streams === 0);
});
