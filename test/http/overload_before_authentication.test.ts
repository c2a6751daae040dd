import { expect, test } from 'bun:test';
import { createFixture, type Fixture, startService } from '../support/service.ts';

test('requests of an overloaded kind of work are 503 before authentication, other kinds are not', async () => {
  const overloadedRealms = new Map<'get' | 'find' | 'write', string>();
  const of = (kind: 'get' | 'find' | 'write') => (realm: string | undefined) =>
    overloadedRealms.get(kind) === realm;
  const service = await startService({}, (engine) => {
    const overloaded = { get: of('get'), find: of('find'), write: of('write') };
    return { ...engine, records: { ...engine.records, overloaded } };
  });
  const [fixture, other] = [await createFixture(service.db), await createFixture(service.db)];
  const below = '/user-authentication-info';
  const found = '/user-authentication-oidc-profile-info';
  const requests = [
    ['get', 'GET', (at: Fixture) => `${below}/${at.user}`],
    ['find', 'GET', () => found],
    ['find', 'POST', () => `${found}/search`],
    ['write', 'POST', () => below],
    ['write', 'PUT', (at: Fixture) => `${below}/${at.user}`],
    ['write', 'DELETE', (at: Fixture) => `${below}/${at.user}`],
    ['write', 'POST', () => '/batch'],
  ] as const;
  const statuses = (at: Fixture) =>
    Promise.all(
      requests.map(async ([, method, path]) => {
        const url = `${service.url}/v2/authentication-realms/${at.realm}${path(at)}`;
        return (await fetch(url, { method })).status;
      }),
    );
  for (const kind of ['get', 'find', 'write'] as const) {
    overloadedRealms.clear();
    overloadedRealms.set(kind, fixture.realm);
    expect(await statuses(fixture)).toEqual(requests.map(([of]) => (of === kind ? 503 : 401)));
    expect(await statuses(other)).toEqual(requests.map(() => 401));
  }
});

test('requests of settings and sign-ins are 503 before authentication while their kind of work is overloaded', async () => {
  let overloadedKind = '';
  const of = (kind: string) => () => kind === overloadedKind;
  const service = await startService({}, (engine) => {
    const overloaded = { get: of('get'), write: of('write') };
    return { ...engine, records: { ...engine.records, overloaded } };
  });
  const { realm, user, passwordProfile, passwordLink } = await createFixture(service.db);
  const below = `/v2/authentication-realms/${realm}`;
  const link = `${below}/user-authentication-info/${user}/user-authentication-password-profile-info/${passwordLink}`;
  const requests = [
    ['get', 'GET', '/v2/settings'],
    ['get', 'GET', '/v2/account-members'],
    ['get', 'GET', `/v2/account-members/${user}`],
    ['get', 'POST', '/v2/account-members/tokens'],
    ['get', 'POST', `${below}/password-profiles/${passwordProfile}/check`],
    ['get', 'GET', `${below}/user-authentication-info/${user}/sign-in-state`],
    ['get', 'POST', `${link}/sign-in-throttle/lift`],
    ['write', 'PUT', '/v2/settings/account-authentication'],
    ['write', 'POST', `${below}/user-authentication-info/${user}/sign-out`],
  ] as const;
  for (const kind of ['get', 'write']) {
    overloadedKind = kind;
    for (const [of, method, path] of requests)
      expect([path, (await fetch(service.url + path, { method })).status]).toEqual([
        path,
        of === kind ? 503 : 401,
      ]);
  }
});
