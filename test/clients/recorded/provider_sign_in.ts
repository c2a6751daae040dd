import { expect } from 'bun:test';
import { EPCC } from './epcc.ts';
import { get, grant, OIDC, REALM } from './paths.ts';
import type { RecordedClient, RecordedRequest, RecordedUse } from './recording.ts';

/**
 * Sign-in through a provider by two clients that are not on npm: `epcc login oidc`, and the storefront `examples/core` of
 * composable-frontend, whose server sends the requests for its pages.
 */
export interface RecordedSignIn {
  readonly client: RecordedClient;
  /** Before the browser leaves the page of the client. Saves `accountClient`, and `loginUrl`, to which the page adds its parameters. */
  readonly before: RecordedUse;
  readonly scope: string;
  /** Where the browser returns, on the page's own origin. */
  readonly redirectPath: string;
  /** After it returned with `code`; the page has kept `verifier`. */
  readonly after: RecordedUse;
}

const tokens = (reads: object): RecordedRequest => ({
  send: 'POST /v2/account-members/tokens',
  data: {
    type: 'account_management_authentication_token',
    authentication_mechanism: 'oidc',
    oauth_authorization_code: '{code}',
    oauth_redirect_uri: '{redirectUri}',
    oauth_code_verifier: '{verifier}',
  },
  status: 201,
  reads: {
    data: [
      {
        type: 'account_management_authentication_token',
        account_name: 'Anna Holm',
        account_id: expect.any(String),
        expires: expect.any(String),
        token: expect.any(String),
      },
    ],
    ...reads,
  },
  saves: { account: 'data.0.account_id' },
});

const ACCOUNT_SETTINGS = get('/v2/settings/account-authentication', {
  saves: {
    realm: 'data.relationships.authentication_realm.data.id',
    accountClient: 'data.meta.client_id',
  },
});

export const EPCC_LOGIN: RecordedSignIn = {
  client: EPCC,
  before: {
    title: 'login oidc, until the browser leaves',
    requests: [
      grant({ client_id: '{clientId}', client_secret: '{secret}', grant_type: 'client_credentials' }),
      get('/v2/settings/customer-authentication', {
        reads: { data: { meta: { client_id: expect.any(String) } } },
        saves: { buyers: 'data.relationships.authentication-realm.data.id' },
      }),
      ACCOUNT_SETTINGS,
      get('/v2/authentication-realms/{buyers}/oidc-profiles', { reads: { data: [] } }),
      get(OIDC, {
        reads: { data: [{ name: 'Login', meta: { issuer: '{issuer}' } }] },
        saves: { loginUrl: 'data.0.links.authorization-endpoint' },
      }),
    ],
  },
  scope: 'openid email',
  redirectPath: '/callback',
  after: { title: 'login oidc, after the browser returned', requests: [tokens({})] },
};

export const STOREFRONT_LOGIN: RecordedSignIn = {
  client: { name: 'composable-frontend', version: 'of 6 May 2026', headers: {}, uses: [] },
  before: {
    title: 'the login form, until the browser leaves',
    requests: [
      grant({ client_id: '{clientId}', grant_type: 'implicit' }),
      ACCOUNT_SETTINGS,
      get(OIDC, { reads: { data: [{ name: 'Login' }] }, saves: { oidc: 'data.0.id' } }),
      get(`${REALM}/oidc-profiles/{oidc}`, { saves: { loginUrl: 'links.authorization-endpoint' } }),
    ],
  },
  scope: 'openid email profile',
  redirectPath: '/oidc',
  after: {
    title: 'the page of the redirect URI, up to the carts',
    requests: [
      {
        ...tokens({ meta: { account_member_id: expect.any(String) } }),
        headers: { 'Content-Type': 'application/json' },
      },
    ],
  },
};
