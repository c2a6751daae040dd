import { describe, expect, test } from 'bun:test';
import {
  above,
  allOf,
  anyOf,
  connect,
  contains,
  endsWith,
  eq,
  type FilterTerm,
  isNull,
  matches,
  oneOf,
  rawFilter,
  startsWith,
} from '../../src/client/client.ts';
import { DESCRIPTIONS, RESOURCES } from '../../src/model/resources.ts';
import { errorOf } from '../support/client_library.ts';
import { ISSUER, startService } from '../support/service.ts';

/** The client library against the real service, as other programs use it. */

const SCOPE = ['realms', 'profiles', 'users', 'profile-infos'].flatMap((noun) => [
  `${noun}:read`,
  `${noun}:write`,
]);

const service = await startService({ offline: 'true' });
const { clientId, secret } = await service.client(SCOPE.join(' '));
const credentials = { clientId, clientSecret: secret };
const directory = connect({ url: service.url, ...credentials });

async function everything<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const newRealm = () => directory.realms.create([], { name: 'Shop' });
const newUser = (realm: { readonly id: string }, name = 'Jane Doe', email = 'jane@example.com') =>
  directory.users.create([realm.id], { name, email });
const newOidcProfile = (realm: { readonly id: string }) =>
  directory.oidcProfiles.create([realm.id], {
    name: 'Login',
    discovery_url: `${ISSUER}.well-known/openid-configuration`,
    client_id: 'shop',
    client_secret: 'a-secret-of-the-provider',
  });

test('the client library has a collection for every resource', () => {
  expect(new Set<object>(Object.values(DESCRIPTIONS))).toEqual(new Set<object>(RESOURCES));
});

