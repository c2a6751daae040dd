import { SCHEMA } from 'authrealm:schema';
import { dropScope, endSession, session } from '../session/session.ts';
import { endedProblem, networkProblem, Problem, problemFromResponse } from './problem.ts';

/**
 * Until a response begins. The service gives up after a third of it; the rest is for the network, and for
 * browsers, which queue requests beyond six connections.
 */
const RESPONSE_MS_MAX = 3 * SCHEMA.limits.answerMsMax;
/** Until its body is complete, also on a slow line. */
const BODY_MS_MAX = 45_000;

interface ApiRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below the base of the service, without a slash at its start. */
  readonly path: string;
  /** Sent as JSON, unless it is a file. */
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** The required scope: a 403 removes it from the session. */
  readonly scope?: string;
}

export interface ApiResponse<T> {
  readonly headers: Headers;
  readonly body: T;
  /** For `If-Match`. */
  readonly etag: string | undefined;
}

/** Makes a write conditional on the version that was read. */
export function ifMatch(etag: string | undefined): Readonly<Record<string, string>> {
  return etag === undefined ? {} : { 'If-Match': etag };
}

/** Base path of the service: the part of the page's path before `console`. */
export const BASE_PATH = new URL('.', location.href).pathname;

/**
 * Sends a request with the token of the session. Throws Problem if there is no complete, successful
 * response, or the reason of `signal`. Ends the session on 401.
 */
export async function callApi<T>(request: ApiRequest): Promise<ApiResponse<T>> {
  const timeout = new AbortController();
  const signal = AbortSignal.any([timeout.signal, ...(request.signal ? [request.signal] : [])]);
  const giveUp = () => timeout.abort(networkProblem(isReadOnly(request)));
  let timer = setTimeout(giveUp, RESPONSE_MS_MAX);
  try {
    const response = await fetchApi({ ...request, signal });
    clearTimeout(timer);
    timer = setTimeout(giveUp, BODY_MS_MAX);
    const { status, headers } = response;
    const body = (status === NO_CONTENT ? undefined : await response.json()) as T;
    return { headers, body, etag: etagOf(headers) };
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof Problem ? error : networkProblem(isReadOnly(request));
  } finally {
    clearTimeout(timer);
  }
}

const NO_CONTENT = 204;

/** Whether the request cannot have changed anything. Sign-in needs no scope, a search only a read scope. */
function isReadOnly({ method = 'GET', scope }: ApiRequest): boolean {
  return method === 'GET' || scope === undefined || scope.endsWith(':read');
}

/** Like callApi, but without a timeout of its own, and the body is not read. */
export async function fetchApi(request: ApiRequest): Promise<Response> {
  const { method = 'GET', path, body, signal } = request;
  const { open, ended } = session.get();
  // While the page of an ended session waits for the next sign-in, only requests of the sign-in are sent.
  if (ended && !open && !path.startsWith('console/')) throw endedProblem();
  const token = open?.token;
  const isJson = body !== undefined && !(body instanceof Blob);
  const headers = {
    Accept: 'application/json',
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    ...(isJson ? { 'Content-Type': 'application/json' } : {}),
    ...request.headers,
  };
  const init: RequestInit = {
    method,
    headers,
    body: isJson ? JSON.stringify(body) : (body ?? null),
    ...(signal ? { signal } : {}),
    ...{ cache: 'no-store', credentials: 'omit', redirect: 'error' },
  };
  const response = await fetch(BASE_PATH + path, init).catch(() => {
    signal?.throwIfAborted();
    throw networkProblem(isReadOnly(request));
  });
  if (response.ok) return response;
  // Without a readable body the status alone decides.
  const errorBody = await response.json().catch(() => undefined);
  const isCurrentToken = token !== undefined && session.get().open?.token === token;
  if (isCurrentToken && response.status === 401) {
    endSession('Your session has ended: it expired or was revoked.');
  }
  if (isCurrentToken && response.status === 403 && request.scope)
    dropScope(missingScope(response.headers) ?? request.scope);
  throw problemFromResponse(response.status, response.headers, errorBody);
}

/** The scope that a 403 names (RFC 6750, 3): a request may need several. */
function missingScope(headers: Headers): string | undefined {
  return /\bscope="([^" ]+)"/.exec(headers.get('www-authenticate') ?? '')?.[1];
}

/** Compressing proxies turn strong ETags into weak ones, which If-Match rejects. */
function etagOf(headers: Headers): string | undefined {
  return headers.get('etag')?.replace(/^W\//, '');
}
