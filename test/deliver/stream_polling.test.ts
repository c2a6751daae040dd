import { expect, test } from 'bun:test';
import { feedCursor, parseFeedCursor } from '../../src/deliver/feed/cursor.ts';
import type { FeedPosition } from '../../src/deliver/feed/read_feed.ts';
import { openChangeStreams } from '../../src/http/operations/change_streams.ts';
import { openCall } from '../../src/http/pipeline/call.ts';
import { Fault } from '../../src/model/fault.ts';
import { LIMITS } from '../../src/model/limits.ts';
import type { Principal } from '../../src/model/principal.ts';
import { createFixture, startService } from '../support/service.ts';

/** Polling for open streams, poll by poll: on the store of a service, with a controlled clock and token check. */

const service = await startService({ offline: 'true' });
const { realm } = await createFixture(service.db);
const changes = await service.db.engine.records.changes(realm, 0, 10);
/** The positions behind each change of the realm, in order. */
const positions = changes.map(
  (change) => parseFeedCursor(feedCursor('after', { ...change, realm }), realm) as FeedPosition,
);

const reader: Principal = { clientId: 'shop', scopes: new Set(['changes:read']), realms: '*' };

/** Streams whose calls are counted; `length` is the length of an event. */
function createStreams(length = 10) {
  const { records, feed } = service.db.engine;
  const errors: unknown[] = [];
  const calls = { heads: 0, pages: 0, verified: 0 };
  const state = {
    now: 0,
    verified: reader as Principal | 'unchecked' | undefined,
    error: undefined as Error | undefined,
  };
  const streams = openChangeStreams({
    store: {
      async changes(realmId, after, limit) {
        calls.pages += 1;
        if (state.error) throw state.error;
        return records.changes(realmId, after, limit);
      },
    },
    feed: {
      heads(...args) {
        calls.heads += 1;
        return feed.heads(...args);
      },
    },
    tokens: {
      async verify() {
        calls.verified += 1;
        return state.verified;
      },
    },
    loopBudget: { turn: async () => undefined },
    writeEvents: async (changes) => changes.map(({ seq }) => `${seq}`.padEnd(length, ' ')),
    clock: { monotonic: () => state.now },
    onError: (error) => errors.push(error),
  });
  const follow = (position: FeedPosition, principal = reader, realmId = realm) => {
    const request = new Request('http://localhost/', { headers: { authorization: 'Bearer token' } });
    const call = Object.assign(
      openCall(request, {}, 'one', () => undefined),
      { principal },
    );
    return readEvents(streams.follow(call, realmId, position).body as ReadableStream<Uint8Array>);
  };
  /** A new stream triggers a poll of all. Once the second poll has begun the first one is done. */
  const poll = async () => {
    for (let polls = 0; polls < 2; polls += 1) {
      const { heads } = calls;
      const { close } = follow(positions.at(-1) as FeedPosition, {
        ...reader,
        clientId: crypto.randomUUID(),
      });
      while (calls.heads === heads) await new Promise((resolve) => setImmediate(resolve));
      await close();
    }
  };
  return { streams, state, calls, errors, follow, poll };
}

/** Reads the events of a stream. */
function readEvents(body: ReadableStream<Uint8Array>) {
  const stream = body.getReader();
  const received: string[] = [];
  const decoder = new TextDecoder();
  let reading: Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }> | undefined;
  const next = () => {
    reading ??= stream.read().catch(() => ({ done: true }));
    return reading;
  };
  return {
    /** Everything received so far: sequence numbers, and the reason of the end. Waits for at least so many. */
    async events(atLeast = 0): Promise<readonly string[]> {
      for (;;) {
        const part = await (received.length < atLeast ? next() : Promise.race([next(), Bun.sleep(20)]));
        if (!part || part.done) return received;
        reading = undefined;
        const [, seq, reason] = /data: (?:(\d+)|\{"reason":"(\w+)"\})/.exec(decoder.decode(part.value)) ?? [];
        const entry = seq ?? reason;
        if (entry !== undefined) received.push(entry);
      }
    },
    close: () => stream.cancel(),
  };
}

test('each stream receives the changes behind its own cursor, and without new changes no page is read', async () => {
  const { follow, poll, calls } = createStreams();
  const { seq, revisionPrefix } = positions[5] as Exclude<FeedPosition, 'oldest'>;
  const streams = [
    follow('oldest'),
    follow(positions[2] as FeedPosition),
    follow(positions[4] as FeedPosition, { ...reader, clientId: 'other' }),
    follow({ side: 'before', realm, seq, revisionPrefix }, { ...reader, clientId: 'other' }),
    follow(positions[5] as FeedPosition, { ...reader, clientId: 'third' }),
  ];
  await poll();
  const all = ['1', '2', '3', '4', '5', '6'];
  const expected = [all, all.slice(3), ['6'], ['6'], []];
  const receivedEvents = () => Promise.all(streams.map((each, at) => each.events(expected[at]?.length)));
  expect(await receivedEvents()).toEqual(expected);
  const { pages } = calls;
  for (let polls = 0; polls < 3; polls += 1) await poll();
  expect(calls.pages).toBe(pages);
  expect(await receivedEvents()).toEqual(expected);
  for (const { close } of streams) await close();
});

