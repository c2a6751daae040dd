import { afterAll, beforeAll, expect, test } from 'bun:test';
import {
  createFixture,
  type Fixture,
  ISSUER,
  oidcPath,
  passwordPath,
  type Service,
  startService,
} from '../support/service.ts';

let service: Service;
let planted: Fixture;
let token: string;

beforeAll(async () => {
  service = await startService();
  planted = await createFixture(service.db);
  token = await service.token('profile-infos:read');
});
afterAll(() => service.stop());

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

test('an OIDC profile info record has exactly its documented members', async () => {
  const answer = await service.get(oidcPath(planted), token);
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual({
    data: {
      id: planted.oidcLink,
      type: 'user_authentication_oidc_profile_info',
      subject: planted.subject,
      issuer: ISSUER,
      oidc_profile_id: planted.oidcProfile,
      meta: { created_at: expect.stringMatching(INSTANT), updated_at: expect.stringMatching(INSTANT) },
    },
    links: { self: `${service.url}${oidcPath(planted)}` },
  });
});

test('a password profile info record has exactly its documented members, and a self link without /v2', async () => {
  const answer = await service.get(passwordPath(planted), token);
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual({
    data: {
      id: planted.passwordLink,
      type: 'user_authentication_password_profile_info',
      username: planted.username,
      password_profile_id: planted.passwordProfile,
      meta: { created_at: expect.stringMatching(INSTANT), updated_at: expect.stringMatching(INSTANT) },
    },
    links: { self: `${service.url}${passwordPath(planted).slice('/v2'.length)}` },
  });
});

test('links.self of a record returns the same bytes', async () => {
  for (const path of [oidcPath(planted), passwordPath(planted)]) {
    const first = await (await service.get(path, token)).text();
    const followed = await service.get(JSON.parse(first).links.self, token);
    expect(followed.status).toBe(200);
    expect(await followed.text()).toBe(first);
  }
});
