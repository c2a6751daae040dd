import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import type { Uuid } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { changeWebhook, deleteWebhook, rotateWebhook } from '../../src/events/webhooks/targets.ts';
import { systemClock } from '../../src/platform/clock.ts';
import {
  deleteTargets,
  openReceiver,
  type Receiver,
  roomsOf,
  target,
  upTo,
  verify,
} from '../support/receivers.ts';
import { oidcPath, type Planted, plant, type Service, startService } from '../support/service.ts';

/** What receivers are told, by a real service over real sockets. */

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

/** Six more changes to plant, in a realm of its own or in this one: one realm's are five. */
const CHANGES = 6;
const MORE = 5;

describe('a message', () => {
  test('with one event is a CloudEvent by itself, signed and stamped', async () => {
    const { secret } = await target(service, receiver.url, {
      from: 'oldest',
      realms: new Set([planted.realm]),
    });
    await receiver.until(() => receiver.accepted.length === CHANGES);
    expect(receiver.places(planted.realm)).toEqual(upTo(CHANGES));
    const [first] = receiver.accepted;
    if (!first) throw new Error('nothing came');
    expect(first.headers['content-type']).toBe('application/cloudevents+json');
    expect(first.headers['user-agent']).toBe('authrealm');
    expect(Number(first.headers['webhook-timestamp'])).toBeWithin(
      Date.now() / 1000 - 10,
      Date.now() / 1000 + 10,
    );
    expect(new Set(receiver.accepted.map(({ headers }) => headers['webhook-id'])).size).toBe(CHANGES);
    for (const message of receiver.accepted) verify(secret, message);
    expect(() => verify(secret, { ...first, body: `${first.body} ` })).toThrow();
    expect(() =>
      verify(secret, { ...first, headers: { ...first.headers, 'webhook-id': 'msg_x' } }),
    ).toThrow();
    expect(JSON.parse(first.body)).toMatchObject({
      specversion: '1.0',
      type: 'authentication-realm.created',
    });
    // The same event as in the feed.
    const token = await service.token('changes:read');
    const feed = await service.get(`/v2/authentication-realms/${planted.realm}/changes`, token);
    const { data } = (await feed.json()) as { data: unknown[] };
    expect(receiver.accepted.map(({ body }) => JSON.parse(body))).toEqual(data);
  });

  test('with more is a batch of at most as many as the target takes', async () => {
    const wish = { from: 'oldest', realms: new Set([planted.realm]), eventsMax: 4 } as const;
    const { secret } = await target(service, receiver.url, wish);
    await receiver.until(() => receiver.accepted.length === 2);
    expect(receiver.accepted.map(({ events }) => events.length)).toEqual([4, 2]);
    for (const message of receiver.accepted) {
      expect(message.headers['content-type']).toBe('application/cloudevents-batch+json');
      expect(JSON.parse(message.body)).toBeArray();
      verify(secret, message);
    }
  });

  test('holds the state of records where the target was made so, and never otherwise', async () => {
    const realms = new Set([planted.realm]);
    await target(service, receiver.url, { from: 'oldest', realms, withData: true, eventsMax: 100 });
    await receiver.until(() => receiver.accepted.length === 1);
    const token = await service.token('oidc-profile-infos:read');
    const link = await (await service.get(oidcPath(planted), token)).json();
    const events = receiver.accepted[0]?.events ?? [];
    expect(events.find(({ data }) => data.record_id === planted.oidcLink)?.data.record).toEqual(link);
    expect(JSON.stringify(events)).not.toContain('argon2');

    const other = openReceiver();
    await target(service, other.url, { from: 'oldest', realms, eventsMax: 100 });
    await other.until(() => other.accepted.length === 1);
    for (const { data } of other.accepted[0]?.events ?? []) expect(data).not.toHaveProperty('record');
    expect(other.accepted[0]?.body).not.toContain(planted.subject);
    other.stop();
  });
});

describe('which events', () => {
  test('come from now on, of realms that are made later too', async () => {
    await target(service, receiver.url);
    await Bun.sleep(2 * LIMITS.webhookPollMs);
    expect(receiver.received).toEqual([]);
    const later = await plant(service.db);
    await plant(service.db, { realm: planted.realm });
    await receiver.until(() => receiver.accepted.length === CHANGES + MORE);
    expect(receiver.places(later.realm)).toEqual(upTo(CHANGES));
    expect(receiver.places(planted.realm)).toEqual(upTo(CHANGES + MORE, CHANGES + 1));
  });

  test('are those that were named, of realms that were named, and not those of the client that is left out', async () => {
    const writer = await service.client('users:write users:read');
    const form = {
      grant_type: 'client_credentials',
      client_id: writer.clientId,
      client_secret: writer.secret,
    };
    const { access_token: own } = (await (await service.grant(form)).json()) as { access_token: string };
    const other = await service.token('users:write users:read');
    const elsewhere = await plant(service.db);
    await target(service, receiver.url, {
      realms: new Set([planted.realm]),
      events: ['user-authentication-info.created', 'user-authentication-info.updated'],
      skippedClient: writer.clientId,
    });
    const data = { type: 'user_authentication_info', name: 'Jane Doe', email: 'jane@example.com' };
    const users = (realm: string) => `/v2/authentication-realms/${realm}/user-authentication-info`;
    for (const [realm, by] of [
      [planted.realm, own],
      [elsewhere.realm, other],
      [planted.realm, other],
    ] as const) {
      expect((await service.post(users(realm), by, { data })).status).toBe(201);
    }
    const gone = `${users(planted.realm)}/${planted.user}`;
    expect((await service.del(gone, other)).status).toBe(204);
    expect((await service.post(users(planted.realm), other, { data })).status).toBe(201);
    await receiver.until(() => receiver.accepted.length === 2);
    await Bun.sleep(2 * LIMITS.webhookPollMs);
    const told = receiver.accepted.flatMap(({ events }) => events);
    expect(told.map(({ type }) => type)).toEqual(Array(2).fill('user-authentication-info.created'));
    expect(told.map(({ data }) => [data.realm_id, data.client_id === writer.clientId])).toEqual(
      Array(2).fill([planted.realm, false]),
    );
  });

  test('of a realm that is taken off the list stop within seconds, and begin anew when it is back', async () => {
    const rooms = roomsOf(service);
    const other = await plant(service.db);
    const { webhook } = await target(service, receiver.url, { realms: new Set([planted.realm]) });
    const limited = (realms: readonly Uuid[]) =>
      changeWebhook(rooms, webhook.webhookId, { realms: new Set(realms) }, systemClock);
    await limited([other.realm]);
    await Bun.sleep(2 * LIMITS.webhookPollMs);
    await plant(service.db, { realm: planted.realm });
    await Bun.sleep(2 * LIMITS.webhookPollMs);
    expect(receiver.received).toEqual([]);
    await limited([planted.realm, other.realm]);
    await plant(service.db, { realm: planted.realm });
    await receiver.until(() => receiver.accepted.length === MORE);
    expect(receiver.places(planted.realm)).toEqual(upTo(CHANGES + 2 * MORE, CHANGES + MORE + 1));
  });
});

