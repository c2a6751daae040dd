import { expect, test } from 'bun:test';
import { type Planted, plant, startService } from '../support/service.ts';

test('where an engine has too much of a kind of work, all of it is refused before anybody asks who it is', async () => {
  const crowded = new Map<'get' | 'find' | 'write', string>();
  const of = (kind: 'get' | 'find' | 'write') => (realm: string | undefined) => crowded.get(kind) === realm;
  const service = await startService({}, (engine) => {
    const overloaded = { get: of('get'), find: of('find'), write: of('write') };
    return { ...engine, records: { ...engine.records, overloaded } };
  });
  const [planted, other] = [await plant(service.db), await plant(service.db)];
  const below = '/user-authentication-info';
  const found = '/user-authentication-oidc-profile-info';
  const asked = [
    ['get', 'GET', (at: Planted) => `${below}/${at.user}`],
    ['find', 'GET', () => found],
    ['find', 'POST', () => `${found}/search`],
    ['write', 'POST', () => below],
    ['write', 'PUT', (at: Planted) => `${below}/${at.user}`],
    ['write', 'DELETE', (at: Planted) => `${below}/${at.user}`],
  ] as const;
  const statuses = (at: Planted) =>
    Promise.all(
      asked.map(async ([, method, path]) => {
        const url = `${service.url}/v2/authentication-realms/${at.realm}${path(at)}`;
        return (await fetch(url, { method })).status;
      }),
    );
  for (const kind of ['get', 'find', 'write'] as const) {
    crowded.clear();
    crowded.set(kind, planted.realm);
    expect(await statuses(planted)).toEqual(asked.map(([of]) => (of === kind ? 503 : 401)));
    expect(await statuses(other)).toEqual(asked.map(() => 401));
  }
  await service.stop();
});
