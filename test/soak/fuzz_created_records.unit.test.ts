import { afterAll, beforeEach, expect, test } from 'bun:test';
import { LIMITS } from '../../src/model/limits.ts';
import { type CreatedRecords, openCreatedRecords } from './fuzz/created_records.ts';

/** How the fuzzer removes the records that it created. */

const KEYS_MAX = LIMITS.signingKeysMax / 2;

/** Statuses of the next responses; then 200. */
let statuses: number[] = [];
let requests: string[] = [];
let created: CreatedRecords;
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch(request) {
    requests.push(`${request.method} ${new URL(request.url).pathname}`);
    return new Response(null, { status: statuses.shift() ?? 200 });
  },
});
const nameOf = (at: number) => `/admin/v1/signing-keys/${at}`;
const withdrawalOf = (at: number) => `POST ${nameOf(at)}/withdraw`;
const trim = () => created.trim(async () => 'Bearer token');

afterAll(() => server.stop(true));

beforeEach(() => {
  [statuses, requests, created] = [[], [], openCreatedRecords()];
  for (let at = 0; at < KEYS_MAX + 2; at += 1) created.add(`${server.url.origin}${nameOf(at)}`);
});

test('the oldest keys are withdrawn down to the bound', async () => {
  await trim();
  await trim();
  expect(requests).toEqual([withdrawalOf(0), withdrawalOf(1)]);
});

test('a key that cannot be withdrawn now is tried first the next time; a permanent error skips it', async () => {
  statuses = [503];
  await trim();
  expect(requests).toEqual([withdrawalOf(0)]);
  statuses = [409];
  await trim();
  expect(requests.slice(1)).toEqual([withdrawalOf(0), withdrawalOf(1)]);
});

test('no record is dropped when the token or the service is missing', async () => {
  await expect(created.trim(() => Promise.reject(new Error('no token')))).rejects.toThrow('no token');
  expect(requests).toEqual([]);
  created = openCreatedRecords();
  // No server listens there.
  for (let at = 0; at < KEYS_MAX + 1; at += 1) created.add(`http://127.0.0.1:1${nameOf(at)}`);
  for (let tries = 0; tries < 2; tries += 1) await expect(trim()).rejects.toThrow(/127\.0\.0\.1:1|connect/i);
});

test('records are deleted above a higher bound than keys', async () => {
  for (let at = 0; at < 201; at += 1) created.add(`${server.url.origin}/admin/v1/clients/${at}`);
  await trim();
  expect(requests).toEqual([withdrawalOf(0), withdrawalOf(1), 'DELETE /admin/v1/clients/0']);
});
