import { afterEach, beforeEach, expect, test } from 'bun:test';
import { createFixture, errorsOf, oidcPath, type Service, startService } from '../support/service.ts';

let service: Service;
let path: string;
const BUDGET = 5;
const OFFICE = { 'X-Forwarded-For': '192.0.2.1' };
const ELSEWHERE = { 'X-Forwarded-For': '192.0.2.2' };

beforeEach(async () => {
  service = await startService({ badTokenRate: `${BUDGET}/50`, trustedProxies: '127.0.0.0/8 ::1' });
  path = oidcPath(await createFixture(service.db));
});
afterEach(() => service.stop());

/** A token with the signature of another one. */
async function forged(): Promise<string> {
  const [one, other] = [await service.token('oidc-profile-infos:read'), await service.token('admin')];
  return [...one.split('.').slice(0, 2), other.split('.')[2]].join('.');
}

async function spend(token: string): Promise<void> {
  for (let count = 0; count < BUDGET; count += 1) {
    expect((await service.get(path, token, OFFICE)).status).toBe(401);
  }
}

test('after so many refused tokens an address is 429, until its budget refills', async () => {
  const bad = await forged();
  await spend(bad);
  const refused = await service.get(path, bad, OFFICE);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '10']);
  expect((await errorsOf(refused))[0]?.title).toBe('Too Many Requests');
  expect((await service.get(path, bad, ELSEWHERE)).status).toBe(401);
  service.clock.advance(10_000);
  const statuses = [await service.get(path, bad, OFFICE), await service.get(path, bad, OFFICE)];
  expect(statuses.map(({ status }) => status)).toEqual([401, 429]);
});

test('what is no token at all counts as well, and no token at all does not', async () => {
  for (let count = 0; count < BUDGET * 2; count += 1) {
    expect((await service.get(path, undefined, OFFICE)).status).toBe(401);
  }
  await spend('none');
  expect((await service.get(path, 'none', OFFICE)).status).toBe(429);
  expect((await service.get(path, undefined, OFFICE)).status).toBe(401);
});

test('a token that was seen to be good goes on; one that was not waits', async () => {
  const known = await service.token('oidc-profile-infos:read');
  expect((await service.get(path, known, ELSEWHERE)).status).toBe(200);
  const unknown = await service.token('oidc-profile-infos:read');
  await spend(await forged());
  for (let times = 0; times < 3; times += 1)
    expect((await service.get(path, known, OFFICE)).status).toBe(200);
  expect((await service.get(path, unknown, OFFICE)).status).toBe(429);
  expect((await service.get(path, unknown, ELSEWHERE)).status).toBe(200);
  expect((await service.get(path, unknown, OFFICE)).status).toBe(200);
});

test('guesses at the token endpoint spend the same budget, right ones do not', async () => {
  const { clientId, secret } = await service.client('oidc-profile-infos:read');
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
  const ask = async (client_secret: string, headers: Record<string, string>) =>
    (await service.requestToken({ ...form, client_secret }, headers)).status;
  for (let count = 0; count < BUDGET * 2; count += 1) expect(await ask(secret, OFFICE)).toBe(200);
  for (let count = 0; count < BUDGET; count += 1) expect(await ask('guess', OFFICE)).toBe(401);
  expect(await ask('guess', OFFICE)).toBe(429);
  expect(await ask(secret, OFFICE)).toBe(429);
  expect((await service.get(path, await forged(), OFFICE)).status).toBe(429);
  expect(await ask(secret, ELSEWHERE)).toBe(200);
});

test('without the limit every invalid token is verified', async () => {
  const other = await startService({ badTokenRate: 'off' });
  for (let count = 0; count < 150; count += 1) expect((await other.get(path, 'none')).status).toBe(401);
  await other.stop();
});

test('the limit of failed authentication is on by default', async () => {
  const other = await startService();
  const statuses = [];
  for (let count = 0; count < 101; count += 1) statuses.push((await other.get(path, 'none')).status);
  expect(statuses.filter((status) => status === 401)).toHaveLength(100);
  expect(statuses.at(-1)).toBe(429);
  await other.stop();
});
