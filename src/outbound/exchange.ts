import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { checkServerIdentity } from 'node:tls';
import { LIMITS } from '../domain/limits.ts';
import { type CheckedAddress, familyOf } from './addresses.ts';
import type { OutboundTarget } from './target.ts';

/** What came back, whole. */
export interface OutboundResponse {
  readonly kind: 'answered';
  readonly status: number;
  /** The `Content-Type`, as it came. */
  readonly type: string;
  readonly body: Uint8Array;
}

/** `unconnected`: nobody took the call, so another address may be tried. `broken`: everything else that went wrong. */
export type ExchangeResult =
  | OutboundResponse
  | { readonly kind: 'unconnected' }
  | { readonly kind: 'broken' };

/** What is sent, and how much of the answer is read. */
export interface OutboundRequest {
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly answerBytesMax: number;
  /** A body that is longer, late, cut short or encoded is of no interest: its status counts. Else it is broken. */
  readonly isStatusEnough: boolean;
}

export interface ExchangeOptions {
  /** Certificate authorities in PEM, in place of the runtime's own. */
  readonly ca?: string;
}

/**
 * One request at one address. Ends with `signal` at the latest, and never rejects. An address that has not taken the call
 * after `connectMs` is `unconnected`. It is a GET of JSON unless told otherwise.
 */
export type Exchange = (
  target: OutboundTarget & { readonly headers?: Readonly<Record<string, string>> },
  address: CheckedAddress,
  signal: AbortSignal,
  how?: ExchangeOverrides,
) => Promise<ExchangeResult>;

export interface ExchangeOverrides {
  readonly connectMs?: number | undefined;
  readonly request?: OutboundRequest | undefined;
}

const BROKEN = { kind: 'broken' } as const;
const UNCONNECTED = { kind: 'unconnected' } as const;

/** An answer that is encoded all the same is refused and never inflated: what it would grow to is not ours to find out. */
const HEADERS = {
  'Accept-Encoding': 'identity',
  'User-Agent': 'authrealm',
};

const GET_JSON: OutboundRequest = {
  method: 'GET',
  headers: { Accept: 'application/json' },
  answerBytesMax: LIMITS.outboundBytesMax,
  isStatusEnough: false,
};

/**
 * `node:https` and not `fetch`: fetch sends through the proxies that the environment names. A connection is made for
 * each exchange and kept for none, so no session is resumed whose certificate was checked against another name.
 */
export function openExchange({ ca }: ExchangeOptions = {}): Exchange {
  return async (target, address, signal, { connectMs, request = GET_JSON } = {}) => {
    if (signal.aborted) return BROKEN;
    const { method, body } = request;
    const length = body ? { 'Content-Length': String(body.length) } : {};
    const wanted = {
      method,
      host: address,
      port: target.port,
      path: target.path,
      headers: { ...target.headers, Host: target.authority, ...HEADERS, ...request.headers, ...length },
      agent: false as const,
    };
    const ask = () =>
      target.isTls
        ? requestHttps({ ...wanted, ...identity(target), ...(ca && { ca }) })
        : requestHttp(wanted);
    return perform(ask, request, signal, connectMs);
  };
}

/**
 * The certificate must be the host's, whatever address was dialled. A final dot of a name is no part of it on the wire,
 * and an address is not sent as a server name at all (RFC 6066, 3). Said in full, so that
 * NODE_TLS_REJECT_UNAUTHORIZED changes nothing.
 */
function identity({ host }: OutboundTarget) {
  const name = host.replace(/\.$/, '');
  return {
    servername: familyOf(name) === 0 ? name : '',
    checkServerIdentity: (_dialled: string, certificate: Parameters<typeof checkServerIdentity>[1]) =>
      checkServerIdentity(name, certificate),
    rejectUnauthorized: true,
  };
}

function perform(
  ask: () => ClientRequest,
  request: OutboundRequest,
  signal: AbortSignal,
  connectMs?: number,
): Promise<ExchangeResult> {
  const { promise, resolve } = Promise.withResolvers<ExchangeResult>();
  const sending = ask();
  let broken: ExchangeResult = BROKEN;
  const hangUp = connectMs === undefined ? undefined : setTimeout(() => end(UNCONNECTED), connectMs);
  const end = (result: ExchangeResult): void => {
    clearTimeout(hangUp);
    signal.removeEventListener('abort', giveUp);
    resolve(result);
    sending.destroy();
  };
  const giveUp = (): void => end(broken);
  signal.addEventListener('abort', giveUp);
  sending.on('error', (error: NodeJS.ErrnoException) =>
    end(error.syscall === 'connect' ? UNCONNECTED : broken),
  );
  sending.on('socket', (socket) => socket.once('connect', () => clearTimeout(hangUp)));
  // A switch of protocols ends the request without an error.
  sending.on('close', giveUp);
  // Interim answers may come without end, and are part of no body.
  sending.on('information', () => {
    if ((sending.socket?.bytesRead ?? 0) > request.answerBytesMax) giveUp();
  });
  sending.on('response', (message: IncomingMessage) => {
    sending.off('close', giveUp);
    if (request.isStatusEnough) broken = statusOnly(message);
    readBody(message, request.answerBytesMax, broken, end);
  });
  sending.end(request.body);
  return promise;
}

/** An answer whose body nobody wants to know. */
function statusOnly({ statusCode: status = 0, headers }: IncomingMessage): OutboundResponse {
  return { kind: 'answered', status, type: headers['content-type'] ?? '', body: new Uint8Array() };
}

/** Collects the body up to its bound; what is longer, cut short or encoded is broken, whatever that comes to. */
function readBody(
  message: IncomingMessage,
  bytesMax: number,
  broken: ExchangeResult,
  end: (result: ExchangeResult) => void,
): void {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  message.on('data', (chunk: Uint8Array) => {
    bytes += chunk.length;
    if (bytes > bytesMax) end(broken);
    else chunks.push(chunk);
  });
  message.on('end', () => {
    const { statusCode: status = 0, headers } = message;
    const isPlain = (headers['content-encoding'] ?? 'identity').toLowerCase() === 'identity';
    const type = headers['content-type'] ?? '';
    end(isPlain ? { kind: 'answered', status, type, body: Buffer.concat(chunks) } : broken);
  });
  // Comes after `end`, or alone where the body was cut short.
  message.on('close', () => end(broken));
}
