import { expect, test } from 'bun:test';
import { exchangeBytes, getRequest } from '../support/raw_http.ts';
import { createFixture, LOOKUPS, startService } from '../support/service.ts';

/** The embedded database answers synchronously, so lookups on a connection can be pipelined. */

const service = await startService();
const fixture = await createFixture(service.db);
const RECORD = LOOKUPS[0].path(fixture);
const token = await service.token('profile-infos:read');
const authorization = `Authorization: Bearer ${token}\r\n`;
// The first check of a token is asynchronous.
await service.get(RECORD, token);

test('pipelined lookups are answered in order, each with its own request ID', async () => {
  const targets = ['/healthz', RECORD, '/nowhere', `${RECORD}/`, '/readyz'];
  const bytes = targets
    .map((target, at) => getRequest(target, `${authorization}X-Request-Id: n${at}\r\n`))
    .join('');
  const { responses } = await exchangeBytes(service.url, bytes, { expectedResponses: targets.length });
  expect(responses.map(({ status, headers }) => [status, headers.get('x-request-id')])).toEqual([
    [200, 'n0'],
    [200, 'n1'],
    [404, 'n2'],
    [200, 'n3'],
    [200, 'n4'],
  ]);
});

test('a body of a lookup is not read as a second request', async () => {
  const smuggled = getRequest('/nowhere');
  const first = getRequest(`${RECORD}/`, `${authorization}Content-Length: ${smuggled.length}\r\n`);
  const { responses } = await exchangeBytes(service.url, first + smuggled + getRequest('/readyz'), {
    expectedResponses: 2,
  });
  expect(responses.map(({ status }) => status)).toEqual([200, 200]);
});

test('a caller that has closed its side of the connection still gets the response', async () => {
  for (const target of [RECORD, '/readyz']) {
    const options = { isHalfClosed: true, expectedResponses: 2 };
    const { responses, isEnded } = await exchangeBytes(
      service.url,
      getRequest(target, authorization),
      options,
    );
    expect([responses.map(({ status }) => status), isEnded]).toEqual([[200], true]);
  }
});