test('streams are not polled between two intervals', async () => {
  const { follow, poll, calls } = createStreams();
  const stream = follow(positions[5] as FeedPosition);
  await poll();
  const { heads } = calls;
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  // The poll of the last stream opened, and one of the timer.
  expect(calls.heads - heads).toBeLessThanOrEqual(2);
  await stream.close();
});

test('streams at the same cursor share one read', async () => {
  const { follow, poll, calls } = createStreams();
  const streams = ['a', 'b', 'c'].map((clientId) =>
    follow(positions[1] as FeedPosition, { ...reader, clientId }),
  );
  await poll();
  expect(calls.pages).toBe(1);
  for (const { events, close } of streams) {
    expect(await events(4)).toEqual(['3', '4', '5', '6']);
    await close();
  }
});

test('streams are limited per client and per process, and rejected after a stop', async () => {
  const { streams, follow } = createStreams();
  const last = positions[5] as FeedPosition;
  const code = (client: string): string => {
    try {
      follow(last, { ...reader, clientId: client });
    } catch (error) {
      if (error instanceof Fault) return error.code;
      throw error;
    }
    return 'followed';
  };
  for (let count = 0; count < LIMITS.streamsMax; count += 1) {
    const client = `client ${Math.floor(count / LIMITS.streamsPerClientMax)}`;
    expect(code(client)).toBe('followed');
    if (count === LIMITS.streamsPerClientMax - 1) expect(code(client)).toBe('overloaded');
  }
  expect([streams.count(), code('one more')]).toEqual([LIMITS.streamsMax, 'overloaded']);
  await streams.stop();
  expect([streams.count(), code('one more')]).toEqual([0, 'unavailable']);
});

test.each<[string, Principal | 'unchecked' | undefined, string[]]>([
  ['still has its rights', reader, []],
  ['lost the scope', { ...reader, scopes: new Set(['users:read']) }, ['rights']],
  ['lost the realm', { ...reader, realms: new Set() }, ['rights']],
  ['is no longer valid', undefined, ['token']],
  ['can no longer be verified', 'unchecked', ['token']],
])('each second a stream verifies its token again, which %s', async (_, verified, reasons) => {
  const { follow, poll, state, calls, streams } = createStreams();
  const stream = follow(positions[5] as FeedPosition);
  state.verified = verified;
  state.now += LIMITS.streamCheckMs - 1;
  await poll();
  expect([await stream.events(), calls.verified]).toEqual([[], 0]);
  state.now += 1;
  await poll();
  expect([await stream.events(reasons.length), calls.verified]).toEqual([reasons, 1]);
  // The token of a closed stream is not verified.
  await stream.close();
  state.now += LIMITS.streamCheckMs;
  await poll();
  expect([calls.verified, streams.count()]).toEqual([1, 0]);
});

test('without open streams nothing is polled', async () => {
  const { follow, calls } = createStreams();
  await follow(positions[5] as FeedPosition).close();
  await Bun.sleep(LIMITS.feedPollMs * 1.5);
  expect(calls).toEqual({ heads: 0, pages: 0, verified: 0 });
});

test('streams outlast an unavailable database, and an unexpected error ends only the stream that needs the read', async () => {
  const { follow, poll, state, errors } = createStreams();
  const waiting = follow(positions[4] as FeedPosition);
  state.error = new Fault('unavailable');
  await poll();
  expect([await waiting.events(), new Set(errors)]).toEqual([[], new Set([state.error])]);
  state.error = undefined;
  await poll();
  expect(await waiting.events(1)).toEqual(['6']);
  state.error = new Error('a bug');
  const [broken, intact] = [follow(positions[4] as FeedPosition), follow(positions[5] as FeedPosition)];
  await poll();
  expect([await broken.events(1), await intact.events(), await waiting.events()]).toEqual([
    ['fault'],
    [],
    ['6'],
  ]);
  expect(errors.at(-1)).toBe(state.error);
  for (const { close } of [waiting, intact]) await close();
});

test('a stream whose reader stalls buffers a bounded amount, reads nothing more, and is closed in the end', async () => {
  const { follow, poll, state, calls, streams } = createStreams(LIMITS.streamBytesMax / 2);
  const stream = follow('oldest');
  for (let polls = 0; polls < 3; polls += 1) await poll();
  expect(calls.pages).toBe(1);
  state.now += LIMITS.streamStallMsMax;
  expect(streams.count()).toBe(1);
  await poll();
  expect(streams.count()).toBe(0);
  expect(await stream.events()).toEqual([]);
});

test('a stream whose reader keeps reading sends all changes, part by part', async () => {
  const { follow, poll, calls } = createStreams(LIMITS.streamBytesMax / 2);
  const stream = follow('oldest');
  await poll();
  expect(await stream.events(6)).toEqual(['1', '2', '3', '4', '5', '6']);
  expect(calls.pages).toBeGreaterThan(1);
  await stream.close();
});

test('a stream ends when the change of its cursor is gone', async () => {
  const { follow, poll } = createStreams();
  const position = positions[3] as Exclude<FeedPosition, 'oldest'>;
  const stream = follow({ ...position, revisionPrefix: 'ffffffff' });
  await poll();
  expect(await stream.events(1)).toEqual(['cursor']);
});
