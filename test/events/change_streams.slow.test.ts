import { afterAll, beforeAll, expect, test } from 'bun:test';
import { connect, type Socket } from 'node:net';
import { changeClient } from '../../src/auth/clients/clients.ts';
import { changeOf } from '../../src/domain/change.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { user } from '../../src/domain/resources.ts';
import { feedCursor } from '../../src/events/feed/cursor.ts';
import { systemClock } from '../../src/platform/clock.ts';
import {
  errorsOf,
  plant,
  put,
  type Service,
  stamped,
  startService,
  userMembers,
} from '../support/service.ts';

/** The change feed as Server-Sent Events. */

let service: Service;

beforeAll(async () => {
  service = await startService({ offline: 'true' });
});

afterAll(() => service.stop());

interface Said {
  readonly id?: string;
  readonly event?: string;
  readonly data: string;
}

interface Following {
  readonly answer: Response;
  /** The next one that is no comment; undefined at the end. */
  next(): Promise<Said | undefined>;
  /** Everything up to the end. */
  rest(): Promise<readonly Said[]>;
  leave(): void;
}

const feedOf = (realm: string) => `/v2/authentication-realms/${realm}/changes`;

async function follow(realm: string, token: string, headers: Record<string, string> = {}, query = '') {
  const leaving = new AbortController();
  const answer = await fetch(`${service.url}${feedOf(realm)}${query}`, {
    headers: { Authorization: `Bearer ${token}`, Accept: 'text/event-stream', ...headers },
    signal: leaving.signal,
  });
  return followed(answer, () => leaving.abort());
}

function followed(answer: Response, leave: () => void): Following {
  let reading: AsyncIterator<Uint8Array> | undefined;
  const decoder = new TextDecoder();
  let text = '';
  async function next(): Promise<Said | undefined> {
    for (;;) {
      const end = text.indexOf('\n\n');
      if (end >= 0) {
        const block = text.slice(0, end);
        text = text.slice(end + 2);
        if (block.startsWith(':')) continue;
        const fields = block.split('\n').map((line) => line.split(/: (.*)/s).slice(0, 2));
        return Object.fromEntries(fields) as unknown as Said;
      }
      reading ??= answer.body?.[Symbol.asyncIterator]();
      const part = await reading?.next().catch(() => undefined);
      if (!part || part.done) return undefined;
      text += decoder.decode(part.value, { stream: true });
    }
  }
  return {
    answer,
    next,
    async rest() {
      const all: Said[] = [];
      for (let said = await next(); said; said = await next()) all.push(said);
      return all;
    },
    leave,
  };
}

const reasonOf = (said: Said | undefined) => [said?.event, JSON.parse(said?.data ?? '{}').reason];

test('tells what there is and what comes, in order, each with the cursor to go on from', async () => {
  const planted = await plant(service.db);
  const token = await service.token('changes:read users:read');
  const stream = await follow(planted.realm, token);
  expect(stream.answer.status).toBe(200);
  expect(stream.answer.headers.get('content-type')).toBe('text/event-stream');
  expect(stream.answer.headers.get('cache-control')).toBe('no-store');
  const told: Said[] = [];
  for (let count = 0; count < 6; count += 1) told.push((await stream.next()) as Said);
  const later = await plant(service.db, { realm: planted.realm });
  for (let count = 0; count < 5; count += 1) told.push((await stream.next()) as Said);
  const events = told.map(({ data }) => JSON.parse(data));
  expect(events.map(({ sequence }) => Number(sequence))).toEqual(
    Array.from({ length: 11 }, (_, at) => at + 1),
  );
  expect(events.find(({ data }) => data.record_id === later.user).data.record.data.name).toBe('Jane Doe');
  stream.leave();

  const resumed = await follow(
    planted.realm,
    token,
    { 'Last-Event-ID': told[7]?.id as string },
    '?after=ignored',
  );
  const again = [await resumed.next(), await resumed.next(), await resumed.next()];
  expect(again.map((said) => said?.id)).toEqual(told.slice(8).map(({ id }) => id));
  resumed.leave();
});

