import { expect, test } from 'bun:test';
import { passwordProfileInfo, user } from '../../../src/model/resources.ts';
import { createParents, FULL_SCOPE, kindOf, OFFLINE } from '../../support/resource_cases.ts';
import { errorsOf, startService } from '../../support/service.ts';

/** Unicode normalization can take time quadratic in the length of a text, so long texts are rejected before it. */

const service = await startService(OFFLINE);
const token = await service.token(FULL_SCOPE);
const home = await createParents(service, token);

/** Alternating combining characters of two classes, which normalization sorts. */
const slowToNormalize = (pairs: number) => `e${'\u0301\u0316'.repeat(pairs)}`;

/** The maximum CPU time of a request; with normalization it takes two seconds. */
const CPU_MS_MAX = 500;

async function withinCpuLimit(send: () => Promise<Response>): Promise<Response> {
  const before = process.cpuUsage();
  const answer = await send();
  const { user: used, system } = process.cpuUsage(before);
  expect((used + system) / 1_000).toBeLessThan(CPU_MS_MAX);
  return answer;
}

test('a username of 60 KB is 400 for its length, without normalization', async () => {
  const { collection, fresh } = kindOf(passwordProfileInfo);
  const data = { ...fresh(home), username: slowToNormalize(14_000) };
  const answer = await withinCpuLimit(() => service.post(collection(home), token, { data }));
  expect(answer.status).toBe(400);
  expect((await errorsOf(answer)).map(({ detail }) => detail)).toEqual([
    'data.username: must have at most 255 characters',
  ]);
});

test('a filter of 8 KB in a body is 400, without normalization', async () => {
  const filter = `eq(username,${slowToNormalize(2_000)})`;
  const path = `/v2/authentication-realms/${home.realm}/${passwordProfileInfo.collection}/search`;
  const answer = await withinCpuLimit(() => service.post(path, token, { filter }));
  expect(answer.status).toBe(400);
});

test('a long filter in a URL is 400, without normalization', async () => {
  const filter = encodeURIComponent(`like(name,${slowToNormalize(600)}*)`);
  const path = `/v2/authentication-realms/${home.realm}/${user.collection}?filter=${filter}`;
  expect((await withinCpuLimit(() => service.get(path, token))).status).toBe(400);
});
