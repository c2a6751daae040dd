import { describe, expect, test } from 'bun:test';
import { changeWebhook, deleteWebhook } from '../../src/deliver/webhooks/targets.ts';
import type { Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { createFixture, oidcPath } from '../support/service.ts';
import {
  addTarget,
  sequenceRange,
  startReceiver,
  verifySignature,
  webhookDeps,
} from '../support/webhook_receivers.ts';
import { CHANGES, FURTHER_CHANGES, holdLease, startWebhookService } from '../support/webhook_service.ts';

/** Webhook deliveries of a real service over real sockets. */

const hooks = await startWebhookService();
const { service } = hooks;

describe('a message', () => {
  test('a webhook message with one event is a single CloudEvent with signature and timestamp', async () => {
    const { secret } = await addTarget(service, hooks.receiver.url, {
      from: 'oldest',
      realms: new Set([hooks.fixture.realm]),
    });
    await hooks.receiver.until(() => hooks.receiver.accepted.length === CHANGES);
    expect(hooks.receiver.sequences(hooks.fixture.realm)).toEqual(sequenceRange(CHANGES));
    const [first] = hooks.receiver.accepted;
    if (!first) throw new Error('no message received');
    expect(first.headers['content-type']).toBe('application/cloudevents+json');
    expect(first.headers['user-agent']).toBe('authrealm');
    expect(Number(first.headers['webhook-timestamp'])).toBeWithin(
      Date.now() / 1000 - 10,
      Date.now() / 1000 + 10,
    );
    expect(new Set(hooks.receiver.accepted.map(({ headers }) => headers['webhook-id'])).size).toBe(CHANGES);
    for (const message of hooks.receiver.accepted) verifySignature(secret, message);
    expect(() => verifySignature(secret, { ...first, body: `${first.body} ` })).toThrow();
    expect(() =>
      verifySignature(secret, { ...first, headers: { ...first.headers, 'webhook-id': 'msg_x' } }),
    ).toThrow();
    expect(JSON.parse(first.body)).toMatchObject({
      specversion: '1.0',
      type: 'authentication-realm.created',
    });
    // The same event as in the feed.
    const token = await service.token('changes:read');
    const feed = await service.get(`/v2/authentication-realms/${hooks.fixture.realm}/changes`, token);
    const { data } = (await feed.json()) as { data: unknown[] };
    expect(hooks.receiver.accepted.map(({ body }) => JSON.parse(body))).toEqual(data);
  });

  test('a webhook message with more events is a signed batch, at most as large as its target accepts', async () => {
    const options = { from: 'oldest', realms: new Set([hooks.fixture.realm]), eventsMax: 4 } as const;
    const { secret } = await addTarget(service, hooks.receiver.url, options);
    await hooks.receiver.until(() => hooks.receiver.accepted.length === 2);
    expect(hooks.receiver.accepted.map(({ events }) => events.length)).toEqual([4, 2]);
    for (const message of hooks.receiver.accepted) {
      expect(message.headers['content-type']).toBe('application/cloudevents-batch+json');
      expect(JSON.parse(message.body)).toBeArray();
      verifySignature(secret, message);
    }
  });

  test('a webhook message holds records only for a target created with data', async () => {
    const realms = new Set([hooks.fixture.realm]);
    await addTarget(service, hooks.receiver.url, { from: 'oldest', realms, withData: true, eventsMax: 100 });
    await hooks.receiver.until(() => hooks.receiver.accepted.length === 1);
    const token = await service.token('oidc-profile-infos:read');
    const link = await (await service.get(oidcPath(hooks.fixture), token)).json();
    const events = hooks.receiver.accepted[0]?.events ?? [];
    expect(events.find(({ data }) => data.record_id === hooks.fixture.oidcLink)?.data.record).toEqual(link);
    expect(JSON.stringify(events)).not.toContain('argon2');

    const other = startReceiver();
    await addTarget(service, other.url, { from: 'oldest', realms, eventsMax: 100 });
    await other.until(() => other.accepted.length === 1);
    for (const { data } of other.accepted[0]?.events ?? []) expect(data).not.toHaveProperty('record');
    expect(other.accepted[0]?.body).not.toContain(hooks.fixture.subject);
  });
});

describe('the events of a target', () => {
  test('a new webhook target receives only later events, also of realms created later', async () => {
    await addTarget(service, hooks.receiver.url);
    await Bun.sleep(2 * LIMITS.webhookPollMs);
    expect(hooks.receiver.received).toEqual([]);
    const later = await createFixture(service.db);
    await createFixture(service.db, { realm: hooks.fixture.realm });
    await hooks.receiver.until(() => hooks.receiver.accepted.length === CHANGES + FURTHER_CHANGES);
    expect(hooks.receiver.sequences(later.realm)).toEqual(sequenceRange(CHANGES));
    expect(hooks.receiver.sequences(hooks.fixture.realm)).toEqual(
      sequenceRange(CHANGES + FURTHER_CHANGES, CHANGES + 1),
    );
  });

  test('a webhook target receives its event types of its realms alone, without those of the skipped client', async () => {
    const writer = await service.client('users:write users:read');
    const skippedToken = await service.grant(writer);
    const other = await service.token('users:write users:read');
    const unlistedRealm = await createFixture(service.db);
    await hooks.addReceiver({
      events: ['user-authentication-info.created', 'user-authentication-info.updated'],
      skippedClient: writer.clientId,
    });
    const data = { type: 'user_authentication_info', name: 'Jane Doe', email: 'jane@example.com' };
    const users = (realm: string) => `/v2/authentication-realms/${realm}/user-authentication-info`;
    for (const [realm, by] of [
      [hooks.fixture.realm, skippedToken],
      [unlistedRealm.realm, other],
      [hooks.fixture.realm, other],
    ] as const) {
      expect((await service.post(users(realm), by, { data })).status).toBe(201);
    }
    const gone = `${users(hooks.fixture.realm)}/${hooks.fixture.user}`;
    expect((await service.del(gone, other)).status).toBe(204);
    expect((await service.post(users(hooks.fixture.realm), other, { data })).status).toBe(201);
    await hooks.receiver.until(() => hooks.receiver.accepted.length === 2);
    await Bun.sleep(2 * LIMITS.webhookPollMs);
    const receivedEvents = hooks.receiver.accepted.flatMap(({ events }) => events);
    expect(receivedEvents.map(({ type }) => type)).toEqual(Array(2).fill('user-authentication-info.created'));
    expect(receivedEvents.map(({ data }) => [data.realm_id, data.client_id === writer.clientId])).toEqual(
      Array(2).fill([hooks.fixture.realm, false]),
    );
  });

  test('a realm removed from a webhook target stops within seconds, and restarts at the present when added again', async () => {
    const deps = webhookDeps(service);
    const other = await createFixture(service.db);
    const webhookId = await hooks.addReceiver();
    const setRealms = (realms: readonly Uuid[]) =>
      changeWebhook(deps, webhookId, { realms: new Set(realms) }, systemClock);
    await setRealms([other.realm]);
    await Bun.sleep(2 * LIMITS.webhookPollMs);
    await createFixture(service.db, { realm: hooks.fixture.realm });
    await Bun.sleep(2 * LIMITS.webhookPollMs);
    expect(hooks.receiver.received).toEqual([]);
    await setRealms([hooks.fixture.realm, other.realm]);
    await createFixture(service.db, { realm: hooks.fixture.realm });
    await hooks.receiver.until(() => hooks.receiver.accepted.length === FURTHER_CHANGES);
    expect(hooks.receiver.sequences(hooks.fixture.realm)).toEqual(
      sequenceRange(CHANGES + 2 * FURTHER_CHANGES, CHANGES + FURTHER_CHANGES + 1),
    );
  });
});

test('a webhook target that gets another realm continues in those that it had, also where it has no progress yet', async () => {
  const { webhooks } = service.db.engine;
  const [had, added] = [await createFixture(service.db), await createFixture(service.db)];
  const options = { realms: new Set([had.realm]) };
  const { webhook } = await addTarget(service, 'http://127.0.0.1:9/', options);
  const { webhookId } = webhook;
  // As of a realm that was created after the target.
  await service.database.tamper(`delete from webhook_progress where webhook_id = '${webhookId}'`);
  const realms = new Set([had.realm, added.realm]);
  await changeWebhook(webhookDeps(service), webhookId, { realms }, systemClock);
  const reached = [...realms].map(async (realm) => (await webhooks.progress(webhookId, realm)).seq);
  expect(await Promise.all(reached)).toEqual([0, CHANGES]);
});

test('a deleted webhook target leaves no progress, also while other processes save delivery results', async () => {
  const { webhooks } = service.db.engine;
  const lease = await holdLease(service);
  const realms = Array.from({ length: 30 }, () => systemClock.mintId());
  for (let round = 0; round < 40; round += 1) {
    const { webhook } = await addTarget(service, 'http://127.0.0.1:9/', {
      realms: new Set(realms.slice(0, 1)),
    });
    const { webhookId } = webhook;
    const results = realms.map((realm) => ({
      webhookId,
      progress: { realm, seq: 1, attempts: 0, nextAt: 0, failedSeq: 0, behindSince: 0 },
    }));
    const [isGone] = await Promise.all([
      deleteWebhook(webhooks, webhookId, systemClock),
      ...results.map((result) => webhooks.saveResult(lease, result)),
    ]);
    expect(isGone).toBe(true);
    expect(
      await service.database.query('select 1 from webhook_progress where webhook_id = ?', webhookId),
    ).toEqual([]);
  }
});
