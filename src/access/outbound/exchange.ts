import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { checkServerIdentity } from 'node:tls';
import { ipFamily } from '../../model/ip_address.ts';
import { LIMITS } from '../../model/limits.ts';
import type { CheckedAddress } from './addresses.ts';
import type { OutboundTarget } from './target.ts';

export interface OutboundResponse {
  readonly kind: 'answered';
  readonly status: number;
  readonly type: string;
  readonly body: Uint8Array;
}

/** `unconnected`: the connection failed, so another address may be tried. `broken`: any other failure. */
type ExchangeResult = OutboundResponse | { readonly kind: 'unconnected' } | { readonly kind: 'broken' };

/** A request, and how much of the response is read. */
export interface OutboundRequest {
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | undefined;
  readonly answerBytesMax: number;
  /** The status alone counts if the body is too long, late, cut short or encoded; otherwise such a response is `broken`. */
  readonly isStatusEnough: boolean;
}

export interface ExchangeOptions {
  /** Certificate authorities in PEM; default: those of the runtime. */
  readonly ca?: string;
}

/**
 * Sends one request to one address. Ends at `signal`, and never rejects. `unconnected` if there is no connection after
 * `connectMs`. Default request: a GET of JSON.
 */
export type Exchange = (
  target: OutboundTarget & { readonly headers?: Readonly<Record<string, string>> },
  address: CheckedAddress,
  signal: AbortSignal,
  overrides?: { readonly connectMs?: number | undefined; readonly request?: OutboundRequest | undefined },
) => Promise<ExchangeResult>;

const BROKEN = { kind: 'broken' } as const;
const UNCONNECTED = { kind: 'unconnected' } as const;

/** A response that is encoded anyway is rejected and never decompressed: its size is unknown. */
const HEADERS = { 'Accept-Encoding': 'identity', 'User-Agent': 'authrealm' };

const GET_JSON: OutboundRequest = {
  method: 'GET',
  headers: { Accept: 'application/json' },
  answerBytesMax: LIMITS.outboundBytesMax,
  isStatusEnough: false,
};

/**
 * Uses `node:https` because `fetch` uses the proxies of the environment. Each exchange has a new connection, so that no TLS
 * session is resumed whose certificate was checked against another name.
 */
export function openExchange({ ca }: ExchangeOptions = {}): Exchange {
  return async (target, address, signal, { connectMs, request = GET_JSON } = {}) => {
    if (signal.aborted) return BROKEN;
    const { method, body } = request;
    const length = body ? { 'Content-Length': String(body.length) } : {};
    const options = {
      method,
      host: address,
      port: target.port,
      path: target.path,
      headers: { ...target.headers, Host: target.authority, ...HEADERS, ...request.headers, ...length },
      agent: false as const,
    };
    const open = () =>
      target.isTls
        ? requestHttps({ ...options, ...identity(target), ...(ca && { ca }) })
        : requestHttp(options);
    return perform(open, request, signal, connectMs);
  };
}

/**
 * The certificate must be that of the host, whatever address is connected to. The server name has no final dot, and is
 * empty for an IP address (RFC 6066, 3). All options are explicit, so that NODE_TLS_REJECT_UNAUTHORIZED has no effect.
 */
function identity({ host }: OutboundTarget) {
  const name = host.replace(/\.$/, '');
  return {
    servername: ipFamily(name) === undefined ? name : '',
    checkServerIdentity: (_address: string, certificate: Parameters<typeof checkServerIdentity>[1]) =>
      checkServerIdentity(name, certificate),
    rejectUnauthorized: true,
  };
}

function perform(
  open: () => ClientRequest,
  request: OutboundRequest,
  signal: AbortSignal,
  connectMs?: number,
): Promise<ExchangeResult> {
  const { promise, resolve } = Promise.withResolvers<ExchangeResult>();
  const sending = open();
  let broken: ExchangeResult = BROKEN;
  const connectTimer = connectMs === undefined ? undefined : setTimeout(() => end(UNCONNECTED), connectMs);
  const end = (result: ExchangeResult): void => {
    clearTimeout(connectTimer);
    signal.removeEventListener('abort', abort);
    resolve(result);
    sending.destroy();
  };
  const abort = (): void => end(broken);
  signal.addEventListener('abort', abort);
  sending.on('error', (error: NodeJS.ErrnoException) =>
    end(error.syscall === 'connect' ? UNCONNECTED : broken),
  );
  sending.on('socket', (socket) => socket.once('connect', () => clearTimeout(connectTimer)));
  // A protocol upgrade ends the request without an error.
  sending.on('close', abort);
  // Informational responses can continue forever, and belong to no body.
  sending.on('information', () => {
    if ((sending.socket?.bytesRead ?? 0) > request.answerBytesMax) abort();
  });
  sending.on('response', (message: IncomingMessage) => {
    sending.off('close', abort);
    if (request.isStatusEnough) broken = statusOnly(message);
    readBody(message, request.answerBytesMax, broken, end);
  });
  sending.end(request.body);
  return promise;
}

function statusOnly({ statusCode: status = 0, headers }: IncomingMessage): OutboundResponse {
  return { kind: 'answered', status, type: headers['content-type'] ?? '', body: new Uint8Array() };
}

/** Reads the body up to its bound. One that is longer, cut short or encoded ends with `broken`. */
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
    const isPlain = (message.headers['content-encoding'] ?? 'identity').toLowerCase() === 'identity';
    end(isPlain ? { ...statusOnly(message), body: Buffer.concat(chunks) } : broken);
  });
  // Emitted after `end`, or alone if the body was cut short.
  message.on('close', () => end(broken));
}
