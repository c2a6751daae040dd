/** `fetch`, or a function that behaves like it. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface ServiceOptions {
  /** URL of the service, with its path prefix if it has one. `connect` throws if it is undefined. */
  readonly url: string | undefined;
  /**
   * Allows http to a host that is not loopback, where secret and tokens are sent unencrypted. Only for networks that are
   * protected otherwise. Default false.
   */
  readonly allowPlainHttp?: boolean;
  /** Sends the requests. Default: `fetch` of the runtime. */
  readonly fetch?: Fetch;
  /** How often a request is repeated when the service is busy or the connection is lost. Default 4. */
  readonly retries?: number;
  /** Timeout of one attempt. Default 10,000. */
  readonly timeoutMs?: number;
  /** Timeout of all attempts of a request and the delays between them. Default 60,000. */
  readonly totalTimeoutMs?: number;
}

/** With the defaults; the URL has no final slash. */
export type ServiceConnection = Required<Omit<ServiceOptions, 'allowPlainHttp'>>;

/** A request of a collection or of the token endpoint. */
export interface ServiceRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below the URL of the service, query included. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The caller's own. */
  readonly signal?: AbortSignal | undefined;
}

/** The result of one attempt. The service may or may not have processed a lost one. */
export type AttemptOutcome =
  | { readonly kind: 'answered'; readonly status: number; readonly headers: Headers; readonly text: string }
  | { readonly kind: 'lost'; readonly reason: string };

/**
 * Sends a request once and reads the complete response within `timeoutMs`. Rejects only if the caller's signal aborts, with
 * its reason.
 */
export async function attemptRequest(
  { fetch, url, timeoutMs }: Pick<ServiceConnection, 'fetch' | 'url' | 'timeoutMs'>,
  { method, path, body, signal }: ServiceRequest,
  headers: Readonly<Record<string, string>>,
): Promise<AttemptOutcome> {
  signal?.throwIfAborted();
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const init: RequestInit & { readonly proxy: false } = {
      method,
      headers,
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      // Redirects are not followed: the token must reach only the configured service.
      redirect: 'manual',
      // Bun uses HTTP_PROXY by default, for loopback too. Other runtimes ignore this option.
      proxy: false,
      // Bun silently repeats a PUT or DELETE when a kept-alive connection is lost.
      ...(method === 'PUT' || method === 'DELETE' ? { keepalive: false } : {}),
    };
    const response = await fetch(url + path, body === undefined ? init : { ...init, body });
    const text = await response.text();
    return { kind: 'answered', status: response.status, headers: response.headers, text };
  } catch (error) {
    signal?.throwIfAborted();
    return { kind: 'lost', reason: timeout.aborted ? `no answer in ${timeoutMs} ms` : codeOf(error) };
  }
}

/** The code of an error. Its message is left out: it may contain the URL or a header. */
function codeOf(error: unknown): string {
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
  const found = [cause?.code, code].find((each) => typeof each === 'string');
  return String(found ?? 'the connection failed');
}
