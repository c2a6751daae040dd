import { SCHEMA } from 'authrealm:schema';
import { fetchApi, idleTimeout, onEachChunk } from '../../api/call_api.ts';
import { networkProblem, type Problem, toProblem } from '../../api/problem.ts';
import type { FeedEvent } from './entry.ts';
import { pause } from './pause.ts';

/** The state of a stream of changes. */
export type StreamState =
  | { readonly kind: 'opening' }
  | { readonly kind: 'live' }
  /** Reconnects automatically. */
  | { readonly kind: 'retrying'; readonly reason: string; readonly seconds: number }
  /** Does not reconnect. */
  | { readonly kind: 'over'; readonly reason: string };

interface FollowOptions {
  readonly onEvents: (events: readonly FeedEvent[]) => void;
  readonly onState: (state: StreamState) => void;
  readonly signal: AbortSignal;
}

/** Reasons in the `end` event of a stream (docs/feed.md). */
const ENDS: Readonly<Record<string, string>> = {
  token: 'The session has ended.',
  rights: 'This session is no longer allowed to read these changes.',
  slow: 'This page could not keep up.',
  fault: 'The stream failed in the service.',
  shutdown: 'The service is stopping or restarting.',
};
const INTERRUPTED = 'The connection was interrupted.';
const NO_DATA = 'The service stopped sending data.';
const TOO_MANY_STREAMS =
  'The service has no free streams: the limit is 4 per session and 100 per process. Close another tab with this page, or wait.';

/** Two keep-alive messages were missed. */
const IDLE_MS_MAX = 2.5 * SCHEMA.limits.streamKeepAliveMs;
const SECONDS_MIN = 1;
const SECONDS_MAX = 15;
/** Messages within this time are delivered together. */
const BATCH_MS = 100;

/**
 * Follows the changes of a realm after a cursor, until `signal`. Reconnects after the last event. Returns
 * only if the cursor is no longer available.
 */
export async function followChanges(realm: string, from: string, options: FollowOptions): Promise<'gone'> {
  let cursor = from;
  for (let failures = 0; ; failures += 1) {
    const round = await readStream(realm, cursor, options);
    cursor = round.cursor;
    if (round.hasAnswered) failures = 0;
    const { end } = round;
    if (end === 'gone') return end;
    if (end.kind === 'over') {
      options.onState({ kind: 'over', reason: end.reason });
      await ended(options.signal);
    }
    const seconds = Math.min(Math.max(end.seconds, SECONDS_MIN * 2 ** failures), SECONDS_MAX);
    options.onState({ kind: 'retrying', reason: end.reason, seconds });
    await pause(seconds * 1_000, options.signal);
  }
}

interface StreamEnd {
  readonly cursor: string;
  /** Whether the service answered. */
  readonly hasAnswered: boolean;
  readonly end:
    | 'gone'
    | { readonly kind: 'again' | 'over'; readonly reason: string; readonly seconds: number };
}

async function readStream(realm: string, from: string, options: FollowOptions): Promise<StreamEnd> {
  const { onState } = options;
  const { signal, onData, end } = idleTimeout(IDLE_MS_MAX, networkProblem(true), options.signal);
  let cursor = from;
  let hasAnswered = false;
  const batch = createBatch(options);
  try {
    const response = await fetchApi({
      path: `v2/authentication-realms/${encodeURIComponent(realm)}/changes`,
      headers: { Accept: 'text/event-stream', 'Last-Event-ID': from },
      scope: 'changes:read',
      signal,
    });
    hasAnswered = true;
    onState({ kind: 'live' });
    const body = onEachChunk(response.body as ReadableStream<Uint8Array>, onData);
    for await (const { id, event, data } of messagesIn(body)) {
      if (event === 'end') return { cursor, hasAnswered, end: windowAtEnd(data) };
      cursor = id;
      batch.add(JSON.parse(data) as FeedEvent);
    }
  } catch (error) {
    options.signal.throwIfAborted();
    // A connection that breaks while reading throws no Problem.
    if (!hasAnswered) return { cursor, hasAnswered, end: endOfProblem(toProblem(error)) };
  } finally {
    end();
    batch.flush();
  }
  const reason = signal.aborted ? NO_DATA : INTERRUPTED;
  return { cursor, hasAnswered, end: { kind: 'again', reason, seconds: SECONDS_MIN } };
}

function windowAtEnd(data: string): StreamEnd['end'] {
  const { reason } = JSON.parse(data) as { reason: string };
  if (reason === 'cursor') return 'gone';
  // The next request shows the state of session and scopes.
  return { kind: 'again', reason: ENDS[reason] ?? INTERRUPTED, seconds: SECONDS_MIN };
}

function endOfProblem({ kind, message, waitSeconds, errors }: Problem): StreamEnd['end'] {
  if (kind === 'gone') return 'gone';
  if (waitSeconds !== undefined) {
    const hasNoStream = errors.some(({ detail }) => detail.startsWith('Too many requests of this kind'));
    return { kind: 'again', reason: hasNoStream ? TOO_MANY_STREAMS : message, seconds: waitSeconds };
  }
  if (kind === 'broken') return { kind: 'again', reason: message, seconds: SECONDS_MIN };
  return { kind: 'over', reason: kind === 'forbidden' ? (ENDS.rights ?? message) : message, seconds: 0 };
}

function createBatch({ onEvents }: FollowOptions) {
  let waiting: FeedEvent[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    if (waiting.length > 0) onEvents(waiting);
    waiting = [];
  };
  return {
    add(event: FeedEvent) {
      waiting.push(event);
      timer ??= setTimeout(flush, BATCH_MS);
    },
    flush,
  };
}

function ended(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
}

/** A server-sent event. */
interface Message {
  /** Empty before the first ID. */
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

/**
 * Parses server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html). An incomplete
 * event at the end is dropped. Throws what reading the body throws.
 */
async function* messagesIn(body: ReadableStream<Uint8Array>): AsyncGenerator<Message> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .getReader();
  let rest = '';
  let id = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      // A trailing CR may be the first half of CRLF.
      const blocks = (rest + value).replace(/\r\n|\r(?!$)/g, '\n').split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const message = messageIn(block, id);
        id = message.id;
        if (message.data !== undefined) yield { ...message, data: message.data };
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function messageIn(block: string, idBefore: string) {
  const lines = block.split('\n').map((line) => {
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    return { name, value };
  });
  const lastValue = (field: string) => lines.findLast(({ name }) => name === field)?.value;
  const data = lines.filter(({ name }) => name === 'data').map(({ value }) => value);
  return {
    id: lastValue('id') ?? idBefore,
    event: lastValue('event') ?? 'message',
    data: data.length === 0 ? undefined : data.join('\n'),
  };
}