test('is refused as a page is: 404, 400, 410; HEAD is answered as of a page', async () => {
  const { realm } = await plant(service.db);
  const token = await service.token('changes:read');
  const statusOf = async (path: string, headers: Record<string, string> = {}) => {
    const { answer } = await follow(path, token, headers);
    return [answer.status, (await errorsOf(answer))[0]?.source];
  };
  expect(await statusOf(service.clock.mintId())).toEqual([404, undefined]);
  expect(await statusOf(realm, { 'Last-Event-ID': 'nonsense' })).toEqual([
    400,
    { parameter: 'Last-Event-ID' },
  ]);
  const future = feedCursor('behind', { realm, seq: 99, revision: 'ffffffffffffffff' as never });
  expect(await statusOf(realm, { 'Last-Event-ID': future })).toEqual([410, { parameter: 'after' }]);
  const head = await fetch(`${service.url}${feedOf(realm)}`, {
    method: 'HEAD',
    headers: { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' },
  });
  expect([head.status, head.headers.get('content-type')]).toEqual([200, 'application/json']);
});

/** The changes that planting makes. */
const PLANTED = 6;

/** A stream that has told everything there is. */
async function caughtUp(realms: readonly Uuid[] | '*' = '*') {
  const planted = await plant(service.db);
  const { clientId, secret } = await service.client(
    'changes:read',
    realms === '*' ? '*' : new Set([...realms, planted.realm]),
  );
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
  const { access_token: token } = (await (await service.grant(form)).json()) as { access_token: string };
  const stream = await follow(planted.realm, token);
  for (let count = 0; count < PLANTED; count += 1) await stream.next();
  return { stream, clientId, token, planted };
}

const END_MS = 3_500;

test.each([
  ['its client is disabled', 'token', (): object => ({ disabledAt: 1 })],
  ['its client loses the scope', 'rights', () => ({ scopes: new Set(['users:read']) })],
  ['its client loses the realm', 'rights', () => ({ realms: new Set([systemClock.mintId()]) })],
])('ends within seconds where %s', async (_, reason, patch) => {
  const { stream, clientId } = await caughtUp();
  const begun = performance.now();
  await changeClient(service.db.engine.access, clientId, patch(), service.clock);
  expect(reasonOf(await stream.next())).toEqual(['end', reason]);
  expect(await stream.next()).toBeUndefined();
  expect(performance.now() - begun).toBeLessThan(END_MS);
});

test('ends when its token expires', async () => {
  const { stream } = await caughtUp();
  service.clock.advance(service.settings.tokenLifetime * 1_000 + LIMITS.clockLeewayMs);
  expect(reasonOf(await stream.next())).toEqual(['end', 'token']);
  expect(await stream.next()).toBeUndefined();
});

test('says that it is alive where there is nothing to tell', async () => {
  const { realm } = await plant(service.db);
  const socket = await rawStream(realm, await service.token('changes:read'));
  // What is told counts as a sign of life as well.
  await socket.until(() => socket.text().split('data: ').length > PLANTED);
  const before = socket.text().split(': alive').length;
  service.clock.advance(LIMITS.streamKeepAliveMs);
  await socket.until(() => socket.text().split(': alive').length > before);
  socket.raw.destroy();
});

test(`${LIMITS.streamsPerClientMax} of a client and ${LIMITS.streamsMax} of a process at once; one more is 503, until one ends`, async () => {
  const { realm } = await plant(service.db);
  const streams: Following[] = [];
  for (let client = 0; client < LIMITS.streamsMax / LIMITS.streamsPerClientMax; client += 1) {
    const token = await service.token('changes:read');
    for (let count = 0; count < LIMITS.streamsPerClientMax; count += 1)
      streams.push(await follow(realm, token));
    if (client > 0) continue;
    const { answer } = await follow(realm, token);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
  }
  expect(streams.map(({ answer }) => answer.status).filter((status) => status !== 200)).toEqual([]);
  const token = await service.token('changes:read');
  expect((await follow(realm, token)).answer.status).toBe(503);
  streams[0]?.leave();
  let status = 503;
  for (let tries = 0; tries < 100 && status === 503; tries += 1) {
    await Bun.sleep(20);
    const one = await follow(realm, token);
    status = one.answer.status;
    if (status === 200) streams.push(one);
  }
  expect(status).toBe(200);
  // Every one of them is told what comes.
  await plant(service.db, { realm });
  for (const { next, leave } of streams.slice(1)) {
    let last = 0;
    while (last < 11) last = Number(JSON.parse((await next())?.data ?? '{}').sequence);
    leave();
  }
}, 300_000);

/** A stream over a plain socket. */
async function rawStream(realm: string, token: string) {
  const { port, hostname } = new URL(service.url);
  const raw: Socket = connect(Number(port), hostname);
  let text = '';
  raw.on('data', (part) => {
    text += part.toString('latin1');
  });
  raw.on('error', () => undefined);
  raw.write(
    `GET ${feedOf(realm)} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nAccept: text/event-stream\r\n\r\n`,
  );
  const until = async (isSo: () => boolean) => {
    for (let tries = 0; tries < 500; tries += 1) {
      if (isSo()) return;
      await Bun.sleep(20);
    }
    throw new Error(`it never came: ${text.slice(-200)}`);
  };
  return { raw, text: () => text, until, heard: (part: string) => until(() => text.includes(part)) };
}

/** Users whose states are long, so many that no buffer of the system holds them. */
async function crowd(realm: Uuid, count: number): Promise<void> {
  for (let done = 0; done < count; done += 1_000) {
    const loads = Array.from({ length: 1_000 }, () => {
      const key = [realm, systemClock.mintId()] as const;
      const record = stamped(key, { ...userMembers, name: '語'.repeat(255), given_name: '語'.repeat(255) });
      const origin = { actor: 'test', requestId: undefined, address: undefined, at: record.created_at };
      const change = changeOf(user, 'created', { key, revision: record.revision }, origin);
      const compare = () => ({ comparison: 'same' as const, change });
      return { write: { op: 'insert' as const, resource: user, key, record }, change, compare };
    });
    await service.db.engine.records.load(loads, false);
  }
}

test('a reader that takes nothing keeps a bounded part in memory, and is ended; others go on', async () => {
  const { realm } = await plant(service.db);
  await crowd(realm, 8_000);
  const token = await service.token('changes:read users:read');
  const idle = await rawStream(realm, token);
  await idle.heard('id: ');
  idle.raw.pause();
  Bun.gc(true);
  const before = process.memoryUsage().rss;
  // What the system holds for a socket is taken first.
  await Bun.sleep(6_000);
  Bun.gc(true);
  expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1_048_576);
  service.clock.advance(LIMITS.streamStallMsMax);
  // Its place is free again: four more have room.
  const own = await service.token('changes:read users:read');
  const ended = async () => {
    const others: Following[] = [];
    for (let count = 0; count < LIMITS.streamsPerClientMax; count += 1)
      others.push(await follow(realm, token));
    for (const { leave } of others) leave();
    return others.every(({ answer }) => answer.status === 200);
  };
  let isEnded = false;
  for (let tries = 0; tries < 50 && !isEnded; tries += 1) {
    await Bun.sleep(100);
    isEnded = await ended();
  }
  expect(isEnded).toBe(true);
  const busy = await follow(realm, own);
  for (let count = 0; count < 300; count += 1) expect(await busy.next()).toBeDefined();
  busy.leave();
  idle.raw.destroy();
}, 300_000);

