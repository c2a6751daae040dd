import { expect, test } from 'bun:test';
import { FULL_SCOPE, OFFLINE, PASSWORD, type RecordBody, uniqueWord } from '../../support/resource_cases.ts';
import { fetchWithRetry } from '../../support/retry.ts';
import { createFixture, ISSUER, oidcPath, passwordPath, startService } from '../../support/service.ts';
import { failureOf, openJsSdk } from './js_sdk.ts';

/** The JavaScript SDK of storefronts, from npm (docs/clients.md). */

const service = await startService(OFFLINE);
const fixture = await createFixture(service.db);

async function shop(scope = 'profile-infos:read') {
  const requests: string[] = [];
  const queries: string[] = [];
  const custom_fetch = (url: string, init: RequestInit) => {
    requests.push(`${init.method} ${url.slice(service.url.length).replace(/\?.*/, '')}`);
    queries.push(url.split('?')[1] ?? '');
    return fetchWithRetry(url, init);
  };
  const sdk = openJsSdk(service.url, await service.client(scope), { custom_fetch });
  return { sdk, requests, queries };
}

const meta = { created_at: expect.any(String), updated_at: expect.any(String) };

test('the SDK fetches a token once and reads both links', async () => {
  const { sdk, requests } = await shop();
  const { realm, user, passwordLink } = fixture;
  const password: object = await sdk.UserAuthenticationPasswordProfile.Get(realm, user, passwordLink);
  expect(password).toEqual({
    data: {
      id: passwordLink,
      type: 'user_authentication_password_profile_info',
      username: fixture.username,
      password_profile_id: fixture.passwordProfile,
      meta,
    },
    links: { self: service.url + passwordPath(fixture).slice('/v2'.length) },
  });
  const oidc: object = await sdk.request.send(oidcPath(fixture).slice('/v2/'.length), 'GET');
  expect(oidc).toEqual({
    data: {
      id: fixture.oidcLink,
      type: 'user_authentication_oidc_profile_info',
      subject: fixture.subject,
      issuer: ISSUER,
      oidc_profile_id: fixture.oidcProfile,
      meta,
    },
    links: { self: service.url + oidcPath(fixture) },
  });
  expect(requests).toEqual([
    'POST /oauth/access_token',
    `GET ${passwordPath(fixture)}`,
    `GET ${oidcPath(fixture)}`,
  ]);
});

test('the SDK reads a record by a path with a doubled slash, as its reference storefronts do', async () => {
  const { sdk, requests } = await shop();
  const { data } = await sdk.request.send(oidcPath(fixture).slice('/v2'.length), 'GET');
  expect(data.subject).toBe(fixture.subject);
  expect(requests.at(-1)).toStartWith('GET /v2//authentication-realms/');
});

test('the SDK passes errors of the service through', async () => {
  const { sdk } = await shop();
  const { realm, user } = fixture;
  const absent = sdk.UserAuthenticationPasswordProfile.Get(realm, user, fixture.oidcLink);
  expect(await failureOf(absent)).toEqual({
    errors: [{ status: '404', title: 'Not Found', detail: 'Resource not found', code: 'not_found' }],
  });
});

/** A list as the SDK returns it. */
interface List {
  readonly data: readonly (RecordBody['data'] & { readonly links: Readonly<Record<string, string>> })[];
  readonly meta: {
    readonly page: Readonly<Record<string, number>>;
    readonly results: { readonly total: number };
  };
  readonly links: Readonly<Record<string, string | null>>;
}

/** The types of the SDK lack members of the responses. */
const body = (answer: unknown) => answer as RecordBody;
const list = (answer: unknown) => answer as List;
const idsOf = ({ data }: List) => data.map(({ id }) => id);
/** The result of the SDK for a response without a body. */
const NO_BODY = '{}' as unknown;

async function refused(call: Promise<unknown>): Promise<string | undefined> {
  const error = (await failureOf(call)) as { errors: { status: string }[] } | undefined;
  return error?.errors[0]?.status;
}

