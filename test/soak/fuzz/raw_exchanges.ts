import type { RawExchangeOptions } from '../../support/raw_http.ts';
import type { Draw } from './draw.ts';

/** The bytes to send over one connection, and how to send them. */
export interface RawExchange {
  readonly kind: string;
  readonly bytes: string;
  readonly options: RawExchangeOptions;
  /** Request IDs that responses may carry, in order. */
  readonly ids: readonly string[];
}

/** The sender of one exchange: its user and token, and a name that no other connection has. */
export interface RawClient {
  readonly name: string;
  /** The path of the one record that it reads. */
  readonly path: string;
  readonly token: string;
}

type Generator = (client: RawClient, draw: Draw) => RawExchange;

const TIMEOUT_MS = 400;

function lookup({ path, token }: RawClient, id: string, more = ''): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nX-Request-Id: ${id}\r\n${more}\r\n`;
}

/** A request inside another one, which must never be executed. */
function smuggledRequest(client: RawClient): string {
  return lookup(client, `hidden-${client.name}`);
}

function post({ token }: RawClient, id: string, headers: string, body: string): string {
  return `POST /oauth/token HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nX-Request-Id: ${id}\r\n${headers}\r\n${body}`;
}

const hex = (text: string) => text.length.toString(16);

/** Request smuggling: two parsers may disagree on where the request ends (RFC 9112, 11.2). */
const SMUGGLING: readonly ((inside: string) => readonly [headers: string, body: string])[] = [
  (inside) => [
    `Content-Length: ${inside.length + 5}\r\nTransfer-Encoding: chunked\r\n`,
    `0\r\n\r\n${inside}`,
  ],
  (inside) => [
    `Transfer-Encoding: chunked\r\nContent-Length: 3\r\n`,
    `${hex(inside)}\r\n${inside}\r\n0\r\n\r\n`,
  ],
  (inside) => [`Content-Length: 0\r\nContent-Length: ${inside.length}\r\n`, inside],
  (inside) => [`Content-Length: ${inside.length}\r\nContent-Length: 0\r\n`, inside],
  (inside) => [`Content-Length: 0, ${inside.length}\r\n`, inside],
  (inside) => [`Content-Length: 0x${hex(inside)}\r\n`, inside],
  (inside) => [`Content-Length: -1\r\n`, inside],
  (inside) => [`Content-Length : ${inside.length}\r\n`, inside],
  (inside) => [`Content-Length: 0\r\n ${inside.length}\r\n`, inside],
  (inside) => [`Transfer-Encoding: xchunked\r\n`, `0\r\n\r\n${inside}`],
  (inside) => [`Transfer-Encoding: chunked, identity\r\n`, `0\r\n\r\n${inside}`],
  (inside) => [
    `Transfer-Encoding: identity, chunked\r\nContent-Length: 4\r\n`,
    `${hex(inside)}\r\n${inside}\r\n0\r\n\r\n`,
  ],
  (inside) => [`Transfer-Encoding:\x0bchunked\r\nContent-Length: ${inside.length}\r\n`, inside],
  (inside) => [`X: x\nTransfer-Encoding: chunked\r\nContent-Length: ${inside.length}\r\n`, inside],
  (inside) => [`X: x\rContent-Length: 0\r\nContent-Length: ${inside.length}\r\n`, inside],
  (inside) => [
    `Transfer-Encoding: chunked\r\n`,
    `${hex(inside)};${'x'.repeat(300)}\r\n${inside}\r\n0\r\n\r\n`,
  ],
  (inside) => [`Transfer-Encoding: chunked\r\n`, `${hex(inside)};a="\n"\r\n${inside}\r\n0\r\n\r\n`],
  (inside) => [`Transfer-Encoding: chunked\r\n`, `ffffffffffffffff${hex(inside)}\r\n${inside}\r\n0\r\n\r\n`],
  (inside) => [`Transfer-Encoding: chunked\r\n`, `${hex(inside)}\n${inside}\n0\n\n`],
  (inside) => [
    `Transfer-Encoding: chunked\r\n`,
    `${hex(inside)}\r\n${inside}\r\n0\r\nX: ${inside.replaceAll('\r\n', ' ')}\r\n\r\n`,
  ],
  (inside) => [`Content-Length: ${inside.length}\r\nExpect: 100-continue\r\n`, inside],
  (inside) => [
    `Content-Length: ${inside.length}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n`,
    inside,
  ],
];

const smuggling: Generator = (client, draw) => {
  const [headers, body] = draw.one(SMUGGLING)(smuggledRequest(client));
  const ids = [`${client.name}-0`];
  return {
    kind: 'smuggling',
    bytes: post(client, ids[0] ?? '', headers, body),
    options: { expectedResponses: 2, timeoutMs: TIMEOUT_MS },
    ids,
  };
};

/** A body on a GET, with a correct Content-Length. */
const bodyOnGet: Generator = (client) => {
  const ids = [`${client.name}-0`, `${client.name}-1`];
  const inside = smuggledRequest(client);
  const bytes =
    lookup(client, ids[0] ?? '', `Content-Length: ${inside.length}\r\n`) +
    inside +
    lookup(client, ids[1] ?? '');
  return { kind: 'body on GET', bytes, options: { expectedResponses: 2, timeoutMs: TIMEOUT_MS }, ids };
};

const pipelined: Generator = (client, draw) => {
  const ids = Array.from({ length: 2 + draw.below(30) }, (_, at) => `${client.name}-${at}`);
  const bytes = ids.map((id) => lookup(client, id)).join('');
  const isHalfClosed = draw.happens(0.2);
  return {
    kind: 'pipelined',
    bytes,
    options: { expectedResponses: ids.length, timeoutMs: TIMEOUT_MS, isHalfClosed },
    ids,
  };
};

const halfClosed: Generator = (client) => {
  const ids = [`${client.name}-0`];
  return {
    kind: 'half-closed',
    bytes: lookup(client, ids[0] ?? ''),
    options: { isHalfClosed: true, timeoutMs: TIMEOUT_MS },
    ids,
  };
};

const manyHeaders: Generator = (client, draw) => {
  const ids = [`${client.name}-0`];
  const count = draw.one([50, 99, 100, 101, 150, 200, 250, 1_000]);
  const bytes = lookup(
    client,
    ids[0] ?? '',
    Array.from({ length: count }, (_, at) => `x${at}: y\r\n`).join(''),
  );
  return { kind: 'many headers', bytes, options: { expectedResponses: 1, timeoutMs: TIMEOUT_MS }, ids };
};

const otherForms: Generator = (client, draw) => {
  const ids = [`${client.name}-0`];
  const request = lookup(client, ids[0] ?? '');
  const bytes = draw.one([
    () => request.replace('GET /', 'GET http://evil.example/'),
    () => request.replace('GET /', 'GET https://evil.example:99999/'),
    () => request.replace('HTTP/1.1', 'HTTP/1.0'),
    () => request.replaceAll('\r\n', '\n'),
    () => request.replaceAll('\r\n', '\r'),
    () => request.replace('Host: a', 'Host: a\r\nHost: b'),
    () => request.replace('GET ', 'GET\t'),
    () => `\r\n\r\n${request}`,
    () => request.replace('\r\nAuth', '\r\n folded\r\nAuth'),
  ])();
  return { kind: 'other forms', bytes, options: { expectedResponses: 2, timeoutMs: TIMEOUT_MS }, ids };
};

/** A valid request with some bytes replaced. */
const corrupted: Generator = (client, draw) => {
  const ids = [`${client.name}-0`];
  let bytes = lookup(client, ids[0] ?? '');
  for (let left = 1 + draw.below(4); left > 0; left -= 1) {
    const at = draw.below(bytes.length);
    const piece = draw.one([
      '',
      '\0',
      '\r',
      '\n',
      '\r\n',
      ' ',
      ':',
      '\xff',
      '%',
      bytes.slice(at, at + 40),
      'x'.repeat(17_000),
    ]);
    bytes = bytes.slice(0, at) + piece + bytes.slice(at + draw.below(3));
  }
  return { kind: 'corrupted', bytes, options: { expectedResponses: 1, timeoutMs: TIMEOUT_MS }, ids };
};

/** The client closes before the end of its request, or before the response. */
const closedEarly: Generator = (client, draw) => {
  const request = draw.happens(0.5)
    ? lookup(client, `${client.name}-0`)
    : post(client, `${client.name}-0`, 'Content-Length: 9000\r\n', 'x'.repeat(100));
  const bytes = request.slice(0, draw.happens(0.5) ? request.length : draw.below(request.length));
  return {
    kind: 'closed early',
    bytes,
    options: { expectedResponses: 9, timeoutMs: draw.below(5) },
    ids: [`${client.name}-0`],
  };
};

const GENERATORS: readonly Generator[] = [
  smuggling,
  smuggling,
  bodyOnGet,
  pipelined,
  halfClosed,
  manyHeaders,
  otherForms,
  corrupted,
  closedEarly,
];

export function drawRawExchange(client: RawClient, draw: Draw): RawExchange {
  return draw.one(GENERATORS)(client, draw);
}
