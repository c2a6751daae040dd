import { afterAll, beforeAll, expect, test } from 'bun:test';
import { gateway, MemoryStorageFactory } from '@elasticpath/js-sdk';
import { ISSUER, oidcPath, type Planted, passwordPath, plant, type Service, startService } from './kit.ts';

/** The client that storefronts use, as it comes from npm (contract 7.1). */

let service: Service;
let planted: Planted;

beforeAll(async () => {
  service = await startService();
  planted = await plant(service.vault);
});
afterAll(() => service.stop());

async function shop(scope = 'profile-infos:read') {
  const { clientId, secret } = await service.client(scope);
  const requests: string[] = [];
  const options = {
    client_id: clientId,
    client_secret: secret,
    host: new URL(service.url).host,
    protocol: 'http',
    storage: new MemoryStorageFactory(),
    disableCart: true,
    retryDelay: 20,
    retryJitter: 5,
    custom_fetch: (url: string, init: RequestInit) => {
      requests.push(`${init.method} ${new URL(url).pathname}`);
      return fetch(url, init);
    },
  };
  return { sdk: gateway(options), requests };
}

const meta = { created_at: expect.any(String), updated_at: expect.any(String) };

test('it gets a token by itself, keeps it, and reads both records', async () => {
  const { sdk, requests } = await shop();
  const { realm, user, passwordLink } = planted;
  const password: object = await sdk.UserAuthenticationPasswordProfile.Get(realm, user, passwordLink);
  expect(password).toEqual({
    data: {
      id: passwordLink,
      type: 'user_authentication_password_profile_info',
      username: planted.username,
      password_profile_id: planted.passwordProfile,
      meta,
    },
    links: { self: service.url + passwordPath(planted).slice('/v2'.length) },
  });
  const oidc: object = await sdk.request.send(oidcPath(planted).slice('/v2/'.length), 'GET');
  expect(oidc).toEqual({
    data: {
      id: planted.oidcLink,
      type: 'user_authentication_oidc_profile_info',
      subject: planted.subject,
      issuer: ISSUER,
      oidc_profile_id: planted.oidcProfile,
      meta,
    },
    links: { self: service.url + oidcPath(planted) },
  });
  expect(requests).toEqual([
    'POST /oauth/access_token',
    `GET ${passwordPath(planted)}`,
    `GET ${oidcPath(planted)}`,
  ]);
});

test('its reference storefronts double a slash, and read the record all the same', async () => {
  const { sdk, requests } = await shop();
  const { data } = await sdk.request.send(oidcPath(planted).slice('/v2'.length), 'GET');
  expect(data.subject).toBe(planted.subject);
  expect(requests.at(-1)).toStartWith('GET /v2//authentication-realms/');
});

test('it passes our errors through', async () => {
  const { sdk } = await shop();
  const { realm, user } = planted;
  const absent = sdk.UserAuthenticationPasswordProfile.Get(realm, user, planted.oidcLink);
  const error: unknown = await absent.then(
    () => undefined,
    (reason) => reason,
  );
  expect(error).toEqual({ errors: [{ status: '404', title: 'Not Found', detail: 'Resource not found' }] });
});

test('it tells a wrong secret at once', async () => {
  const { clientId } = await service.client('profile-infos:read');
  const options = {
    client_id: clientId,
    client_secret: 'wrong',
    host: new URL(service.url).host,
    protocol: 'http',
    storage: new MemoryStorageFactory(),
    disableCart: true,
    retryDelay: 20,
    retryJitter: 5,
  };
  const reading = gateway(options).request.send(oidcPath(planted).slice('/v2/'.length), 'GET');
  const error: unknown = await reading.then(
    () => undefined,
    (reason) => reason,
  );
  expect(JSON.stringify(error)).toContain('invalid_client');
});
