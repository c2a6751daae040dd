/** What speaks HTTP: `fetch`, or something that behaves like it. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface Question {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below the URL of the service, query included. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What came of one attempt. Of a lost one nobody knows whether it was carried out. */
export type Outcome =
  | { readonly kind: 'answered'; readonly status: number; readonly headers: Headers; readonly text: string }
  | { readonly kind: 'lost'; readonly reason: string };

export interface Timing {
  readonly timeoutMs: number;
  /** The caller's own. */
  readonly signal: AbortSignal | undefined;
}

const SILENTLY_REPEATED: ReadonlySet<string> = new Set(['PUT', 'DELETE']);

/**
 * Sends a request once and reads the whole answer, within `timeoutMs`. Rejects only where the caller's signal says so,
 * and with its reason.
 */
export async function attempt(
  fetch: Fetch,
  url: string,
  { method, path, headers, body }: Question,
  { timeoutMs, signal }: Timing,
): Promise<Outcome> {
  signal?.throwIfAborted();
  const own = new AbortController();
  const timer = setTimeout(() => own.abort(), timeoutMs);
  const follow = () => own.abort();
  signal?.addEventListener('abort', follow, { once: true });
  try {
    const init: RequestInit & { readonly proxy: false } = {
      method,
      headers,
      signal: own.signal,
      // A redirect is answered as it is: the token goes to the service that was named, and nowhere else.
      redirect: 'manual',
      // Bun sends through HTTP_PROXY and the like, to loopback as well, unless told not to. Others ignore the word.
      proxy: false,
      // Bun sends a PUT or DELETE again by itself where a connection that was kept open is lost, and does not tell.
      ...(SILENTLY_REPEATED.has(method) ? { keepalive: false } : {}),
    };
    const response = await fetch(url + path, body === undefined ? init : { ...init, body });
    const text = await response.text();
    return { kind: 'answered', status: response.status, headers: response.headers, text };
  } catch (error) {
    signal?.throwIfAborted();
    return { kind: 'lost', reason: own.signal.aborted ? `no answer in ${timeoutMs} ms` : codeOf(error) };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', follow);
  }
}

/** The code of a failure. Its message is left out: it may hold the whole address, or a header. */
function codeOf(error: unknown): string {
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
  const found = [cause?.code, code].find((each) => typeof each === 'string');
  return String(found ?? 'the connection failed');
}