describe('single records', () => {
  test('the client library creates, reads, updates and deletes a record of each resource', async () => {
    const realm = await directory.realms.create([], {
      name: 'Shop',
      redirect_uris: ['https://shop.example/back'],
    });
    expect(realm).toMatchObject({
      key: [realm.id],
      name: 'Shop',
      redirect_uris: ['https://shop.example/back'],
      duplicate_email_policy: 'allowed',
      origin: { data: { type: 'account_authentication_settings' } },
      links: { self: `${service.url}/v2/authentication-realms/${realm.id}` },
    });
    const oidcProfile = await newOidcProfile(realm);
    expect(oidcProfile).toMatchObject({ key: [realm.id, oidcProfile.id], issuer: ISSUER.replace(/\/$/, '') });
    expect(oidcProfile).not.toHaveProperty('client_secret');
    expect(Object.keys(oidcProfile.links)).toContain('authorization-endpoint');
    const passwordProfile = await directory.passwordProfiles.create([realm.id], { name: 'Passwords' });
    expect(passwordProfile).toMatchObject({ username_format: 'any', enable_one_time_password_token: false });
    const user = await newUser(realm);
    expect(user).toMatchObject({ given_name: null, creation_status: 'COMPLETE' });
    const link = await directory.oidcProfileInfos.create(user.key, {
      subject: 'auth0|123',
      issuer: ISSUER,
      oidc_profile_id: oidcProfile.id,
    });
    const name = await directory.passwordProfileInfos.create(user.key, {
      username: 'jane',
      password: 'correct horse battery staple',
      password_profile_id: passwordProfile.id,
    });
    expect(name).not.toHaveProperty('password');
    expect(name.key).toEqual([realm.id, user.id, name.id]);
    expect([name.parent, user.parent, realm.parent]).toEqual([user.key, realm.key, []]);

    const changed = await directory.users.update(user.key, { given_name: 'Jane' });
    expect(changed).toMatchObject({ id: user.id, name: 'Jane Doe', given_name: 'Jane' });
    expect(changed.etag).not.toBe(user.etag);
    expect(await directory.oidcProfileInfos.update(link.key, { subject: 'auth0|124' })).toMatchObject({
      subject: 'auth0|124',
    });
    // Writes of its links changed updated_at and ETag of the user.
    const { updated_at: _, etag: __, ...rest } = changed;
    expect(await directory.users.get(user.key)).toMatchObject(rest);
    expect(await directory.passwordProfileInfos.get(name.key)).toEqual(name);

    await directory.passwordProfileInfos.delete(name.key);
    await directory.users.delete(user.key, { ifMatch: (await directory.users.get(user.key)).etag });
    await directory.realms.delete(realm.key);
    expect((await errorOf(directory.realms.get(realm.key))).status).toBe(404);
  });

  test('update and delete with ifMatch are 412 for a changed record', async () => {
    const user = await newUser(await newRealm());
    await directory.users.update(user.key, { name: 'Jane Roe' }, { ifMatch: user.etag });
    const error = await errorOf(directory.users.update(user.key, { name: 'x' }, { ifMatch: user.etag }));
    expect([error.status, error.isUncertain]).toEqual([412, false]);
    expect((await errorOf(directory.users.delete(user.key, { ifMatch: user.etag }))).status).toBe(412);
  });

  test('enabled of a user is true where the response lacks it', async () => {
    const realm = await newRealm();
    const [user, other] = [await newUser(realm), await newUser(realm)];
    expect(user.enabled).toBe(true);
    const disabled = await directory.users.update(user.key, { enabled: false });
    expect([disabled.enabled, (await directory.users.get(user.key)).enabled]).toEqual([false, false]);
    const all = await everything(directory.users.list(realm.key));
    expect(all.map(({ id, enabled }) => [id, enabled])).toEqual([
      [other.id, true],
      [user.id, false],
    ]);
    const found = await everything(directory.users.list(realm.key, { filter: eq('enabled', 'false') }));
    expect(found.map(({ id }) => id)).toEqual([user.id]);
  });

  test('concurrent calls of modify all take effect', async () => {
    const realm = await newRealm();
    const uris = Array.from({ length: 8 }, (_, index) => `https://shop.example/${index}`);
    await Promise.all(
      uris.map((uri) =>
        directory.realms.modify(realm.key, ({ redirect_uris }) => ({
          redirect_uris: [...redirect_uris, uri],
        })),
      ),
    );
    const { redirect_uris, etag } = await directory.realms.get(realm.key);
    expect([...redirect_uris].sort()).toEqual(uris);
    expect((await directory.realms.modify(realm.key, () => undefined)).etag).toBe(etag);
  });

  test('create with a repeated idempotency key creates one record', async () => {
    const realm = await newRealm();
    const input = { name: 'Jane', email: 'jane@example.com' };
    const options = { idempotencyKey: 'import-17' };
    const first = await directory.users.create(realm.key, input, options);
    const second = await directory.users.create(realm.key, input, options);
    expect(second.id).toBe(first.id);
    expect((await directory.users.page(realm.key)).total).toBe(1);
    const error = await errorOf(directory.users.create(realm.key, { ...input, name: 'John' }, options));
    expect(error.status).toBe(422);
  });
});

