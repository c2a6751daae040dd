import { connect } from 'node:net';

export interface RawResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

export interface RawExchange {
  readonly responses: readonly RawResponse[];
  /** The service closed the connection. */
  readonly isEnded: boolean;
  readonly ms: number;
}

export interface RawExchangeOptions {
  /** The exchange ends after this many responses, or when the service closes the connection. */
  readonly expectedResponses?: number;
  /** Sends this every half second. */
  readonly drip?: string;
  /** Closes the client's half of the connection after the bytes. */
  readonly isHalfClosed?: boolean;
  /** Ends the exchange after this time. */
  readonly timeoutMs?: number;
}

const QUIET_MS = 40;

/** Sends bytes over a new connection. */
export function exchangeBytes(
  url: string,
  bytes: string,
  options: RawExchangeOptions = {},
): Promise<RawExchange> {
  const {
    expectedResponses: expected = 1,
    drip,
    isHalfClosed = false,
    timeoutMs: patienceMs = 10_000,
  } = options;
  const { promise, resolve } = Promise.withResolvers<RawExchange>();
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), allowHalfOpen: true });
  const start = performance.now();
  let received = '';
  const finish = (isEnded: boolean) => {
    clearTimeout(timeout);
    clearInterval(dripping);
    resolve({ responses: responsesIn(received), isEnded, ms: performance.now() - start });
    socket.destroy();
  };
  const timeout = setTimeout(() => finish(false), patienceMs);
  const dripping = drip === undefined ? undefined : setInterval(() => socket.write(drip), 500);
  socket.on('connect', () => (isHalfClosed ? socket.end(bytes, 'latin1') : socket.write(bytes, 'latin1')));
  socket.on('data', (part) => {
    received += part.toString('latin1');
    // An unexpected further response, or the end, would arrive at once.
    if (responsesIn(received).length >= expected) setTimeout(() => finish(false), QUIET_MS);
  });
  socket.on('end', () => finish(true)).on('error', () => finish(true));
  return promise;
}

/** The complete responses in the received text. */
function responsesIn(received: string): RawResponse[] {
  const found: RawResponse[] = [];
  let rest = received;
  for (;;) {
    const end = rest.indexOf('\r\n\r\n');
    if (end < 0) return found;
    const [line = '', ...fields] = rest.slice(0, end).split('\r\n');
    const headers = new Headers(fields.map((field) => field.split(': ', 2) as [string, string]));
    const length = Number(headers.get('content-length') ?? 0);
    const body = rest.slice(end + 4, end + 4 + length);
    if (body.length < length) return found;
    found.push({ status: Number(line.split(' ')[1]), headers, body });
    rest = rest.slice(end + 4 + length);
  }
}

export function getRequest(target: string, more = '', version = 'HTTP/1.1'): string {
  return `GET ${target} ${version}\r\nHost: a\r\n${more}\r\n`;
}
