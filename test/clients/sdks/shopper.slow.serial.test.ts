import { expect, test } from 'bun:test';
import { PASSWORD, uniqueWord } from '../../support/resource_cases.ts';
import { fetchWithRetry } from '../../support/retry.ts';
import { createFixture, passwordPath, startService } from '../../support/service.ts';
import { shopperSdk } from './sdks.ts';

const { client, updatePasswordProfileInfo } = shopperSdk;

/** The generated shopper SDK of newer storefronts, from npm (docs/clients.md). */

const service = await startService();
const fixture = await createFixture(service.db);
const token = await service.token('password-profile-infos:write password-profile-infos:read');
const headers = { Authorization: `Bearer ${token}` };
client.setConfig({ baseUrl: service.url, fetch: fetchWithRetry, headers });

function update(data: object, id: string = fixture.passwordLink) {
  return updatePasswordProfileInfo({
    path: {
      realmId: fixture.realm,
      userAuthenticationInfoId: fixture.user,
      userAuthenticationPasswordProfileInfoId: id,
    },
    body: { data } as NonNullable<Parameters<typeof updatePasswordProfileInfo>[0]>['body'],
  });
}

const TYPE = 'user_authentication_password_profile_info';

test('updatePasswordProfileInfo of the SDK changes username and password', async () => {
  const input = { id: fixture.passwordLink, type: TYPE, username: uniqueWord('ann'), password: PASSWORD };
  const { data, error, response } = await update(input);
  expect([response.status, error]).toEqual([200, undefined]);
  expect(data as unknown).toEqual({
    data: {
      id: fixture.passwordLink,
      type: TYPE,
      username: input.username,
      password_profile_id: fixture.passwordProfile,
      meta: { created_at: expect.any(String), updated_at: expect.any(String) },
    },
    links: { self: service.url + passwordPath(fixture).slice('/v2'.length) },
  });
});

test('updatePasswordProfileInfo returns errors of the service', async () => {
  const short = await update({
    id: fixture.passwordLink,
    type: TYPE,
    username: uniqueWord('ann'),
    password: 'short',
  });
  expect([short.data, short.response.status]).toEqual([undefined, 400]);
  expect(short.error as unknown).toEqual({
    errors: [
      {
        status: '400',
        title: 'Bad Request',
        detail: 'data.password: must have at least 8 characters after NFKC',
        code: 'invalid',
        source: { pointer: '/data/password' },
      },
    ],
  });
  const other = await update({
    id: fixture.user,
    type: TYPE,
    username: uniqueWord('ann'),
    password: PASSWORD,
  });
  expect(other.response.status).toBe(422);
  const absent = await update({ type: TYPE }, fixture.user);
  expect(absent.response.status).toBe(404);
});
