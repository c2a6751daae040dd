import { describe, expect, test } from 'bun:test';
import { connect } from 'node:net';
import { LIMITS } from '../../src/model/limits.ts';
import { freshDatabase } from '../support/database.ts';
import { exchangeBytes, getRequest } from '../support/raw_http.ts';
import { type ServiceProcess, startServiceProcess } from '../support/service_process.ts';

/** What connections get while the service stops. */

const CONNECTIONS = 20;
const ANSWERS_BEFORE_THE_SIGNAL = 5;

interface Tally {
  answered: number;
  /** Requests that were sent completely, on a connection that then closed without an answer. */
  lost: number;
}

async function startDrainable(...flags: string[]): Promise<ServiceProcess> {
  return startServiceProcess({ database: await freshDatabase(), scope: 'realms:read realms:write', flags });
}

/**
 * Sends a request again after each answer, over a connection that it keeps until the service closes it, and then over another one; ends
 * when the service accepts none.
 */
async function repeatRequest(url: string, request: string, tally: Tally): Promise<void> {
  for (;;) {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    const { promise: ended, resolve: end } = Promise.withResolvers<'refused' | 'closed'>();
    let isConnected = false;
    let isWaiting = false;
    let received = '';
    const send = () => {
      isWaiting = true;
      received = '';
      socket.write(request);
    };
    socket.on('connect', () => {
      isConnected = true;
      send();
    });
    socket.on('data', (part) => {
      received += part.toString('latin1');
      const length = /\r\ncontent-length: (\d+)\r\n/i.exec(received)?.[1];
      if (length === undefined || received.length < received.indexOf('\r\n\r\n') + 4 + Number(length)) return;
      isWaiting = false;
      tally.answered += 1;
      if (/\r\nconnection: close\r\n/i.test(received)) socket.destroy();
      else send();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (isConnected && isWaiting) tally.lost += 1;
      end(isConnected ? 'closed' : 'refused');
    });
    if ((await ended) === 'refused') return;
  }
}

function requestsOf(token: string): readonly string[] {
  const authorization = `Authorization: Bearer ${token}\r\n`;
  const body = JSON.stringify({ data: { type: 'authentication-realm', name: 'A' } });
  const path = '/v2/authentication-realms';
  const post = `POST ${path} HTTP/1.1\r\nHost: a\r\n${authorization}Content-Length: ${body.length}\r\n\r\n${body}`;
  return [getRequest(path, authorization), post];
}

/** Resolves when this many requests were answered. */
async function untilAnswered(tally: Tally, count: number): Promise<void> {
  while (tally.answered < count) await Bun.sleep(5);
}

test.each([1, 2])(
  'every request on busy connections is answered while a service of %d processes stops',
  async (processes) => {
    const service = await startDrainable('--processes', String(processes));
    const requests = requestsOf(await service.token());
    const tally: Tally = { answered: 0, lost: 0 };
    const clients = Array.from({ length: CONNECTIONS }, (_, at) =>
      repeatRequest(service.url, requests[at % requests.length] ?? '', tally),
    );
    await untilAnswered(tally, CONNECTIONS * ANSWERS_BEFORE_THE_SIGNAL);
    expect(await service.running.stop()).toBe(0);
    await Promise.all(clients);
    expect(tally.lost).toBe(0);
  },
);

test('the listener closes after a time without a new request, or else after a second', async () => {
  const idle = await startDrainable();
  const { running, url } = await startDrainable();
  const idleBegun = performance.now();
  expect(await idle.running.stop()).toBe(0);
  const idleMs = performance.now() - idleBegun;
  const begun = performance.now();
  const stopped = running.stop();
  let [last, latest] = [begun, begun];
  // Answered only after the listener is closed.
  while (await isAccepted(url)) {
    [last, latest] = [latest, performance.now()];
    await Bun.sleep(20);
  }
  const end = performance.now();
  const isQuiet = Math.max(latest - last, end - latest) > LIMITS.drainHoldMs / 2;
  if (!isQuiet) {
    expect(end - begun).toBeGreaterThan(LIMITS.drainHoldMsMax);
    expect(idleMs).toBeLessThan(end - begun);
  }
  expect(end - begun).toBeLessThan(LIMITS.drainMsMax / 2);
  expect(await stopped).toBe(0);
});

/** Sends a request over a new connection; false if the service accepts none. */
function isAccepted(url: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('connect', () => {
    socket.write(getRequest('/readyz'));
    resolve(true);
  });
  socket.on('error', () => resolve(false));
  return promise;
}

const readiness = (url: string) => exchangeBytes(url, getRequest('/readyz'));

test('until the drain delay is over /readyz is 503, and answers on new connections are right and close them', async () => {
  const service = await startDrainable('--drain-delay', '3');
  const before = await readiness(service.url);
  expect([before.responses[0]?.status, before.isEnded]).toEqual([200, false]);
  const stopped = service.running.stop();
  let status = 200;
  while (status === 200) status = (await readiness(service.url)).responses[0]?.status ?? 0;
  expect(status).toBe(503);
  const [request = ''] = requestsOf(await service.token());
  const answer = await exchangeBytes(service.url, request);
  expect([
    answer.responses[0]?.status,
    answer.responses[0]?.headers.get('connection'),
    answer.isEnded,
  ]).toEqual([200, 'close', true]);
  expect(await stopped).toBe(0);
});

describe('signals', () => {
  test('SIGQUIT stops the service as SIGTERM does', async () => {
    const { running } = await startDrainable();
    running.process.kill('SIGQUIT');
    expect(await running.process.exited).toBe(0);
    expect(running.output()).toMatch(/"event":"stopping","signal":"SIGQUIT"(.|\n)*"event":"stopped"/);
  });

  test.each([1, 2])('signals of log rotation do not stop a service of %d processes', async (processes) => {
    const { running, url } = await startDrainable('--processes', String(processes));
    while (!running.output().includes('"event":"started"')) await Bun.sleep(5);
    const pids = new Set([...running.output().matchAll(/"pid":(\d+)/g)].map(([, pid]) => Number(pid)));
    expect(pids.size).toBe(processes === 1 ? 1 : 1 + processes);
    for (const pid of pids) {
      for (const signal of ['SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGPIPE'] as const) process.kill(pid, signal);
    }
    expect((await readiness(url)).responses[0]?.status).toBe(200);
    expect(await running.stop()).toBe(0);
    expect(running.output()).not.toContain('process_exited');
  });
});
