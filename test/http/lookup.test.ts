import { expect, test } from 'bun:test';
import { createFixture, ISSUER, oidcPath, passwordPath, startService } from '../support/service.ts';

const service = await startService();
const fixture = await createFixture(service.db);
const token = await service.token('profile-infos:read');

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

test('an OIDC profile info record has exactly its documented members', async () => {
  const answer = await service.get(oidcPath(fixture), token);
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual({
    data: {
      id: fixture.oidcLink,
      type: 'user_authentication_oidc_profile_info',
      subject: fixture.subject,
      issuer: ISSUER,
      oidc_profile_id: fixture.oidcProfile,
      meta: { created_at: expect.stringMatching(INSTANT), updated_at: expect.stringMatching(INSTANT) },
    },
    links: { self: `${service.url}${oidcPath(fixture)}` },
  });
});

test('a password profile info record has exactly its documented members, and a self link without /v2', async () => {
  const answer = await service.get(passwordPath(fixture), token);
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual({
    data: {
      id: fixture.passwordLink,
      type: 'user_authentication_password_profile_info',
      username: fixture.username,
      password_profile_id: fixture.passwordProfile,
      meta: { created_at: expect.stringMatching(INSTANT), updated_at: expect.stringMatching(INSTANT) },
    },
    links: { self: `${service.url}${passwordPath(fixture).slice('/v2'.length)}` },
  });
});

test('links.self of a record returns the same bytes', async () => {
  for (const path of [oidcPath(fixture), passwordPath(fixture)]) {
    const first = await (await service.get(path, token)).text();
    const followed = await service.get(JSON.parse(first).links.self, token);
    expect(followed.status).toBe(200);
    expect(await followed.text()).toBe(first);
  }
});