test('the SDK class AuthenticationRealm works: Create, Get, All, Update, Delete', async () => {
  const { sdk, queries } = await shop(FULL_SCOPE);
  const name = uniqueWord('Realm');
  const origin = { data: { id: 'store-of-mine', type: 'merchant-realm-mappings' } };
  const realm = {
    type: 'authentication-realm' as const,
    name,
    redirect_uris: [],
    duplicate_email_policy: 'allowed',
  };
  const created = body(
    await sdk.AuthenticationRealm.Create({ data: { ...realm, relationships: { origin } } }),
  );
  const { id } = created.data;
  expect(created.data).toMatchObject({ ...realm, relationships: { origin } });
  expect(body(await sdk.AuthenticationRealm.Get({ realmId: id }))).toEqual(created);
  const all = list(await sdk.AuthenticationRealm.Limit(100).Offset(0).All());
  expect(idsOf(all)).toContain(id);
  expect(all.meta.results.total).toBe(all.data.length);
  expect(idsOf(list(await sdk.AuthenticationRealm.Limit(1).All()))).toEqual([id]);
  expect(queries.at(-1)).toContain('page[limit]=1');
  // The service ignores parameters that a list does not support (docs/wire.md#lists).
  const odd = 'authentication-realms?include=origin&sort=nonsense&filter=nonsense';
  expect(idsOf(list(await sdk.request.send(odd, 'GET')))).toContain(id);
  const renamed = body(await sdk.AuthenticationRealm.Update(id, { name: `${name} 2` }));
  expect(renamed.data).toMatchObject({ id, name: `${name} 2`, relationships: { origin } });
  expect((await sdk.AuthenticationRealm.Delete(id)) as unknown).toBe(NO_BODY);
  expect(await refused(sdk.AuthenticationRealm.Get({ realmId: id }))).toBe('404');
});

test('the SDK class OidcProfile works: Create, Get, All, Update, Delete', async () => {
  const { sdk } = await shop(FULL_SCOPE);
  const { realm } = fixture;
  const login = {
    type: 'oidc-profile',
    name: uniqueWord('Login'),
    discovery_url: 'https://id.example/tenant/.well-known/openid-configuration',
    client_id: 'shop',
    client_secret: 'of-the-provider',
  } as const;
  const created = body(await sdk.OidcProfile.Create(realm, { data: login }));
  const { id: profileId } = created.data;
  const { client_secret: _, ...visible } = login;
  expect(created.data).toMatchObject({ ...visible, meta: { issuer: 'https://id.example/tenant' } });
  expect(body(await sdk.OidcProfile.Get({ realmId: realm, profileId }))).toEqual(created);
  const all = list(await sdk.OidcProfile.All(realm));
  expect(all.data.find(({ id }) => id === profileId)).toEqual({ ...created.data, links: created.links });
  const update = { data: { type: 'oidc-profile', name: 'Company' } } as Parameters<
    typeof sdk.OidcProfile.Update
  >[2];
  expect(body(await sdk.OidcProfile.Update(realm, profileId, update)).data.name).toBe('Company');
  expect((await sdk.OidcProfile.Delete(realm, profileId)) as unknown).toBe(NO_BODY);
  expect(await refused(sdk.OidcProfile.Get({ realmId: realm, profileId }))).toBe('404');
});

test('the SDK class PasswordProfile works: Create, Get, All, Update, Delete', async () => {
  const { sdk } = await shop(FULL_SCOPE);
  const { realm } = fixture;
  const profile = { type: 'password_profile', name: uniqueWord('Passwords'), username_format: 'email' };
  const created = body(await sdk.PasswordProfile.Create(realm, { data: profile }));
  const { id: profileId } = created.data;
  expect(created.data).toMatchObject({ ...profile, enable_one_time_password_token: false });
  expect(body(await sdk.PasswordProfile.Get({ realmId: realm, profileId }))).toEqual(created);
  expect(idsOf(list(await sdk.PasswordProfile.All(realm)))).toContain(profileId);
  const changed = await sdk.PasswordProfile.Update(realm, profileId, {
    data: { ...profile, username_format: 'any' },
  });
  expect(body(changed).data.username_format).toBe('any');
  expect((await sdk.PasswordProfile.Delete(realm, profileId)) as unknown).toBe(NO_BODY);
  expect(await refused(sdk.PasswordProfile.Get({ realmId: realm, profileId }))).toBe('404');
});

