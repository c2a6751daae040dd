import { describe, expect, test } from 'bun:test';
import { systemClock } from '../../src/ops/process/clock.ts';
import {
  createOidcProfile,
  discoveryUrl,
  PROFILE_PARAMETER,
  startOidcSignIn,
  visit,
} from '../support/oidc_sign_in.ts';

const world = await startOidcSignIn();
const { service, provider, realm, profile, store, realms } = world;
const other = systemClock.mintId();
const buyersProfile = await createOidcProfile(service.db, realms.buyers, provider.issuer);

describe('the discovery document of a realm', () => {
  const path = `/stores/${store}/authentication-realms/${realm}`;
  const base = `${service.url}/oidc-idp`;

  test('a library can make the URL of a login from it', async () => {
    const answer = await visit(discoveryUrl(service.url, world));
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'public, max-age=300']);
    expect(await answer.json()).toEqual({
      issuer: base + path,
      authorization_endpoint: `${base}/login${path}`,
      token_endpoint: `${base}/token${path}`,
      jwks_uri: `${service.url}/.well-known/jwks.json`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['EdDSA'],
      scopes_supported: ['openid', 'email', 'profile'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['client_secret_basic'],
    });
    expect((await visit(`${base}/token${path}`, undefined, { method: 'POST' })).status).toBe(404);
  });

  test('its authorization endpoint names the profile of the request, if the realm has it', async () => {
    for (const [id, query] of [
      [profile, `?${PROFILE_PARAMETER}=${profile}`],
      [profile.toUpperCase(), `?${PROFILE_PARAMETER}=${profile}`],
      [buyersProfile, ''],
      ['none', ''],
    ]) {
      const answer = await visit(discoveryUrl(service.url, world, `?${PROFILE_PARAMETER}=${id}`));
      const { authorization_endpoint } = (await answer.json()) as { authorization_endpoint: string };
      expect(authorization_endpoint).toBe(`${base}/login${path}${query}`);
    }
  });

  test('an unknown realm or store, and a realm in which nobody signs in so, is 404', async () => {
    for (const at of [{ realm: other }, { realm: 'none' }, { store: other }, { realm: realms.buyers }])
      expect([at, (await visit(discoveryUrl(service.url, { store, realm, ...at }))).status]).toEqual([
        at,
        404,
      ]);
  });
});
