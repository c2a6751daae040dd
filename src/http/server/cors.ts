import type { Method } from './router.ts';

/**
 * Clients of the API send headers that nobody has a list of (docs/wire.md#request-headers). Without credentials `*` is every header but
 * Authorization (Fetch, CORS-preflight fetch).
 */
const REQUEST_HEADERS = '*, Authorization';
const EXPOSED_HEADERS =
  'Authrealm-Device, ETag, Location, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id';
const PREFLIGHT_SECONDS = '600';

/** The CORS headers of responses. */
export function openCors(origins: readonly string[]) {
  const listed = new Set(origins);
  const varied = Object.freeze({ Vary: 'Origin' });
  return {
    /** For a response to this origin: exact match only, never `*`. */
    headersFor(origin: string | null): Readonly<Record<string, string>> {
      if (origin === null || !listed.has(origin)) return varied;
      return {
        ...varied,
        'Access-Control-Allow-Origin': origin,
        'Access-Control-Expose-Headers': EXPOSED_HEADERS,
      };
    },
    /** In addition, for the response to a preflight; undefined if the request is not one, or its origin is not listed. */
    preflight(request: Request, allowed: readonly Method[]): Readonly<Record<string, string>> | undefined {
      const origin = request.headers.get('origin');
      if (request.method !== 'OPTIONS' || origin === null || !listed.has(origin)) return undefined;
      if (!request.headers.has('access-control-request-method')) return undefined;
      return {
        'Access-Control-Allow-Methods': allowed.join(', '),
        'Access-Control-Allow-Headers': REQUEST_HEADERS,
        'Access-Control-Max-Age': PREFLIGHT_SECONDS,
      };
    },
  };
}
