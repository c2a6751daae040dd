import { endSession, loseScope, session } from '../session/session.ts';
import { lost, problemFrom } from './problem.ts';

export interface Question {
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
 * Asks the service, as the session that is open. Throws Problem for every answer that is no success, and the reason of
 * `signal`. A session that has ended is ended here, for every part of the page.
 */
export async function ask<T>(question: Question): Promise<Answer<T>> {
  const response = await reach(question);
  const { status, headers } = response;
  return { status, headers, body: (await read(response)) as T, etag: etagOf(headers) };
}

/** Asks likewise, and leaves the body of a success to be read as it comes. */
export async function reach(question: Question): Promise<Response> {
  const { method = 'GET', path, body, form, signal } = question;
  const token = session.get().open?.token;
  const headers = {
    Accept: 'application/json',
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    ...question.headers,
  };
  const response = await send(BASE + path, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
    ...(signal ? { signal } : {}),
  });
  if (response.ok) return response;
  const said = await read(response);
  if (response.status === 401 && token !== undefined && session.get().open?.token === token) {
    endSession('Your session has ended: it expired, or it was taken back.');
  }
  if (response.status === 403 && question.scope) loseScope(question.scope);
  throw problemFrom(response.status, response.headers, said);
}

async function send(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { ...init, cache: 'no-store', credentials: 'omit', redirect: 'error' });
  } catch {
    init.signal?.throwIfAborted();
    throw lost(init.method === 'GET');
  }
}

async function read(response: Response): Promise<unknown> {
  const text = await response.text().catch(() => '');
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A proxy that compresses makes an ETag a weak one, which no write can name; the service's own are strong. */
function etagOf(headers: Headers): string | undefined {
  return headers.get('etag')?.replace(/^W\//, '');
}
