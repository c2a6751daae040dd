import { afterEach, expect, test } from 'bun:test';
import { LIMITS } from '../../src/domain/limits.ts';
import { type GuardedPost, openGuardedPost } from '../../src/outbound/guarded_post.ts';
import {
  endless,
  http,
  leadTo,
  PROVIDER_NAME,
  PUBLIC,
  type RawServer,
  servePlain,
  serveTls,
  stopAll,
} from '../support/outbound_servers.ts';

/** Messages to targets that are not what they seem. */

afterEach(stopAll);

const MESSAGE = { headers: { 'webhook-id': 'msg_1' }, body: Buffer.from('{"a":1}') };
const UNREACHABLE = { kind: 'unreachable' } as const;
const URL_OF_TARGET = `https://${PROVIDER_NAME}/hook?x=1`;

/** A post to the target's name, whose public address leads to a server. */
function towards(server: RawServer, addresses: readonly string[] = [PUBLIC]) {
  const { exchange, addresses: dialled } = leadTo(server.port);
  let asked = 0;
  const resolve = async () => {
    asked += 1;
    return addresses;
  };
  const post: GuardedPost = openGuardedPost({ resolve, exchange });
  return { post, dialled, asked: () => asked };
}

test('bytes and headers arrive, and the status counts', async () => {
  const server = await serveTls(http('202 Accepted', 'thanks'));
  const { post, dialled } = towards(server);
  expect(await post(URL_OF_TARGET, MESSAGE)).toEqual({ kind: 'answered', status: 202, isSuccess: true });
  expect(dialled).toEqual([PUBLIC]);
  const [seen] = server.seen;
  expect(seen?.serverName).toBe(PROVIDER_NAME);
  expect(seen?.head).toStartWith('POST /hook?x=1 HTTP/1.1\r\n');
  for (const line of [`Host: ${PROVIDER_NAME}`, 'webhook-id: msg_1', 'Content-Length: 7']) {
    expect(seen?.head.toLowerCase()).toContain(`${line.toLowerCase()}\r\n`);
  }
});

test('its name is resolved for each message, and judged each time', async () => {
  const server = await serveTls(http('200 OK', ''));
  const answers = [[PUBLIC], ['127.0.0.1'], [PUBLIC, '10.0.0.1'], ['::1'], ['169.254.169.254'], []];
  const { exchange, addresses } = leadTo(server.port);
  const post = openGuardedPost({ resolve: async () => answers.shift() ?? [], exchange });
  expect(await post(URL_OF_TARGET, MESSAGE)).toEqual({ kind: 'answered', status: 200, isSuccess: true });
  for (let rest = answers.length; rest > 0; rest -= 1) {
    expect(await post(URL_OF_TARGET, MESSAGE)).toEqual(UNREACHABLE);
  }
  expect(addresses).toEqual([PUBLIC]);
});

test.each([
  'http://example.com/',
  'https://127.0.0.1/',
  'https://[::1]/',
  'https://localhost/',
  'https://10.0.0.1/',
  'https://example.com:22/',
])('%s is never dialled', async (url) => {
  const server = await serveTls(http('200 OK', ''));
  const { post, dialled } = towards(server, ['127.0.0.1']);
  expect(await post(url, MESSAGE)).toEqual(UNREACHABLE);
  expect(dialled).toEqual([]);
});

test('a redirect to the inside is an answer like any other, and nobody follows it', async () => {
  const inside = await servePlain(http('200 OK', ''));
  const location = `http://127.0.0.1:${inside.port}/`;
  const server = await serveTls(http('307 Temporary Redirect', '', { Location: location }));
  expect(await towards(server).post(URL_OF_TARGET, MESSAGE)).toEqual({
    kind: 'answered',
    status: 307,
    isSuccess: false,
  });
  expect(inside.connections()).toBe(0);
});

test('another name in its certificate, or one that nobody vouches for, gets nothing', async () => {
  const server = await serveTls(http('200 OK', ''));
  const other = 'https://other.example.com/hook';
  expect(await towards(server).post(other, MESSAGE)).toEqual(UNREACHABLE);
  const { exchange } = leadTo(server.port, '');
  const post = openGuardedPost({ resolve: async () => [PUBLIC], exchange });
  expect(await post(URL_OF_TARGET, MESSAGE)).toEqual(UNREACHABLE);
  expect(server.seen).toEqual([]);
});

test('of 100 MiB no more than the bound is read', async () => {
  const { answer, count } = endless(
    'HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n',
    'x'.repeat(65_536),
  );
  const server = await serveTls(answer);
  expect(await towards(server).post(URL_OF_TARGET, MESSAGE)).toEqual({
    kind: 'answered',
    status: 200,
    isSuccess: true,
  });
  expect(count()).toBeLessThan(16 * 1_048_576);
});

test('interim answers without end come to an end', async () => {
  const { answer, count } = endless('', 'HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n'.repeat(1_000));
  const server = await serveTls(answer);
  expect(await towards(server).post(URL_OF_TARGET, MESSAGE)).toEqual(UNREACHABLE);
  expect(count()).toBeLessThan(16 * 1_048_576);
});

test('a status that comes in time counts, although the body trickles until the deadline', async () => {
  const server = await serveTls((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n');
    const timer = setInterval(() => socket.write('x'), 200);
    socket.on('close', () => clearInterval(timer));
  });
  const begun = performance.now();
  expect(await towards(server).post(URL_OF_TARGET, MESSAGE)).toEqual({
    kind: 'answered',
    status: 200,
    isSuccess: true,
  });
  expect(performance.now() - begun).toBeWithin(LIMITS.webhookMsMax - 200, LIMITS.webhookMsMax + 2_000);
}, 300_000);

test('it is broken off where its sender must stop', async () => {
  const server = await serveTls(() => undefined);
  const ending = new AbortController();
  const posting = towards(server).post(URL_OF_TARGET, MESSAGE, ending.signal);
  while (server.seen.length === 0) await Bun.sleep(5);
  ending.abort();
  expect(await posting).toEqual(UNREACHABLE);
  await server.ended;
  expect(await towards(server).post(URL_OF_TARGET, MESSAGE, ending.signal)).toEqual(UNREACHABLE);
});
