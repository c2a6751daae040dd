import { connect, createServer as createPlainServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import type { CheckedAddress } from '../../src/access/outbound/addresses.ts';
import { type Exchange, openExchange } from '../../src/access/outbound/exchange.ts';
import {
  type FetchOptions,
  type GuardedFetchOptions,
  openGuardedFetch,
} from '../../src/access/outbound/guarded_fetch.ts';
import {
  type PrivateTarget,
  parsePrivateTarget,
  type TargetRules,
} from '../../src/access/outbound/target.ts';
import { atEnd } from './ending.ts';
import { startCommand } from './processes.ts';

/** The only name in the certificate below. */
export const PROVIDER_NAME = 'login.example.com';

/** A public address to which no test connects. */
export const PUBLIC_ADDRESS = '93.184.216.34';
export const PROVIDER_URL = `https://${PROVIDER_NAME}/doc?x=1`;

/** Results of a fetch. */
export const UNREACHABLE = { kind: 'unreachable' } as const;
export const FORBIDDEN = { kind: 'forbidden' } as const;
export const REDIRECT = { kind: 'redirect' } as const;
export const NOT_JSON = { kind: 'not_json' } as const;
export const DOCUMENT = { kind: 'document', document: { a: 1 } } as const;

/** The entries of `--allow-private`. */
export const privateTargets = (...entries: readonly string[]): readonly PrivateTarget[] =>
  entries.map((entry) => {
    const target = parsePrivateTarget(entry);
    if (target === undefined) throw new Error(`no target ${entry}`);
    return target;
  });

/** The rules of a service on loopback that may send requests to this machine. */
export const LOOPBACK_RULES: TargetRules = {
  allowPrivate: privateTargets('localhost', '127.0.0.0/8'),
  allowHttp: true,
};

/** Self-signed, valid until 2126. The key protects nothing. */
export const PROVIDER_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBrDCCAVOgAwIBAgIUIXIORbHpU4/igOs8Spv3gdRbXkowCgYIKoZIzj0EAwIw
HDEaMBgGA1UEAwwRbG9naW4uZXhhbXBsZS5jb20wIBcNMjYxMTIxMDc1NjA3WhgP
MjEyNjEwMjgwNzU2MDdaMBwxGjAYBgNVBAMMEWxvZ2luLmV4YW1wbGUuY29tMFkw
EwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAExser+/b4fBXiVapdmcQo9DpAh14hljW4
Z1DCSyGMo1Sd/iYniUTCwR/T+WciRObStZGMJBVhoCsKyG9I4b6/p6NxMG8wHQYD
VR0OBBYEFP6vlzzEEIx3Mw09Pga00fpZ5DpXMB8GA1UdIwQYMBaAFP6vlzzEEIx3
Mw09Pga00fpZ5DpXMA8GA1UdEwEB/wQFMAMBAf8wHAYDVR0RBBUwE4IRbG9naW4u
ZXhhbXBsZS5jb20wCgYIKoZIzj0EAwIDRwAwRAIgOTBo3TfK1qhVVS6NmwEbJVhi
LFTSb4SqcbqO7OU25QECIBokgeKPHVJevlBbXgDRx33diUB33tXHewEfCWCQOzML
-----END CERTIFICATE-----
`;

const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgBGSyx/MwysGAyBbw
1aYvRD1xSG4HdDZKeqEDis//SwqhRANCAATGx6v79vh8FeJVql2ZxCj0OkCHXiGW
NbhnUMJLIYyjVJ3+JieJRMLBH9P5ZyJE5tK1kYwkFWGgKwrIb0jhvr+n
-----END PRIVATE KEY-----
`;

/** A request as a server received it. */
export interface ServedRequest {
  /** The server name in the TLS handshake; false where none was sent. */
  readonly serverName: string | false | null | undefined;
  readonly head: string;
}

/** A server that writes raw bytes, so that its responses can be invalid. */
export interface RawServer {
  readonly port: number;
  readonly requests: readonly ServedRequest[];
  readonly connections: () => number;
  /** Resolves when the first connection has ended. */
  readonly ended: Promise<void>;
  stop(): void;
}

export type SocketHandler = (socket: Socket) => void;

/** A TLS server on loopback, by default with the certificate of `PROVIDER_NAME`. */
export function serveTls(
  answer: SocketHandler,
  pair = { cert: PROVIDER_CERTIFICATE, key: KEY },
): Promise<RawServer> {
  const server = createTlsServer(pair);
  server.on('tlsClientError', () => undefined);
  return listen(server, 'secureConnection', answer);
}

/** A TCP server on loopback. */
export function servePlain(answer: SocketHandler, host = '127.0.0.1'): Promise<RawServer> {
  return listen(createPlainServer(), 'connection', answer, host);
}

async function listen(
  server: Server,
  event: string,
  answer: SocketHandler,
  host = '127.0.0.1',
): Promise<RawServer> {
  const requests: ServedRequest[] = [];
  const open = new Set<Socket>();
  const ended = Promise.withResolvers<void>();
  let connections = 0;
  server.on(event, (socket: Socket & Partial<TLSSocket>) => {
    connections += 1;
    open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      open.delete(socket);
      ended.resolve();
    });
    socket.once('data', (head) => {
      requests.push({ serverName: socket.servername, head: head.toString('latin1') });
      answer(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const stop = () => {
    for (const socket of open) socket.destroy();
    server.close();
  };
  atEnd(stop);
  const { port } = server.address() as { port: number };
  return { port, requests, connections: () => connections, ended: ended.promise, stop };
}

/** A complete response: status line, `Content-Type`, `Content-Length`, these headers, body. */
export function httpResponse(
  status: string,
  body: string | Uint8Array,
  headers: Record<string, string> = {},
): SocketHandler {
  const bytes = Buffer.from(body);
  const all = { 'Content-Type': 'application/json', 'Content-Length': String(bytes.length), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = Buffer.from(`HTTP/1.1 ${status}\r\n${lines.join('')}Connection: close\r\n\r\n`);
  return (socket) => socket.end(Buffer.concat([head, bytes]));
}

/** Writes `head`, then `piece` for as long as it is read. `count` returns the number of bytes written. */
export function endlessResponse(
  head: string,
  piece: string,
): { readonly answer: SocketHandler; readonly count: () => number } {
  let written = 0;
  const pump = (socket: Socket): void => {
    while (!socket.destroyed && written < 104_857_600) {
      written += piece.length;
      if (!socket.write(piece)) {
        socket.once('drain', () => pump(socket));
        return;
      }
    }
  };
  return {
    count: () => written,
    answer: (socket) => {
      socket.write(head);
      pump(socket);
    },
  };
}

export interface RecordedExchange {
  readonly exchange: Exchange;
  /** The addresses to which a connection was requested. */
  readonly addresses: readonly string[];
}

/** The real exchange, with connections redirected from the checked address to a port of loopback. */
export function exchangeThrough(port: number, ca: string = PROVIDER_CERTIFICATE): RecordedExchange {
  const addresses: string[] = [];
  const exchange = openExchange({ ca });
  return {
    addresses,
    exchange: (target, address, signal, { request } = {}) => {
      addresses.push(address);
      return exchange({ ...target, port }, '127.0.0.1' as CheckedAddress, signal, { request });
    },
  };
}

/** Fetches from the name of the provider, with connections redirected to `server`. */
export function fetchThrough(server: RawServer, options: GuardedFetchOptions = {}) {
  const { exchange, addresses } = exchangeThrough(server.port);
  const fetchDocument = openGuardedFetch({ resolve: async () => [PUBLIC_ADDRESS], exchange, ...options });
  return { addresses, fetch: (url = PROVIDER_URL, request?: FetchOptions) => fetchDocument(url, request) };
}

/** A port that accepts no connection: its listener is stopped and full, so the system drops new ones. */
export async function openSilentPort(): Promise<{ readonly port: number; stop(): void }> {
  const listening = `const s = require('node:net').createServer();
    s.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => console.log(s.address().port));`;
  const child = startCommand([process.execPath, '-e', listening]);
  const port = Number(await child.line(/^\d+$/));
  child.process.kill('SIGSTOP');
  const sockets: Socket[] = [];
  for (let isAccepted = true; isAccepted; ) {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    sockets.push(socket);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    socket.once('connect', () => resolve(true));
    setTimeout(resolve, 1_000, false);
    isAccepted = await promise;
  }
  return {
    port,
    stop() {
      for (const socket of sockets) socket.destroy();
      child.process.kill('SIGKILL');
    },
  };
}
