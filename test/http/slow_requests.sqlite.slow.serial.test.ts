import { expect, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import { exchangeBytes, getRequest, type RawExchange } from '../support/raw_http.ts';
import { startService } from '../support/service.ts';

/** Requests whose bytes arrive slowly or not at all. */

const service = await startService();
const HEADER = 'GET /healthz HTTP/1.1\r\nHost: a\r\nX: ';
const post = (header: string, body = '') =>
  `POST /oauth/token HTTP/1.1\r\nHost: a\r\n${header}\r\n\r\n${body}`;

const exchanges = startExchanges();

/** Each takes seconds, so they run concurrently. */
function startExchanges(): Record<string, Promise<RawExchange>> {
  const timeoutMs = 30_000;
  const talk = (bytes: string, drip?: string) =>
    exchangeBytes(service.url, bytes, { timeoutMs, ...(drip === undefined ? {} : { drip }) });
  return {
    silence: talk(''),
    'half a header': talk(HEADER),
    'a header that never ends': talk(HEADER, 'x'),
    'a body that stops': talk(post('Content-Length: 100', 'grant_type=')),
    'a body that drips': talk(post('Content-Length: 100'), 'x'),
    'a chunked body that drips': talk(post('Transfer-Encoding: chunked'), '1\r\nx\r\n'),
    'an idle connection': exchangeBytes(service.url, getRequest('/healthz'), {
      timeoutMs: 13_000,
      expectedResponses: 2,
    }),
  };
}

test.each(['a body that stops', 'a body that drips', 'a chunked body that drips'])(
  '%s is answered 408 at the time limit',
  async (what) => {
    const { responses, ms } = (await exchanges[what]) as RawExchange;
    // At `answerMsMax` the answer would be 503.
    expect(responses.map((answer) => answer.status)).toEqual([408]);
    expect(ms).toBeGreaterThan(LIMITS.bodyMsMax - 100);
  },
  300_000,
);

/** The runtime allows 10 seconds for the header, and checks every 4. */
test.each(['silence', 'half a header', 'a header that never ends'])(
  'a connection with %s is closed without a response',
  async (what) => {
    const { responses, isEnded, ms } = (await exchanges[what]) as RawExchange;
    expect(responses).toEqual([]);
    expect(isEnded).toBe(true);
    expect(ms).toBeWithin(7_000, 29_900);
  },
  300_000,
);

test('an idle connection stays open after a request, longer than the limit for headers', async () => {
  const { responses, isEnded } = (await exchanges['an idle connection']) as RawExchange;
  expect([responses.length, isEnded]).toEqual([1, false]);
}, 300_000);
