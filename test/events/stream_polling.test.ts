import { afterAll, beforeAll, expect, test } from 'bun:test';
import { Fault } from '../../src/domain/fault.ts';
import type { Uuid } from '../../src/domain/id.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import type { Principal } from '../../src/domain/principal.ts';
import { feedCursor, parseFeedCursor } from '../../src/events/feed/cursor.ts';
import type { FeedPosition } from '../../src/events/feed/read_feed.ts';
import { openChangeStreams } from '../../src/http/operations/change_streams.ts';
import type { Call } from '../../src/http/pipeline/call.ts';
import { plant, type Service, startService } from '../support/service.ts';

/** What a look after the streams does, look by look: over the store of a service, with a clock and tokens of its own. */

let service: Service;
let realm: Uuid;
/** The places behind each of its changes, in their order. */
let places: readonly FeedPosition[];

beforeAll(async () => {
  service = await startService({ offline: 'true' });
  ({ realm } = await plant(service.db));
  const changes = await service.db.engine.records.changes(realm, 0, 10);
  places = changes.map(
    (change) => parseFeedCursor(feedCursor('behind', { ...change, realm }), realm) as FeedPosition,
  );
});
afterAll(() => service.stop());

const reader: Principal = { clientId: 'shop', scopes: new Set(['changes:read']), realms: '*' };

/** Streams whose looks are counted; `length` is that of an event. */
function opened(length = 10) {
  const { records, feed } = service.db.engine;
  const troubles: unknown[] = [];
  const told = { heads: 0, pages: 0, verified: 0 };
  const state = {
    now: 0,
    verified: reader as Principal | 'unchecked' | undefined,
    trouble: undefined as Error | undefined,
  };
  const streams = openChangeStreams({
    store: {
      async changes(of, after, limit) {
        told.pages += 1;
        if (state.trouble) throw state.trouble;
        return records.changes(of, after, limit);
      },
    },
    feed: {
      heads(...asked) {
        told.heads += 1;
        return feed.heads(...asked);
      },
    },
    tokens: {
      async verify() {
        told.verified += 1;
        return state.verified;
      },
    },
    writeEvents: async (changes) => changes.map(({ seq }) => `${seq}`.padEnd(length, ' ')),
    clock: { monotonic: () => state.now },
    onError: (error) => troubles.push(error),
  });
  const follow = (place: FeedPosition, principal = reader, of = realm) => {
    const call = { principal, requestId: 'one', authorization: () => 'Bearer token' } as unknown as Call;
    return heard(streams.follow(call, of, place).body as ReadableStream<Uint8Array>);
  };
  /** A stream that comes has them all looked after. Where the second look has begun the first one is done. */
  const look = async () => {
    for (let looks = 0; looks < 2; looks += 1) {
      const { heads } = told;
      const { leave } = follow(places.at(-1) as FeedPosition, { ...reader, clientId: crypto.randomUUID() });
      while (told.heads === heads) await new Promise((resolve) => setImmediate(resolve));
      await leave();
    }
  };
  return { streams, state, told, troubles, follow, look };
}

/** What a stream says. */
function heard(body: ReadableStream<Uint8Array>) {
  const stream = body.getReader();
  const said: string[] = [];
  const decoder = new TextDecoder();
  let reading: Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }> | undefined;
  const next = () => {
    reading ??= stream.read().catch(() => ({ done: true }));
    return reading;
  };
  return {
    /** What it has said: the places of changes, and why it ended. Waits until there are so many. */
    async taken(least = 0): Promise<readonly string[]> {
      for (;;) {
        const part = await Promise.race([next(), Bun.sleep(said.length < least ? 4_000 : 20)]);
        if (!part || part.done) return said;
        reading = undefined;
        const [, seq, reason] = /data: (?:(\d+)|\{"reason":"(\w+)"\})/.exec(decoder.decode(part.value)) ?? [];
        const word = seq ?? reason;
        if (word !== undefined) said.push(word);
      }
    },
    leave: () => stream.cancel(),
  };
}

test('a stream is told what is behind its place, each at its own, and nothing is read where there is nothing', async () => {
  const { follow, look, told } = opened();
  const { seq, revisionPrefix } = places[5] as Exclude<FeedPosition, 'oldest'>;
  const streams = [
    follow('oldest'),
    follow(places[2] as FeedPosition),
    follow(places[4] as FeedPosition, { ...reader, clientId: 'other' }),
    follow({ side: 'before', realm, seq, revisionPrefix }, { ...reader, clientId: 'other' }),
    follow(places[5] as FeedPosition, { ...reader, clientId: 'third' }),
  ];
  await look();
  const whole = ['1', '2', '3', '4', '5', '6'];
  const expected = [whole, whole.slice(3), ['6'], ['6'], []];
  const taken = () => Promise.all(streams.map((each, at) => each.taken(expected[at]?.length)));
  expect(await taken()).toEqual(expected);
  const { pages } = told;
  for (let looks = 0; looks < 3; looks += 1) await look();
  expect(told.pages).toBe(pages);
  expect(await taken()).toEqual(expected);
  for (const { leave } of streams) await leave();
});

