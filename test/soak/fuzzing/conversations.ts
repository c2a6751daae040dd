import type { RawExchangeOptions } from '../../support/raw_http.ts';
import type { Draw } from './draw.ts';

/** What is said over one connection, byte by byte, and how. */
export interface Conversation {
  readonly kind: string;
  readonly bytes: string;
  readonly asking: RawExchangeOptions;
  /** Request IDs that may be answered, in their order. */
  readonly ids: readonly string[];
}

/** Who says it: its own user, its own token, and a name that no other connection has. */
export interface Speaker {
  readonly name: string;
  /** The path of the one record it asks for. */
  readonly path: string;
  readonly token: string;
}

type Make = (speaker: Speaker, draw: Draw) => Conversation;

const SOON = 400;

function lookup({ path, token }: Speaker, id: string, more = ''): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nX-Request-Id: ${id}\r\n${more}\r\n`;
}

/** A request inside of another one, which must never be taken for one. */
function hidden(speaker: Speaker): string {
  return lookup(speaker, `hidden-${speaker.name}`);
}

function post({ token }: Speaker, id: string, headers: string, body: string): string {
  return `POST /oauth/token HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nX-Request-Id: ${id}\r\n${headers}\r\n${body}`;
}

const hex = (text: string) => text.length.toString(16);

/** Requests that one reader may end at another place than the next one (RFC 9112, 11.2). */
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

const smuggling: Make = (speaker, draw) => {
  const [headers, body] = draw.one(SMUGGLING)(hidden(speaker));
  const ids = [`${speaker.name}-0`];
  return {
    kind: 'smuggling',
    bytes: post(speaker, ids[0] ?? '', headers, body),
    asking: { expectedResponses: 2, timeoutMs: SOON },
    ids,
  };
};

/** A body on a request that has none, of a length that is right. */
const bodyOnGet: Make = (speaker) => {
  const ids = [`${speaker.name}-0`, `${speaker.name}-1`];
  const inside = hidden(speaker);
  const bytes =
    lookup(speaker, ids[0] ?? '', `Content-Length: ${inside.length}\r\n`) +
    inside +
    lookup(speaker, ids[1] ?? '');
  return { kind: 'body on GET', bytes, asking: { expectedResponses: 2, timeoutMs: SOON }, ids };
};

const pipelined: Make = (speaker, draw) => {
  const ids = Array.from({ length: 2 + draw.below(30) }, (_, at) => `${speaker.name}-${at}`);
  const bytes = ids.map((id) => lookup(speaker, id)).join('');
  const isHalfClosed = draw.happens(0.2);
  return {
    kind: 'pipelined',
    bytes,
    asking: { expectedResponses: ids.length, timeoutMs: SOON, isHalfClosed },
    ids,
  };
};

const halfClosed: Make = (speaker) => {
  const ids = [`${speaker.name}-0`];
  return {
    kind: 'half-closed',
    bytes: lookup(speaker, ids[0] ?? ''),
    asking: { isHalfClosed: true, timeoutMs: SOON },
    ids,
  };
};

const manyHeaders: Make = (speaker, draw) => {
  const ids = [`${speaker.name}-0`];
  const count = draw.one([50, 99, 100, 101, 150, 200, 250, 1_000]);
  const bytes = lookup(
    speaker,
    ids[0] ?? '',
    Array.from({ length: count }, (_, at) => `x${at}: y\r\n`).join(''),
  );
  return { kind: 'many headers', bytes, asking: { expectedResponses: 1, timeoutMs: SOON }, ids };
};

const otherForms: Make = (speaker, draw) => {
  const ids = [`${speaker.name}-0`];
  const whole = lookup(speaker, ids[0] ?? '');
  const bytes = draw.one([
    () => whole.replace('GET /', 'GET http://evil.example/'),
    () => whole.replace('GET /', 'GET https://evil.example:99999/'),
    () => whole.replace('HTTP/1.1', 'HTTP/1.0'),
    () => whole.replaceAll('\r\n', '\n'),
    () => whole.replaceAll('\r\n', '\r'),
    () => whole.replace('Host: a', 'Host: a\r\nHost: b'),
    () => whole.replace('GET ', 'GET\t'),
    () => `\r\n\r\n${whole}`,
    () => whole.replace('\r\nAuth', '\r\n folded\r\nAuth'),
  ])();
  return { kind: 'other forms', bytes, asking: { expectedResponses: 2, timeoutMs: SOON }, ids };
};

/** A right request in which some bytes are others. */
const scrambled: Make = (speaker, draw) => {
  const ids = [`${speaker.name}-0`];
  let bytes = lookup(speaker, ids[0] ?? '');
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
  return { kind: 'scrambled', bytes, asking: { expectedResponses: 1, timeoutMs: SOON }, ids };
};

/** Somebody who goes before the end: of what is said, or of the answer. */
const gone: Make = (speaker, draw) => {
  const whole = draw.happens(0.5)
    ? lookup(speaker, `${speaker.name}-0`)
    : post(speaker, `${speaker.name}-0`, 'Content-Length: 9000\r\n', 'x'.repeat(100));
  const bytes = whole.slice(0, draw.happens(0.5) ? whole.length : draw.below(whole.length));
  return {
    kind: 'gone early',
    bytes,
    asking: { expectedResponses: 9, timeoutMs: draw.below(5) },
    ids: [`${speaker.name}-0`],
  };
};

const MAKERS: readonly Make[] = [
  smuggling,
  smuggling,
  bodyOnGet,
  pipelined,
  halfClosed,
  manyHeaders,
  otherForms,
  scrambled,
  gone,
];

export function drawnConversation(speaker: Speaker, draw: Draw): Conversation {
  return draw.one(MAKERS)(speaker, draw);
}