describe('a target', () => {
  test('that is disabled is told nothing, and later what it missed', async () => {
    const rooms = roomsOf(service);
    const { webhook } = await target(service, receiver.url);
    const disabled = (disabledAt: number | undefined) =>
      changeWebhook(rooms, webhook.webhookId, { disabledAt }, systemClock);
    await disabled(systemClock.now());
    await Bun.sleep(2 * LIMITS.webhookPollMs);
    await plant(service.db, { realm: planted.realm });
    await Bun.sleep(2 * LIMITS.webhookPollMs);
    expect(receiver.received).toEqual([]);
    await disabled(undefined);
    await receiver.until(() => receiver.accepted.length === MORE);
    expect(receiver.places(planted.realm)).toEqual(upTo(CHANGES + MORE, CHANGES + 1));
  });

  test('with a new secret is signed for by both until the overlap ends', async () => {
    const rooms = roomsOf(service);
    const issued = await target(service, receiver.url, { eventsMax: 100 });
    const { webhookId } = issued.webhook;
    const rotated = await rotateWebhook(rooms, webhookId, 60_000, service.clock);
    await Bun.sleep(2 * LIMITS.webhookPollMs);
    await plant(service.db);
    await receiver.until(() => receiver.accepted.length === 1);
    const [both] = receiver.accepted;
    if (!both || !rotated) throw new Error('nothing came');
    expect(both.headers['webhook-signature']?.split(' ')).toHaveLength(2);
    for (const secret of [issued.secret, rotated.secret]) verify(secret, both);

    const again = await rotateWebhook(rooms, webhookId, 0, service.clock);
    await Bun.sleep(2 * LIMITS.webhookPollMs);
    await plant(service.db);
    await receiver.until(() => receiver.accepted.length === 2);
    const last = receiver.accepted[1];
    if (!last || !again) throw new Error('nothing came');
    verify(again.secret, last);
    for (const secret of [issued.secret, rotated.secret]) expect(() => verify(secret, last)).toThrow();
  });

  test('is logged by what was done to it, its secrets sealed in the database', async () => {
    const { secret, webhook } = await target(service, receiver.url);
    const acts = await service.database.ask<{ action: string; detail: string }>(
      'select action, detail from act where object = ? order by seq',
      webhook.webhookId,
    );
    expect(acts.map(({ action }) => action)).toEqual(['webhook.created']);
    const { host, with_data } = JSON.parse(acts[0]?.detail ?? '{}').after;
    expect([host, with_data]).toEqual([new URL(receiver.url).host, false]);
    expect(acts[0]?.detail).not.toContain('to=us');
    expect(await service.database.stored([secret, secret.slice(6)])).toEqual([]);
  });

  test('is one of a bounded number', async () => {
    const fieldsOf = () =>
      target(service, receiver.url, {}).then(
        () => [],
        (error) => error.complaints.map(({ field }: { field: string }) => field),
      );
    const made = (await service.db.engine.webhooks.list()).length;
    for (let count = made; count < LIMITS.webhooksMax; count += 1) expect(await fieldsOf()).toEqual([]);
    expect(await fieldsOf()).toEqual(['body']);
  });
});

test('a target is deleted with all of it, while others write down what was sent to it', async () => {
  const { webhooks, leases } = service.db.engine;
  const lease = { name: 'test', holder: 'test' };
  await leases.replace({ ...lease, until: 1 }, undefined);
  const realms = Array.from({ length: 30 }, () => systemClock.mintId());
  for (let round = 0; round < 40; round += 1) {
    const { webhook } = await target(service, 'http://127.0.0.1:9/', { realms: new Set(realms.slice(0, 1)) });
    const { webhookId } = webhook;
    const progress = realms.map((realm) => ({
      realm,
      seq: 1,
      attempts: 0,
      nextAt: 0,
      failedSeq: 0,
      behindSince: 0,
    }));
    const settled = { webhookId, progress, deliveries: [], deadLetters: [] };
    const [isGone] = await Promise.all([
      deleteWebhook(webhooks, webhookId, systemClock),
      ...Array.from({ length: 4 }, () => webhooks.saveResults(lease, settled)),
    ]);
    expect(isGone).toBe(true);
    expect(
      await service.database.ask('select 1 from webhook_progress where webhook_id = ?', webhookId),
    ).toEqual([]);
  }
});
