import { expect, test } from 'bun:test';
import { connect } from 'node:net';
import { freshDatabase } from '../../support/database.ts';
import { memoryOf } from '../../support/process_tree.ts';
import { startServiceProcess } from '../../support/service_process.ts';

/** Bodies of 100 MiB, sent to a process whose memory is measured: they are rejected and never buffered. */

const MIB = 2 ** 20;
const SIZE = 100 * MIB;
/** Buffering a body would cost at least its size. */
const GROWTH_MB_MAX = 40;

const service = await startServiceProcess({ database: await freshDatabase(), scope: 'realms:write' });
const token = await service.token();

/** Sends the whole body, even after the response has arrived; returns the status. */
function sendWholeBody(head: string, isChunked: boolean): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const part = Buffer.alloc(64 * 1024, 'x');
  const frame = isChunked
    ? Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')])
    : part;
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(service.url).port) });
  let answer = '';
  let sent = 0;
  const finish = () => {
    socket.destroy();
    resolve(Number(answer.split(' ')[1] ?? 0));
  };
  const pump = () => {
    while (sent < SIZE && !socket.destroyed) {
      sent += part.length;
      if (!socket.write(frame)) return;
    }
  };
  socket.on('connect', () => {
    socket.write(head);
    pump();
  });
  socket.on('drain', pump);
  socket.on('data', (bytes) => {
    answer += bytes.toString('latin1');
  });
  // It keeps sending after the response, as a client that does not read.
  socket.on('close', finish).on('error', finish);
  const done = setInterval(() => {
    if (sent < SIZE || answer === '') return;
    clearInterval(done);
    setTimeout(finish, 200);
  }, 20);
  setTimeout(finish, 8_000).unref();
  return promise;
}

const RIGHTS = () => `Authorization: Bearer ${token}\r\n`;
const CASES: [what: string, verb: string, headers: () => string, status: number][] = [
  ['an announced body', 'POST', () => `${RIGHTS()}Content-Length: ${SIZE}\r\n`, 413],
  ['a chunked body', 'POST', () => `${RIGHTS()}Transfer-Encoding: chunked\r\n`, 413],
  ['a body without a token', 'POST', () => `Content-Length: ${SIZE}\r\n`, 401],
  ['a chunked body without a token', 'POST', () => 'Transfer-Encoding: chunked\r\n', 401],
  [
    'a body of another type',
    'POST',
    () => `${RIGHTS()}Content-Type: text/plain\r\nContent-Length: ${SIZE}\r\n`,
    415,
  ],
  ['a body of a GET', 'GET', () => `Content-Length: ${SIZE}\r\n`, 401],
];

test.each(CASES)(
  '%s of 100 MiB is rejected, and the memory does not grow by its size',
  async (_what, verb, headers, status) => {
    const { pid } = service.running.process;
    const before = memoryOf(pid);
    const type = headers().includes('Content-Type') ? '' : 'Content-Type: application/json\r\n';
    const head = `${verb} /v2/authentication-realms HTTP/1.1\r\nHost: a\r\n${type}${headers()}\r\n`;
    expect(await sendWholeBody(head, headers().includes('chunked'))).toBe(status);
    const after = memoryOf(pid);
    expect(after.residentPeakMb - before.residentPeakMb).toBeLessThan(GROWTH_MB_MAX);
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
  },
  300_000,
);
