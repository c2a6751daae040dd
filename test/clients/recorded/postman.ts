import { expect } from 'bun:test';
import { get, OIDC, OIDC_LINKS, PASSWORD_LINKS, PASSWORDS, REALM, USERS } from './paths.ts';
import type { RecordedClient, RecordedRequest, RecordedUse } from './recording.ts';

/**
 * The Postman collection of the family ("EPCC - Oct 4, 2024"): its requests on the six resources, on settings, mappings, account
 * members and tokens. Its scripts save IDs of the answers for later requests.
 */

const post = (path: string, data: object, more: Partial<RecordedRequest> = {}): RecordedRequest => ({
  send: `POST ${path}`,
  data,
  status: 201,
  ...more,
});
const put = (path: string, data: object, more: Partial<RecordedRequest> = {}): RecordedRequest => ({
  send: `PUT ${path}`,
  data,
  status: 200,
  reads: { data },
  ...more,
});
const remove = (path: string): RecordedRequest => ({ send: `DELETE ${path}`, status: 204, text: '' });

/** The collection declares the form as JSON and as text. */
const FORM_HEADERS = { 'Content-Type': 'application/json, text/plain' };

const LOGIN = {
  ...{ name: 'Identity provider', type: 'oidc-profile', client_id: 'shop', client_secret: 'of-the-provider' },
  discovery_url: 'https://id.example/.well-known/openid-configuration',
};
const { client_secret: _, ...VISIBLE_LOGIN } = LOGIN;
const JOHN = { type: 'user_authentication_info', name: 'John Doe', email: 'john.doe@banks.com' };
const LINK = { type: 'user_authentication_oidc_profile_info', issuer: 'https://id.example/' };
const PASSWORD_TYPE = 'user_authentication_password_profile_info';