describe('lists', async () => {
  const ODD = [
    `O'Neil, Jane`,
    'a "quoted" one',
    'back\\slash',
    'star*',
    '(x|y):eq(z,1)',
    'plus+and&percent%41',
  ];

  const realm = await newRealm();
  for (const name of [...ODD, 'starlight', 'Jane Doe']) await newUser(realm, name);

  const named = async (filter: FilterTerm<'name'> | ReturnType<typeof anyOf<'name'>>) =>
    (await everything(directory.users.list(realm.key, { filter }))).map(({ name }) => name).sort();

  test('list iterates over all records with any page size', async () => {
    const names = (await everything(directory.users.list(realm.key, { sort: 'created_at' }))).map(
      ({ name }) => name,
    );
    expect(names).toEqual([...ODD, 'starlight', 'Jane Doe']);
    for (const pageSize of [1, 3, 8]) {
      const walked = await everything(directory.users.list(realm.key, { pageSize }));
      expect(walked.map(({ name }) => name)).toEqual(names.toReversed());
    }
  });

  test('list may be left early, and its records have complete keys', async () => {
    for await (const user of directory.users.list(realm.key, { pageSize: 2 })) {
      expect(await directory.users.get(user.key)).toMatchObject({ id: user.id, name: user.name });
      break;
    }
  });

  test('page returns one page with the total', async () => {
    const page = await directory.users.page(realm.key, { limit: 3, offset: 6, sort: 'created_at' });
    expect([page.total, page.records.map(({ name }) => name)]).toEqual([8, ['starlight', 'Jane Doe']]);
    expect((await directory.users.page(realm.key)).records).toHaveLength(8);
  });

  test.each(ODD)('filters match a value with special characters literally: %s', async (name) => {
    expect(await named(eq('name', name))).toEqual([name]);
    expect(await named(oneOf('name', [name, 'nobody']))).toEqual([name]);
    expect(await named(startsWith('name', name))).toEqual([name]);
    expect(await named(contains('name', name.slice(1)))).toEqual([name]);
    expect(await named(endsWith('name', name.slice(1)))).toEqual([name]);
  });

  test('filters can be combined with anyOf and allOf', async () => {
    expect(await named(anyOf(eq('name', 'starlight'), eq('name', 'star*')))).toEqual(['star*', 'starlight']);
    const both = allOf(startsWith('name', 'star'), endsWith('name', 'light'), isNull('given_name'));
    const found = await everything(directory.users.list(realm.key, { filter: both }));
    expect(found.map(({ name }) => name)).toEqual(['starlight']);
    const begun = await everything(directory.users.list(realm.key, { filter: matches('text', 'starl') }));
    expect(begun.map(({ name }) => name)).toEqual(['starlight']);
    const starred = await everything(directory.users.list(realm.key, { filter: matches('text', 'star*') }));
    expect(starred.map(({ name }) => name)).toEqual(['star*']);
    const later = allOf(above('created_at', '2999-01-01'), eq('name', 'starlight'));
    expect(await everything(directory.users.list(realm.key, { filter: later }))).toEqual([]);
  });

  test('rawFilter sends a filter unchanged, and the error of the service is passed on', async () => {
    const filter = rawFilter('eq(name,Jane Doe)');
    expect((await directory.users.page(realm.key, { filter })).total).toBe(1);
    const error = await errorOf(directory.users.page(realm.key, { filter: rawFilter('eq(name') }));
    expect(error.status).toBe(400);
    expect(error.message).toContain('Could not parse the supplied filter');
    expect(error.message).not.toContain('eq(name');
  });
});

describe('links', () => {
  test('find returns links by their values, with the ID of their user', async () => {
    const realm = await newRealm();
    const profile = await newOidcProfile(realm);
    const users = [await newUser(realm), await newUser(realm, 'John')];
    const subjects = [`auth0|o'neil "x" (1),2\\3*`, 'AUTH0|1'];
    const links = await Promise.all(
      users.map((user, index) =>
        directory.oidcProfileInfos.create(user.key, {
          subject: subjects[index] ?? '',
          issuer: ISSUER,
          oidc_profile_id: profile.id,
        }),
      ),
    );
    for (const [index, subject] of subjects.entries()) {
      const found = await directory.oidcProfileInfos.find(realm.id, { issuer: ISSUER, subject });
      expect(found.map(({ key }) => key)).toEqual([
        [realm.id, users[index]?.id ?? '', links[index]?.id ?? ''],
      ]);
    }
    expect(await directory.oidcProfileInfos.find(realm.id, { issuer: ISSUER, subject: 'auth0|1' })).toEqual(
      [],
    );
    const passwords = await directory.passwordProfiles.create(realm.key, { name: 'Passwords' });
    const [jane] = users;
    await directory.passwordProfileInfos.create(jane?.key ?? ['', ''], {
      username: 'Jane',
      password: 'correct horse battery staple',
      password_profile_id: passwords.id,
    });
    const [one] = await directory.passwordProfileInfos.find(realm.id, { username: 'jANE' });
    expect(one?.key[1]).toBe(jane?.id ?? '');
  });

  test('getMany reads more than a hundred links in the requested order', async () => {
    const realm = await newRealm();
    const profile = await newOidcProfile(realm);
    const user = await newUser(realm);
    const ids: string[] = [];
    for (let index = 0; index < 105; index += 1) {
      const input = { subject: `s${index}`, issuer: ISSUER, oidc_profile_id: profile.id };
      ids.push((await directory.oidcProfileInfos.create(user.key, input)).id);
    }
    const [first = ''] = ids;
    const requested = [...ids.toReversed(), '00000000-0000-0000-0000-000000000000', first.toUpperCase()];
    const read = await directory.oidcProfileInfos.getMany(realm.id, requested);
    expect(read.map(({ id }) => id)).toEqual(ids.toReversed());
    expect(read.at(-1)).toMatchObject({ subject: 's0', key: [realm.id, user.id, first] });
    expect(await directory.oidcProfileInfos.getMany(realm.id, [])).toEqual([]);
  });
});

