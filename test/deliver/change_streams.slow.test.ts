import { expect, test } from 'bun:test';
import { connect, type Socket } from 'node:net';
import { changeClient } from '../../src/access/clients/clients.ts';
import { feedCursor } from '../../src/deliver/feed/cursor.ts';
import type { Uuid } from '../../src/model/id.ts';
import { LIMITS } from '../../src/model/limits.ts';
import { user } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { ofRealm, storedId } from '../support/log_rows.ts';
import {
  buildRecord,
  createFixture,
  errorsOf,
  insertOf,
  insertRecord,
  startService,
  userMembers,
} from '../support/service.ts';

/** The change feed as Server-Sent Events. */

const service = await startService({ offline: 'true' });

interface StreamEvent {
  readonly id?: string;
  readonly event?: string;
  readonly data: string;
}

interface EventStream {
  readonly answer: Response;
  /** The next event, without comments; undefined at the end. */
  next(): Promise<StreamEvent | undefined>;
  /** All events up to the end. */
  rest(): Promise<readonly StreamEvent[]>;
  close(): void;
}

const feedOf = (realm: string) => `/v2/authentication-realms/${realm}/changes`;

async function openStream(realm: string, token: string, headers: Record<string, string> = {}, query = '') {
  const closing = new AbortController();
  const answer = await fetch(`${service.url}${feedOf(realm)}${query}`, {
    headers: { Authorization: `Bearer ${token}`, Accept: 'text/event-stream', ...headers },
    signal: closing.signal,
  });
  return readStream(answer, () => closing.abort());
}

