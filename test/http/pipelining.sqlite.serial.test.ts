import { afterAll, beforeAll, expect, test } from 'bun:test';
import { LOOKUPS, type Planted, plant, type Service, startService } from '../support/service.ts';
import { get, talkTo } from '../support/wire.ts';

/** A database inside the process answers at once: so do lookups, whatever stands behind them on their connection. */

let service: Service;
let planted: Planted;
let authorization: string;

beforeAll(async () => {
  service = await startService();
  planted = await plant(service.db);
  const token = await service.token('profile-infos:read');
  authorization = `Authorization: Bearer ${token}\r\n`;
  // A token that was never seen takes its time.
  await service.get(RECORD(), token);
});
afterAll(() => service.stop());

const RECORD = () => LOOKUPS[0].path(planted);

test('pipelined requests are answered in order, each with its own ID', async () => {
  const targets = ['/healthz', RECORD(), '/nowhere', `${RECORD()}/`, '/readyz'];
  const bytes = targets.map((target, at) => get(target, `${authorization}X-Request-Id: n${at}\r\n`)).join('');
  const { answers } = await talkTo(service.url, bytes, { answers: targets.length });
  expect(answers.map(({ status, headers }) => [status, headers.get('x-request-id')])).toEqual([
    [200, 'n0'],
    [200, 'n1'],
    [404, 'n2'],
    [200, 'n3'],
    [200, 'n4'],
  ]);
});

test('a body on GET is no second request', async () => {
  const smuggled = get('/nowhere');
  const first = get(`${RECORD()}/`, `${authorization}Content-Length: ${smuggled.length}\r\n`);
  const { answers } = await talkTo(service.url, first + smuggled + get('/readyz'), { answers: 2 });
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
});

test('a caller that has ended its half still gets its answer', async () => {
  for (const target of [RECORD(), '/readyz']) {
    const asking = { isHalfClosed: true, answers: 2 };
    const { answers, isEnded } = await talkTo(service.url, get(target, authorization), asking);
    expect([answers.map(({ status }) => status), isEnded]).toEqual([[200], true]);
  }
});
