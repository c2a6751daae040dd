import { describe, expect, test } from 'bun:test';
import { Fault } from '../../../src/model/fault.ts';
import { findPort } from '../../support/daemons.ts';
import { createFixture, type Fixture, startService } from '../../support/service.ts';
import { createSettingsRealms, createStorefront } from '../../support/settings_realms.ts';
import { errorOf, refusalOf } from './generated_sdk.ts';
import { failureOf, openJsSdk } from './js_sdk.ts';
import { shopperSdk } from './sdks.ts';

const {
  createAnAccessToken,
  createClient,
  createShopperClient,
  getV2AccountMembers,
  updatePasswordProfileInfo,
} = shopperSdk;

/** Client programs of npm with credentials, realms and services that refuse them (docs/clients.md). */

const SCOPE =
  'settings:read settings:write users:read password-profile-infos:write password-profile-infos:read';

const service = await startService();
const realms = await createSettingsRealms(service.db);
const fixture = await createFixture(service.db);

/** An instance of the shopper SDK, which sends this token. */
const shopperOf = (url: string, token: string) =>
  createClient({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });

function changeUsername(client: ReturnType<typeof createClient>, { realm, user, passwordLink }: Fixture) {
  return updatePasswordProfileInfo({
    client,
    path: {
      realmId: realm,
      userAuthenticationInfoId: user,
      userAuthenticationPasswordProfileInfoId: passwordLink,
    },
    body: {
      data: { id: passwordLink, type: 'user_authentication_password_profile_info', username: 'ann' },
    } as never,
  });
}

/** Counts the requests of the JavaScript SDK to the API. */
function countingFetch() {
  const counted = {
    requests: 0,
    custom_fetch: (url: string, init: RequestInit) => {
      if (!url.endsWith('/oauth/access_token')) counted.requests += 1;
      return fetch(url, init);
    },
  };
  return counted;
}

describe('wrong credentials', () => {
  test('the JavaScript SDK with a wrong secret gets invalid_client, and without one unsupported_grant_type', async () => {
    const { clientId } = await service.client(SCOPE);
    const sdk = openJsSdk(service.url, { clientId, secret: 'wrong' });
    expect(await failureOf(sdk.AccountAuthenticationSettings.Get())).toMatchObject({
      error: 'invalid_client',
      errors: [{ status: '401' }],
    });
    const withoutSecret = openJsSdk(service.url, { clientId });
    expect(await failureOf(withoutSecret.AccountAuthenticationSettings.Get())).toMatchObject({
      error: 'unsupported_grant_type',
      errors: [{ status: '400' }],
    });
  });

  test('the shopper SDK with a wrong secret gets invalid_client, and with a wrong token 401', async () => {
    const { clientId } = await service.client(SCOPE);
    const body = { grant_type: 'client_credentials', client_id: clientId, client_secret: 'wrong' } as const;
    const client = shopperOf(service.url, 'wrong');
    expect(await refusalOf(createAnAccessToken({ client, body }))).toEqual([
      401,
      expect.objectContaining({ error: 'invalid_client' }),
    ]);
    expect(await refusalOf(getV2AccountMembers({ client }))).toMatchObject([401, errorOf('401')]);
  });

  test('the shopper SDK with the ID of a client that is not public gets no token', async () => {
    const { clientId } = await service.client(SCOPE);
    const storage = { get: () => undefined, set: () => undefined };
    const { client, auth } = createShopperClient({ baseUrl: service.url }, { clientId, storage });
    expect(String(await failureOf(auth.getValidAccessToken()))).toContain('Failed to get access token');
    expect(String(await failureOf(getV2AccountMembers({ client })))).toContain('Failed to get access token');
  });
});

describe('a realm outside the list of the client', () => {
  test('the JavaScript SDK gets 404 at settings, the mapping and users', async () => {
    const sdk = openJsSdk(service.url, await service.client(SCOPE, new Set([realms.buyers])));
    const prefix = { type: 'merchant-realm-mappings', prefix: 'shop' } as const;
    for (const call of [
      () => sdk.AccountAuthenticationSettings.Get(),
      () => sdk.MerchantRealmMappings.All(),
      () => sdk.MerchantRealmMappings.Update(realms.merchants, prefix),
      () => sdk.UserAuthenticationInfo.All(realms.accounts),
    ])
      expect(await failureOf(call())).toMatchObject(errorOf('404'));
    const customers: unknown = await sdk.AuthenticationSettings.Get();
    expect(customers).toMatchObject({ data: { meta: { client_id: 'customers' } } });
  });

  test('the shopper SDK gets 404 at a username and at account members', async () => {
    const client = shopperOf(service.url, await service.token(SCOPE, new Set([realms.buyers])));
    expect(await refusalOf(changeUsername(client, fixture))).toMatchObject([404, errorOf('404')]);
    expect(await refusalOf(getV2AccountMembers({ client }))).toMatchObject([404, errorOf('404')]);
  });
});

