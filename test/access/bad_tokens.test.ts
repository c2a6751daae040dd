import { beforeEach, expect, test } from 'bun:test';
import { createFixture, errorsOf, oidcPath, type Service, startService } from '../support/service.ts';

let service: Service;
let path: string;
const BUDGET = 5;
const ADDRESS = { 'X-Forwarded-For': '192.0.2.1' };
const OTHER_ADDRESS = { 'X-Forwarded-For': '192.0.2.2' };

beforeEach(async () => {
  service = await startService({ badTokenRate: `${BUDGET}/50`, trustedProxies: '127.0.0.0/8 ::1' });
  path = oidcPath(await createFixture(service.db));
});

/** A token with the signature of another token. */
async function forgedToken(): Promise<string> {
  const [first, second] = [await service.token('oidc-profile-infos:read'), await service.token('admin')];
  return [...first.split('.').slice(0, 2), second.split('.')[2]].join('.');
}

async function exhaustBudget(token: string): Promise<void> {
  for (let count = 0; count < BUDGET; count += 1) {
    expect((await service.get(path, token, ADDRESS)).status).toBe(401);
  }
}

test('an address with too many refused tokens is answered 429 until its budget refills', async () => {
  const bad = await forgedToken();
  await exhaustBudget(bad);
  const refused = await service.get(path, bad, ADDRESS);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '10']);
  expect((await errorsOf(refused))[0]?.title).toBe('Too Many Requests');
  expect((await service.get(path, bad, OTHER_ADDRESS)).status).toBe(401);
  service.clock.advance(10_000);
  const statuses = [await service.get(path, bad, ADDRESS), await service.get(path, bad, ADDRESS)];
  expect(statuses.map(({ status }) => status)).toEqual([401, 429]);
});

test('a malformed token counts against the budget, a missing one does not', async () => {
  for (let count = 0; count < BUDGET * 2; count += 1) {
    expect((await service.get(path, undefined, ADDRESS)).status).toBe(401);
  }
  await exhaustBudget('none');
  expect((await service.get(path, 'none', ADDRESS)).status).toBe(429);
  expect((await service.get(path, undefined, ADDRESS)).status).toBe(401);
});

test('over budget, an address may use its verified tokens but no new ones', async () => {
  const known = await service.token('oidc-profile-infos:read');
  expect((await service.get(path, known, OTHER_ADDRESS)).status).toBe(200);
  const unknown = await service.token('oidc-profile-infos:read');
  await exhaustBudget(await forgedToken());
  for (let count = 0; count < 3; count += 1)
    expect((await service.get(path, known, ADDRESS)).status).toBe(200);
  expect((await service.get(path, unknown, ADDRESS)).status).toBe(429);
  expect((await service.get(path, unknown, OTHER_ADDRESS)).status).toBe(200);
  expect((await service.get(path, unknown, ADDRESS)).status).toBe(200);
});

test('wrong client secrets at the token endpoint count against the same budget, right ones do not', async () => {
  const { clientId, secret } = await service.client('oidc-profile-infos:read');
  const grantStatus = async (tried: string, headers: Record<string, string>) =>
    (await service.requestGrant({ clientId, secret: tried }, headers)).status;
  for (let count = 0; count < BUDGET * 2; count += 1) expect(await grantStatus(secret, ADDRESS)).toBe(200);
  for (let count = 0; count < BUDGET; count += 1) expect(await grantStatus('guess', ADDRESS)).toBe(401);
  expect(await grantStatus('guess', ADDRESS)).toBe(429);
  expect(await grantStatus(secret, ADDRESS)).toBe(429);
  expect((await service.get(path, await forgedToken(), ADDRESS)).status).toBe(429);
  expect(await grantStatus(secret, OTHER_ADDRESS)).toBe(200);
});

test('without the limit every invalid token is verified', async () => {
  const other = await startService({ badTokenRate: 'off' });
  for (let count = 0; count < 150; count += 1) expect((await other.get(path, 'none')).status).toBe(401);
});

test('the limit of failed authentication is on by default', async () => {
  const other = await startService();
  let looked = 0;
  // The budget refills while the requests are sent, so a slow machine gets a few more of them through.
  while (looked < 1_000 && (await other.get(path, 'none')).status === 401) looked += 1;
  expect(looked).toBeWithin(100, 1_000);
});
