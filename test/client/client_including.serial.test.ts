import { describe, expect, test } from 'bun:test';
import { connect } from '../../src/client/client.ts';
import { errorOf } from '../support/client_library.ts';
import { FULL_SCOPE, OFFLINE } from '../support/resource_cases.ts';
import { ISSUER, startService } from '../support/service.ts';

/** Records with records below them, by the client library. */

const service = await startService(OFFLINE);
const { clientId, secret } = await service.client(FULL_SCOPE);
const directory = connect({ url: service.url, clientId, clientSecret: secret });

const JANE = { name: 'Jane Doe', email: 'jane@example.com' };
const LOGIN = {
  name: 'Login',
  discovery_url: `${ISSUER}.well-known/openid-configuration`,
  client_id: 'shop',
  client_secret: 'a-secret-of-the-provider',
};

async function createProfiles() {
  const realm = await directory.realms.create([], { name: 'Shop' });
  const oidc = await directory.oidcProfiles.create(realm.key, LOGIN);
  const passwords = await directory.passwordProfiles.create(realm.key, { name: 'Passwords' });
  return { realm, link: { issuer: oidc.issuer, oidc_profile_id: oidc.id }, passwords };
}

describe('a user with its links', () => {
  test('getIncluding returns a user with the links of the named kinds, newest first, with complete keys', async () => {
    const { realm, link, passwords } = await createProfiles();
    const user = await directory.users.create(realm.key, JANE);
    for (const subject of ['first', 'second'])
      await directory.oidcProfileInfos.create(user.key, { subject, ...link });
    await directory.passwordProfileInfos.create(user.key, {
      username: 'jane',
      password: 'correct horse battery staple',
      password_profile_id: passwords.id,
    });
    const names = ['oidcProfileInfos', 'passwordProfileInfos'] as const;
    const { included, ...found } = await directory.users.getIncluding(user.key, names);
    expect(found).toEqual(await directory.users.get(user.key));
    expect(included.oidcProfileInfos).toEqual(
      await Array.fromAsync(directory.oidcProfileInfos.list(user.key)),
    );
    expect(included.passwordProfileInfos.map(({ username, key }) => [username, key.length])).toEqual([
      ['jane', 3],
    ]);
    const one = await directory.users.getIncluding(user.key, ['oidcProfileInfos']);
    expect(Object.keys(one.included)).toEqual(['oidcProfileInfos']);
    expect((await directory.users.getIncluding(user.key, [])).included).toEqual({});
  });
});

describe('a user that is created with its links', () => {
  test('createIncluding creates all records once, and returns them as getIncluding does', async () => {
    const { realm, link } = await createProfiles();
    const included = { oidcProfileInfos: ['one', 'two'].map((subject) => ({ subject, ...link })) };
    const options = { idempotencyKey: crypto.randomUUID() };
    const user = await directory.users.createIncluding(realm.key, JANE, included, options);
    expect(await directory.users.createIncluding(realm.key, JANE, included, options)).toEqual(user);
    expect(await directory.users.getIncluding(user.key, ['oidcProfileInfos'])).toEqual(user);
    expect(user.included.oidcProfileInfos.map(({ subject }) => subject).toSorted()).toEqual(['one', 'two']);
    expect((await directory.users.createIncluding(realm.key, JANE, {})).included).toEqual({} as never);
    const error = await errorOf(directory.users.createIncluding(realm.key, JANE, included));
    expect([error.status, error.errors[0]?.source]).toEqual([422, { pointer: '/included/0/issuer' }]);
  });

  test('a service that does not know included is an error, not a user without links', async () => {
    const body = { data: { id: crypto.randomUUID(), meta: { created_at: '', updated_at: '' } }, links: {} };
    const old = connect({
      url: 'http://127.0.0.1:1',
      token: async () => 'x',
      fetch: async () => Response.json(body),
    });
    const key = [crypto.randomUUID(), crypto.randomUUID()] as const;
    const error = await errorOf(old.users.getIncluding(key, ['oidcProfileInfos']));
    expect(error.message).toBe('the service is too old to include records');
  });
});

describe('a batch', () => {
  test('writes records of a realm together, and returns them in the order of the requests', async () => {
    const { realm, link } = await createProfiles();
    const [user, gone] = [
      await directory.users.create(realm.key, JANE),
      await directory.users.create(realm.key, JANE),
    ];
    const [made, changed, linked, removed] = await directory.batch(realm.id, [
      { create: 'users', scope: realm.key, input: JANE },
      { update: 'users', key: user.key, changes: { name: 'Janet' }, ifMatch: user.etag },
      { create: 'oidcProfileInfos', scope: user.key, input: { subject: 'batched', ...link } },
      { delete: 'users', key: gone.key },
    ]);
    expect(made).toEqual(await directory.users.get(made?.key ?? [realm.id, '']));
    expect(changed).toEqual(await directory.users.get(user.key));
    expect([changed?.name, linked?.subject, linked?.key.slice(0, 2), removed]).toEqual([
      'Janet',
      'batched',
      user.key as never,
      undefined,
    ]);
    const stale = { update: 'users', key: user.key, changes: { name: 'x' }, ifMatch: user.etag } as const;
    const error = await errorOf(directory.batch(realm.id, [{ delete: 'users', key: user.key }, stale]));
    expect([error.status, error.errors[0]?.source]).toEqual([404, { pointer: '/requests/1/path' }]);
    expect(await directory.users.get(user.key)).toEqual(changed as never);
  });
});
