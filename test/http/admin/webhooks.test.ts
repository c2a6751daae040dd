import { afterEach, describe, expect, test } from 'bun:test';
import { LIMITS } from '../../../src/model/limits.ts';
import { createDeadLetters } from '../../support/dead_letter_fixtures.ts';
import { createFixture } from '../../support/service.ts';
import {
  sequenceRange,
  startReceiver,
  verifySignature,
  type WebhookReceiver,
} from '../../support/webhook_receivers.ts';
import { CHANGES, FURTHER_CHANGES } from '../../support/webhook_service.ts';
import { type AdminItem, startAdminApi } from './admin_api.ts';

let receiver: WebhookReceiver;

const api = await startAdminApi({ allowPrivate: 'localhost 127.0.0.0/8' });
let fixture = await createFixture(api.service.db);
receiver = startReceiver();
afterEach(async () => {
  for (const { id } of await api.listAll('/webhooks')) {
    expect((await api.request('DELETE', `/webhooks/${id}`)).status).toBe(204);
  }
});

const TARGET = { name: 'Shop search', url: 'https://search.example/hook', events: '*', realms: '*' };
const secrets: string[] = [];

async function createTarget(data: object = TARGET) {
  const { status, body, headers } = await api.request('POST', '/webhooks', { data });
  expect([status, body.errors]).toEqual([201, undefined as never]);
  const { id, secret } = body.data;
  secrets.push(String(secret));
  return {
    id,
    path: `/webhooks/${id}`,
    secret: String(secret),
    etag: headers.get('etag') ?? '',
    body,
    headers,
  };
}

/** Creates a target whose URL is that of a new receiver, for the events of a new realm. */
async function createReceivingTarget(more: object = {}) {
  receiver.stop();
  receiver = startReceiver();
  fixture = await createFixture(api.service.db);
  return createTarget({ ...TARGET, url: receiver.url, realms: [fixture.realm], ...more });
}

function isSignedBy(secret: string, message: WebhookReceiver['accepted'][number]): boolean {
  try {
    verifySignature(secret, message);
    return true;
  } catch {
    return false;
  }
}

const waitTwoPolls = () => Bun.sleep(2 * LIMITS.webhookPollMs);

/** Polls a list until a condition holds. */
async function listUntil(
  path: string,
  isReached: (items: readonly AdminItem[]) => boolean,
): Promise<readonly AdminItem[]> {
  for (;;) {
    const items = await api.listAll(path);
    if (isReached(items)) return items;
    await Bun.sleep(50);
  }
}

describe('create-webhook', () => {
  test('create-webhook returns the secret; reads at the Location return the target without it', async () => {
    const { id, secret, etag, body, headers } = await createTarget({
      ...TARGET,
      events: ['user-authentication-info.created', 'user-authentication-info.created'],
      realms: [fixture.realm.toUpperCase()],
      with_data: true,
      events_max: LIMITS.webhookEventsMax,
      skipped_client: api.admin.clientId,
    });
    expect(Buffer.from(secret.replace(/^whsec_/, ''), 'base64')).toHaveLength(32);
    const { secret: _, ...without } = body.data;
    expect(without).toEqual({
      id,
      type: 'webhook',
      ...TARGET,
      events: ['user-authentication-info.created'],
      realms: [fixture.realm],
      with_data: true,
      events_max: LIMITS.webhookEventsMax,
      skipped_client: api.admin.clientId,
      is_disabled: false,
      previous_secret_expires_at: null,
      meta: { created_at: expect.any(String), updated_at: expect.any(String) },
    });
    const read = await api.request('GET', headers.get('location') ?? '');
    expect([read.status, read.headers.get('etag'), read.body.data as object]).toEqual([200, etag, without]);
    const [listed] = await api.listAll('/webhooks');
    const status = { last_delivery: null, last_error: null, failing_realms: 0, dead_letters: 0 };
    expect(listed).toMatchObject({ ...without, ...status, links: { self: headers.get('location') } });
  });

  test('a target receives single events without data, of all clients, by default', async () => {
    const { body } = await createTarget();
    const defaults = { with_data: false, events_max: 1, skipped_client: null };
    expect(body.data).toMatchObject({ ...TARGET, ...defaults });
  });

  test('a target receives new changes signed with its secret; its deliveries list them newest first', async () => {
    const { secret, path } = await createReceivingTarget();
    await createFixture(api.service.db, { realm: fixture.realm });
    await receiver.until(() => receiver.accepted.length === FURTHER_CHANGES);
    expect(receiver.sequences(fixture.realm)).toEqual(sequenceRange(CHANGES + FURTHER_CHANGES, CHANGES + 1));
    for (const message of receiver.accepted) verifySignature(secret, message);
    const deliveries = await listUntil(`${path}/deliveries`, ({ length }) => length === FURTHER_CHANGES);
    expect(deliveries.map(({ first_seq }) => first_seq)).toEqual(
      sequenceRange(CHANGES + FURTHER_CHANGES, CHANGES + 1).toReversed(),
    );
    expect(deliveries[0]).toEqual({
      id: expect.any(String),
      type: 'delivery',
      message_id: receiver.accepted.at(-1)?.headers['webhook-id'] as string,
      realm_id: fixture.realm,
      first_seq: CHANGES + FURTHER_CHANGES,
      last_seq: CHANGES + FURTHER_CHANGES,
      attempt: 1,
      outcome: 'delivered',
      status: 204,
      duration_ms: expect.any(Number),
      at: expect.any(String),
    });
    expect(await api.listAll(`${path}/deliveries?page%5Blimit%5D=2`)).toEqual([...deliveries]);
  });

  test('a target created with from=oldest receives all retained changes', async () => {
    await createReceivingTarget({ from: 'oldest', events_max: 4 });
    await receiver.until(() => receiver.accepted.length === 2);
    expect(receiver.sequences(fixture.realm)).toEqual(sequenceRange(CHANGES));
  });

  test(`create-webhook is 422 if ${LIMITS.webhooksMax} targets exist`, async () => {
    for (let count = 0; count < LIMITS.webhooksMax; count += 1) await createTarget();
    const refused = await api.request('POST', '/webhooks', { data: TARGET });
    expect([refused.status, refused.body.errors[0]?.detail]).toEqual([
      422,
      expect.stringContaining(`there may be ${LIMITS.webhooksMax} webhook targets`),
    ]);
    const pages = await api.listAll('/webhooks?page%5Blimit%5D=20');
    expect(pages.map(({ id }) => id)).toEqual((await api.listAll('/webhooks')).map(({ id }) => id));
    expect(pages).toHaveLength(LIMITS.webhooksMax);
  }, 300_000);
});

