import { describe, expect, test } from 'bun:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { openGuardedFetch } from '../../../src/access/outbound/guarded_fetch.ts';
import { LIMITS } from '../../../src/model/limits.ts';
import {
  DOCUMENT,
  endlessResponse,
  fetchThrough,
  httpResponse,
  LOOPBACK_RULES,
  NOT_JSON,
  openSilentPort,
  PROVIDER_NAME,
  PROVIDER_URL,
  privateTargets,
  REDIRECT,
  type SocketHandler,
  servePlain,
  serveTls,
  UNREACHABLE,
} from '../../support/outbound_servers.ts';

const OK = '200 OK';
const OPEN_HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n';

async function fetchFrom(answer: SocketHandler) {
  const server = await serveTls(answer);
  const began = performance.now();
  const fetched = await fetchThrough(server).fetch();
  // No result here comes from the deadline.
  expect(performance.now() - began).toBeLessThan(LIMITS.outboundMsMax);
  server.stop();
  return fetched;
}

describe('answers', () => {
  const json = (type: string) => httpResponse(OK, '{"a":1}', { 'Content-Type': type });
  const encoded = (encoding: string, body: Uint8Array) =>
    httpResponse(OK, body, { 'Content-Encoding': encoding });
  const bomb = Buffer.concat([Buffer.from('{"a":1'), Buffer.alloc(104_857_600, 32), Buffer.from('}')]);
  const padded = (bytes: number) => `{"a":1${' '.repeat(bytes - 7)}}`;

  test.each<[string, SocketHandler, object]>([
    ['JSON', json('application/json'), DOCUMENT],
    ['JSON with a parameter', json('Application/JSON ; charset=utf-8'), DOCUMENT],
    ['JSON by suffix', json('application/jrd+json'), DOCUMENT],
    ['JSON with the identity encoding', encoded('identity', Buffer.from('{"a":1}')), DOCUMENT],
    ['JSON without a length', (s) => s.end(`${OPEN_HEAD}\r\n{"a":1}`), DOCUMENT],
    [
      'JSON in chunks',
      (s) => s.end(`${OPEN_HEAD}Transfer-Encoding: chunked\r\n\r\n7\r\n{"a":1}\r\n0\r\n\r\n`),
      DOCUMENT,
    ],
    ['after one interim answer', (s) => s.end(`HTTP/1.1 103 E\r\n\r\n${OPEN_HEAD}\r\n{"a":1}`), DOCUMENT],
    ['the longest that is read', httpResponse(OK, padded(LIMITS.outboundBytesMax)), DOCUMENT],
    ['one byte more than that', httpResponse(OK, padded(LIMITS.outboundBytesMax + 1)), UNREACHABLE],
    ['HTML', json('text/html'), NOT_JSON],
    ['text', json('text/json'), NOT_JSON],
    ['another type that begins like JSON', json('application/jsonp'), NOT_JSON],
    ['another type that has JSON inside', json('text/html; a=application/json'), NOT_JSON],
    ['no type', (s) => s.end('HTTP/1.1 200 OK\r\n\r\n{"a":1}'), NOT_JSON],
    ['an array', httpResponse(OK, '[{"a":1}]'), NOT_JSON],
    ['null', httpResponse(OK, 'null'), NOT_JSON],
    ['a text', httpResponse(OK, '"a"'), NOT_JSON],
    ['no bytes', httpResponse(OK, ''), NOT_JSON],
    ['half an object', httpResponse(OK, '{"a":1'), NOT_JSON],
    ['two objects', httpResponse(OK, '{"a":1}{"a":1}'), NOT_JSON],
    ['invalid UTF-8', httpResponse(OK, Buffer.from('{"a":"\xff"}', 'latin1')), NOT_JSON],
    ['too deep nesting', httpResponse(OK, '['.repeat(LIMITS.outboundBytesMax)), NOT_JSON],
    ['gzip, not requested', encoded('gzip', gzipSync('{"a":1}')), UNREACHABLE],
    ['a gzip bomb', encoded('gzip', gzipSync(bomb)), UNREACHABLE],
    ['a deflate bomb', encoded('deflate', deflateSync(bomb)), UNREACHABLE],
    ['a brotli bomb', encoded('br', brotliCompressSync(bomb, { params: { 1: 1 } })), UNREACHABLE],
    ['an unknown encoding', encoded('x', Buffer.from('{"a":1}')), UNREACHABLE],
    ['a body cut short', httpResponse(OK, '{"a":1}', { 'Content-Length': '8' }), UNREACHABLE],
    [
      'chunks cut short',
      (s) => s.end(`${OPEN_HEAD}Transfer-Encoding: chunked\r\n\r\n7\r\n{"a":1}\r\n`),
      UNREACHABLE,
    ],
    [
      'two lengths',
      (s) => s.end(`${OPEN_HEAD}Content-Length: 7\r\nContent-Length: 8\r\n\r\n{"a":1}`),
      UNREACHABLE,
    ],
    ['201', httpResponse('201 Created', '{"a":1}'), UNREACHABLE],
    ['204', (s) => s.end('HTTP/1.1 204 No Content\r\n\r\n'), UNREACHABLE],
    ['206', httpResponse('206 Partial Content', '{"a":1}'), UNREACHABLE],
    ['401', httpResponse('401 Unauthorized', '{"a":1}'), UNREACHABLE],
    ['404', httpResponse('404 Not Found', '{"a":1}'), UNREACHABLE],
    ['500', httpResponse('500 Internal Server Error', '{"a":1}'), UNREACHABLE],
    [
      'a switch of protocols',
      (s) => s.end('HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'),
      UNREACHABLE,
    ],
    ['another protocol', (s) => s.end('SSH-2.0-OpenSSH_9.6\r\n'), UNREACHABLE],
    ['an end without bytes', (s) => s.end(), UNREACHABLE],
    ['a reset', (s) => s.destroy(), UNREACHABLE],
  ])('a provider answer is classified: %s', async (_, answer, expected) => {
    expect(await fetchFrom(answer)).toEqual(expected as never);
  });

  test.each([301, 302, 303, 307, 308])(
    'a fetch names a redirect and does not follow it (%p)',
    async (status) => {
      const redirectTarget = await serveTls(httpResponse(OK, '{"a":1}'));
      const Location = `https://${PROVIDER_NAME}:${redirectTarget.port}/`;
      const allowPrivate = privateTargets(`${PROVIDER_NAME}:${redirectTarget.port}`);
      const server = await serveTls(httpResponse(`${status} Elsewhere`, '{"a":1}', { Location }));
      expect(await fetchThrough(server, { allowPrivate }).fetch()).toEqual(REDIRECT);
      expect([server.connections(), redirectTarget.connections()]).toEqual([1, 0]);
    },
  );

  test.each([
    ['a body', `${OPEN_HEAD}Content-Length: 104857600\r\n\r\n{`, ' '.repeat(65_536)],
    ['a body without a length', `${OPEN_HEAD}\r\n{`, ' '.repeat(65_536)],
    [
      'chunks of one byte',
      `${OPEN_HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`,
      '1\r\n \r\n'.repeat(8_192),
    ],
    ['a body of another status', 'HTTP/1.1 404 Not Found\r\n\r\n', ' '.repeat(65_536)],
    ['an encoded body', `${OPEN_HEAD}Content-Encoding: gzip\r\n\r\n`, '\0'.repeat(65_536)],
    ['a status line', 'HTTP/1.1 200 ', 'x'.repeat(65_536)],
    ['a header', 'HTTP/1.1 200 OK\r\nX: ', 'x'.repeat(65_536)],
    ['headers', 'HTTP/1.1 200 OK\r\n', 'X: y\r\n'.repeat(8_192)],
    ['interim answers', '', 'HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n'.repeat(1_024)],
    ['a chunk extension', `${OPEN_HEAD}Transfer-Encoding: chunked\r\n\r\n1;`, 'x'.repeat(65_536)],
    ['trailers', `${OPEN_HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\n`, 'X: y\r\n'.repeat(8_192)],
  ])('an answer with %s of 100 MiB is cut off', async (_, head, piece) => {
    const { answer, count } = endlessResponse(head, piece);
    const server = await serveTls(answer);
    expect(await fetchThrough(server).fetch()).toEqual(UNREACHABLE);
    await server.ended;
    // Bytes beyond the bound are in the buffers of the two sockets.
    expect(count()).toBeLessThan(16_777_216);
  });
});