function readStream(answer: Response, close: () => void): EventStream {
  let reading: AsyncIterator<Uint8Array> | undefined;
  const decoder = new TextDecoder();
  let text = '';
  async function next(): Promise<StreamEvent | undefined> {
    for (;;) {
      const end = text.indexOf('\n\n');
      if (end >= 0) {
        const block = text.slice(0, end);
        text = text.slice(end + 2);
        if (block.startsWith(':')) continue;
        const fields = block.split('\n').map((line) => line.split(/: (.*)/s).slice(0, 2));
        return Object.fromEntries(fields) as unknown as StreamEvent;
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
      const all: StreamEvent[] = [];
      for (let event = await next(); event; event = await next()) all.push(event);
      return all;
    },
    close,
  };
}

const reasonOf = (event: StreamEvent | undefined) => [event?.event, JSON.parse(event?.data ?? '{}').reason];

test('a stream sends existing and new changes in order, each with a cursor that resumes it', async () => {
  const fixture = await createFixture(service.db);
  const token = await service.token('changes:read users:read');
  const stream = await openStream(fixture.realm, token);
  expect(stream.answer.status).toBe(200);
  expect(stream.answer.headers.get('content-type')).toBe('text/event-stream');
  expect(stream.answer.headers.get('cache-control')).toBe('no-store');
  const received: StreamEvent[] = [];
  for (let count = 0; count < 6; count += 1) received.push((await stream.next()) as StreamEvent);
  const later = await createFixture(service.db, { realm: fixture.realm });
  for (let count = 0; count < 5; count += 1) received.push((await stream.next()) as StreamEvent);
  const events = received.map(({ data }) => JSON.parse(data));
  expect(events.map(({ sequence }) => Number(sequence))).toEqual(
    Array.from({ length: 11 }, (_, at) => at + 1),
  );
  expect(events.find(({ data }) => data.record_id === later.user).data.record.data.name).toBe('Jane Doe');
  stream.close();

  const resumed = await openStream(
    fixture.realm,
    token,
    { 'Last-Event-ID': received[7]?.id as string },
    '?after=ignored',
  );
  const again = [await resumed.next(), await resumed.next(), await resumed.next()];
  expect(again.map((event) => event?.id)).toEqual(received.slice(8).map(({ id }) => id));
  resumed.close();
});

test('a stream is rejected as a page is, with 404, 400 or 410; HEAD is answered as for a page', async () => {
  const { realm } = await createFixture(service.db);
  const token = await service.token('changes:read');
  const statusOf = async (path: string, headers: Record<string, string> = {}) => {
    const { answer } = await openStream(path, token, headers);
    return [answer.status, (await errorsOf(answer))[0]?.source];
  };
  expect(await statusOf(service.clock.mintId())).toEqual([404, undefined]);
  expect(await statusOf(realm, { 'Last-Event-ID': 'nonsense' })).toEqual([
    400,
    { parameter: 'Last-Event-ID' },
  ]);
  const future = feedCursor('after', { realm, seq: 99, revision: 'ffffffffffffffff' as never });
  expect(await statusOf(realm, { 'Last-Event-ID': future })).toEqual([410, { parameter: 'after' }]);
  const head = await fetch(`${service.url}${feedOf(realm)}`, {
    method: 'HEAD',
    headers: { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' },
  });
  expect([head.status, head.headers.get('content-type')]).toEqual([200, 'application/json']);
});

/** Changes of a new fixture. */
const FIXTURE_CHANGES = 6;

/** A stream that has sent all existing changes. */
async function caughtUp(realms: readonly Uuid[] | '*' = '*') {
  const fixture = await createFixture(service.db);
  const { clientId, secret } = await service.client(
    'changes:read',
    realms === '*' ? '*' : new Set([...realms, fixture.realm]),
  );
  const token = await service.grant({ clientId, secret });
  const stream = await openStream(fixture.realm, token);
  for (let count = 0; count < FIXTURE_CHANGES; count += 1) await stream.next();
  return { stream, clientId, token, fixture };
}

test.each([
  ['its client is disabled', 'token', (): object => ({ disabledAt: 1 })],
  ['its client loses the scope', 'rights', () => ({ scopes: new Set(['users:read']) })],
  ['its client loses the realm', 'rights', () => ({ realms: new Set([systemClock.mintId()]) })],
])('a stream ends when %s', async (_, reason, patch) => {
  const { stream, clientId } = await caughtUp();
  await changeClient(service.db.engine.access, clientId, patch(), service.clock);
  expect(reasonOf(await stream.next())).toEqual(['end', reason]);
  expect(await stream.next()).toBeUndefined();
});

test('a stream ends when its token expires', async () => {
  const { stream } = await caughtUp();
  service.clock.advance(service.settings.tokenLifetime * 1_000 + LIMITS.clockLeewayMs);
  expect(reasonOf(await stream.next())).toEqual(['end', 'token']);
  expect(await stream.next()).toBeUndefined();
});

test('a stream without new changes sends keep-alive comments', async () => {
  const { realm } = await createFixture(service.db);
  const socket = await rawStream(realm, await service.token('changes:read'));
  // An event also resets the keep-alive timer.
  await socket.until(() => socket.text().split('data: ').length > FIXTURE_CHANGES);
  const before = socket.text().split(': alive').length;
  service.clock.advance(LIMITS.streamKeepAliveMs);
  await socket.until(() => socket.text().split(': alive').length > before);
  socket.raw.destroy();
});

test(`${LIMITS.streamsPerClientMax} streams of a client and ${LIMITS.streamsMax} of a process are open at once; one more is 503`, async () => {
  const { realm } = await createFixture(service.db);
  const streams: EventStream[] = [];
  for (let client = 0; client < LIMITS.streamsMax / LIMITS.streamsPerClientMax; client += 1) {
    const token = await service.token('changes:read');
    for (let count = 0; count < LIMITS.streamsPerClientMax; count += 1)
      streams.push(await openStream(realm, token));
    if (client > 0) continue;
    const { answer } = await openStream(realm, token);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
  }
  expect(streams.map(({ answer }) => answer.status).filter((status) => status !== 200)).toEqual([]);
  const token = await service.token('changes:read');
  expect((await openStream(realm, token)).answer.status).toBe(503);
  streams[0]?.close();
  let status = 503;
  while (status === 503) {
    await Bun.sleep(20);
    const stream = await openStream(realm, token);
    status = stream.answer.status;
    if (status === 200) streams.push(stream);
  }
  expect(status).toBe(200);
  // Every stream receives new changes.
  await createFixture(service.db, { realm });
  for (const { next, close } of streams.slice(1)) {
    let last = 0;
    while (last < 11) last = Number(JSON.parse((await next())?.data ?? '{}').sequence);
    close();
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
  const until = async (condition: () => boolean) => {
    while (!condition()) await Bun.sleep(20);
  };
  return { raw, text: () => text, until, untilReceived: (part: string) => until(() => text.includes(part)) };
}

/** Users with long members, more than the socket buffers of the operating system hold. */
async function createLargeUsers(realm: Uuid, count: number): Promise<void> {
  for (let done = 0; done < count; done += 1_000) {
    const loads = Array.from({ length: 1_000 }, () => {
      const key = [realm, systemClock.mintId()] as const;
      const record = buildRecord(key, {
        ...userMembers,
        name: '語'.repeat(255),
        given_name: '語'.repeat(255),
      });
      const write = insertOf(user, key, record);
      return { write, compare: () => ({ comparison: 'same' as const, change: write.change }) };
    });
    await service.db.engine.records.load(loads, false);
  }
}

test('a stream whose reader stalls uses bounded memory and is closed, while others continue', async () => {
  const { realm } = await createFixture(service.db);
  await createLargeUsers(realm, 8_000);
  const token = await service.token('changes:read users:read');
  const idle = await rawStream(realm, token);
  await idle.untilReceived('id: ');
  idle.raw.pause();
  Bun.gc(true);
  const before = process.memoryUsage().rss;
  // First the socket buffers of the operating system fill.
  await Bun.sleep(6_000);
  Bun.gc(true);
  expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1_048_576);
  // Its slot is free again: four more streams can be opened.
  const otherToken = await service.token('changes:read users:read');
  const isSlotFree = async () => {
    const others: EventStream[] = [];
    for (let count = 0; count < LIMITS.streamsPerClientMax; count += 1)
      others.push(await openStream(realm, token));
    for (const { close } of others) close();
    return others.every(({ answer }) => answer.status === 200);
  };
  // On a slow machine the buffers may not be full yet.
  do {
    service.clock.advance(LIMITS.streamStallMsMax);
    await Bun.sleep(100);
  } while (!(await isSlotFree()));
  const busy = await openStream(realm, otherToken);
  for (let count = 0; count < 300; count += 1) expect(await busy.next()).toBeDefined();
  busy.close();
  idle.raw.destroy();
}, 300_000);

test('a record that cannot be read ends the streams of its realm and no others', async () => {
  const other = await startService({ offline: 'true' });
  const [damaged, intact] = [await createFixture(other.db), await createFixture(other.db)];
  const token = await other.token('changes:read realms:read');
  const open = async (realm: Uuid) => {
    const answer = await fetch(`${other.url}${feedOf(realm)}`, {
      headers: { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' },
    });
    return readStream(answer, () => undefined);
  };
  const intactStream = await open(intact.realm);
  await other.database.tamper(
    `update realm set redirect_uris = 'x' where realm_id = ${storedId(other.database.address.engine, '?')}`,
    damaged.realm,
  );
  const damagedStream = await open(damaged.realm);
  expect((await damagedStream.rest()).map(reasonOf)).toEqual([['end', 'fault']]);
  await createFixture(other.db, { realm: intact.realm });
  const sequences: unknown[] = [];
  for (let count = 0; count < 11; count += 1)
    sequences.push(JSON.parse((await intactStream.next())?.data ?? '{}').sequence);
  expect(sequences.map(Number)).toEqual(Array.from({ length: 11 }, (_, at) => at + 1));
  const faults = other.log.filter(({ event }) => event === 'fault');
  expect(faults).toMatchObject([{ route: 'changes', code: 'internal' }]);
  // The stop reports the fault.
  await expect(other.stop()).rejects.toThrow('"route":"changes","code":"internal"');
}, 300_000);

test('a stream ends when its cursor is gone, and at shutdown without delaying it', async () => {
  const other = await startService({ offline: 'true' });
  const { realm } = await createFixture(other.db);
  const token = await other.token('changes:read');
  const open = async () => {
    const answer = await fetch(`${other.url}${feedOf(realm)}`, {
      headers: { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' },
    });
    const stream = readStream(answer, () => undefined);
    for (let count = 0; count < 6; count += 1) await stream.next();
    return stream;
  };
  const stream = await open();
  // Another change has the sequence number of the last one, as after a restore.
  await other.database.tamper(
    `update log_entry set revision = substr(tag, 1, 8)
     where ${ofRealm(other.database.address.engine)} and seq = 6`,
    realm,
  );
  await insertRecord(other.db, user, [realm, systemClock.mintId()], userMembers);
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