describe('changes of targets', () => {
  test('update-webhook changes only the members in the body, and applies to deliveries', async () => {
    const { path } = await createReceivingTarget({ url: 'https://search.example/', skipped_client: 'a' });
    const changed = await api.request('PUT', path, {
      data: { url: receiver.url, events: ['user-authentication-info.created'], skipped_client: null },
    });
    expect([changed.status, changed.body.data]).toMatchObject(
      [
        200,
        { ...TARGET, url: receiver.url, events: ['user-authentication-info.created'], skipped_client: null },
      ].map((each) => (typeof each === 'object' ? { ...each, realms: [fixture.realm] } : each)),
    );
    await waitTwoPolls();
    await createFixture(api.service.db, { realm: fixture.realm });
    await receiver.until(() => receiver.accepted.length === 1);
    expect(receiver.accepted[0]?.events[0]?.type).toBe('user-authentication-info.created');
  });
});

test('after a rotation both secrets sign for a day, or for the requested overlap', async () => {
  const { secret, path } = await createReceivingTarget({ events_max: 100 });
  /** The first message that this secret signs: until the next poll, messages are signed as before. */
  const messageSignedBy = async (signing: string) => {
    for (;;) {
      const count = receiver.accepted.length;
      await createFixture(api.service.db, { realm: fixture.realm });
      await receiver.until(() => receiver.accepted.length > count);
      const message = receiver.accepted.at(-1) as WebhookReceiver['accepted'][number];
      if (isSignedBy(signing, message)) return message;
    }
  };
  const rotated = await api.request('POST', `${path}/rotate`, { data: {} });
  const next = String(rotated.body.data.secret);
  const until = Date.parse(String(rotated.body.data.previous_secret_expires_at));
  expect(Math.abs(until - api.service.clock.now() - LIMITS.secretOverlapMs)).toBeLessThan(60_000);
  const both = await messageSignedBy(next);
  expect(isSignedBy(secret, both)).toBe(true);
  expect(both.headers['webhook-signature']?.split(' ')).toHaveLength(2);
  const last = await api.request('POST', `${path}/rotate`, { data: { overlap_seconds: 0 } });
  const newest = String(last.body.data.secret);
  expect(last.body.data.previous_secret_expires_at).toBeNull();
  const one = await messageSignedBy(newest);
  for (const each of [secret, next]) expect(isSignedBy(each, one)).toBe(false);
  secrets.push(next, newest);
}, 300_000);

test('a disabled target receives nothing, and the missed changes once it is enabled', async () => {
  const { id, path } = await createReceivingTarget({ events_max: 100 });
  const off = await api.request('POST', `${path}/disable`);
  expect([off.status, off.body.data.is_disabled]).toEqual([200, true]);
  expect((await api.request('POST', `${path}/disable`)).text).toBe(off.text);
  await waitTwoPolls();
  await createFixture(api.service.db, { realm: fixture.realm });
  await waitTwoPolls();
  expect(receiver.received).toEqual([]);
  const on = await api.request('POST', `${path}/enable`);
  expect([on.status, on.body.data.is_disabled]).toEqual([200, false]);
  await receiver.until(() => receiver.sequences(fixture.realm).length === FURTHER_CHANGES);
  expect(
    (await api.auditEntriesOf(id)).map(({ what, detail }) => [what, (detail as AdminItem | null)?.after]),
  ).toMatchObject([
    ['webhook.created', { is_disabled: false }],
    ['webhook.changed', { is_disabled: true }],
    ['webhook.changed', { is_disabled: false }],
  ]);
});

