import { describe, expect, test } from 'bun:test';
import { decodeJwt } from 'jose';
import { findPort } from '../../support/daemons.ts';
import { comparableResponse, createFixture, LOOKUPS, startService } from '../../support/service.ts';

const port = findPort();
const baseUrl = `http://127.0.0.1:${port}/sso/auth`;
const service = await startService({ port: String(port), baseUrl: `${baseUrl}/` });
const fixture = await createFixture(service.db);
const token = await service.token('profile-infos:read');

describe.each(LOOKUPS)('$name', ({ path }) => {
  test('a record has the same bytes with the prefix of the base URL and without it', async () => {
    const plain = await comparableResponse(await service.get(path(fixture), token));
    expect(plain).toStartWith('[200,');
    for (const address of [
      `/sso/auth${path(fixture)}`,
      `/sso/auth${path(fixture)}/`,
      `/sso//auth/${path(fixture)}`,
    ]) {
      expect(await comparableResponse(await service.get(address, token))).toBe(plain);
    }
    expect((await service.get(`/auth${path(fixture)}`, token)).status).toBe(404);
  });

  test('the self link of a record has the prefix of the base URL, and returns the same bytes', async () => {
    const first = await (await service.get(path(fixture), token)).text();
    const { self } = JSON.parse(first).links;
    expect(self).toStartWith(`${baseUrl}/`);
    expect(await (await service.get(self, token)).text()).toBe(first);
  });
});

test.each(['/sso/auth/oauth/access_token', '/sso/auth/oauth/token', '/oauth/token'])(
  '%s issues tokens whose issuer and audience are the base URL',
  async (path) => {
    const { clientId, secret } = await service.client('profile-infos:read');
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: clientId,
      client_secret: secret,
    });
    const answer = await fetch(service.url + path, { method: 'POST', body });
    const { access_token } = (await answer.json()) as { access_token: string };
    expect(decodeJwt(access_token)).toMatchObject({ iss: baseUrl, aud: baseUrl });
  },
);

test('the server metadata is at every path of RFC 8414, and its URLs exist', async () => {
  const spellings = [
    '/.well-known/oauth-authorization-server',
    '/.well-known/oauth-authorization-server/sso/auth',
    '/sso/auth/.well-known/oauth-authorization-server',
  ];
  const documents = await Promise.all(spellings.map(async (path) => (await service.get(path)).json()));
  const [document, ...same] = documents as { issuer: string; jwks_uri: string; token_endpoint: string }[];
  expect(same).toEqual([document, document] as typeof same);
  expect(document).toMatchObject({
    issuer: baseUrl,
    token_endpoint: `${baseUrl}/oauth/access_token`,
    jwks_uri: `${baseUrl}/.well-known/jwks.json`,
    response_types_supported: [],
    grant_types_supported: ['client_credentials', 'implicit'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'none'],
  });
  expect((await service.get(document?.jwks_uri ?? '')).status).toBe(200);
  expect((await service.get(document?.token_endpoint ?? '')).status).toBe(405);
});

test.each(['/healthz', '/readyz', '/openapi.json'])(
  '%s is 200 with the prefix of the base URL and without it',
  async (path) => {
    expect((await service.get(path)).status).toBe(200);
    expect((await service.get(`/sso/auth${path}`)).status).toBe(200);
  },
);

test('the OpenAPI document names the base URL', async () => {
  const document = (await (await service.get('/openapi.json')).json()) as { servers: unknown };
  expect(document.servers).toEqual([{ url: baseUrl }]);
});