test('a record that cannot be told ends the streams that are to be told it, and no other one', async () => {
  const other = await startService({ offline: 'true' });
  const [spoilt, sound] = [await plant(other.db), await plant(other.db)];
  const token = await other.token('changes:read realms:read');
  const open = async (realm: Uuid) => {
    const answer = await fetch(`${other.url}${feedOf(realm)}`, {
      headers: { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' },
    });
    return followed(answer, () => undefined);
  };
  const going = await open(sound.realm);
  await other.database.spoil(`update realm set redirect_uris = 'x' where realm_id = ?`, spoilt.realm);
  const ended = await open(spoilt.realm);
  expect((await ended.rest()).map(reasonOf)).toEqual([['end', 'fault']]);
  await plant(other.db, { realm: sound.realm });
  const told: unknown[] = [];
  for (let count = 0; count < 11; count += 1)
    told.push(JSON.parse((await going.next())?.data ?? '{}').sequence);
  expect(told.map(Number)).toEqual(Array.from({ length: 11 }, (_, at) => at + 1));
  const faults = other.log.filter(({ event }) => event === 'fault');
  expect(faults).toMatchObject([{ route: 'changes', code: 'internal' }]);
  await other.server.stop();
  await other.db.engine.close();
}, 300_000);

test('ends where the changes to go on from are gone, and at shutdown, which it does not hold up', async () => {
  const other = await startService({ offline: 'true' });
  const { realm } = await plant(other.db);
  const token = await other.token('changes:read');
  const open = async () => {
    const answer = await fetch(`${other.url}${feedOf(realm)}`, {
      headers: { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' },
    });
    const stream = followed(answer, () => undefined);
    for (let count = 0; count < 6; count += 1) await stream.next();
    return stream;
  };
  const stream = await open();
  // Another change has the place of the last one: as after a database was put back.
  await other.database.spoil(
    `update change set revision = 'ffffffffffffffff' where realm_id = ? and seq = 6`,
    realm,
  );
  await put(other.db, user, [realm, systemClock.mintId()], userMembers);
  expect(reasonOf((await stream.rest()).at(-1))).toEqual(['end', 'cursor']);
  const last = await open().then(async (each) => {
    await each.next();
    return each;
  });
  const begun = performance.now();
  await other.stop();
  expect(performance.now() - begun).toBeLessThan(LIMITS.drainMsMax / 2);
  expect(reasonOf((await last.rest()).at(-1))).toEqual(['end', 'shutdown']);
}, 300_000);
