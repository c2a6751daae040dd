import { expect, test } from 'bun:test';
import { openGuardedPost } from '../../src/access/outbound/guarded_post.ts';
import { LIMITS } from '../../src/model/limits.ts';
import {
  endlessResponse,
  exchangeThrough,
  httpResponse,
  PROVIDER_NAME,
  PUBLIC_ADDRESS,
  type RawServer,
  servePlain,
  serveTls,
} from '../support/outbound_servers.ts';

/** Messages to misconfigured and hostile targets. */

const MESSAGE = { headers: { 'webhook-id': 'msg_1' }, body: Buffer.from('{"a":1}') };
const URL_OF_TARGET = `https://${PROVIDER_NAME}/hook?x=1`;

/** A post to the target's name, whose public address leads to a server. */
function postTo(server: RawServer, addresses: readonly string[] = [PUBLIC_ADDRESS]) {
  const { exchange, addresses: dialled } = exchangeThrough(server.port);
  const resolve = async () => addresses;
  return { post: openGuardedPost({ resolve, exchange }), dialled };
}

test('a webhook post sends its body and headers, and returns the status', async () => {
  const server = await serveTls(httpResponse('202 Accepted', 'thanks'));
  const { post, dialled } = postTo(server);
  expect(await post(URL_OF_TARGET, MESSAGE)).toBe(202);
  expect(dialled).toEqual([PUBLIC_ADDRESS]);
  const [seen] = server.requests;
  expect(seen?.serverName).toBe(PROVIDER_NAME);
  expect(seen?.head).toStartWith('POST /hook?x=1 HTTP/1.1\r\n');
  for (const line of [`Host: ${PROVIDER_NAME}`, 'webhook-id: msg_1', 'Content-Length: 7']) {
    expect(seen?.head.toLowerCase()).toContain(`${line.toLowerCase()}\r\n`);
  }
});

test('the host name of a webhook target is resolved and checked for each message', async () => {
  const server = await serveTls(httpResponse('200 OK', ''));
  const answers = [
    [PUBLIC_ADDRESS],
    ['127.0.0.1'],
    [PUBLIC_ADDRESS, '10.0.0.1'],
    ['::1'],
    ['169.254.169.254'],
    [],
  ];
  const { exchange, addresses } = exchangeThrough(server.port);
  const post = openGuardedPost({ resolve: async () => answers.shift() ?? [], exchange });
  expect(await post(URL_OF_TARGET, MESSAGE)).toBe(200);
  for (let rest = answers.length; rest > 0; rest -= 1) {
    expect(await post(URL_OF_TARGET, MESSAGE)).toBeUndefined();
  }
  expect(addresses).toEqual([PUBLIC_ADDRESS]);
});

test.each([
  'http://example.com/',
  'https://127.0.0.1/',
  'https://[::1]/',
  'https://localhost/',
  'https://10.0.0.1/',
  'https://example.com:22/',
])('the webhook URL %s is never dialled', async (url) => {
  const server = await serveTls(httpResponse('200 OK', ''));
  const { post, dialled } = postTo(server, ['127.0.0.1']);
  expect(await post(url, MESSAGE)).toBeUndefined();
  expect(dialled).toEqual([]);
});

test('a webhook redirect to an internal address is not followed', async () => {
  const inside = await servePlain(httpResponse('200 OK', ''));
  const location = `http://127.0.0.1:${inside.port}/`;
  const server = await serveTls(httpResponse('307 Temporary Redirect', '', { Location: location }));
  expect(await postTo(server).post(URL_OF_TARGET, MESSAGE)).toBe(307);
  expect(inside.connections()).toBe(0);
});

test('a server with a certificate of another name or an unknown issuer receives no webhook message', async () => {
  const server = await serveTls(httpResponse('200 OK', ''));
  const other = 'https://other.example.com/hook';
  expect(await postTo(server).post(other, MESSAGE)).toBeUndefined();
  const { exchange } = exchangeThrough(server.port, '');
  const post = openGuardedPost({ resolve: async () => [PUBLIC_ADDRESS], exchange });
  expect(await post(URL_OF_TARGET, MESSAGE)).toBeUndefined();
  expect(server.requests).toEqual([]);
});

test('a webhook post reads an answer of 100 MiB no further than the bound', async () => {
  const { answer, count } = endlessResponse(
    'HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n',
    'x'.repeat(65_536),
  );
  const server = await serveTls(answer);
  expect(await postTo(server).post(URL_OF_TARGET, MESSAGE)).toBe(200);
  expect(count()).toBeLessThan(16 * 1_048_576);
});

test('a webhook post that gets endless interim answers fails', async () => {
  const { answer, count } = endlessResponse('', 'HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n'.repeat(1_000));
  const server = await serveTls(answer);
  expect(await postTo(server).post(URL_OF_TARGET, MESSAGE)).toBeUndefined();
  expect(count()).toBeLessThan(16 * 1_048_576);
});

test('a webhook status received in time counts, although the body trickles until the deadline', async () => {
  const server = await serveTls((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n');
    const timer = setInterval(() => socket.write('x'), 200);
    socket.on('close', () => clearInterval(timer));
  });
  const begun = performance.now();
  expect(await postTo(server).post(URL_OF_TARGET, MESSAGE)).toBe(200);
  expect(performance.now() - begun).toBeWithin(LIMITS.webhookMsMax - 200, LIMITS.webhookMsMax + 10_000);
}, 300_000);

test('a webhook post with an aborted signal is unreachable, both under way and before it begins', async () => {
  const server = await serveTls(() => undefined);
  const ending = new AbortController();
  const posting = postTo(server).post(URL_OF_TARGET, MESSAGE, ending.signal);
  while (server.requests.length === 0) await Bun.sleep(5);
  ending.abort();
  expect(await posting).toBeUndefined();
  await server.ended;
  expect(await postTo(server).post(URL_OF_TARGET, MESSAGE, ending.signal)).toBeUndefined();
});
