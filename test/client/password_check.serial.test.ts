import { expect, test } from 'bun:test';
import { type AuthrealmError, connect } from '../../src/client/client.ts';
import { realm } from '../../src/model/resources.ts';
import { systemClock } from '../../src/ops/process/clock.ts';
import { insertRecord, realmMembers, startService } from '../support/service.ts';
import { createPassword, createSignInClient } from '../support/sign_in.ts';

/** `checkPassword` of the client library: docs/client.md. */

const service = await startService();
const realmId = systemClock.mintId();
await insertRecord(service.db, realm, [realmId], realmMembers);
const jane = await createPassword(service.db, realmId);
const credentials = await createSignInClient(service);

const END_USER = { endUserAddress: '192.0.2.7' };

function openClient() {
  const requests: RequestInit[] = [];
  const send = (url: string, init: RequestInit) => {
    requests.push(init);
    return fetch(url, init);
  };
  const { clientId, secret: clientSecret } = credentials;
  return { directory: connect({ url: service.url, clientId, clientSecret, fetch: send }), requests };
}

test('checkPassword names the user of a right password, and nothing of a wrong one', async () => {
  const { directory } = openClient();
  const { username, password } = jane;
  const right = await directory.checkPassword([jane.realm, jane.profile], { username, password }, END_USER);
  expect(right).toEqual({ verified: true, userId: jane.user, infoId: jane.info, device: expect.any(String) });
  const wrong = { username, password: 'wrong horse' };
  expect(await directory.checkPassword([jane.realm, jane.profile], wrong, END_USER)).toEqual({
    verified: false,
  });
});

test('checkPassword sends a device token, and a throttled request once', async () => {
  const { directory, requests } = openClient();
  const { realm: realmId, profile, username, password } = await createPassword(service.db, jane.realm);
  const check = (typed: string, device?: string) =>
    directory.checkPassword([realmId, profile], { username, password: typed }, { ...END_USER, device });
  const right = await check(password);
  for (let count = 0; count < 10; count += 1) await check('wrong horse');
  const before = requests.length;
  const refused = await check(password).catch((error: unknown) => error);
  const { status, retryAfterS } = refused as AuthrealmError;
  expect(status).toBe(429);
  // One more wrong password of a name from an address after 90 s.
  expect(retryAfterS).toBeGreaterThan(30);
  expect(retryAfterS).toBeLessThanOrEqual(90);
  expect(requests).toHaveLength(before + 1);
  const device = right.verified ? right.device : '';
  expect(await check(password, device)).toMatchObject({ verified: true });
});
