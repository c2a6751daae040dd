import { errorFromTrace, errorTrace } from '../../model/error_trace.ts';
import { Fault } from '../../model/fault.ts';

/** Everything that a worker process and its parent send each other. Either of them may send requests. */
export type Message =
  /** The first message of a worker: it serves now. */
  | { readonly kind: 'ready'; readonly detail: unknown }
  | { readonly kind: 'request'; readonly id: number; readonly request: unknown }
  | { readonly kind: 'response'; readonly id: number; readonly response: unknown }
  | { readonly kind: 'failure'; readonly id: number; readonly failure: Failure };

type Failure = ReturnType<typeof failureOf>;

export type Handle = (request: unknown) => unknown;

/**
 * One end of the connection between a worker and its parent. `send` is called for each message and may throw where the other
 * end is gone.
 */
export function openChannel(send: (message: Message) => void, handle: Handle) {
  const pending = new Map<number, PromiseWithResolvers<never>>();
  let lastId = 0;

  function deliver(message: Message): void {
    try {
      send(message);
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'ERR_IPC_CHANNEL_CLOSED') throw error;
    }
  }

  async function respond(id: number, request: unknown): Promise<void> {
    try {
      deliver({ kind: 'response', id, response: await handle(request) });
    } catch (error) {
      deliver({ kind: 'failure', id, failure: failureOf(error) });
    }
  }

  return {
    /**
     * Resolves with what `handle` of the other end returns; both values must be cloneable. Rejects with the Fault that it
     * throws, and with Fault `internal` for any other error. Stays pending where the other end is gone.
     */
    async request<T>(request: unknown): Promise<T> {
      lastId += 1;
      const id = lastId;
      const waiting = Promise.withResolvers<T>();
      deliver({ kind: 'request', id, request });
      pending.set(id, waiting as PromiseWithResolvers<never>);
      return waiting.promise;
    },
    receive(message: Message): void {
      if (message.kind === 'request') void respond(message.id, message.request);
      if (message.kind !== 'response' && message.kind !== 'failure') return;
      const waiting = pending.get(message.id);
      pending.delete(message.id);
      if (message.kind === 'response') waiting?.resolve(message.response as never);
      else waiting?.reject(errorOf(message.failure));
    },
  };
}

/** What was thrown, without messages of errors, which may hold a value. */
function failureOf(error: unknown) {
  if (error instanceof Fault)
    return { fault: error.code, fieldErrors: error.fieldErrors, trace: errorTrace(error.cause) };
  return { fault: 'internal' as const, fieldErrors: [], trace: errorTrace(error) };
}

function errorOf({ fault, fieldErrors, trace }: Failure): Fault {
  return new Fault(fault, fieldErrors, errorFromTrace(trace));
}