test('a fetch from a hanging server ends at the deadline, wherever the server hangs', async () => {
  const silent = await openSilentPort();
  const drip = (head: string, piece: string): SocketHandler => {
    return (socket) => {
      socket.write(head);
      const timer = setInterval(() => socket.write(piece), 100);
      socket.on('close', () => clearInterval(timer));
    };
  };
  const noTls = await servePlain(() => undefined);
  const servers = [
    await serveTls(() => undefined),
    await serveTls(drip('HTTP/1.1 200 ', 'x')),
    await serveTls(drip('HTTP/1.1 200 OK\r\n', 'X: y\r\n')),
    await serveTls(drip('', 'HTTP/1.1 103 Early Hints\r\n\r\n')),
    await serveTls(drip(`${OPEN_HEAD}\r\n{`, ' ')),
    await serveTls(drip('HTTP/1.1 404 Not Found\r\n\r\n', ' ')),
  ];
  const loopback = openGuardedFetch(LOOPBACK_RULES);
  const never = openGuardedFetch({ resolve: () => new Promise(() => undefined) });
  const hanging = [
    () => never(PROVIDER_URL),
    () => loopback(`https://127.0.0.1:${silent.port}/`),
    () => loopback(`https://127.0.0.1:${noTls.port}/`),
    ...servers.map((server) => () => fetchThrough(server).fetch()),
  ];
  const waitOf = async (work: () => Promise<unknown>) => {
    const began = performance.now();
    await work();
    return performance.now() - began;
  };
  const [deadline = 0, ...waits] = await Promise.all([
    waitOf(() => Bun.sleep(LIMITS.outboundMsMax)),
    ...hanging.map((fetch) => waitOf(async () => expect(await fetch()).toEqual(UNREACHABLE))),
  ]);
  for (const wait of waits) expect(wait).toBeWithin(LIMITS.outboundMsMax - 50, deadline + 500);
  await Promise.all([...servers, noTls].map(({ ended }) => ended));
  silent.stop();
}, 300_000);
