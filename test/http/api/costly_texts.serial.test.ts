import { afterAll, beforeAll, expect, test } from 'bun:test';
import { passwordProfileInfo, user } from '../../../src/domain/resources.ts';
import { FULL_SCOPE, type Home, kindOf, OFFLINE, settle } from '../../support/resource_cases.ts';
import { errorsOf, type Service, startService } from '../../support/service.ts';

/** Normalising a text can take time that grows with the square of its length: nothing long is ever normalised. */

let service: Service;
let token: string;
let home: Home;
beforeAll(async () => {
  service = await startService(OFFLINE);
  token = await service.token(FULL_SCOPE);
  home = await settle(service, token);
});
afterAll(() => service.stop());

/** Combining characters of two classes in turn, which normalisation sorts. */
const sortedSlowly = (pairs: number) => `e${'\u0301\u0316'.repeat(pairs)}`;

/** Milliseconds of one thread that the whole of an answer may take; unbounded, it takes two thousand. */
const MOST_MS = 200;

async function timed(ask: () => Promise<Response>): Promise<Response> {
  const before = process.cpuUsage();
  const answer = await ask();
  const { user: used, system } = process.cpuUsage(before);
  expect((used + system) / 1_000).toBeLessThan(MOST_MS);
  return answer;
}

test('a username of 60 KB is refused for its length, and at once', async () => {
  const { collection, fresh } = kindOf(passwordProfileInfo);
  const data = { ...fresh(home), username: sortedSlowly(14_000) };
  const answer = await timed(() => service.post(collection(home), token, { data }));
  expect(answer.status).toBe(400);
  expect((await errorsOf(answer)).map(({ detail }) => detail)).toEqual([
    'data.username: must have at most 255 characters',
  ]);
});

test('a filter of 8 KB is refused, and at once', async () => {
  const filter = `eq(username,${sortedSlowly(2_000)})`;
  const path = `/v2/authentication-realms/${home.realm}/${passwordProfileInfo.collection}/search`;
  const answer = await timed(() => service.post(path, token, { filter }));
  expect(answer.status).toBe(400);
});

test('so is one that a URL has room for', async () => {
  const filter = encodeURIComponent(`like(name,${sortedSlowly(600)}*)`);
  const path = `/v2/authentication-realms/${home.realm}/${user.collection}?filter=${filter}`;
  expect((await timed(() => service.get(path, token))).status).toBe(400);
});
