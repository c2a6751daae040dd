import { afterAll, beforeEach, expect, test } from 'bun:test';
import { LIMITS } from '../../src/domain/limits.ts';
import { type Made, openMade } from './fuzzing/made.ts';

/** What the fuzzer removes of what it made. */

const LEFT = LIMITS.signingKeysMax / 2;

/** What the next requests are answered; then 200. */
let statuses: number[] = [];
let asked: string[] = [];
let made: Made;
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch(request) {
    asked.push(`${request.method} ${new URL(request.url).pathname}`);
    return new Response(null, { status: statuses.shift() ?? 200 });
  },
});
const nameOf = (at: number) => `/admin/v1/signing-keys/${at}`;
const withdrawalOf = (at: number) => `POST ${nameOf(at)}/withdraw`;
const trim = () => made.trim(async () => 'Bearer token');

afterAll(() => server.stop(true));

beforeEach(() => {
  [statuses, asked, made] = [[], [], openMade()];
  for (let at = 0; at < LEFT + 2; at += 1) made.note(`${server.url.origin}${nameOf(at)}`);
});

test('the oldest keys are withdrawn until as many are left as may be', async () => {
  await trim();
  await trim();
  expect(asked).toEqual([withdrawalOf(0), withdrawalOf(1)]);
});

test('what cannot be withdrawn now is the first to be the next time; what never can is passed over', async () => {
  statuses = [503];
  await trim();
  expect(asked).toEqual([withdrawalOf(0)]);
  statuses = [409];
  await trim();
  expect(asked.slice(1)).toEqual([withdrawalOf(0), withdrawalOf(1)]);
});

test('nothing is forgotten where nobody has the right to, or nobody answers', async () => {
  await expect(made.trim(() => Promise.reject(new Error('no token')))).rejects.toThrow('no token');
  expect(asked).toEqual([]);
  made = openMade();
  // Nobody listens there.
  for (let at = 0; at < LEFT + 1; at += 1) made.note(`http://127.0.0.1:1${nameOf(at)}`);
  for (let tries = 0; tries < 2; tries += 1) await expect(trim()).rejects.toThrow(/127\.0\.0\.1:1|connect/i);
});

test('records are deleted, and many more of them are left', async () => {
  for (let at = 0; at < 201; at += 1) made.note(`${server.url.origin}/admin/v1/clients/${at}`);
  await trim();
  expect(asked).toEqual([withdrawalOf(0), withdrawalOf(1), 'DELETE /admin/v1/clients/0']);
});
