import { afterAll, expect, test } from 'bun:test';
import { LIMITS } from '../../../src/model/limits.ts';
import {
  createParents,
  FULL_SCOPE,
  KINDS,
  type RecordBody,
  rowCounts,
  uniqueWord,
} from '../../support/resource_cases.ts';
import { comparableResponse, errorsOf, startService } from '../../support/service.ts';

/** Requests with an Idempotency-Key whose first request is still in progress. */

const kind = KINDS[1];
/** A function for each blocked request for a discovery document, which unblocks it. */
let blocked: (() => void)[] = [];
let isBlocking = false;

const provider = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch({ url }) {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (isBlocking) {
      blocked.push(resolve);
      await promise;
    }
    return Response.json({ issuer: url.replace('/.well-known/openid-configuration', '') });
  },
});
const service = await startService({ allowPrivate: 'localhost 127.0.0.0/8' });
const token = await service.token(FULL_SCOPE);
const home = await createParents(service, token, { discovery_url: discoveryUrl() });
afterAll(async () => {
  for (const release of blocked) release();
  await provider.stop(true);
});

function discoveryUrl(): string {
  return `http://127.0.0.1:${provider.port}/${uniqueWord('tenant')}/.well-known/openid-configuration`;
}

function post(data: object, key: string, bearer = token): Promise<Response> {
  return service.withoutRetry.post(kind.collection(home), bearer, { data }, { 'Idempotency-Key': key });
}

/** Waits until this many requests are blocked. */
async function untilBlocked(count: number): Promise<void> {
  while (blocked.length < count) await Bun.sleep(1);
}

function unblock(): void {
  isBlocking = false;
  for (const release of blocked) release();
  blocked = [];
}

test('a key whose request is in progress is 409 with Retry-After; afterwards it returns the response', async () => {
  const data = { ...kind.fresh(home), discovery_url: discoveryUrl() };
  const key = uniqueWord('key');
  isBlocking = true;
  const first = post(data, key);
  await untilBlocked(1);
  // Another body is 409 as well: the first request has no stored response to compare with yet.
  for (const body of [data, kind.fresh(home)]) {
    const again = await post(body, key);
    expect([again.status, again.headers.get('retry-after')]).toEqual([409, '1']);
    expect(await errorsOf(again)).toEqual([
      {
        status: '409',
        title: 'Conflict',
        detail: 'A request with this Idempotency-Key is being answered; try again',
        code: 'idempotency_key_in_use',
      },
    ]);
  }
  // The same key of another client is another key, and is not blocked.
  const other = await service.token(FULL_SCOPE);
  const otherClient = post(data, key, other);
  await untilBlocked(2);
  unblock();
  const answers = [await comparableResponse(await first), await comparableResponse(await otherClient)];
  expect(answers[0]).toStartWith('[201,');
  expect(answers[1]).toStartWith('[201,');
  expect(answers[0]).not.toBe(answers[1] as string);
  expect(await comparableResponse(await post(data, key))).toBe(answers[0] as string);
});

test('50 concurrent requests with one key create one record', async () => {
  const data = { ...kind.fresh(home), discovery_url: discoveryUrl() };
  const key = uniqueWord('key');
  const before = await rowCounts(service);
  const answers = await Promise.all(Array.from({ length: 50 }, () => post(data, key)));
  const statuses = answers.map(({ status }) => status);
  expect(statuses.filter((status) => status !== 409 && status !== 201)).toEqual([]);
  expect(statuses).toContain(201);
  const created = answers.filter(({ status }) => status === 201);
  const ids = await Promise.all(created.map(async (answer) => ((await answer.json()) as RecordBody).data.id));
  expect(new Set(ids).size).toBe(1);
  expect((await rowCounts(service)).oidc_profile).toBe((before.oidc_profile ?? 0) + 1);
});

test('a 503 is not stored: the same request succeeds once the service has capacity', async () => {
  isBlocking = true;
  const busy = Array.from({ length: LIMITS.discoveriesPerRealmMax }, () =>
    post({ ...kind.fresh(home), discovery_url: discoveryUrl() }, uniqueWord('key')),
  );
  await untilBlocked(LIMITS.discoveriesPerRealmMax);
  const data = { ...kind.fresh(home), discovery_url: discoveryUrl() };
  const key = uniqueWord('key');
  const before = await rowCounts(service);
  const refused = await post(data, key);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
  expect(await rowCounts(service)).toEqual(before);
  unblock();
  for (const answer of await Promise.all(busy)) expect(answer.status).toBe(201);
  expect((await post(data, key)).status).toBe(201);
});

test('a 422 for the URL of no provider is stored, and replayed by its code', async () => {
  const url = `${discoveryUrl()}?tenant=one`;
  const data = { ...kind.fresh(home), discovery_url: url };
  const key = uniqueWord('key');
  const refused = await post(data, key);
  expect([refused.status, (await errorsOf(refused))[0]?.detail]).toEqual([
    422,
    'data.discovery_url: must be an issuer followed by /.well-known/openid-configuration',
  ]);
  const again = await post(data, key);
  expect([again.status, (await errorsOf(again))[0]?.code]).toEqual([422, 'conflict']);
});