test('between two looks there is none', async () => {
  const { follow, look, told } = opened();
  const stream = follow(places[5] as FeedPosition);
  await look();
  const { heads } = told;
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  // The look of the last one that came, and one of the timer.
  expect(told.heads - heads).toBeLessThanOrEqual(2);
  await stream.leave();
});

test('streams at one place share its reading', async () => {
  const { follow, look, told } = opened();
  const streams = ['a', 'b', 'c'].map((clientId) =>
    follow(places[1] as FeedPosition, { ...reader, clientId }),
  );
  await look();
  expect(told.pages).toBe(1);
  for (const { taken, leave } of streams) {
    expect(await taken(4)).toEqual(['3', '4', '5', '6']);
    await leave();
  }
});

test('so many of a client and of a process, and none once it stops', async () => {
  const { streams, follow } = opened();
  const last = places[5] as FeedPosition;
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
  ['says what it said', reader, []],
  ['lost the scope', { ...reader, scopes: new Set(['users:read']) }, ['rights']],
  ['lost the realm', { ...reader, realms: new Set() }, ['rights']],
  ['is none any more', undefined, ['token']],
  ['cannot be checked any more', 'unchecked', ['token']],
])('each second a token is asked again: one that %s', async (_, verified, said) => {
  const { follow, look, state, told, streams } = opened();
  const stream = follow(places[5] as FeedPosition);
  state.verified = verified;
  state.now += LIMITS.streamCheckMs - 1;
  await look();
  expect([await stream.taken(), told.verified]).toEqual([[], 0]);
  state.now += 1;
  await look();
  expect([await stream.taken(said.length), told.verified]).toEqual([said, 1]);
  // Who has left is not asked about.
  await stream.leave();
  state.now += LIMITS.streamCheckMs;
  await look();
  expect([told.verified, streams.count()]).toEqual([1, 0]);
});

test('where no stream is nothing is asked', async () => {
  const { follow, told } = opened();
  await follow(places[5] as FeedPosition).leave();
  await Bun.sleep(LIMITS.feedPollMs * 1.5);
  expect(told).toEqual({ heads: 0, pages: 0, verified: 0 });
});

test('trouble of the database is waited out, and a bug ends the stream that meets it', async () => {
  const { follow, look, state, troubles } = opened();
  const waiting = follow(places[4] as FeedPosition);
  state.trouble = new Fault('unavailable');
  await look();
  expect([await waiting.taken(), new Set(troubles)]).toEqual([[], new Set([state.trouble])]);
  state.trouble = undefined;
  await look();
  expect(await waiting.taken(1)).toEqual(['6']);
  state.trouble = new Error('a bug');
  const [broken, sound] = [follow(places[4] as FeedPosition), follow(places[5] as FeedPosition)];
  await look();
  expect([await broken.taken(1), await sound.taken(), await waiting.taken()]).toEqual([['fault'], [], ['6']]);
  expect(troubles.at(-1)).toBe(state.trouble);
  for (const { leave } of [waiting, sound]) await leave();
});

test('who takes nothing is sent no more than there is room for, nothing is read for it, and in the end it is let go', async () => {
  const { follow, look, state, told, streams } = opened(LIMITS.streamBytesMax / 2);
  const stream = follow('oldest');
  for (let looks = 0; looks < 3; looks += 1) await look();
  expect(told.pages).toBe(1);
  state.now += LIMITS.streamStallMsMax;
  expect(streams.count()).toBe(1);
  await look();
  expect(streams.count()).toBe(0);
  expect(await stream.taken()).toEqual([]);
});

test('who takes what it is sent is told all of it, part by part', async () => {
  const { follow, look, told } = opened(LIMITS.streamBytesMax / 2);
  const stream = follow('oldest');
  await look();
  expect(await stream.taken(6)).toEqual(['1', '2', '3', '4', '5', '6']);
  expect(told.pages).toBeGreaterThan(1);
  await stream.leave();
});

test('a place that is gone ends its stream', async () => {
  const { follow, look } = opened();
  const place = places[3] as Exclude<FeedPosition, 'oldest'>;
  const stream = follow({ ...place, revisionPrefix: 'ffffffff' });
  await look();
  expect(await stream.taken(1)).toEqual(['cursor']);
});