describe('invalid arguments', () => {
  const id = '01234567-89ab-cdef-0123-456789abcdef';
  const secret = 'not-to-be-repeated';
  const cases: [string, () => unknown, RegExp][] = [
    ['an invalid URL', () => connect({ url: secret, token: async () => '' }), /^url must be/],
    ['an undefined URL', () => connect({ url: undefined, token: async () => '' }), /^url must be/],
    [
      'an undefined client secret',
      () => connect({ url: 'https://b.example', clientId: 'a', clientSecret: undefined }),
      /^clientSecret is missing: pass it, or set the variable that it is read from$/,
    ],
    [
      'a URL with a password',
      () => connect({ url: `http://a:${secret}@b.example`, token: async () => '' }),
      /^url must/,
    ],
    [
      'a negative count',
      () => connect({ url: 'https://b.example', retries: -1, token: async () => '' }),
      /^retries must/,
    ],
    ...[
      'http://b.example',
      'http://localhost.example',
      'http://128.0.0.1',
      'http://[::2]',
      'http://0.0.0.0',
    ].map((url): [string, () => unknown, RegExp] => [
      `plain http to ${url}`,
      () => connect({ url, clientId: 'a', clientSecret: secret }),
      /^url must be https.*allowPlainHttp: true/,
    ]),
    ['a key with a dot segment', () => directory.users.get([id, '..']), /^id must be an ID/],
    ['a short key', () => directory.users.get([id] as never), /expected 2 IDs: realm_id, id/],
    [
      'an ETag with a line break',
      () => directory.users.delete([id, id], { ifMatch: `${secret}\n` }),
      /^ifMatch must/,
    ],
    [
      'a long idempotency key',
      () => directory.realms.create([], { name: 'x' }, { idempotencyKey: secret.repeat(20) }),
      /^idempotencyKey must/,
    ],
    [
      'a collection that cannot be included',
      () => directory.users.getIncluding([id, id], ['realms' as never]),
      /^each name must be one of oidcProfileInfos, passwordProfileInfos$/,
    ],
    ['an invalid ID', () => directory.oidcProfileInfos.getMany(id, [secret]), /^id must be an ID/],
  ];
  test.each(cases)('%s throws TypeError before a request', async (_, call, message) => {
    const error: unknown = await Promise.try(call).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(TypeError);
    expect((error as Error).message).toMatch(message);
    expect((error as Error).message).not.toContain(secret);
  });
});

test.each(['http://localhost', 'http://127.1.2.3:8080', 'http://[::1]:8080', 'https://b.example'])(
  'connect accepts %s, which other machines cannot read',
  (url) => {
    expect(connect({ url, token: async () => '' })).toBeObject();
  },
);

test('allowPlainHttp permits plain http to another machine', async () => {
  const urls: string[] = [];
  const allowed = connect({
    url: 'http://b.example',
    allowPlainHttp: true,
    token: async () => 'x',
    fetch: async (url) => {
      urls.push(url);
      return Response.json({ data: [], meta: { results: { total: 0 } }, links: {} });
    },
  });
  expect((await allowed.realms.page([])).total).toBe(0);
  expect(urls).toEqual(['http://b.example/v2/authentication-realms']);
});

test('an error has status, details and request ID, and no sent value', async () => {
  const realm = await newRealm();
  const error = await errorOf(directory.users.create(realm.key, { name: ' ', email: 'not-an-address' }));
  expect(error.status).toBe(400);
  expect(error.errors.map(({ source }) => source?.pointer).sort()).toEqual(['/data/email', '/data/name']);
  expect(error.requestId).toMatch(/^\S+$/);
  expect(error.message).toStartWith(
    `POST /v2/authentication-realms/${realm.id}/user-authentication-info was answered 400 `,
  );
  expect(error.message).not.toContain('not-an-address');
});
