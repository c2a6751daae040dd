import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { LIMITS } from '../../../src/domain/limits.ts';
import { giveUp } from '../../support/dead_letters.ts';
import { openReceiver, type Receiver, upTo, verify } from '../../support/receivers.ts';
import { type Planted, plant } from '../../support/service.ts';
import { type Item, type Office, openOffice } from './office.ts';

let office: Office;
let planted: Planted;
let receiver: Receiver;

/** Changes of a realm that is planted, and of one that is planted again. */
const CHANGES = 6;
const MORE = 5;

beforeAll(async () => {
  office = await openOffice({ allowLoopbackWebhooks: 'true' });
  planted = await plant(office.service.db);
  receiver = openReceiver();
});
afterAll(async () => {
  receiver.stop();
  await office.service.stop();
});
afterEach(async () => {
  for (const { id } of await office.all('/webhooks')) {
    expect((await office.ask('DELETE', `/webhooks/${id}`)).status).toBe(204);
  }
});

const WISH = { name: 'Shop search', url: 'https://search.example/hook', events: '*', realms: '*' };
const secrets: string[] = [];

async function make(data: object = WISH) {
  const { status, body, headers } = await office.ask('POST', '/webhooks', { data });
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

/** A target that leads to a receiver, told of a realm of its own. */
async function listen(more: object = {}) {
  receiver.stop();
  receiver = openReceiver();
  planted = await plant(office.service.db);
  return make({ ...WISH, url: receiver.url, realms: [planted.realm], ...more });
}

const quiet = () => Bun.sleep(2 * LIMITS.webhookPollMs);

/** Resolves with a list once it is as it is wanted. */
async function listed(path: string, isSo: (items: readonly Item[]) => boolean): Promise<readonly Item[]> {
  for (let tries = 0; tries < 200; tries += 1) {
    const items = await office.all(path);
    if (isSo(items)) return items;
    await Bun.sleep(50);
  }
  throw new Error('it never came to that');
}

describe('a new target', () => {
  test('has its secret in that answer, and is read without it at its address', async () => {
    const { id, secret, etag, body, headers } = await make({
      ...WISH,
      events: ['user-authentication-info.created', 'user-authentication-info.created'],
      realms: [planted.realm.toUpperCase()],
      with_data: true,
      events_max: LIMITS.webhookEventsMax,
      skipped_client: office.admin.clientId,
    });
    expect(Buffer.from(secret.replace(/^whsec_/, ''), 'base64')).toHaveLength(32);
    const { secret: _, ...without } = body.data;
    expect(without).toEqual({
      id,
      type: 'webhook',
      ...WISH,
      events: ['user-authentication-info.created'],
      realms: [planted.realm],
      with_data: true,
      events_max: LIMITS.webhookEventsMax,
      skipped_client: office.admin.clientId,
      is_disabled: false,
      previous_secret_expires_at: null,
      meta: { created_at: expect.any(String), updated_at: expect.any(String) },
    });
    const read = await office.ask('GET', headers.get('location') ?? '');
    expect([read.status, read.headers.get('etag'), read.body.data as object]).toEqual([200, etag, without]);
    const [listed] = await office.all('/webhooks');
    expect(listed).toEqual({ ...without, links: { self: headers.get('location') } });
  });

  test('is told one event after the other, of all clients, and without data, unless said', async () => {
    const { body } = await make();
    const unsaid = { with_data: false, events_max: 1, skipped_client: null };
    expect(body.data).toMatchObject({ ...WISH, ...unsaid });
  });

  test('is told what comes, signed by its secret; what was sent stands in its deliveries, the newest first', async () => {
    const { secret, path } = await listen();
    await plant(office.service.db, { realm: planted.realm });
    await receiver.until(() => receiver.accepted.length === MORE);
    expect(receiver.places(planted.realm)).toEqual(upTo(CHANGES + MORE, CHANGES + 1));
    for (const message of receiver.accepted) verify(secret, message);
    const deliveries = await listed(`${path}/deliveries`, ({ length }) => length === MORE);
    expect(deliveries.map(({ first_seq }) => first_seq)).toEqual(
      upTo(CHANGES + MORE, CHANGES + 1).toReversed(),
    );
    expect(deliveries[0]).toEqual({
      id: expect.any(String),
      type: 'delivery',
      message_id: receiver.accepted.at(-1)?.headers['webhook-id'] as string,
      realm_id: planted.realm,
      first_seq: CHANGES + MORE,
      last_seq: CHANGES + MORE,
      attempt: 1,
      outcome: 'delivered',
      status: 204,
      duration_ms: expect.any(Number),
      at: expect.any(String),
    });
    expect(await office.all(`${path}/deliveries?page%5Blimit%5D=2`)).toEqual([...deliveries]);
  });

  test('is told everything that is kept where it begins with the oldest', async () => {
    await listen({ from: 'oldest', events_max: 4 });
    await receiver.until(() => receiver.accepted.length === 2);
    expect(receiver.places(planted.realm)).toEqual(upTo(CHANGES));
  });

  test('is one of a bounded number', async () => {
    for (let count = 0; count < LIMITS.webhooksMax; count += 1) await make();
    const refused = await office.ask('POST', '/webhooks', { data: WISH });
    expect([refused.status, refused.body.errors[0]?.detail]).toEqual([
      422,
      expect.stringContaining(`there may be ${LIMITS.webhooksMax} webhook targets`),
    ]);
    const pages = await office.all('/webhooks?page%5Blimit%5D=20');
    expect(pages.map(({ id }) => id)).toEqual((await office.all('/webhooks')).map(({ id }) => id));
    expect(pages).toHaveLength(LIMITS.webhooksMax);
  }, 300_000);
});

describe('a change', () => {
  test('says only what changes, and is felt by what is told', async () => {
    const { path } = await listen({ url: 'https://search.example/', skipped_client: 'a' });
    const changed = await office.ask('PUT', path, {
      data: { url: receiver.url, events: ['user-authentication-info.created'], skipped_client: null },
    });
    expect([changed.status, changed.body.data]).toMatchObject(
      [
        200,
        { ...WISH, url: receiver.url, events: ['user-authentication-info.created'], skipped_client: null },
      ].map((each) => (typeof each === 'object' ? { ...each, realms: [planted.realm] } : each)),
    );
    await quiet();
    await plant(office.service.db, { realm: planted.realm });
    await receiver.until(() => receiver.accepted.length === 1);
    expect(receiver.accepted[0]?.events[0]?.type).toBe('user-authentication-info.created');
  });

  test('of nothing is none, and so is what a target is already', async () => {
    const { id, path, etag } = await make();
    for (const [method, below, data] of [
      ['PUT', '', {}],
      ['POST', '/enable', undefined],
    ] as const) {
      const same = await office.ask(method, path + below, { data });
      expect([same.status, same.headers.get('etag')]).toEqual([200, etag]);
    }
    expect((await office.actsOn(id)).map(({ what }) => what)).toEqual(['webhook.created']);
  });

  test('of several administrators who saw the same, one lands', async () => {
    const { path, etag } = await make();
    const told = await Promise.all(
      Array.from({ length: 8 }, (_, at) =>
        office.ask('PUT', path, { data: { name: `name ${at}` }, headers: { 'If-Match': etag } }),
      ),
    );
    expect(told.map(({ status }) => status).sort()).toEqual([200, ...new Array(7).fill(412)]);
    const winner = told.find(({ status }) => status === 200);
    const read = await office.ask('GET', path);
    expect([read.text, read.headers.get('etag')]).toEqual([
      winner?.text as string,
      winner?.headers.get('etag') ?? '',
    ]);
    const stale = { headers: { 'If-Match': etag } };
    expect((await office.ask('DELETE', path, stale)).status).toBe(412);
    expect((await office.ask('GET', path)).status).toBe(200);
    const fresh = { headers: { 'If-Match': read.headers.get('etag') ?? '' } };
    expect((await office.ask('DELETE', path, fresh)).status).toBe(204);
  });

  test.each([
    ['PUT', '', { name: 'Other' }],
    ['DELETE', '', undefined],
    ['POST', '/disable', undefined],
    ['POST', '/enable', undefined],
    ['POST', '/rotate', {}],
    ['POST', '/redeliver', undefined],
  ] as const)(
    'reads If-Match where the document says so, and nowhere else: %s %s',
    async (method, below, data) => {
      const answer = await office.service.get('/openapi.json');
      const { paths } = (await answer.json()) as { paths: Record<string, Record<string, object>> };
      const said = JSON.stringify(paths[`/admin/v1/webhooks/{webhook_id}${below}`]?.[method.toLowerCase()]);
      expect(said.includes('"412"')).toBe(said.includes('/if-match"'));
      const { path } = await make();
      const told = await office.ask(method, path + below, {
        data,
        headers: { 'If-Match': '"0000000000000000"' },
      });
      expect(told.status === 412).toBe(said.includes('/if-match"'));
      expect(told.status === 412).toBe(!['/rotate', '/redeliver'].includes(below));
    },
  );

  test('without a condition loses nothing of another one that comes at once', async () => {
    const { path } = await make();
    const changes = [{ name: 'Other' }, { events_max: 7 }, { realms: [planted.realm] }, { with_data: true }];
    await Promise.all(changes.map((data) => office.ask('PUT', path, { data })));
    expect((await office.ask('GET', path)).body.data).toMatchObject(Object.assign({}, ...changes));
  });
});

test('a rotation has both secrets sign for a day, or for as long as it says', async () => {
  const { secret, path } = await listen({ events_max: 100 });
  const signed = async (count: number) => {
    await quiet();
    await plant(office.service.db, { realm: planted.realm });
    await receiver.until(() => receiver.accepted.length >= count);
    return receiver.accepted[count - 1] as Receiver['accepted'][number];
  };
  const rotated = await office.ask('POST', `${path}/rotate`, { data: {} });
  const next = String(rotated.body.data.secret);
  const until = Date.parse(String(rotated.body.data.previous_secret_expires_at));
  expect(Math.abs(until - office.service.clock.now() - LIMITS.secretOverlapMs)).toBeLessThan(60_000);
  const both = await signed(1);
  for (const each of [secret, next]) verify(each, both);
  const last = await office.ask('POST', `${path}/rotate`, { data: { overlap_seconds: 0 } });
  const newest = String(last.body.data.secret);
  expect(last.body.data.previous_secret_expires_at).toBeNull();
  const one = await signed(receiver.accepted.length + 1);
  verify(newest, one);
  for (const each of [secret, next]) expect(() => verify(each, one)).toThrow();
  secrets.push(next, newest);
}, 300_000);

test('a disabled target is told nothing, and once it is enabled what it missed', async () => {
  const { id, path } = await listen({ events_max: 100 });
  const off = await office.ask('POST', `${path}/disable`);
  expect([off.status, off.body.data.is_disabled]).toEqual([200, true]);
  expect((await office.ask('POST', `${path}/disable`)).text).toBe(off.text);
  await quiet();
  await plant(office.service.db, { realm: planted.realm });
  await quiet();
  expect(receiver.received).toEqual([]);
  const on = await office.ask('POST', `${path}/enable`);
  expect([on.status, on.body.data.is_disabled]).toEqual([200, false]);
  await receiver.until(() => receiver.places(planted.realm).length === MORE);
  expect(
    (await office.actsOn(id)).map(({ what, detail }) => [what, (detail as Item | null)?.after]),
  ).toMatchObject([
    ['webhook.created', { is_disabled: false }],
    ['webhook.changed', { is_disabled: true }],
    ['webhook.changed', { is_disabled: false }],
  ]);
});

test('dead letters are listed, and sent again: one, or all that were not received yet', async () => {
  const { id, path } = await listen();
  await giveUp(office.service, id, 3, planted.realm);
  const stateOf = (state: string) => (letters: readonly Item[]) =>
    letters.filter((each) => each.state === state).length;
  const letters = await office.all(`${path}/dead-letters?page%5Blimit%5D=2`);
  expect(letters.map((each) => each.id)).toEqual([1, 2, 3].map((seq) => `${planted.realm}.${seq}`));
  expect(letters[1]).toEqual({
    id: `${planted.realm}.2`,
    type: 'dead_letter',
    realm_id: planted.realm,
    first_seq: 2,
    last_seq: 2,
    state: 'dead',
    attempts: LIMITS.webhookAttemptsMax,
    at: expect.any(String),
    redelivered_at: null,
  });
  const again = (letter: string) =>
    office.ask('POST', `${path}/redeliver`, { data: { dead_letter: letter } });
  const one = await again(`${planted.realm}.2`);
  expect([one.status, one.body.data]).toEqual([202, { id, type: 'redelivery', dead_letters: 1 }]);
  await receiver.until(() => receiver.accepted.length === 1);
  expect(receiver.places(planted.realm)).toEqual([2]);
  const half = await listed(`${path}/dead-letters`, (all) => stateOf('redelivered')(all) === 1);
  expect(half[1]).toMatchObject({ first_seq: 2, state: 'redelivered', redelivered_at: expect.any(String) });
  expect((await again('*')).body.data.dead_letters).toBe(2);
  await listed(`${path}/dead-letters`, (all) => stateOf('redelivered')(all) === 3);
  expect(receiver.places(planted.realm)).toEqual([2, 1, 3]);
  const none = await again('*');
  expect([none.status, none.body.data.dead_letters]).toEqual([202, 0]);
  const other = await make();
  const elsewhere = await office.ask('POST', `${other.path}/redeliver`, {
    data: { dead_letter: letters[0]?.id },
  });
  expect(elsewhere.status).toBe(422);
  const acts = (await office.actsOn(id)).filter(({ what }) => what === 'webhook.redelivered');
  expect(acts.map(({ realm_id }) => realm_id)).toEqual([planted.realm, null]);
});

test('a deleted target is gone with what was kept about it, and is told nothing more', async () => {
  const { id, path } = await listen();
  await giveUp(office.service, id, 1);
  expect((await office.ask('DELETE', path)).status).toBe(204);
  for (const below of ['', '/deliveries', '/dead-letters']) {
    expect((await office.ask('GET', path + below)).status).toBe(404);
  }
  expect(await office.service.db.engine.webhooks.deadLetters(id, undefined, 10)).toEqual([]);
  await quiet();
  await plant(office.service.db, { realm: planted.realm });
  await quiet();
  expect(receiver.received).toEqual([]);
  expect((await office.actsOn(id)).at(-1)).toMatchObject({
    what: 'webhook.deleted',
    detail: { before: { name: WISH.name, realms: [planted.realm] } },
  });
});

test('an act says who asked, from where and in which request, and of the URL where it leads', async () => {
  const data = { ...WISH, url: 'https://search.example/hook?key=tell-nobody' };
  const made = await office.ask('POST', '/webhooks', { data, headers: { 'X-Request-Id': 'desk-1' } });
  secrets.push(String(made.body.data.secret));
  const acts = await office.actsOn(made.body.data.id);
  expect(acts).toMatchObject([
    {
      what: 'webhook.created',
      actor: office.admin.clientId,
      address: '127.0.0.1',
      request_id: 'desk-1',
      detail: { after: { name: WISH.name, host: 'search.example', realms: '*' }, from: 'present' },
    },
  ]);
  expect(JSON.stringify(acts)).not.toContain('tell-nobody');
});

test('a secret stands in the answer that made it, and nowhere else', async () => {
  const { path } = await make();
  for (const list of ['/webhooks', '/log', `${path}/deliveries`]) await office.all(list);
  expect(secrets.length).toBeGreaterThan(10);
  for (const secret of secrets) {
    expect(office.answers.filter((answer) => answer.includes(secret))).toHaveLength(1);
  }
  expect(JSON.stringify(office.service.log)).not.toContain('whsec_');
  expect(await office.service.database.stored(secrets)).toEqual([]);
}, 300_000);