const USES: readonly RecordedUse[] = [
  {
    title: 'authentication, settings and realms',
    requests: [
      {
        send: 'POST /oauth/access_token',
        form: { client_id: '{clientId}', client_secret: '{secret}', grant_type: 'client_credentials' },
        headers: FORM_HEADERS,
        status: 200,
        saves: { token: 'access_token' },
      },
      get('/v2/settings', { reads: { data: { type: 'settings' } }, saves: { storeId: 'data.id' } }),
      get('/v2/settings/customer-authentication/', {
        reads: { data: { meta: { client_id: 'customers' } } },
      }),
      get('/v2/settings/account-authentication', {
        saves: { realm: 'data.relationships.authentication_realm.data.id' },
      }),
      get('/v2/authentication-realms', { reads: { data: expect.any(Array) } }),
      get(REALM, { reads: { data: { id: '{realm}' } } }),
      put(
        REALM,
        {
          ...{ type: 'authentication-realm', name: 'Test Authentication Realm' },
          redirect_uris: ['https://example.com'],
          relationships: { origin: { data: { id: '{storeId}', type: 'customer-authentication-settings' } } },
        },
        // The origin of a realm never changes.
        { reads: { data: { name: 'Test Authentication Realm', redirect_uris: ['https://example.com'] } } },
      ),
    ],
  },
  {
    title: 'merchantRealmMappings',
    requests: [
      get('/v2/merchant-realm-mappings', { saves: { mapping: 'data.id' } }),
      get('/v2/merchant-realm-mappings/{mapping}', { reads: { data: { id: '{mapping}' } } }),
      put('/v2/merchant-realm-mappings/{mapping}', {
        type: 'merchant-realm-mappings',
        prefix: 'myNewStorePrefix',
      }),
    ],
  },
  {
    title: 'oidcProfiles',
    requests: [
      post(`${OIDC}/`, LOGIN, { reads: { data: VISIBLE_LOGIN }, saves: { oidc: 'data.id' } }),
      get(`${OIDC}/`, { reads: { data: [{ id: '{oidc}' }] } }),
      get(`${OIDC}/{oidc}`, { reads: { data: VISIBLE_LOGIN } }),
      put(`${OIDC}/{oidc}`, LOGIN, { reads: { data: VISIBLE_LOGIN } }),
    ],
  },
  {
    title: 'passwordProfiles',
    requests: [
      // The collection spells the member wrongly, which leaves its default.
      post(
        `${PASSWORDS}/`,
        { usernameFormat: 'email', type: 'password_profile', name: 'password profile' },
        { reads: { data: { username_format: 'any' } }, saves: { passwords: 'data.id' } },
      ),
      get(PASSWORDS, { reads: { data: [{ id: '{passwords}' }] } }),
      get(`${PASSWORDS}/{passwords}`, { reads: { data: { name: 'password profile' } } }),
      put(
        `${PASSWORDS}/{passwords}`,
        { usernameFormat: 'any', type: 'password_profile', name: 'updated password profile' },
        { reads: { data: { name: 'updated password profile' } } },
      ),
    ],
  },
  {
    title: 'userAuthenticationInfo and account members',
    requests: [
      post(`${USERS}/`, JOHN, { reads: { data: JOHN }, saves: { user: 'data.id' } }),
      get(`${USERS}/`, { reads: { data: [{ id: '{user}' }, { id: '{member}' }] } }),
      get(`${USERS}/{user}`, { reads: { data: JOHN } }),
      put(`${USERS}/{user}`, { ...JOHN, name: 'John Doe Updated' }),
      get('/v2/account-members', {
        reads: { data: [{ id: '{user}', type: 'account_member' }, { id: '{member}' }] },
      }),
      get('/v2/account-members/{user}', { reads: { data: { name: 'John Doe Updated' } } }),
    ],
  },
  {
    title: 'userAuthenticationOidcProfileInfo',
    requests: [
      post(
        OIDC_LINKS,
        { ...LINK, subject: 'Test Subject', oidc_profile_id: '{oidc}' },
        {
          reads: { data: { ...LINK, subject: 'Test Subject', oidc_profile_id: '{oidc}' } },
          saves: { link: 'data.id' },
        },
      ),
      get(OIDC_LINKS, { reads: { data: [{ id: '{link}' }] } }),
      get(`${OIDC_LINKS}/{link}`, { reads: { data: { subject: 'Test Subject' } } }),
      put(`${OIDC_LINKS}/{link}`, { ...LINK, subject: 'Test Subject Updated' }),
      remove(`${OIDC_LINKS}/{link}`),
    ],
  },
  {
    title: 'userAuthenticationPasswordProfiles',
    requests: [
      post(
        PASSWORD_LINKS,
        {
          ...{ type: PASSWORD_TYPE, password_profile_id: '{passwords}' },
          ...{ username: 'john.doe', password: 'password' },
        },
        { reads: { data: { username: 'john.doe' } }, saves: { credential: 'data.id' } },
      ),
      get(PASSWORD_LINKS, { reads: { data: [{ id: '{credential}' }] } }),
      get(`${PASSWORD_LINKS}/{credential}`, { reads: { data: { username: 'john.doe' } } }),
      put(
        `${PASSWORD_LINKS}/{credential}`,
        { id: '{credential}', type: PASSWORD_TYPE, username: 'john.doe', password: 'password.new' },
        { reads: { data: { id: '{credential}', username: 'john.doe' } } },
      ),
      post(
        '/v2/account-members/tokens',
        {
          ...{ type: 'account_management_authentication_token', authentication_mechanism: 'password' },
          ...{ password_profile_id: '{passwords}', username: 'john.doe', password: 'password.new' },
        },
        { reads: { meta: { account_member_id: '{user}' } } },
      ),
      remove(`${PASSWORD_LINKS}/{credential}`),
    ],
  },
  {
    title: 'the deletes',
    requests: [
      remove(`${USERS}/{user}`),
      remove(`${PASSWORDS}/{passwords}`),
      remove(`${OIDC}/{oidc}`),
      get(`${USERS}/{user}`, { status: 404, reads: { errors: [{ status: '404', title: 'Not Found' }] } }),
    ],
  },
  {
    title: 'self-signup is switched on; one-time passwords and other settings are refused',
    requests: [
      put(
        '/v2/settings/account-authentication',
        { type: 'account_authentication_settings', enable_self_signup: true },
        { status: 200, reads: { data: { enable_self_signup: true } } },
      ),
      put('/v2/settings', { type: 'settings', calculation_method: 'line' }, { status: 405, reads: {} }),
      post(
        `${PASSWORDS}/{passwords}/one-time-password-token-request`,
        { type: 'one_time_password_token_request', username: 'john.doe', purpose: 'reset_password' },
        { status: 404, reads: { errors: [{ status: '404' }] } },
      ),
    ],
  },
  {
    title: 'authentication with an implicit token',
    requests: [
      {
        send: 'POST /oauth/access_token',
        form: { client_id: '{storefrontId}', grant_type: 'implicit' },
        headers: FORM_HEADERS,
        status: 200,
        reads: { identifier: 'implicit' },
        saves: { token: 'access_token' },
      },
      get('/v2/settings/account-authentication'),
      get(PASSWORDS, { reads: { data: [] } }),
    ],
  },
];

export const POSTMAN: RecordedClient = {
  name: 'Postman collection',
  version: 'of 4 October 2024',
  headers: { Accept: 'application/json', 'Content-Type': 'application/json' },
  uses: USES,
};
