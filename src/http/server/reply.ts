import {
  FAULTS,
  type Fault,
  type FaultCode,
  type FieldError,
  type GrantFaultCode,
  OVERLOAD_CAUSES,
} from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';

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
}

export const JSON_TYPE = 'application/json';

/** One error of an error body (docs/wire.md#errors). */
interface ErrorEntry {
  readonly status: string;
  readonly title: string;
  readonly detail: string;
  /** The source of the error: a JSON pointer into the body, or a query parameter. */
  readonly source?: { readonly pointer: string } | { readonly parameter: string };
  /** The cursor that a reader with an expired one can continue from. */
  readonly meta?: { readonly oldest_cursor: string };
}

/** The one function that makes error bodies (docs/wire.md#errors). */
export function errorBody(status: number, title: string, detail: string): { errors: readonly ErrorEntry[] } {
  return { errors: [{ status: String(status), title, detail }] };
}

function headersOf(code: FaultCode): Readonly<Record<string, string>> {
  const retry: Record<string, string> = FAULTS[code].isRetryable ? { 'Retry-After': '1' } : {};
  return Object.freeze({ 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store', ...retry });
}

/** The reply of a fault without field errors: always the same bytes. */
function plainReply(code: FaultCode, detail: string = FAULTS[code].detail): Reply {
  const { status, title } = FAULTS[code];
  return Object.freeze({
    status,
    headers: headersOf(code),
    body: JSON.stringify(errorBody(status, title, detail)),
    fault: code,
  });
}

const REPLIES = new Map<FaultCode, Reply>(
  (Object.keys(FAULTS) as FaultCode[]).map((code) => [code, plainReply(code)]),
);

export function faultReply(code: FaultCode, headers?: Readonly<Record<string, string>>): Reply {
  const reply = REPLIES.get(code) ?? plainReply('internal');
  return headers ? { ...reply, headers: { ...reply.headers, ...headers } } : reply;
}

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
  const { status, title, source } = FAULTS[code];
  if (source === undefined || fieldErrors.length === 0) return faultReply(code);
  if (source === 'dependency') return dependenciesReply(code, fieldErrors);
  const errors = fieldErrors.slice(0, LIMITS.fieldErrorsMax).map(
    (fieldError): ErrorEntry => ({
      status: String(status),
      title,
      detail: detailOf(code, fieldError),
      source:
        source === 'pointer' ? { pointer: pointerTo(fieldError.field) } : { parameter: fieldError.field },
    }),
  );
  return { status, headers: headersOf(code), body: JSON.stringify({ errors }), fault: code };
}

/** The reply of the readiness check: the error and the state of each dependency. */
function dependenciesReply(code: FaultCode, fieldErrors: readonly FieldError[]): Reply {
  const { status, title, detail } = FAULTS[code];
  const dependencies = Object.fromEntries(fieldErrors.map(({ field, rule }) => [field, rule]));
  const body = { ...errorBody(status, title, detail), dependencies };
  return { status, headers: headersOf(code), body: JSON.stringify(body), fault: code };
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
export function expiredCursorReply(oldest: string, parameter: 'after' | 'before'): Reply {
  const { status, title, detail } = FAULTS.expired_cursor;
  const error: ErrorEntry = {
    status: String(status),
    title,
    detail,
    source: { parameter },
    meta: { oldest_cursor: oldest },
  };
  return { status, headers: headersOf('expired_cursor'), body: JSON.stringify({ errors: [error] }) };
}

/** A document that is the same for every caller. */
export function documentReply(document: object, cacheControl: string): Reply {
  const headers = { 'Content-Type': JSON_TYPE, 'Cache-Control': cacheControl };
  return Object.freeze({ status: 200, headers: Object.freeze(headers), body: JSON.stringify(document) });
}
