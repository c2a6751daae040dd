import { type ErrorTrace, errorFromTrace, errorTrace } from '../domain/error_trace.ts';
import { Fault, type FaultCode, type FieldError, Refusal } from '../domain/fault.ts';

/** Everything that a worker process and its parent send each other. Either of them may send requests. */
export type Message =
  /** The first message of a worker: it serves now. */
  | { readonly kind: 'ready'; readonly detail: unknown }
  | { readonly kind: 'request'; readonly id: number; readonly request: unknown }
  | { readonly kind: 'response'; readonly id: number; readonly response: unknown }
  | { readonly kind: 'failure'; readonly id: number; readonly failure: Failure };

/** What was thrown. Only a Refusal is sent with its message: the message of another error may hold a value. */
type Failure =
  | { readonly refusal: string; readonly isUsage: boolean }
  | { readonly fault: FaultCode; readonly fieldErrors: readonly FieldError[]; readonly trace: ErrorTrace };

export type Handle = (request: unknown) => unknown;

/** One end of the connection between a worker and its parent. */
export interface Channel {
  /**
   * Resolves with what `handle` of the other end returns; both values must be cloneable. Rejects with the Fault or
   * Refusal that it throws, and with Fault `internal` for any other error. Stays pending where the other end is gone.
   */
  request<T>(request: unknown): Promise<T>;
  receive(message: Message): void;
}

/** `send` is called for each message and may throw where the other end is gone. */
export function openChannel(send: (message: Message) => void, handle: Handle): Channel {
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

  function settle(message: Extract<Message, { kind: 'response' | 'failure' }>): void {
    const waiting = pending.get(message.id);
    pending.delete(message.id);
    if (message.kind === 'response') waiting?.resolve(message.response as never);
    else waiting?.reject(errorOfFailure(message.failure));
  }

  return {
    async request<T>(request: unknown) {
      lastId += 1;
      const id = lastId;
      const waiting = Promise.withResolvers<T>();
      deliver({ kind: 'request', id, request });
      pending.set(id, waiting as PromiseWithResolvers<never>);
      return waiting.promise;
    },
    receive(message) {
      if (message.kind === 'request') void respond(message.id, message.request);
      else if (message.kind !== 'ready') settle(message);
    },
  };
}

function failureOf(error: unknown): Failure {
  if (error instanceof Refusal) return { refusal: error.message, isUsage: error.isUsage };
  if (error instanceof Fault) {
    return { fault: error.code, fieldErrors: error.fieldErrors, trace: errorTrace(error.cause) };
  }
  return { fault: 'internal', fieldErrors: [], trace: errorTrace(error) };
}

function errorOfFailure(failure: Failure): Error {
  if ('refusal' in failure) return new Refusal(failure.refusal, { isUsage: failure.isUsage });
  return new Fault(failure.fault, failure.fieldErrors, errorFromTrace(failure.trace));
}