test('redeliver-webhook sends one dead letter again, or all that were not received', async () => {
  const { id, path } = await createReceivingTarget();
  await createDeadLetters(api.service, id, 3, fixture.realm);
  const letters = await api.listAll(`${path}/dead-letters?page%5Blimit%5D=2`);
  expect(letters.map((each) => each.id)).toEqual([1, 2, 3].map((seq) => `${fixture.realm}.${seq}`));
  expect(letters[1]).toEqual({
    id: `${fixture.realm}.2`,
    type: 'dead_letter',
    realm_id: fixture.realm,
    first_seq: 2,
    last_seq: 2,
    state: 'dead',
    attempts: LIMITS.webhookAttemptsMax,
    at: expect.any(String),
  });
  const again = (letter: string) => api.request('POST', `${path}/redeliver`, { data: { message: letter } });
  const one = await again(`${fixture.realm}.2`);
  expect([one.status, one.body.data]).toEqual([202, { id, type: 'redelivery', dead_letters: 1, retries: 0 }]);
  await receiver.until(() => receiver.accepted.length === 1);
  expect(receiver.sequences(fixture.realm)).toEqual([2]);
  const left = await listUntil(`${path}/dead-letters`, ({ length }) => length === 2);
  expect(left.map(({ first_seq }) => first_seq)).toEqual([1, 3]);
  expect((await again('*')).body.data.dead_letters).toBe(2);
  await listUntil(`${path}/dead-letters`, ({ length }) => length === 0);
  expect(receiver.sequences(fixture.realm)).toEqual([2, 1, 3]);
  const none = await again('*');
  expect([none.status, none.body.data.dead_letters]).toEqual([202, 0]);
  const other = await createTarget();
  const rejected = await api.request('POST', `${other.path}/redeliver`, {
    data: { message: letters[0]?.id },
  });
  expect(rejected.status).toBe(422);
  const entries = (await api.auditEntriesOf(id)).filter(({ what }) => what === 'webhook.redelivered');
  expect(entries.map(({ realm_id }) => realm_id)).toEqual([fixture.realm, null]);
});

test('a deleted target is 404 with its deliveries and dead letters, and receives nothing more', async () => {
  const { id, path } = await createReceivingTarget();
  await createDeadLetters(api.service, id, 1);
  expect((await api.request('DELETE', path)).status).toBe(204);
  for (const below of ['', '/deliveries', '/dead-letters']) {
    expect((await api.request('GET', path + below)).status).toBe(404);
  }
  expect(await api.service.db.engine.webhooks.deadLetters(id, undefined, 10)).toEqual([]);
  await waitTwoPolls();
  await createFixture(api.service.db, { realm: fixture.realm });
  await waitTwoPolls();
  expect(receiver.received).toEqual([]);
  expect((await api.auditEntriesOf(id)).at(-1)).toMatchObject({
    what: 'webhook.deleted',
    detail: { before: { name: TARGET.name, realms: [fixture.realm] } },
  });
});

test('an audit entry of a target names the caller, its address, the request, and only the host of the URL', async () => {
  const data = { ...TARGET, url: 'https://search.example/hook?key=url-secret' };
  const created = await api.request('POST', '/webhooks', { data, headers: { 'X-Request-Id': 'request-1' } });
  secrets.push(String(created.body.data.secret));
  const entries = await api.auditEntriesOf(created.body.data.id);
  expect(entries).toMatchObject([
    {
      what: 'webhook.created',
      actor: api.admin.clientId,
      address: '127.0.0.1',
      request_id: 'request-1',
      detail: {
        after: { name: TARGET.name, host: 'search.example', realms: '*', with_data: false },
        from: 'present',
      },
    },
  ]);
  expect(JSON.stringify(entries)).not.toContain('url-secret');
});

test('a webhook secret is only in the response that created it, not in the log or the database', async () => {
  const { path } = await createTarget();
  for (const list of ['/webhooks', '/log', `${path}/deliveries`]) await api.listAll(list);
  expect(secrets.length).toBeGreaterThan(10);
  for (const secret of secrets) {
    expect(api.responseTexts.filter((text) => text.includes(secret))).toHaveLength(1);
  }
  expect(JSON.stringify(api.service.log)).not.toContain('whsec_');
  const keys = secrets.map((secret) => secret.replace('whsec_', ''));
  expect(await api.service.database.findPlaintext([...secrets, ...keys])).toEqual([]);
}, 300_000);
