import { describe, expect, test } from 'bun:test';
import { systemClock } from '../../../src/ops/process/clock.ts';
import {
  checkedResponse,
  createFixture,
  type Fixture,
  LOOKUPS,
  startService,
} from '../../support/service.ts';

let storeReads = 0;
const tokens: Record<string, string> = {};

const service = await startService({}, (engine) => ({
  ...engine,
  records: {
    ...engine.records,
    get: (resource, key) => {
      storeReads += 1;
      return engine.records.get(resource, key);
    },
  },
}));
const fixture = await createFixture(service.db);
tokens.full = await service.token('profile-infos:read');
tokens.writer = await service.token('profile-infos:write users:read realms:read profiles:read admin');
tokens.oidc = await service.token('oidc-profile-infos:read');
tokens.password = await service.token('password-profile-infos:read');
tokens.otherRealm = await service.token('profile-infos:write', new Set([systemClock.mintId()]));

const CHALLENGE = 'Bearer realm="authrealm"';

/** [the case, its token, the change to the path, the status]: checks run in the order 401, 403, 404. */
const ROWS: [string, string | undefined, Partial<Record<keyof Fixture, string>>, number][] = [
  ['no token for an existing record', undefined, {}, 401],
  ['no token for a malformed ID', undefined, { user: 'x' }, 401],
  ['an invalid token for an absent record', 'bad', { user: systemClock.mintId() }, 401],
  ['a token without the scope for an existing record', 'writer', {}, 403],
  ['a token without the scope for an absent record', 'writer', { user: systemClock.mintId() }, 403],
  ['a token without the scope for a malformed ID', 'writer', { user: 'x' }, 403],
  ['a token without the scope and for another realm', 'otherRealm', {}, 403],
  ['a token with the scope for an absent record', 'full', { user: systemClock.mintId() }, 404],
  ['a token with the scope for a malformed ID', 'full', { user: 'x' }, 404],
];

describe.each(LOOKUPS)('$name', ({ path, scope }) => {
  test.each(ROWS)(
    'a lookup with %s has the status of the first failed check',
    async (_name, bearer, change, status) => {
      storeReads = 0;
      const address = path({ ...fixture, ...change } as Fixture);
      const answer = await service.get(address, bearer && (tokens[bearer] ?? bearer));
      expect(answer.status).toBe(status);
      expect(answer.headers.get('www-authenticate')).toBe(
        { 401: bearer ? `${CHALLENGE}, error="invalid_token"` : CHALLENGE, 403: refusal(scope), 404: null }[
          status
        ] as string,
      );
      if (status < 404) expect(storeReads).toBe(0);
    },
  );

  test.each(['POST', 'PATCH', 'OPTIONS', 'PROPFIND'])(
    'the unsupported method %s is 405 before authentication',
    async (method) => {
      for (const address of [path(fixture), `${path(fixture)}/`, path({ ...fixture, user: 'x' } as never)]) {
        const answer = await fetch(service.url + address, { method });
        expect(answer.status).toBe(405);
        expect(answer.headers.get('allow')).toBe('GET, HEAD, PUT, DELETE');
        expect(answer.headers.get('www-authenticate')).toBeNull();
        await checkedResponse(answer, [fixture.realm, fixture.user]);
      }
    },
  );
});

function refusal(scope: string): string {
  return `${CHALLENGE}, error="insufficient_scope", scope="${scope}"`;
}

test('a wrong media type is 415 before the realm of settings and the address of an end user are checked', async () => {
  const outside = await service.token('settings:write sign-in', new Set([systemClock.mintId()]));
  const headers = { Authorization: `Bearer ${outside}`, 'Content-Type': 'text/plain' };
  for (const [method, path] of [
    ['PUT', '/v2/settings/account-authentication'],
    ['POST', '/v2/account-members/tokens'],
  ] as const) {
    const answer = await fetch(service.url + path, { method, headers, body: '{}' });
    expect([path, answer.status]).toEqual([path, 415]);
  }
});

test('GET of a token endpoint is 405, with POST in Allow', async () => {
  for (const path of ['/oauth/access_token', '/oauth/token', '/oauth//token/']) {
    const answer = await service.get(path);
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
  }
});

const UNKNOWN = [
  '/v2',
  '/v3/healthz',
  '/authentication-realms',
  '/V2/AUTHENTICATION-REALMS',
  '/v2/authentication%2Drealms/a/user-authentication-info/b/user-authentication-oidc-profile-info/c',
  '/authentication-realms/a/user-authentication-info/b/user-authentication-oidc-profile-info/c',
  '/authentication-realms/a/user-authentication-info/b/user-authentication-password-profile-info',
  '/v2/authentication-realms/a/user-authentication-info/b/user-authentication-oidc-profile-info/c/d',
  '/v2/authentication-realms/a/user-authentication-info//user-authentication-oidc-profile-info/c',
  '/v2/v2/authentication-realms/a/user-authentication-info/b/user-authentication-oidc-profile-info/c',
  '/v2/authentication-realms/a/user-authentication-openid-connect-profile-info/c',
  '/%2Fhealthz',
  '/health%7A',
  '/constructor',
];

test.each(UNKNOWN)('the unknown path %s is 404, with a token and without, for every method', async (path) => {
  for (const bearer of [undefined, tokens.full]) {
    const answer = await service.get(path, bearer);
    expect(answer.status).toBe(404);
    expect(await answer.text()).toContain('No such path');
  }
  expect((await fetch(service.url + path, { method: 'DELETE' })).status).toBe(404);
});