test('the SDK class UserAuthenticationInfo works: Create, Get, Update, Delete; All with Filter, Limit, Offset and Sort', async () => {
  const { sdk, queries } = await shop(FULL_SCOPE);
  const { realm } = fixture;
  const users = sdk.UserAuthenticationInfo;
  const surname = uniqueWord('Banks');
  const created: string[] = [];
  for (const first of ['Ann', 'Ben', 'Cleo']) {
    service.clock.advance(5);
    const data = {
      type: 'user_authentication_info',
      name: `${first} ${surname}`,
      email: `${first}@${surname}.com`.toLowerCase(),
    };
    created.push(body(await users.Create(realm, { data })).data.id);
  }
  const [ann = '', ben = '', cleo = ''] = created;
  const found = async (request: { All(realm: string): Promise<unknown> }) => list(await request.All(realm));
  const exact = users.Filter({ eq: { name: `ben ${surname}`.toUpperCase() } });
  expect(idsOf(await found(exact))).toEqual([ben]);
  expect(queries.at(-1)).toContain('filter=eq(name,BEN ');
  const both = { eq: { name: `Cleo ${surname}` }, like: { email: `*@${surname.toLowerCase()}.com` } };
  expect(idsOf(await found(users.Filter(both).Limit(2)))).toEqual([cleo]);
  expect(queries.at(-1)).toStartWith('page[limit]=2&filter=eq(name,');
  const ours = { like: { email: `*@${surname.toLowerCase()}.com` } };
  const page = await found(users.Filter(ours).Limit(2).Offset(0));
  expect(idsOf(page)).toEqual([cleo, ben]);
  expect([page.meta.results.total, page.meta.page.total, page.links.prev]).toEqual([3, 2, null]);
  const rest = await found(users.Filter(ours).Limit(2).Offset(2));
  expect([idsOf(rest), rest.links.next]).toEqual([[ann], null]);
  // The SDK does not send Sort, so the service applies its own order.
  expect(idsOf(await found(users.Filter(ours).Sort('created_at' as never)))).toEqual([cleo, ben, ann]);
  const sorted = await sdk.request.send(
    `authentication-realms/${realm}/user-authentication-info?sort=created_at&filter=like(name,*${surname})`,
    'GET',
  );
  expect(idsOf(list(sorted))).toEqual([ann, ben, cleo]);

  const data = { type: 'user_authentication_info', name: 'Ann Jones', email: 'ann@jones.com' };
  expect(body(await users.Update(realm, ann, { data })).data).toMatchObject(data);
  expect(body(await users.Get(realm, ann)).data).toMatchObject({ ...data, id: ann });
  expect((await users.Delete(realm, ann)) as unknown).toBe(NO_BODY);
  expect(await refused(users.Get(realm, ann))).toBe('404');
});

test('the SDK class UserAuthenticationPasswordProfile works: Create, Get, All, Update with a token header, Delete', async () => {
  const { sdk, requests } = await shop(FULL_SCOPE);
  const { realm, user, passwordProfile } = fixture;
  const infos = sdk.UserAuthenticationPasswordProfile;
  const type = 'user_authentication_password_profile_info';
  const input = {
    type,
    password_profile_id: passwordProfile,
    username: uniqueWord('ann'),
    password: PASSWORD,
  };
  const created = body(await infos.Create(realm, user, { data: input }));
  const { id } = created.data;
  expect(created.data).toMatchObject({
    type,
    username: input.username,
    password_profile_id: passwordProfile,
  });
  expect(body(await infos.Get(realm, user, id))).toEqual(created);
  const all = list(await infos.All(realm, user));
  const item = all.data.find((each) => each.id === id);
  // The self link of a single record lacks the version segment, one in a list has it (docs/wire.md#self-links).
  expect(item?.links.self).toBe(`${service.url}${requests.at(-1)?.slice('GET '.length)}/${id}`);
  const username = uniqueWord('ann');
  const data = { type, username, password: `${PASSWORD} 2` };
  for (const token of [undefined, 'a-token-of-an-account']) {
    expect(body(await infos.Update(realm, user, id, { data }, null, token)).data.username).toBe(username);
  }
  expect((await infos.Delete(realm, user, id)) as unknown).toBe(NO_BODY);
  expect(await refused(infos.Get(realm, user, id))).toBe('404');
});

test('request.send of the SDK works with every verb of OIDC profile infos, which have no class', async () => {
  const { sdk } = await shop(FULL_SCOPE);
  const collection = oidcPath(fixture)
    .slice('/v2/'.length)
    .replace(/\/[^/]+$/, '');
  const type = 'user_authentication_oidc_profile_info';
  const input = {
    type,
    subject: uniqueWord('auth0|ann'),
    issuer: ISSUER,
    oidc_profile_id: fixture.oidcProfile,
  };
  const created = body(await sdk.request.send(collection, 'POST', input));
  expect(created.data).toMatchObject(input);
  const item = `${collection}/${created.data.id}`;
  expect(body(await sdk.request.send(item, 'GET'))).toEqual(created);
  expect(idsOf(list(await sdk.request.send(collection, 'GET')))).toContain(created.data.id);
  const subject = uniqueWord('auth0|ann');
  // The ID of the link and of the user are both accepted (docs/wire.md#updates).
  for (const id of [undefined, created.data.id, fixture.user]) {
    const changed = body(await sdk.request.send(item, 'PUT', { type, subject, ...(id ? { id } : {}) }));
    expect(changed.data).toMatchObject({ ...input, id: created.data.id, subject });
  }
  expect(await refused(sdk.request.send(collection, 'POST', { ...input, subject }))).toBe('422');
  expect((await sdk.request.send(item, 'DELETE')) as unknown).toBe(NO_BODY);
  expect(await refused(sdk.request.send(item, 'GET'))).toBe('404');
});
