import { expect, test } from 'bun:test';
import {
  endlessResponse,
  httpResponse,
  type SocketHandler,
  servePlain,
} from '../support/outbound_servers.ts';
import { runAuthrealm } from '../support/processes.ts';

/** `authrealm ready` in front of servers that are not the service. */

test('ready prints one short sentence about whatever else listens on the port', async () => {
  const hostile = JSON.stringify({ dependencies: { '\u001b[2Jdisk\n': 'full', database: 'ok' } });
  const endless = endlessResponse('HTTP/1.1 503 Service Unavailable\r\n\r\n', 'x'.repeat(65_536));
  const cases: readonly (readonly [SocketHandler, string])[] = [
    [httpResponse('404 Not Found', '\u001b[2J<html>\n</html>'), 'not ready: URL answered 404'],
    [httpResponse('302 Found', '', { Location: '/healthz' }), 'not ready: URL answered 302'],
    [
      httpResponse('503 Service Unavailable', hostile),
      'not ready: URL answered 503: in trouble: \\u{1b}[2Jdisk\\u{a}',
    ],
    [endless.answer, 'not ready: URL answered 503'],
    [
      (socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'),
      'no answer from URL (Malformed_HTTP_Response): pass the --host, --port and TLS files of the service',
    ],
    [() => undefined, 'no answer from URL within 4 s'],
  ];
  for (const [answer, sentence] of cases) {
    const server = await servePlain(answer);
    const { stderr, code } = await runAuthrealm(['ready', '--port', String(server.port)]);
    server.stop();
    const url = `http://127.0.0.1:${server.port}/readyz`;
    expect([code, stderr]).toEqual([1, `authrealm: ${sentence.replace('URL', url)}\n`]);
  }
  // What the kernel buffers is written as well.
  expect(endless.count()).toBeLessThan(20_000_000);
});
