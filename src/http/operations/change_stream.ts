import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Principal } from '../../domain/principal.ts';
import type { Place } from '../../events/feed/reading.ts';

/**
 * Why a stream ended, as its last event says.
 * - `token`: the token has expired or was revoked, or its client was disabled.
 * - `rights`: the token may no longer read the changes of this realm.
 * - `cursor`: the changes to continue from are no longer retained.
 * - `slow`: the reader is stalled. It does not receive this event either.
 * - `fault`: an internal error; the log of the service has it.
 * - `shutdown`: the process is stopping; reconnect to another one.
 */
export type StreamEnd = 'token' | 'rights' | 'cursor' | 'slow' | 'fault' | 'shutdown';

/** One reader that follows the changes of a realm. */
export interface ChangeStream {
  readonly realm: Uuid;
  readonly token: string;
  readonly body: ReadableStream<Uint8Array>;
  principal: Principal;
  place: Place;
  /** Whether there are changes that did not fit into the buffer or the page. */
  hasMore: boolean;
  /** When the token was last accepted. */
  checkedAt: number;
  /** Whether the reader is still there. */
  isOpen(): boolean;
  /** Whether its buffer has room. */
  hasRoom(): boolean;
  /** Whether its buffer has been full for too long. */
  isStalled(): boolean;
  send(cursor: string, event: string): void;
  /** Sends a comment if nothing was sent for a while. */
  keepAlive(): void;
  end(reason: StreamEnd): void;
}

export interface StreamOptions extends Pick<ChangeStream, 'realm' | 'token' | 'principal' | 'place'> {
  readonly monotonic: () => number;
  /** Called when the buffer has room again and changes are pending. */
  readonly onRoom: () => void;
  /** Called once when the stream has ended. */
  readonly onEnd: () => void;
}

const encoder = new TextEncoder();
const ALIVE = ': alive\n\n';

/** Opens a stream with a buffer of LIMITS.streamBytesMax. */
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
      // The reader has just disconnected.
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
