import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { changeClient, createClient } from '../../src/access/clients/clients.ts';
import { rotateSigningKey, withdrawSigningKey } from '../../src/access/keys/signing.ts';
import { openDatabase } from '../../src/app/open_database.ts';
import type { Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { user } from '../../src/model/resources.ts';
import { freshDatabase } from '../support/database.ts';
import { movableClock } from '../support/movable_clock.ts';
import { OFFLINE } from '../support/resource_cases.ts';
import { type Service, startService } from '../support/service.ts';

/** Processes that share one database and whose clocks differ. */

setDefaultTimeout(300_000);

const SCOPE = 'realms:read realms:write users:read users:write';
const REALMS = '/v2/authentication-realms';
const { clockLeewayMs, accessTableAgeMsMax, idempotencyMsMax } = LIMITS;

/** Two services over one database. Their clocks never go back. */
interface Pair {
  readonly slow: Service;
  /** The service whose clock is ahead. */
  readonly fast: Service;
  readonly realm: Uuid;
  /** The path of the realm's users. */
  readonly users: string;
  /** A token of the pair's client, issued by this service. */
  tokenOf(service: Service): Promise<string>;
  /** Advances both clocks. */
  pass(milliseconds: number): void;
}

const running: Service[] = [];
afterEach(() => Promise.all(running.splice(0).map((service) => service.stop())));

/** Both services are behind one load balancer, so the audience of tokens is its URL. */
const FLAGS = { ...OFFLINE, baseUrl: 'https://identity.example.com' };

async function startPair(apart: number = clockLeewayMs): Promise<Pair> {
  const slow = await startService(FLAGS);
  const fast = await startService({ ...FLAGS, ...slow.database.flags });
  running.push(slow, fast);
  const { clientId, secret } = await slow.client(SCOPE);
  const tokenOf = (service: Service) => service.grant({ clientId, secret });
  const data = { type: 'authentication-realm', name: 'Shop' };
  const { id: realm } = await recordOf(await slow.post(REALMS, await tokenOf(slow), { data }));
  fast.clock.advance(slow.clock.now() + apart - fast.clock.now());
  return {
    slow,
    fast,
    realm,
    users: `${REALMS}/${realm}/user-authentication-info`,
    tokenOf,
    pass(milliseconds) {
      for (const { clock } of [slow, fast]) clock.advance(milliseconds);
    },
  };
}

interface RecordBody {
  readonly id: Uuid;
  readonly name: string;
  readonly meta: { readonly created_at: string; readonly updated_at: string };
}

async function recordOf(answer: Pick<Response, 'ok' | 'status' | 'text' | 'json'>): Promise<RecordBody> {
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  return ((await answer.json()) as { data: RecordBody }).data;
}

const person = (name: string) => ({ data: { type: user.type, name, email: 'jane@example.com' } });
const freshKey = () => ({ 'Idempotency-Key': crypto.randomUUID() });

/** Creates users through both services in turn, the fast one first. */
async function createUsers({ slow, fast, users }: Pair, token: string, count: number) {
  const made: RecordBody[] = [];
  for (let number = 0; number < count; number += 1) {
    const service = number % 2 === 0 ? fast : slow;
    made.push(await recordOf(await service.post(users, token, person(`Jane ${number}`))));
  }
  return made;
}

describe('a token', () => {
  test('a token is accepted by both services while their clocks differ by at most clockLeewayMs', async () => {
    const { slow, fast, tokenOf, pass } = await startPair();
    const [ofSlow, ofFast] = [await tokenOf(slow), await tokenOf(fast)];
    expect((await slow.get(REALMS, ofFast)).status).toBe(200);
    expect((await fast.get(REALMS, ofSlow)).status).toBe(200);
    // The last seconds of its life by the issuer's clock; by the other clock it has expired.
    pass(3_590_000);
    expect((await fast.get(REALMS, ofSlow)).status).toBe(200);
    pass(10_000);
    expect((await fast.get(REALMS, ofSlow)).status).toBe(401);
    expect((await slow.get(REALMS, ofFast)).status).toBe(200);
  });

  test('a token issued further ahead than clockLeewayMs is refused until it is within the leeway', async () => {
    const { slow, fast, tokenOf, pass } = await startPair(clockLeewayMs + 5_000);
    const ofFast = await tokenOf(fast);
    expect((await slow.get(REALMS, ofFast)).status).toBe(401);
    pass(5_000);
    expect((await slow.get(REALMS, ofFast)).status).toBe(200);
  });
});

describe('a signing key', () => {
  test('a signing key created by a process with a fast clock is used by a process that starts later', async () => {
    const database = await freshDatabase();
    const ahead = movableClock();
    ahead.advance(clockLeewayMs);
    await (await openDatabase(database.settings(), ahead)).engine.close();
    const service = await startService({ ...FLAGS, ...database.flags });
    running.push(service);
    expect((await service.get(REALMS, await service.token(SCOPE))).status).toBe(200);
  });

  test('the replacement of a withdrawn signing key signs on every process at once, an announced key does not', async () => {
    const { slow, fast, tokenOf, pass } = await startPair();
    const { engine, keyring } = fast.db;
    const old = (await engine.access.state(undefined))?.signingKeys[0]?.kid ?? '';
    const announced = await rotateSigningKey(engine.access, keyring, fast.clock);
    expect(await withdrawSigningKey(old, engine.access, keyring, fast.clock)).toBe(true);
    pass(accessTableAgeMsMax);
    const tokens = [await tokenOf(slow), await tokenOf(fast)];
    const kids = tokens.map((token) => JSON.parse(atob(token.split('.')[0] ?? '')).kid);
    expect(new Set(kids).size).toBe(1);
    expect([old, announced.kid]).not.toContain(kids[0]);
    for (const token of tokens) {
      for (const service of [slow, fast]) expect((await service.get(REALMS, token)).status).toBe(200);
    }
  });
});

test('updatedAt of a client never goes back', async () => {
  const { slow, fast } = await startPair();
  const { access } = fast.db.engine;
  const given = { scopes: new Set(['users:read'] as const), realms: '*' } as const;
  const { client } = await createClient(access, 'test', given, fast.clock);
  const { updatedAt } = await changeClient(access, client.clientId, { name: 'later' }, slow.clock);
  expect([client.updatedAt > slow.clock.now(), updatedAt]).toEqual([true, client.updatedAt]);
});

describe('an idempotency key', () => {
  test('an idempotency key used on one service replays the answer on the other, and one record exists', async () => {
    const { slow, fast, users, tokenOf } = await startPair();
    const token = await tokenOf(slow);
    for (const [first, second] of [[slow, fast] as const, [fast, slow] as const]) {
      const key = freshKey();
      const made = await recordOf(await first.post(users, token, person('Once'), key));
      expect(await recordOf(await second.post(users, token, person('Once'), key))).toEqual(made);
      expect((await second.post(users, token, person('Another'), key)).status).toBe(422);
    }
    const listed = (await (await slow.get(users, token)).json()) as { data: readonly RecordBody[] };
    expect(listed.data).toHaveLength(2);
  });

  test('an idempotency key sent to both services at once creates one record', async () => {
    const { slow, fast, users, tokenOf } = await startPair();
    const token = await tokenOf(slow);
    const ids = new Set<Uuid>();
    for (let round = 0; round < 10; round += 1) {
      const key = freshKey();
      const requests = [slow, fast].map((service) => service.post(users, token, person('Once'), key));
      const answers = await Promise.all(requests);
      const made = answers.filter(({ status }) => status === 201);
      expect(answers.every(({ status }) => [201, 409].includes(status)) && made.length > 0).toBe(true);
      for (const answer of made) ids.add((await recordOf(answer)).id);
    }
    expect(ids.size).toBe(10);
    const listed = (await (await slow.get(users, token)).json()) as { data: readonly RecordBody[] };
    expect(new Set(listed.data.map(({ id }) => id))).toEqual(ids);
  });

  test('an idempotency key expires by the clock of the service that receives it, and then creates one more record', async () => {
    const { slow, fast, users, tokenOf, pass } = await startPair();
    const key = freshKey();
    const post = async (service: Service) =>
      recordOf(await service.post(users, await tokenOf(service), person('Once'), key));
    const made = await post(slow);
    pass(idempotencyMsMax - clockLeewayMs - 10_000);
    expect([await post(slow), await post(fast)]).toEqual([made, made]);
    pass(11_000);
    expect(await post(slow)).toEqual(made);
    const later = await post(fast);
    expect(later.id).not.toBe(made.id);
    expect([await post(slow), await post(fast)]).toEqual([later, later]);
  });
});

describe('a record', () => {
  test('updated_at of a record changed by both services never goes back, and every change has a new ETag', async () => {
    const { slow, fast, users, tokenOf } = await startPair();
    const token = await tokenOf(slow);
    const made = await recordOf(await fast.post(users, token, person('Jane')));
    const path = `${users}/${made.id}`;
    let last = made.meta.updated_at;
    const tags = new Set<string | null>();
    for (const service of [slow, fast, slow, slow, fast]) {
      const name = `Jane ${tags.size}`;
      const answer = await service.put(path, token, { data: { type: user.type, name } });
      const changed = await recordOf(answer.clone());
      expect([changed.name, changed.meta.updated_at >= last]).toEqual([name, true]);
      expect(changed.meta.created_at).toBe(made.meta.created_at);
      for (const reader of [slow, fast]) {
        const read = await reader.get(path, token);
        expect([await recordOf(read.clone()), read.headers.get('etag')]).toEqual([
          changed,
          answer.headers.get('etag'),
        ]);
      }
      tags.add(answer.headers.get('etag'));
      last = changed.meta.updated_at;
    }
    expect(tags.size).toBe(5);
  });

  test('changes are in the order of their commits, even where their timestamps are not', async () => {
    const both = await startPair();
    const { slow, fast, realm } = both;
    const made = await createUsers(both, await both.tokenOf(slow), 8);
    const timestamps = made.map(({ meta }) => meta.created_at);
    expect(timestamps).not.toEqual(timestamps.toSorted());
    for (const { db } of [slow, fast]) {
      const changes = await db.engine.records.changes(realm, 0, 100);
      expect(changes.map(({ seq }) => seq)).toEqual(changes.map((_, index) => index + 1));
      expect(changes.map(({ id }) => id)).toEqual([realm, ...made.map(({ id }) => id)]);
    }
  });
});

describe('a list', () => {
  test('a list sorted by created_at is the same on both services, and in order', async () => {
    const both = await startPair();
    const token = await both.tokenOf(both.slow);
    const made = await createUsers(both, token, 8);
    const inOrder = made.toSorted((one, other) => (one.meta.created_at < other.meta.created_at ? -1 : 1));
    for (const [sort, expected] of [
      ['created_at', inOrder],
      ['-created_at', inOrder.toReversed()],
    ] as const) {
      for (const service of [both.slow, both.fast]) {
        const answer = await service.get(`${both.users}?sort=${sort}`, token);
        const { data } = (await answer.json()) as { data: readonly RecordBody[] };
        expect(data.map(({ id }) => id)).toEqual(expected.map(({ id }) => id));
      }
    }
  });

  test('a list paged through while both services write shows each earlier record once', async () => {
    const both = await startPair();
    const { slow, fast, users } = both;
    const token = await both.tokenOf(slow);
    const made = await createUsers(both, token, 8);
    const seen: Uuid[] = [];
    let next: string | null = `${users}?page[after]=&page[limit]=2`;
    for (let pages = 0; next !== null && pages < 20; pages += 1) {
      const reader = pages % 2 === 0 ? slow : fast;
      const { pathname, search } = new URL(next, reader.url);
      const answer = await reader.get(`${pathname}${search}`, token);
      const body = (await answer.json()) as { data: readonly RecordBody[]; links: { next: string | null } };
      seen.push(...body.data.map(({ id }) => id));
      next = body.links.next;
      if (pages < 3) await createUsers(both, token, 2);
    }
    expect(next).toBeNull();
    expect(new Set(seen).size).toBe(seen.length);
    for (const { id } of made) expect(seen).toContain(id);
  });
});
