import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { LIMITS } from '../../src/model/limits.ts';
import { freshDatabase } from '../support/database.ts';
import { freshFolder } from '../support/folder.ts';
import { bytesOf, mintId, realmLines } from '../support/import_fixtures.ts';
import { memoryOf } from '../support/process_tree.ts';
import { runAuthrealm } from '../support/processes.ts';
import { startService } from '../support/service.ts';
import { startServiceProcess } from '../support/service_process.ts';

/** Files that stall, are too long, or are long, sent to a process whose memory is measured. */

const MIB = 2 ** 20;
const IMPORT = '/admin/v1/import';
const database = await freshDatabase();
const service = await startServiceProcess({ database, scope: 'transfer' });
const token = await service.token();

const peakMb = () => memoryOf(service.running.process.pid).residentPeakMb;

/** Opens an import, and returns its connection and its response, as text. */
function openImport(
  header: string,
  query = '',
  by = { url: service.url, token },
): { readonly socket: Socket; readonly response: Promise<string> } {
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(by.url).port) });
  let text = '';
  socket.on('data', (part) => {
    text += part.toString('latin1');
    if (/\r\n\r\n./.test(text)) resolve(text);
  });
  socket.on('error', () => resolve(text)).on('close', () => resolve(text));
  socket.write(
    `POST ${IMPORT}${query} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${by.token}\r\n${header}\r\n\r\n`,
  );
  return { socket, response: promise };
}

const chunk = (part: Buffer) =>
  Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')]);

/** Resolves once the socket accepts more bytes, or has closed. */
function drained(socket: Socket): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const finish = () => {
    socket.off('drain', finish).off('close', finish);
    resolve();
  };
  socket.on('drain', finish).on('close', finish);
  return promise;
}

/** Sends a part as often as this, no faster than the service reads. Ends early where the connection closes. */
async function sendOften(socket: Socket, part: Buffer, times: number): Promise<void> {
  for (let sent = 0; sent < times && !socket.destroyed; sent += 1)
    if (!socket.write(part)) await drained(socket);
}

