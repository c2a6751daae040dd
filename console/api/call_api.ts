import { DESCRIBED } from 'authrealm:described';
import { endSession, loseScope, session } from '../session/session.ts';
import { lost, Problem, problemFrom } from './problem.ts';

/** Calls something off when nothing is heard for too long. */
interface Silence {
  /** Aborted with what was given to it, or as soon as the one that was asked for is, with the reason of that. */
  readonly signal: AbortSignal;
  /** Something came: the time begins anew. */
  heard(): void;
  /** It is over, however it ended. */
  end(): void;
}

/** `why` is what `signal` is aborted with after so many milliseconds in which nothing was heard. */
export function silence(milliseconds: number, why: Error, signal?: AbortSignal): Silence {
  const controller = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = () => clearTimeout(timer);
  const heard = () => {
    end();
    timer = setTimeout(() => controller.abort(why), milliseconds);
  };
  heard();
  return {
    signal: signal ? AbortSignal.any([signal, controller.signal]) : controller.signal,
    heard,
    end,
  };
}

/** The same body; `heard` is told of each piece that comes. */
export function overheard(body: ReadableStream<Uint8Array>, heard: () => void): ReadableStream<Uint8Array> {
  return body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(piece, controller) {
        heard();
        controller.enqueue(piece);
      },
    }),
  );
}

/**
 * How long an answer, and then each piece of it, is waited for. The service gives one up after a third of it; the rest
 * is for the way, and for browsers, which ask a few things at once and the others when those are answered.
 */
const SILENT_MS_MAX = 3 * DESCRIBED.limits.answerMsMax;

interface Question {
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

export interface Answer<T> {
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
export const BASE = new URL('.', location.href).pathname;

/**
 * Asks the service, as the session that is open. Throws Problem for every answer that is no success, none, or not whole,
 * and the reason of `signal`. A session that has ended is ended here, for every part of the page.
 */
export async function ask<T>(question: Question): Promise<Answer<T>> {
  const { signal, heard, end } = silence(SILENT_MS_MAX, lost(isRead(question)), question.signal);
  try {
    const response = await reach({ ...question, signal });
    heard();
    const { status, headers } = response;
    const body = (status === NO_CONTENT ? undefined : await read(response, heard)) as T;
    return { status, headers, body, etag: etagOf(headers) };
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof Problem ? error : lost(isRead(question));
  } finally {
    end();
  }
}

const NO_CONTENT = 204;

/** Whether nothing can have been changed by asking: who signs in needs no scope, and who searches one to read. */
function isRead({ method = 'GET', scope }: Question): boolean {
  return method === 'GET' || scope === undefined || scope.endsWith(':read');
}

/** Asks likewise, leaves the body of a success to be read as it comes, and waits for as long as `signal` does. */
export async function reach(question: Question): Promise<Response> {
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
  const response = await fetch(BASE + path, init).catch(() => {
    signal?.throwIfAborted();
    throw lost(isRead(question));
  });
  if (response.ok) return response;
  // Its status says enough, where there is no more.
  const said = await read(response).catch(() => undefined);
  const isOurs = token !== undefined && session.get().open?.token === token;
  if (isOurs && response.status === 401) {
    endSession('Your session has ended: it expired or was revoked.');
  }
  if (isOurs && response.status === 403 && question.scope) loseScope(question.scope);
  throw problemFrom(response.status, response.headers, said);
}

/** Throws where the body was cut off, or is not one of ours: a proxy may have answered. */
async function read(response: Response, heard: () => void = () => undefined): Promise<unknown> {
  return new Response(response.body && overheard(response.body, heard)).json();
}

/** A proxy that compresses makes an ETag a weak one, which no write can name; the service's own are strong. */
function etagOf(headers: Headers): string | undefined {
  return headers.get('etag')?.replace(/^W\//, '');
}
