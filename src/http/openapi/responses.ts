import { z } from 'zod';
import type { ZodOpenApiResponseObject, ZodOpenApiResponsesObject } from 'zod-openapi';
import { FAULTS, type FaultCode, RETRYABLE, TITLES } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import { JSON_TYPE, REQUEST_ID } from '../server/reply.ts';
import { faultExample } from './examples.ts';
import { errorsSchema } from './schemas.ts';

/** Marks additions to the API that authrealm is compatible with (docs/wire.md#versions). */
export const EXTENSION = { 'x-authrealm-extension': true } as const;

/** Error statuses of the API that authrealm is compatible with (docs/wire.md#errors). */
const FAMILY_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 422, 500]);

/** A response header; with an `id`, a shared component. */
export function header(description: string, example: string, id?: string): z.ZodType {
  return headerOf(z.string(), description, example, id);
}

/** A header that may be absent. */
export function optionalHeader(description: string, example: string, id: string): z.ZodType {
  return headerOf(z.string().optional(), description, example, id);
}

/** A header with a fixed value. */
export function fixedHeader(description: string, value: string, id?: string): z.ZodType {
  return headerOf(z.literal(value), description, value, id);
}

function headerOf(schema: z.ZodType, description: string, example: string, id?: string): z.ZodType {
  return schema.meta({ header: { ...EXTENSION, ...(id ? { id } : {}), description, example } });
}

export const HEADERS = {
  requestId: header(
    "The caller's own request ID if it sent a valid one, otherwise a generated one.",
    '5f0c6d7e8a9b4c3d2e1f-1a',
    'request-id',
  ),
  cacheControl: fixedHeader(
    'A cached response must be revalidated before it is used.',
    'private, no-cache',
    'revalidated',
  ),
  vary: header('The request headers that the response depends on (RFC 9110, 12.5.5).', 'Accept', 'vary'),
  contentEncoding: optionalHeader('Present if the content is compressed.', 'gzip', 'content-encoding'),
  noStore: fixedHeader('The response must not be stored.', 'no-store', 'not-stored'),
  retryAfter: fixedHeader('The number of seconds to wait.', '1', 'retry-after'),
} as const;

/** Optional, because a response may also be of a fault without it. */
const challenge = optionalHeader(
  'Why the token was rejected (RFC 6750, 3).',
  'Bearer realm="authrealm", error="invalid_token"',
  'challenge',
);
const retryAfterLimited = header('The number of seconds to wait.', '1', 'retry-after-limited');
const allow = header('The methods of this path (RFC 9110, 10.2.1).', 'GET, HEAD, POST', 'allow');

/** The rate limits and the remaining requests, if limits are set. */
const RATES = {
  'RateLimit-Policy': optionalHeader(
    'The rate limits: `q` requests in `w` seconds (draft-ietf-httpapi-ratelimit-headers).',
    '"address";q=600;w=60, "client";q=6000;w=60',
    'rate-limit-policy',
  ),
  RateLimit: optionalHeader(
    'The remaining requests (`r`), and the seconds until there is one more (`t`).',
    '"address";r=599;t=1, "client";r=5999;t=1',
    'rate-limit',
  ),
};

/** Headers of any response. The request ID is always present. */
export const ALWAYS = { [REQUEST_ID]: HEADERS.requestId, ...RATES };

/** Further headers of single faults. */
const MORE_HEADERS: Readonly<Partial<Record<FaultCode, Record<string, z.ZodType>>>> = {
  unauthenticated: { 'WWW-Authenticate': challenge },
  insufficient_scope: { 'WWW-Authenticate': challenge },
  method_not_allowed: { Allow: allow },
  rate_limited: { 'Retry-After': retryAfterLimited },
};

/** JSON content. */
export function jsonContent(schema: z.ZodType, example: unknown) {
  return { [JSON_TYPE]: { schema, example } };
}

/** Headers of answers: not stored, or revalidated before they are used. */
export const NOT_STORED = { 'Cache-Control': HEADERS.noStore };
export const REVALIDATED = { 'Cache-Control': HEADERS.cacheControl };

/** A success with JSON content. */
export function jsonAnswer(
  description: string,
  headers: Readonly<Record<string, z.ZodType>>,
  schema: z.ZodType,
  example: unknown,
) {
  return { status: 200 as const, description, headers, content: jsonContent(schema, example) };
}

/** Error responses by status. Operations with the same set of codes share a component. */
export type Faults = (...codes: readonly FaultCode[]) => ZodOpenApiResponsesObject;

export function openFaults(): Faults {
  const known = new Map<string, ZodOpenApiResponseObject>();
  return (...codes) => {
    const byStatus = Object.entries(Object.groupBy(codes, (code) => String(FAULTS[code].status)));
    const responses = byStatus.map(([status, same = []]) => {
      const id = same.join('.');
      return [status, known.getOrInsertComputed(id, () => ({ id, ...faultResponse(same) }))];
    });
    return Object.fromEntries(responses);
  };
}

function faultResponse(codes: readonly FaultCode[]): ZodOpenApiResponseObject {
  const [first] = codes as [FaultCode];
  const { status } = FAULTS[first];
  const examples = codes.map((code) => [code, { value: faultExample(code) }]);
  return {
    ...(FAMILY_STATUSES.has(status) ? {} : EXTENSION),
    description: `${TITLES[status]}. ${codes.map((code) => `${code}: ${FAULTS[code].detail}.`).join(' ')}`,
    headers: z.object(Object.assign({ ...ALWAYS }, ...codes.map(headersOf))),
    content: { [JSON_TYPE]: { schema: errorsSchema, examples: Object.fromEntries(examples) } },
  };
}

/** The headers of a fault's response. */
function headersOf(code: FaultCode): Record<string, z.ZodType> {
  return {
    'Cache-Control': HEADERS.noStore,
    ...(RETRYABLE.has(FAULTS[code].status) ? { 'Retry-After': HEADERS.retryAfter } : {}),
    ...MORE_HEADERS[code],
  };
}

/** The runtime answers before the program sees the request. */
const HEADERS_TOO_LARGE: ZodOpenApiResponseObject = {
  description: `Request Header Fields Too Large. Request line and headers exceed ${LIMITS.headerBytesMax} bytes, or there are too many headers. Without a body and a request ID.`,
  headers: z.object({ Connection: fixedHeader('The connection is closed.', 'close') }),
};

/**
 * Responses to unknown paths and methods, and to headers that are too large, as components: they belong to no operation. With a response
 * without a body in each, generators would give every error the type `unknown`.
 */
export function unmatchedResponses(): Record<string, ZodOpenApiResponseObject> {
  const codes = ['unknown_route', 'method_not_allowed'] as const;
  const responses = Object.fromEntries(codes.map((code) => [code, faultResponse([code])]));
  return { ...responses, headers_too_large: HEADERS_TOO_LARGE };
}
