import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Principal } from '../../domain/principal.ts';
import type { Place } from '../../events/feed/reading.ts';

/**
 * Why a stream ended, as its last event says.
 * - `token`: the token has expired, was taken back, or its client was disabled.
 * - `rights`: the token may not read this realm's changes any more.
 * - `cursor`: the changes to go on from are not kept any more.
 * - `slow`: nobody read what was sent. Who does not read does not read this either.
 * - `fault`: something is wrong with us; the log of the service tells.
 * - `shutdown`: the process ends; another one takes the call.
 */
export type StreamEnd = 'token' | 'rights' | 'cursor' | 'slow' | 'fault' | 'shutdown';

/** One reader that follows the changes of a realm. */
export interface ChangeStream {
  readonly realm: Uuid;
  readonly token: string;
  readonly body: ReadableStream<Uint8Array>;
  principal: Principal;
  place: Place;
  /** Whether there was more to tell than it had room for, or than is told at a time. */
  hasMore: boolean;
  /** When the token was last accepted. */
  checkedAt: number;
  /** Whether the reader is still there. */
  isOpen(): boolean;
  /** Whether it has left room in memory for more. */
  hasRoom(): boolean;
  /** Whether it has left none for too long. */
  isStalled(): boolean;
  send(cursor: string, event: string): void;
  /** Says that it is alive, where nothing was said for long. */
  keepAlive(): void;
  end(reason: StreamEnd): void;
}

export interface StreamOptions extends Pick<ChangeStream, 'realm' | 'token' | 'principal' | 'place'> {
  readonly monotonic: () => number;
  /** Called where there is room again for what there was more. */
  readonly onRoom: () => void;
  /** Called once, when it has ended, whoever ended it. */
  readonly onEnd: () => void;
}

const encoder = new TextEncoder();
const ALIVE = ': alive\n\n';

/** Begins a stream, which has room for LIMITS.streamBytesMax that its reader has not taken yet. */
export function openChangeStream({ monotonic, onRoom, onEnd, ...opening }: StreamOptions): ChangeStream {
  const { body, sink } = openSink({
    cancel: () => close(),
    pull() {
      if (stream.hasMore) onRoom();
    },
  });
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
      // Its reader left a moment ago.
      close();
    }
  }

  const stream: ChangeStream = {
    ...opening,
    body,
    hasMore: false,
    checkedAt: monotonic(),
    isOpen: () => isOpen,
    hasRoom,
    isStalled() {
      if (hasRoom()) roomAt = monotonic();
      return isOpen && monotonic() - roomAt >= LIMITS.streamStallMsMax;
    },
    send: (cursor, event) => write(`id: ${cursor}\ndata: ${event}\n\n`),
    keepAlive() {
      if (hasRoom() && monotonic() - sentAt >= LIMITS.streamKeepAliveMs) write(ALIVE);
    },
    end(reason) {
      if (!isOpen) return;
      // What waits for a reader that takes nothing is dropped.
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

function openSink(source: { readonly cancel: () => void; readonly pull: () => void }) {
  let sink: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>(
    {
      ...source,
      start(controller) {
        sink = controller;
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: LIMITS.streamBytesMax }),
  );
  return { body, sink: sink as unknown as ReadableStreamDefaultController<Uint8Array> };
}
