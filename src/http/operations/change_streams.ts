import type { Tokens } from '../../access/tokens/token.ts';
import { feedCursor, parseFeedCursor } from '../../deliver/feed/cursor.ts';
import type { FeedPage, FeedPosition, MayRead, WriteEvents } from '../../deliver/feed/read_feed.ts';
import { readFeed } from '../../deliver/feed/read_feed.ts';
import { openSerialRunner } from '../../deliver/serial_runner.ts';
import type { FeedStore } from '../../deliver/store/feed.ts';
import { Fault, overloaded } from '../../model/fault.ts';
import type { Clock, Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import { mayAccessRealm, type Principal } from '../../model/principal.ts';
import type { Store } from '../../model/store.ts';
import { bearerToken } from '../pipeline/bearer.ts';
import type { Call } from '../pipeline/call.ts';
import type { LoopBudget } from '../pipeline/loop_budget.ts';
import { REQUEST_ID, type Reply } from '../server/reply.ts';

export const FEED_SCOPE = 'changes:read';
export const STREAM_TYPE = 'text/event-stream';

/** Whether a token may read the records of a resource; events about them then carry their state. */
export function readableBy({ scopes }: Principal): MayRead {
  return ({ scope }) => scopes.has(`${scope}:read`);
}

interface StreamDeps {
  readonly store: Pick<Store, 'changes'>;
  readonly feed: Pick<FeedStore, 'heads'>;
  readonly tokens: Pick<Tokens, 'verify'>;
  readonly writeEvents: WriteEvents;
  readonly loopBudget: Pick<LoopBudget, 'turn'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly onError: (error: unknown) => void;
}

/** The maximum number of changes that one poll sends to a stream. */
const PAGE = LIMITS.pageRecordsMax;

/** All streams of a process. They share one poller: each poll reads the heads of their realms once. */
export function openChangeStreams(deps: StreamDeps) {
  const { monotonic } = deps.clock;
  const streams = new Set<ChangeStream>();
  let isStopped = false;
  let timer: ReturnType<typeof setInterval> | undefined;

  function removeStream(stream: ChangeStream): void {
    streams.delete(stream);
    if (streams.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  /** Polls for all streams, one poll at a time. Streams wait while the database fails. */
  const poll = openSerialRunner(async () => {
    // Requests of one turn of the event loop share a poll, and other requests run before it.
    await new Promise((resolve) => setImmediate(resolve));
    await pollStreams(streams, deps);
  }, deps.onError);

  return {
    /** Replies with a stream of the changes of a realm from a position on (Server-Sent Events). */
    follow(call: Call, realm: Uuid, place: FeedPosition): Reply {
      const principal = call.principal as Principal;
      const own = [...streams].filter((stream) => stream.principal.clientId === principal.clientId);
      if (isStopped) throw new Fault('unavailable');
      if (streams.size >= LIMITS.streamsMax || own.length >= LIMITS.streamsPerClientMax)
        throw overloaded('CONCURRENCY_LIMIT');
      const token = bearerToken(call.authorization ?? '') ?? '';
      const stream = openChangeStream({
        realm,
        token,
        principal,
        place,
        monotonic,
        onRoom: poll,
        onEnd: () => removeStream(stream),
      });
      stream.keepAlive();
      streams.add(stream);
      timer ??= setInterval(poll, LIMITS.feedPollMs);
      void poll();
      return { status: 200, headers: headersOf(call), body: stream.body };
    },
    count: () => streams.size,
    /** Ends all streams, and accepts no more. */
    async stop(): Promise<void> {
      isStopped = true;
      for (const stream of [...streams]) stream.end('shutdown');
      await poll();
    },
  };
}

async function pollStreams(streams: ReadonlySet<ChangeStream>, deps: StreamDeps): Promise<void> {
  for (const stream of [...streams]) await runIsolated(stream, deps, () => checkStream(stream, deps));
  const open = [...streams];
  // If one of the realms cannot be read, the others are read one by one.
  const heads = await headsOf(open, deps).catch((error) => {
    if (error instanceof Fault) return new Map<Uuid, number>();
    throw error;
  });
  const pages = new Map<string, Promise<FeedPage>>();
  const sent = await Promise.allSettled(
    open.map(async (stream) => {
      const isDue = stream.hasRoom() && lagsBehind(stream.place, heads.get(stream.realm));
      if (isDue) await runIsolated(stream, deps, () => sendPage(stream, deps, pages));
    }),
  );
  for (const stream of open) stream.keepAlive();
  const failure = sent.find((each) => each.status === 'rejected');
  if (failure) throw failure.reason;
}

/**
 * An unexpected error in the work for one stream ends only that stream. Rejects with a Fault, such as `unavailable`, which ends no
 * stream: the next poll repeats the work.
 */
async function runIsolated(
  stream: ChangeStream,
  { onError }: StreamDeps,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof Fault) throw error;
    onError(error);
    stream.end('fault');
  }
}

/** Ends a stream whose token lost its rights, or whose reader is stalled. */
async function checkStream(stream: ChangeStream, { tokens, clock }: StreamDeps): Promise<void> {
  if (stream.isStalled()) stream.end('slow');
  const now = clock.monotonic();
  if (!stream.isOpen() || now - stream.checkedAt < LIMITS.streamCheckMs) return;
  const principal = await tokens.verify(stream.token);
  if (typeof principal !== 'object') return stream.end('token');
  if (!principal.scopes.has(FEED_SCOPE) || !mayAccessRealm(principal, stream.realm))
    return stream.end('rights');
  stream.principal = principal;
  stream.checkedAt = now;
}

async function headsOf(
  streams: readonly ChangeStream[],
  { feed }: StreamDeps,
): Promise<ReadonlyMap<Uuid, number>> {
  const realms = [...new Set(streams.map(({ realm }) => realm))];
  if (realms.length === 0) return new Map();
  const heads = await feed.heads(undefined, realms.length, realms);
  return new Map(heads.map(({ realm, seq }) => [realm, seq]));
}

/** A head before the position means that the database was restored, which reading detects. */
function lagsBehind(place: FeedPosition, head: number | undefined): boolean {
  return place === 'oldest' || place.side === 'before' || place.seq !== head;
}

/** Sends the next page. Streams at the same position share one read. */
async function sendPage(
  stream: ChangeStream,
  { store, writeEvents, loopBudget }: StreamDeps,
  pages: Map<string, Promise<FeedPage>>,
): Promise<void> {
  await loopBudget.turn();
  if (!stream.hasRoom()) return;
  const { realm, place } = stream;
  const name = `${realm} ${place === 'oldest' ? place : `${place.side} ${place.seq} ${place.revisionPrefix}`}`;
  const reading = pages.get(name) ?? readFeed(store, realm, place, PAGE);
  pages.set(name, reading);
  const page = await reading;
  if (page.kind !== 'page') return stream.end('cursor');
  const events = await writeEvents(page.changes, readableBy(stream.principal));
  stream.hasMore = true;
  for (const [index, change] of page.changes.entries()) {
    if (!stream.hasRoom()) return;
    const cursor = feedCursor('after', change);
    stream.send(cursor, events[index] as string);
    stream.place = parseFeedCursor(cursor, realm) as FeedPosition;
  }
  stream.hasMore = page.hasMore;
}

function headersOf({ requestId }: Call): Readonly<Record<string, string>> {
  return {
    'Content-Type': STREAM_TYPE,
    'Cache-Control': 'no-store',
    Vary: 'Accept',
    // Tells nginx not to buffer the stream.
    'X-Accel-Buffering': 'no',
    [REQUEST_ID]: requestId,
  };
}

/**
 * Why a stream ended, as its last event says.
 * - `token`: the token has expired or was revoked, or its client was disabled.
 * - `rights`: the token may no longer read the changes of this realm.
 * - `cursor`: the changes to continue from are no longer retained.
 * - `slow`: the reader is stalled. It does not receive this event either.
 * - `fault`: an internal error; the log of the service has it.
 * - `shutdown`: the process is stopping; reconnect to another one.
 */
type StreamEnd = 'token' | 'rights' | 'cursor' | 'slow' | 'fault' | 'shutdown';

type ChangeStream = ReturnType<typeof openChangeStream>;

interface StreamOptions {
  readonly realm: Uuid;
  readonly token: string;
  readonly principal: Principal;
  readonly place: FeedPosition;
  readonly monotonic: () => number;
  /** Called when the buffer has room again and changes are pending. */
  readonly onRoom: () => void;
  /** Called once when the stream has ended. */
  readonly onEnd: () => void;
}

const encoder = new TextEncoder();
const ALIVE = ': alive\n\n';

/** Opens a stream with a buffer of LIMITS.streamBytesMax, for one reader that follows the changes of a realm. */
function openChangeStream({ monotonic, onRoom, onEnd, ...opening }: StreamOptions) {
  let sink = undefined as unknown as ReadableStreamDefaultController<Uint8Array>;
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        sink = controller;
      },
      cancel: () => close(),
      pull() {
        if (stream.hasMore) onRoom();
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: LIMITS.streamBytesMax }),
  );
  let isOpen = true;
  let roomAt = monotonic();
  let sentAt = Number.NEGATIVE_INFINITY;

  function close(): void {
    if (!isOpen) return;
    isOpen = false;
    onEnd();
  }

  const hasRoom = (): boolean => isOpen && (sink.desiredSize ?? 0) > 0;

  function write(text: string): void {
    try {
      sink.enqueue(encoder.encode(text));
      sentAt = monotonic();
    } catch {
      // The reader has just disconnected.
      close();
    }
  }

  const stream = {
    ...opening,
    body,
    /** Whether there are changes that did not fit into the buffer or the page. */
    hasMore: false,
    /** When the token was last accepted. */
    checkedAt: monotonic(),
    /** Whether the reader is still there. */
    isOpen: () => isOpen,
    /** Whether its buffer has room. */
    hasRoom,
    /** Whether its buffer has been full for too long. */
    isStalled(): boolean {
      if (hasRoom()) roomAt = monotonic();
      return isOpen && monotonic() - roomAt >= LIMITS.streamStallMsMax;
    },
    send: (cursor: string, event: string) => write(`id: ${cursor}\ndata: ${event}\n\n`),
    /** Sends a comment if nothing was sent for a while. */
    keepAlive(): void {
      if (hasRoom() && monotonic() - sentAt >= LIMITS.streamKeepAliveMs) write(ALIVE);
    },
    end(reason: StreamEnd): void {
      if (!isOpen) return;
      // Drops the buffer of a stalled reader.
      if (reason === 'slow') sink.error();
      else {
        write(`event: end\ndata: ${JSON.stringify({ reason })}\n\n`);
        if (isOpen) sink.close();
      }
      close();
    },
  };
  return stream;
}
