import {
  type Complaint,
  FAULTS,
  type Fault,
  type FaultCode,
  type GrantFaultCode,
} from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';

/** Every answer carries it; a reply that serves many calls gets it when it is written. */
export const REQUEST_ID = 'X-Request-Id';

/** An answer before it is written. Functions return it; one function writes it to the socket. */
export interface Reply {
  readonly status: number;
  /** One that is made for a single call has its request ID among them; what every answer tells is added to these. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text, null for an answer without a body, bytes of a file, or a stream that goes on after the answer was begun. */
  readonly body: string | null | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
  /** What is answered instead of success; for whoever counts. */
  readonly fault?: FaultCode | GrantFaultCode;
}

export const JSON_TYPE = 'application/json';

/** One error of the family's error body (contract 3.5). */
interface ErrorEntry {
  readonly status: string;
  readonly title: string;
  readonly detail: string;
  /** What the error is about: a JSON pointer into the body, or a parameter of the query. */
  readonly source?: { readonly pointer: string } | { readonly parameter: string };
  /** Where a reader whose place is gone may go on. */
  readonly meta?: { readonly oldest_cursor: string };
}

/** The one function that knows the error body (contract 3.5). */
export function errorBody(status: number, title: string, detail: string): { errors: readonly ErrorEntry[] } {
  return { errors: [{ status: String(status), title, detail }] };
}

function headersOf(code: FaultCode): Readonly<Record<string, string>> {
  const retry: Record<string, string> = FAULTS[code].isRetryable ? { 'Retry-After': '1' } : {};
  return Object.freeze({ 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store', ...retry });
}

/** The answer of a fault without complaints. The same bytes every time: nothing of the request is in it. */
function plainReply(code: FaultCode): Reply {
  const { status, title, detail } = FAULTS[code];
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

/** What is answered where work would wait for too long. It costs next to nothing, because there is much of it. */
export const OVERLOADED: Reply = Object.freeze({ ...faultReply('overloaded') });

/** The answer of a fault: one error for each complaint, with the member or parameter it is about. */
export function replyOf({ code, complaints }: Fault): Reply {
  const { status, title, source } = FAULTS[code];
  if (source === undefined || complaints.length === 0) return faultReply(code);
  if (source === 'dependency') return dependenciesReply(code, complaints);
  const errors = complaints.slice(0, LIMITS.complaintsMax).map(
    (complaint): ErrorEntry => ({
      status: String(status),
      title,
      detail: detailOf(code, complaint),
      source: source === 'pointer' ? { pointer: pointerTo(complaint.field) } : { parameter: complaint.field },
    }),
  );
  return { status, headers: headersOf(code), body: JSON.stringify({ errors }), fault: code };
}

/** The answer of readiness: beside the error, what of each dependency can be said. */
function dependenciesReply(code: FaultCode, complaints: readonly Complaint[]): Reply {
  const { status, title, detail } = FAULTS[code];
  const dependencies = Object.fromEntries(complaints.map(({ field, rule }) => [field, rule]));
  const body = { ...errorBody(status, title, detail), dependencies };
  return { status, headers: headersOf(code), body: JSON.stringify(body), fault: code };
}

/** Clients of the family know how a filter is refused (contract 3.4). */
function detailOf(code: FaultCode, { field, rule }: Complaint): string {
  return code === 'malformed_filter' ? `${FAULTS[code].detail}: ${rule}` : `${field}: ${rule}`;
}

/** A pointer into the body (RFC 6901); the empty one is the whole of it. */
function pointerTo(field: string): string {
  return field === 'body' ? '' : `/${field.replaceAll('.', '/')}`;
}

/** The answer to a cursor whose place is gone: it names the one before all that is kept. */
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

/** A document of ours, the same for everyone. */
export function documentReply(document: object, cacheControl: string): Reply {
  const headers = { 'Content-Type': JSON_TYPE, 'Cache-Control': cacheControl };
  return Object.freeze({ status: 200, headers: Object.freeze(headers), body: JSON.stringify(document) });
}