describe('a service that is too busy', () => {
  test('the JavaScript SDK repeats a 429 until there is a request left', async () => {
    const limited = await startService({ clientRate: '2/1' });
    const counted = countingFetch();
    const sdk = openJsSdk(limited.url, await limited.client(SCOPE), { retryDelay: 300, ...counted });
    const read = async () => expect((await sdk.request.send('settings', 'GET')).data.type).toBe('settings');
    await read();
    await Promise.all([read(), read(), read()]);
    expect(counted.requests).toBeGreaterThan(4);
  });

  test('the JavaScript SDK gives up after four answers 429, and the shopper SDK after the first', async () => {
    const limited = await startService({ clientRate: '1/3600' });
    const counted = countingFetch();
    const sdk = openJsSdk(limited.url, await limited.client(SCOPE), counted);
    expect(await failureOf(sdk.request.send('settings', 'GET'))).toMatchObject(errorOf('429'));
    expect(counted.requests).toBe(4);
    const client = shopperOf(limited.url, await limited.token(SCOPE));
    const { error, response } = await getV2AccountMembers({ client });
    expect([response.status, error as unknown]).toMatchObject([429, errorOf('429')]);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
  });

  test('both SDKs hand on a 503, which they do not repeat', async () => {
    const failing = await startService({}, (engine) => {
      const get: typeof engine.records.get = () => Promise.reject(new Fault('unavailable'));
      return { ...engine, records: { ...engine.records, get } };
    });
    const counted = countingFetch();
    const sdk = openJsSdk(failing.url, await failing.client(SCOPE), counted);
    expect(await failureOf(sdk.AuthenticationSettings.Get())).toMatchObject(errorOf('503'));
    expect(counted.requests).toBe(1);
    const client = shopperOf(failing.url, await failing.token(SCOPE));
    expect(await refusalOf(getV2AccountMembers({ client }))).toMatchObject([503, errorOf('503')]);
  });
});

describe('a base URL with a path', () => {
  test('both SDKs get tokens and records below the path, and links have it', async () => {
    const port = String(findPort());
    const baseUrl = `http://127.0.0.1:${port}/sso/auth`;
    const prefixed = await startService({ port, baseUrl });
    const { accounts, member } = await createSettingsRealms(prefixed.db);
    const { clientId, secret } = await prefixed.client(SCOPE);
    const settings: unknown = await openJsSdk(baseUrl, {
      clientId,
      secret,
    }).AccountAuthenticationSettings.Get();
    const self = `${baseUrl}/v2/authentication-realms/${accounts}`;
    expect(settings).toMatchObject({
      data: { relationships: { authentication_realm: { data: { id: accounts, links: { self } } } } },
    });
    const body = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret } as const;
    const granted = await createAnAccessToken({ client: createClient({ baseUrl }), body });
    const client = shopperOf(baseUrl, granted.data?.access_token ?? '');
    const { data } = await getV2AccountMembers({ client });
    expect(data?.data as unknown).toMatchObject([
      { id: member, links: { self: `${baseUrl}/v2/account-members/${member}` } },
    ]);
  });
});

describe('the ID of a client alone that asks for more than it gives', () => {
  test('the JavaScript SDK gets 403 for users and for every write, and 404 for another realm', async () => {
    const { clientId } = await createStorefront(service, realms.accounts);
    const sdk = openJsSdk(service.url, { clientId });
    const profile = { data: { type: 'password_profile', name: 'Passwords', username_format: 'any' } };
    const prefix = { type: 'merchant-realm-mappings', prefix: 'shop' } as const;
    for (const [status, call] of [
      ['403', () => sdk.UserAuthenticationInfo.All(realms.accounts)],
      ['403', () => sdk.PasswordProfile.Create(realms.accounts, profile)],
      ['403', () => sdk.MerchantRealmMappings.Update(realms.merchants, prefix)],
      ['404', () => sdk.PasswordProfile.All(realms.buyers)],
      ['404', () => sdk.MerchantRealmMappings.All()],
    ] as const)
      expect(await failureOf(call())).toMatchObject(errorOf(status));
  });

  test('the shopper SDK gets its token by implicit, 401 for account members without an account token, and no token by another grant type', async () => {
    const { clientId } = await createStorefront(service, realms.accounts);
    const storage = { get: () => undefined, set: () => undefined };
    const { client } = createShopperClient({ baseUrl: service.url }, { clientId, storage });
    expect(await refusalOf(getV2AccountMembers({ client }))).toMatchObject([401, errorOf('401')]);
    const body = { grant_type: 'client_credentials', client_id: clientId } as const;
    const bare = createClient({ baseUrl: service.url });
    expect(await refusalOf(createAnAccessToken({ client: bare, body: body as never }))).toEqual([
      401,
      expect.objectContaining({ error: 'invalid_client' }),
    ]);
  });
});
