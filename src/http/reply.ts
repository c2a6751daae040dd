import { FAULTS, type FaultCode } from '../domain/fault.ts';

/** Every answer carries it; a reply that serves many calls gets it when it is written. */
export const REQUEST_ID = 'X-Request-Id';

/** An answer before it is written. Functions return it; one function writes it to the socket. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text, or null for an answer without a body. */
  readonly body: string | null;
}

export const JSON_TYPE = 'application/json';

/** The one function that knows the error body (contract 3.5). */
export function errorBody(status: number, title: string, detail: string) {
  return { errors: [{ status: String(status), title, detail }] };
}

/** The answer of a fault. The same bytes every time: nothing of the request is in it. */
function replyOf(code: FaultCode): Reply {
  const { status, title, detail } = FAULTS[code];
  const retry: Record<string, string> = status === 503 ? { 'Retry-After': '1' } : {};
  return Object.freeze({
    status,
    headers: Object.freeze({ 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store', ...retry }),
    body: JSON.stringify(errorBody(status, title, detail)),
  });
}

const REPLIES = new Map<FaultCode, Reply>(
  (Object.keys(FAULTS) as FaultCode[]).map((code) => [code, replyOf(code)]),
);

export function faultReply(code: FaultCode, headers?: Readonly<Record<string, string>>): Reply {
  const reply = REPLIES.get(code) ?? replyOf('internal');
  return headers ? { ...reply, headers: { ...reply.headers, ...headers } } : reply;
}

/** A document of ours, the same for everyone. */
export function documentReply(document: object, cacheControl: string): Reply {
  const headers = { 'Content-Type': JSON_TYPE, 'Cache-Control': cacheControl };
  return Object.freeze({ status: 200, headers: Object.freeze(headers), body: JSON.stringify(document) });
}
