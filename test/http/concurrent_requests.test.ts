import { expect, test } from 'bun:test';
import { type Server, startServer } from '../../src/http/server/server.ts';
import { LIMITS } from '../../src/model/limits.ts';
import type { LogRecord } from '../../src/ops/process/log.ts';

test('requests beyond requestsAtOnceMax are 503 at once, health checks excepted; the others are answered', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = { status: 200, headers: {}, body: null } as const;
  const waiting = async () => {
    await promise;
    return done;
  };
  const log: LogRecord[] = [];
  const server: Server = await startServer(
    {
      host: '127.0.0.1',
      port: 0,
      tls: undefined,
      isShared: false,
      trustedProxies: [],
      corsOrigins: [],
      requestLogging: 'off',
    },
    { write: (record) => log.push(record) },
    async () => [
      { pattern: '/waiting', answers: { GET: waiting } },
      { pattern: '/direct', answers: { GET: () => done } },
      { pattern: '/health', answers: { GET: () => done }, isUncounted: true },
    ],
  );
  const agent = await import('node:http');
  const many = Number.POSITIVE_INFINITY;
  const pool = new agent.Agent({ keepAlive: true, maxSockets: many, maxFreeSockets: many });
  const statusOf = (path: string) =>
    new Promise<number>((resolveStatus, reject) => {
      agent
        .get(`${server.url}${path}`, { agent: pool }, (answer) => {
          answer.resume();
          resolveStatus(answer.statusCode ?? 0);
        })
        .on('error', reject);
    });
  const sendMany = (path: string) => Array.from({ length: LIMITS.requestsAtOnceMax }, () => statusOf(path));
  // Opens the connections, which takes longer than `answerMsMax` on a slow machine.
  await Promise.all(sendMany('/health'));
  const pending = sendMany('/waiting');
  let refused = 200;
  while (refused === 200) refused = await statusOf('/direct');
  expect(refused).toBe(503);
  expect(await statusOf('/waiting')).toBe(503);
  expect(await statusOf('/health')).toBe(200);
  resolve();
  expect(new Set(await Promise.all(pending))).toEqual(new Set([200]));
  expect(await statusOf('/direct')).toBe(200);
  pool.destroy();
  await server.stop();
  expect(log).toContainEqual(expect.objectContaining({ event: 'overloaded', cause: 'CONCURRENCY_LIMIT' }));
}, 300_000);