/** The entries of imports in the log of the installation, oldest first. */
async function importEntries() {
  const path = join(freshFolder(), 'log.ndjson');
  await runAuthrealm(['audit', 'verify', '--export', path, ...database.args]);
  const lines = readFileSync(path, 'utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line)).filter(({ what }) => what === 'records.imported');
}

test('an import over HTTP without a byte for 60 seconds is 408 and names the first line that was not imported', async () => {
  const { lines } = realmLines();
  const users = Array.from({ length: LIMITS.uploadCommitLines }, () => ({ ...lines.user, id: mintId() }));
  const { socket, response } = openImport('Transfer-Encoding: chunked');
  const started = performance.now();
  socket.write(chunk(Buffer.from(bytesOf([lines.realm, ...users]))));
  const text = await response;
  expect(performance.now() - started).toBeWithin(
    LIMITS.transferIdleMsMax - 1_000,
    LIMITS.transferIdleMsMax + 10_000,
  );
  expect(text).toStartWith('HTTP/1.1 408');
  expect(text).toContain(`line ${LIMITS.uploadCommitLines + 1} is the first that was not imported`);
  expect(text).toContain('"code":"request_timeout"');
  socket.destroy();
  expect((await importEntries()).at(-1)?.detail).toMatchObject({
    ...{
      imported: LIMITS.uploadCommitLines,
      fault: 'request_timeout',
      resume_line: LIMITS.uploadCommitLines + 1,
    },
  });
}, 300_000);

test('an import over HTTP that sends a byte now and then has no time limit', async () => {
  const { socket, response } = openImport('Transfer-Encoding: chunked');
  for (let sent = 0; sent < 4; sent += 1) {
    socket.write(chunk(Buffer.from('\n')));
    await Bun.sleep(LIMITS.answerMsMax / 2);
  }
  socket.write('0\r\n\r\n');
  expect(await response).toStartWith('HTTP/1.1 200');
  socket.destroy();
}, 300_000);

test('an import over HTTP that exceeds 1 GiB is 413 at the limit, and memory does not grow by its size', async () => {
  const before = peakMb();
  const { socket, response } = openImport('Transfer-Encoding: chunked');
  await sendOften(socket, chunk(Buffer.alloc(MIB, 'x')), LIMITS.uploadBytesMax / MIB + 1);
  const text = await response;
  expect(text).toStartWith('HTTP/1.1 413');
  expect(text).toContain('"code":"upload_too_large"');
  socket.destroy();
  expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
  expect(peakMb() - before).toBeLessThan(100);
}, 300_000);

test('a caller sends lines no faster than they are imported, and other requests are answered meanwhile', async () => {
  const { ids, lines } = realmLines();
  const map = {
    constants: { realm_id: ids.realm, email: 'jane@example.com' },
    columns: { No: 'id', Name: 'name' },
  };
  const created = openImport(`Content-Length: ${bytesOf([lines.realm]).length}`);
  created.socket.write(bytesOf([lines.realm]));
  expect(await created.response).toStartWith('HTTP/1.1 200');
  created.socket.destroy();
  const before = peakMb();
  const query = `?map=${encodeURIComponent(JSON.stringify(map))}`;
  const { socket, response } = openImport('Transfer-Encoding: chunked', query);
  socket.write(chunk(Buffer.from('No,Name\n')));
  let slowest = 0;
  let isSending = true;
  const probing = (async () => {
    while (isSending) {
      const start = performance.now();
      expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
      slowest = Math.max(slowest, performance.now() - start);
    }
  })();
  const rows = 100_000;
  for (let from = 0; from < rows; from += 1_000) {
    const text = Array.from(
      { length: 1_000 },
      (_, at) => `${from + at},${'User '.repeat(40)}${from + at}\n`,
    ).join('');
    await sendOften(socket, chunk(Buffer.from(text)), 1);
  }
  socket.write('0\r\n\r\n');
  expect(await response).toContain(`"imported":${rows},`);
  isSending = false;
  await probing;
  socket.destroy();
  // The page cache of an import is 128 MiB.
  expect(peakMb() - before).toBeLessThan(300);
  expect(slowest).toBeLessThan(1_000);
}, 300_000);

test('an export over HTTP whose caller disconnects before the answer ends, and another one can start', async () => {
  const headers = { Authorization: `Bearer ${token}` };
  const request = `GET /admin/v1/export HTTP/1.1\r\nHost: a\r\nAuthorization: ${headers.Authorization}\r\n\r\n`;
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(service.url).port) });
  socket.write(request, () => socket.destroy());
  await Bun.sleep(100);
  let answer = await fetch(`${service.url}/admin/v1/export`, { headers });
  while (answer.status === 429) {
    await Bun.sleep(1_000);
    answer = await fetch(`${service.url}/admin/v1/export`, { headers });
  }
  expect(answer.status).toBe(200);
  await answer.text();
}, 300_000);

test('the stop waits for the log entry of an import over HTTP that it cuts', async () => {
  const { lines } = realmLines();
  const stopping = await startService({}, (engine) => ({
    ...engine,
    log: { ...engine.log, append: (entries) => Bun.sleep(300).then(() => engine.log.append(entries)) },
  }));
  const { database, url } = stopping;
  const by = { url, token: await stopping.token('transfer') };
  const { socket } = openImport('Transfer-Encoding: chunked', '', by);
  const users = Array.from({ length: LIMITS.uploadCommitLines }, () => ({ ...lines.user, id: mintId() }));
  socket.write(chunk(Buffer.from(bytesOf([lines.realm, ...users]))));
  while ((await database.query('select 1 from user_info')).length === 0) await Bun.sleep(5);
  await stopping.stop();
  const entries = "select detail from act where action = 'records.imported'";
  const [{ detail } = { detail: '{}' }] = await database.query<{ detail: string }>(entries);
  expect(JSON.parse(detail)).toMatchObject({
    ...{ imported: LIMITS.uploadCommitLines, fault: 'malformed' },
    resume_line: LIMITS.uploadCommitLines + 1,
  });
}, 300_000);
