import { z } from 'zod';
import type { ZodOpenApiResponseObject, ZodOpenApiResponsesObject } from 'zod-openapi';
import { FAULTS, type FaultCode } from '../../domain/fault.ts';
import { JSON_TYPE, REQUEST_ID } from '../server/reply.ts';
import { faultExample } from './examples.ts';
import { errorsSchema } from './schemas.ts';

/** What the family does not have (contract 8, row 48). */
export const EXTENSION = { 'x-authrealm-extension': true } as const;

/** Error statuses of the API that authrealm is compatible with (contract 3.5). */
const FAMILY_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 422, 500]);

/** A header of an answer; with a name, a component of it. */
export function header(description: string, example: string, id?: string) {
  return z.string().meta({ header: { ...EXTENSION, ...(id ? { id } : {}), description, example } });
}

/** One that need not be there. */
function optionalHeader(description: string, example: string, id: string) {
  return z
    .string()
    .optional()
    .meta({ header: { ...EXTENSION, id, description, example } });
}

/** A header that always says the same. */
export function fixedHeader(description: string, value: string, id?: string) {
  return z
    .literal(value)
    .meta({ header: { ...EXTENSION, ...(id ? { id } : {}), description, example: value } });
}

export const HEADERS = {
  requestId: header(
    "The caller's own, if it sent a plain one, else minted.",
    '5f0c6d7e8a9b4c3d2e1f-1a',
    'request-id',
  ),
  cacheControl: fixedHeader('Ask again before you use it again.', 'private, no-cache', 'revalidated'),
  noStore: fixedHeader('Keep nothing of it.', 'no-store', 'not-stored'),
  retryAfter: fixedHeader('Seconds.', '1', 'retry-after'),
} as const;

const challenge = header(
  'What the token lacks (RFC 6750, 3).',
  'Bearer realm="authrealm", error="invalid_token"',
  'challenge',
);
const retryAfterLimited = header('Seconds.', '1', 'retry-after-limited');
const allow = header('The methods of this path (RFC 9110, 10.2.1).', 'GET, HEAD, POST', 'allow');

/** Where rates are limited, what each of them is and what is left of it. */
const RATES = {
  'RateLimit-Policy': optionalHeader(
    'How many requests may come at once, and again in so many seconds (draft-ietf-httpapi-ratelimit-headers).',
    '"address";q=600;w=60, "client";q=6000;w=60',
    'rate-limit-policy',
  ),
  RateLimit: optionalHeader(
    'How many more may come now, and in how many seconds there is one more.',
    '"address";r=599;t=1, "client";r=5999;t=1',
    'rate-limit',
  ),
};

/** Any answer of the program may have them; the first is on every one. */
export const ALWAYS = { [REQUEST_ID]: HEADERS.requestId, ...RATES };

/** Headers of one fault beside those of all. */
const MORE_HEADERS: Readonly<Partial<Record<FaultCode, Record<string, z.ZodType>>>> = {
  unauthenticated: { 'WWW-Authenticate': challenge },
  insufficient_scope: { 'WWW-Authenticate': challenge },
  method_not_allowed: { Allow: allow },
  rate_limited: { 'Retry-After': retryAfterLimited },
};

/** An answer in JSON. */
export function jsonContent(schema: z.ZodType, example: unknown) {
  return { [JSON_TYPE]: { schema, example } };
}

/** The answers of faults by status. Operations that share a set of codes share the component. */
export type Faults = (...codes: readonly FaultCode[]) => ZodOpenApiResponsesObject;

export function openFaults(): Faults {
  const known = new Map<string, ZodOpenApiResponseObject>();
  return (...codes) => {
    const byStatus = Object.entries(Object.groupBy(codes, (code) => String(FAULTS[code].status)));
    const responses = byStatus.map(([status, same = []]) => {
      const id = same.join('.');
      const response = known.get(id) ?? { id, ...faultResponse(same) };
      known.set(id, response);
      return [status, response];
    });
    return Object.fromEntries(responses);
  };
}

function faultResponse(codes: readonly FaultCode[]): ZodOpenApiResponseObject {
  const [first] = codes as [FaultCode];
  const { status, title } = FAULTS[first];
  const headers = headersOfAny(codes.map(headersOf));
  const examples = codes.map((code) => [code, { value: faultExample(code) }]);
  return {
    ...(FAMILY_STATUSES.has(status) ? {} : EXTENSION),
    description: `${title}. ${codes.map((code) => `${code}: ${FAULTS[code].detail}.`).join(' ')}`,
    headers: z.object({ ...ALWAYS, ...headers }),
    content: { [JSON_TYPE]: { schema: errorsSchema, examples: Object.fromEntries(examples) } },
  };
}

/** What stands beside one of several faults alone need not be there. */
function headersOfAny(all: readonly Record<string, z.ZodType>[]): Record<string, z.ZodType> {
  const merged: Record<string, z.ZodType> = Object.assign({}, ...all);
  return Object.fromEntries(
    Object.entries(merged).map(([name, schema]) => {
      const isOnEach = all.every((headers) => name in headers);
      return [name, isOnEach ? schema : schema.optional().meta(withoutId(schema.meta()))];
    }),
  );
}

/** The same notes under no name among the components, where the header is one that is always there. */
function withoutId(meta: Record<string, unknown> = {}): Record<string, unknown> {
  const { id: _, ...header } = meta.header as Record<string, unknown>;
  return { ...meta, header };
}

/** As the reply of the fault has them. */
function headersOf(code: FaultCode): Record<string, z.ZodType> {
  return {
    'Cache-Control': HEADERS.noStore,
    ...(FAULTS[code].isRetryable ? { 'Retry-After': HEADERS.retryAfter } : {}),
    ...MORE_HEADERS[code],
  };
}

/** The answers to what is no operation: kept as components, for every client meets them. */
export function unmatchedResponses(): Record<string, ZodOpenApiResponseObject> {
  const codes = ['unknown_route', 'method_not_allowed'] as const;
  return Object.fromEntries(codes.map((code) => [code, faultResponse([code])]));
}
