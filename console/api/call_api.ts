import { SCHEMA } from 'authrealm:schema';
import { dropScope, endSession, session } from '../session/session.ts';
import { networkProblem, Problem, problemFromResponse } from './problem.ts';

/** Calls something off when nothing is heard for too long. */
interface IdleTimeout {
  /** Aborted with what was given to it, or as soon as the one that was asked for is, with the reason of that. */
  readonly signal: AbortSignal;
  /** Something came: the time begins anew. */
  onData(): void;
  /** It is over, however it ended. */
  end(): void;
}

/** `why` is what `signal` is aborted with after so many milliseconds in which nothing was heard. */
export function idleTimeout(milliseconds: number, reason: Error, signal?: AbortSignal): IdleTimeout {
  const controller = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = () => clearTimeout(timer);
  const onData = () => {
    end();
    timer = setTimeout(() => controller.abort(reason), milliseconds);
  };
  onData();
  return {
    signal: signal ? AbortSignal.any([signal, controller.signal]) : controller.signal,
    onData,
    end,
  };
}

/** The same body; `heard` is told of each piece that comes. */
export function onEachChunk(
  body: ReadableStream<Uint8Array>,
  onData: () => void,
): ReadableStream<Uint8Array> {
  return body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(piece, controller) {
        onData();
        controller.enqueue(piece);
      },
    }),
  );
}

/**
 * How long an answer, and then each piece of it, is waited for. The service gives one up after a third of it; the rest
 * is for the way, and for browsers, which ask a few things at once and the others when those are answered.
 */
const IDLE_MS_MAX = 3 * SCHEMA.limits.answerMsMax;

interface ApiRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below the base of the service, without a slash at its start. */
  readonly path: string;
  readonly body?: object;
  /** Instead of a body: what token endpoints read. */
  readonly form?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** The scope that it needs: a session that is refused it does not have it any more. */
  readonly scope?: string;
}

export interface ApiResponse<T> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: T;
  /** For `If-Match`. */
  readonly etag: string | undefined;
}

/** Has a write land on what was read, and on nothing newer. */
export function ifMatch(etag: string | undefined): Readonly<Record<string, string>> {
  return etag === undefined ? {} : { 'If-Match': etag };
}

/** Where the service is: what stands before `console` in the address of the page. */
export const BASE_PATH = new URL('.', location.href).pathname;

/**
 * Asks the service, as the session that is open. Throws Problem for every answer that is no success, none, or not whole,
 * and the reason of `signal`. A session that has ended is ended here, for every part of the page.
 */
export async function ask<T>(question: ApiRequest): Promise<ApiResponse<T>> {
  const { signal, onData, end } = idleTimeout(
    IDLE_MS_MAX,
    networkProblem(isReadOnly(question)),
    question.signal,
  );
  try {
    const response = await fetchApi({ ...question, signal });
    onData();
    const { status, headers } = response;
    const body = (status === NO_CONTENT ? undefined : await read(response, onData)) as T;
    return { status, headers, body, etag: etagOf(headers) };
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof Problem ? error : networkProblem(isReadOnly(question));
  } finally {
    end();
  }
}

const NO_CONTENT = 204;

/** Whether nothing can have been changed by asking: who signs in needs no scope, and who searches one to read. */
function isReadOnly({ method = 'GET', scope }: ApiRequest): boolean {
  return method === 'GET' || scope === undefined || scope.endsWith(':read');
}

/** Asks likewise, leaves the body of a success to be read as it comes, and waits for as long as `signal` does. */
export async function fetchApi(question: ApiRequest): Promise<Response> {
  const { method = 'GET', path, body, form, signal } = question;
  const token = session.get().open?.token;
  const headers = {
    Accept: 'application/json',
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    ...question.headers,
  };
  const init: RequestInit = {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
    ...(signal ? { signal } : {}),
    ...{ cache: 'no-store', credentials: 'omit', redirect: 'error' },
  };
  const response = await fetch(BASE_PATH + path, init).catch(() => {
    signal?.throwIfAborted();
    throw networkProblem(isReadOnly(question));
  });
  if (response.ok) return response;
  // Its status says enough, where there is no more.
  const errorBody = await read(response).catch(() => undefined);
  const isCurrentToken = token !== undefined && session.get().open?.token === token;
  if (isCurrentToken && response.status === 401) {
    endSession('Your session has ended: it expired or was revoked.');
  }
  if (isCurrentToken && response.status === 403 && question.scope) dropScope(question.scope);
  throw problemFromResponse(response.status, response.headers, errorBody);
}

/** Throws where the body was cut off, or is not one of ours: a proxy may have answered. */
async function read(response: Response, onData: () => void = () => undefined): Promise<unknown> {
  return new Response(response.body && onEachChunk(response.body, onData)).json();
}

/** A proxy that compresses makes an ETag a weak one, which no write can name; the service's own are strong. */
function etagOf(headers: Headers): string | undefined {
  return headers.get('etag')?.replace(/^W\//, '');
}
