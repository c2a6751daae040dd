import type { z } from 'zod';
import {
  FAULTS,
  type Fault,
  type FaultCode,
  type FieldError,
  GRANT_FAULTS,
  type GrantFaultCode,
  OVERLOAD_CAUSES,
  RETRYABLE,
  TITLES,
} from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import type { errorsShape } from '../openapi/schemas.ts';

/** On every response; added to a shared reply when it is written. */
export const REQUEST_ID = 'X-Request-Id';

/** A response before it is written. One function writes replies to the socket. */
export interface Reply {
  readonly status: number;
  /** A reply made for a single call contains its request ID; headers of every response are added to these. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text, null for no body, bytes of a file, or a stream. */
  readonly body: string | null | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
  /** The code of an error reply, for metrics. */
  readonly fault?: FaultCode | GrantFaultCode;
  /** Rejects with what ended the stream early, for the log. */
  readonly streamed?: Promise<unknown>;
}

export const JSON_TYPE = 'application/json';
export const NDJSON_TYPE = 'application/x-ndjson';

/** One error of an error body (docs/wire.md#errors). */
type ErrorEntry = z.output<typeof errorsShape.errors>[number];

/** The one function that makes errors of bodies (docs/wire.md#errors). */
export function errorEntry(code: FaultCode | GrantFaultCode, detail: string): ErrorEntry {
  const status = code in FAULTS ? FAULTS[code as FaultCode].status : GRANT_FAULTS[code as GrantFaultCode];
  return { status: String(status), title: TITLES[status], detail, code };
}

function errorReply(code: FaultCode, errors: readonly ErrorEntry[], more?: object): Reply {
  const { status } = FAULTS[code];
  const retry: Record<string, string> = RETRYABLE.has(status) ? { 'Retry-After': '1' } : {};
  const headers = Object.freeze({ 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store', ...retry });
  return Object.freeze({ status, headers, body: JSON.stringify({ errors, ...more }), fault: code });
}

/** The reply of a fault without field errors: always the same bytes. */
function plainReply(code: FaultCode, detail: string = FAULTS[code].detail): Reply {
  return errorReply(code, [errorEntry(code, detail)]);
}

const REPLIES = Object.fromEntries(
  (Object.keys(FAULTS) as FaultCode[]).map((code) => [code, plainReply(code)]),
) as Record<FaultCode, Reply>;

/** `missing` follows the detail, which clients know. */
export function faultReply(
  code: FaultCode,
  headers?: Readonly<Record<string, string>>,
  missing?: string,
): Reply {
  const reply =
    missing === undefined ? REPLIES[code] : plainReply(code, `${FAULTS[code].detail}: ${missing}`);
  return headers ? { ...reply, headers: { ...reply.headers, ...headers } } : reply;
}

/** One reply for everything that is absent for this caller (docs/wire.md#absence). */
export const NOT_FOUND_REPLY = faultReply('not_found');

/** The shared reply to shed load, which must be cheap. */
export const OVERLOADED: Reply = Object.freeze({ ...faultReply('overloaded') });

/** The replies to work that was rejected or given up, each with its cause. */
const OVERLOAD_REPLIES = new Map<unknown, Reply>(
  Object.entries(OVERLOAD_CAUSES).map(([cause, detail]) => [cause, plainReply('overloaded', detail)]),
);

/** The reply of a fault: one entry for each field error, with its member or parameter. */
export function replyOf({ code, fieldErrors, cause }: Fault): Reply {
  if (code === 'overloaded') {
    return OVERLOAD_REPLIES.get((cause as { code?: unknown } | undefined)?.code) ?? OVERLOADED;
  }
  const { detail, source } = FAULTS[code];
  const [first] = fieldErrors;
  if (!source || !first) return first?.detail ? plainReply(code, first.detail) : faultReply(code);
  if (source === 'dependency') {
    const dependencies = Object.fromEntries(fieldErrors.map(({ field, rule }) => [field, rule]));
    return errorReply(code, [errorEntry(code, detail)], { dependencies });
  }
  const errors = fieldErrors.slice(0, LIMITS.fieldErrorsMax).map((fieldError) => ({
    ...errorEntry(code, detailOf(code, fieldError)),
    source: source === 'pointer' ? { pointer: pointerTo(fieldError.field) } : { parameter: fieldError.field },
  }));
  return errorReply(code, errors);
}

/** Clients compare the detail of a rejected filter (docs/wire.md#filters). */
function detailOf(code: FaultCode, { field, rule, detail = `${field}: ${rule}` }: FieldError): string {
  return code === 'malformed_filter' ? `${FAULTS[code].detail}: ${rule}` : detail;
}

/** A JSON pointer (RFC 6901); the empty one points to the whole body. */
function pointerTo(field: string): string {
  return field === 'body' ? '' : `/${field.replaceAll('.', '/')}`;
}

/** The reply to an expired cursor: it names the oldest valid one. */
export function expiredCursorReply(oldest: string): Reply {
  const code = 'expired_cursor';
  const error = errorEntry(code, FAULTS[code].detail);
  return errorReply(code, [{ ...error, source: { parameter: 'after' }, meta: { oldest_cursor: oldest } }]);
}

/** A success without a body. */
export const DONE: Reply = Object.freeze({ status: 204, headers: Object.freeze({}), body: null });

/** The same, of what no cache may store. */
export const NO_CONTENT: Reply = Object.freeze({
  ...DONE,
  headers: Object.freeze({ 'Cache-Control': 'no-store' }),
});

/** A JSON document. */
export function documentReply(document: object, cacheControl: string): Reply {
  const headers = { 'Content-Type': JSON_TYPE, 'Cache-Control': cacheControl };
  return Object.freeze({ status: 200, headers: Object.freeze(headers), body: JSON.stringify(document) });
}
