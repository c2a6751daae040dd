import { expect } from 'bun:test';
import { get, grant, OIDC, OIDC_LINKS, PASSWORD_LINKS, PASSWORDS, REALM, REALMS, USERS } from './paths.ts';
import type { RecordedClient, RecordedRequest, RecordedUse } from './recording.ts';

/**
 * The command line of the family, `epcc`: sign-in, every command on the six resources, and `reset-store`. It sends members in the order of
 * their names, a type with every body, a body with most deletes, and pages until one is empty.
 */

const create = (path: string, data: object, name: string): RecordedRequest => ({
  send: `POST ${path}`,
  data,
  status: 201,
  saves: { [name]: 'data.id' },
});
const update = (path: string, data: object, reads: object = data): RecordedRequest => ({
  send: `PUT ${path}`,
  data,
  status: 200,
  reads: { data: reads },
});
const remove = (path: string, type?: string): RecordedRequest => ({
  send: `DELETE ${path}`,
  ...(type === undefined ? {} : { data: { type } }),
  status: 204,
  text: '',
});
const refused = (send: string, data: object, status: number): RecordedRequest => ({
  send,
  data,
  status,
  reads: { errors: [{ status: String(status), title: expect.any(String) }] },
});
const page = (limit: number, offset: number) => `page%5Blimit%5D=${limit}&page%5Boffset%5D=${offset}`;

const signIn = (password: string, status: number): RecordedRequest => ({
  send: 'POST /v2/account-members/tokens',
  data: {
    ...{ authentication_mechanism: 'password', password, username: 'jane3' },
    ...{ password_profile_id: '{passwords}', type: 'account_management_authentication_token' },
  },
  status,
});

const LOGIN = { client_id: 'shop', discovery_url: 'https://id.example/.well-known/openid-configuration' };
const LOGIN_TYPE = { type: 'oidc-profile' };
const PASSWORD_TYPE = { type: 'password_profile' };
const OIDC_LINK_TYPE = { type: 'user_authentication_oidc_profile_info' };
const PASSWORD_LINK_TYPE = { type: 'user_authentication_password_profile_info' };
const JANE = { email: 'jane@example.com', name: 'Jane Doe', type: 'user_authentication_info' };
const REALM_TYPE = { type: 'authentication-realm' };
const RESET = { duplicate_email_policy: 'allowed', redirect_uris: [], ...REALM_TYPE };

/** The realms by whom they are for, as the command line finds them. */
const SETTINGS: readonly RecordedRequest[] = [
  get('/v2/settings', { reads: { data: { id: '{store}' } } }),
  get('/v2/settings/customer-authentication', {
    saves: { buyers: 'data.relationships.authentication-realm.data.id' },
  }),
  get('/v2/settings/account-authentication', {
    saves: { realm: 'data.relationships.authentication_realm.data.id' },
  }),
  get('/v2/merchant-realm-mappings', { saves: { mapping: 'data.id', merchants: 'data.realm_id' } }),
];

const USES: readonly RecordedUse[] = [
  {
    title: 'login client_credentials, login status',
    requests: [
      grant({ client_id: '{clientId}', client_secret: '{secret}', grant_type: 'client_credentials' }),
      get('/v2/settings', { saves: { store: 'data.id' } }),
      get('/v2/stores/{store}', { reads: { data: { name: expect.any(String) } } }),
    ],
  },
  {
    title: 'get and update of settings, mappings and realms',
    requests: [
      ...SETTINGS,
      update('/v2/merchant-realm-mappings/{mapping}', { prefix: 'shop2', type: 'merchant-realm-mappings' }),
      // Newest first: `reset-store` names the realms by their place in the list.
      get(REALMS, { reads: { data: [{ id: '{realm}' }, { id: '{merchants}' }, { id: '{buyers}' }] } }),
      get(REALM, { reads: { data: { id: '{realm}' } } }),
      update(REALM, {
        ...{ duplicate_email_policy: 'api_only', name: 'My realm' },
        ...{ redirect_uris: ['https://shop.example/callback'], ...REALM_TYPE },
      }),
    ],
  },
  {
    title: 'create, get and update of profiles',
    requests: [
      create(OIDC, { ...LOGIN, client_secret: 's3cret', name: 'Login', ...LOGIN_TYPE }, 'oidc'),
      get(OIDC, { reads: { data: [{ id: '{oidc}' }] } }),
      get(`${OIDC}/{oidc}`, {
        reads: { data: LOGIN, links: { 'authorization-endpoint': expect.stringContaining('?') } },
      }),
      update(`${OIDC}/{oidc}`, { name: 'Company', ...LOGIN_TYPE }, { ...LOGIN, name: 'Company' }),
      create(PASSWORDS, { name: 'Passwords', ...PASSWORD_TYPE, username_format: 'email' }, 'passwords'),
      get(PASSWORDS, { reads: { data: [{ id: '{passwords}' }] } }),
      get(`${PASSWORDS}/{passwords}`, { reads: { data: { username_format: 'email' } } }),
      update(`${PASSWORDS}/{passwords}`, {
        ...{ enable_one_time_password_token: true, ...PASSWORD_TYPE, username_format: 'any' },
      }),
    ],
  },
  {
    title: 'create, get and update of users and profile infos',
    requests: [
      create(USERS, JANE, 'user'),
      get(USERS, { reads: { data: [{ id: '{user}' }, { id: '{member}' }] } }),
      get(`${USERS}/{user}`, { reads: { data: JANE } }),
      get(`${USERS}?filter=eq%28name%2CJane%20Doe%29&${page(1, 0)}&sort=-created_at`, {
        reads: { data: [{ id: '{user}' }] },
      }),
      update(`${USERS}/{user}`, { name: 'Jane Roe', type: JANE.type }),
      create(
        OIDC_LINKS,
        {
          issuer: 'https://id.example/',
          ...{ oidc_profile_id: '{oidc}', subject: 'jane', ...OIDC_LINK_TYPE },
        },
        'link',
      ),
      get(OIDC_LINKS, { reads: { data: [{ id: '{link}' }] } }),
      get(`${OIDC_LINKS}/{link}`, { reads: { data: { subject: 'jane' } } }),
      update(`${OIDC_LINKS}/{link}`, { subject: 'jane2', ...OIDC_LINK_TYPE }),
      create(
        PASSWORD_LINKS,
        {
          ...{ password: 'correct horse', password_profile_id: '{passwords}' },
          ...{ ...PASSWORD_LINK_TYPE, username: 'jane' },
        },
        'credential',
      ),
      get(PASSWORD_LINKS, { reads: { data: [{ id: '{credential}' }] } }),
      get(`${PASSWORD_LINKS}/{credential}`, { reads: { data: { username: 'jane' } } }),
      update(
        `${PASSWORD_LINKS}/{credential}`,
        {
          ...{ id: '{credential}', password: 'correct horse 2' },
          ...{ ...PASSWORD_LINK_TYPE, username: 'jane3' },
        },
        { id: '{credential}', username: 'jane3' },
      ),
      get('/v2/account-members', {
        reads: { data: [{ id: '{user}', type: 'account_member' }, { id: '{member}' }] },
      }),
      get('/v2/account-members/{user}', { reads: { data: { name: 'Jane Roe' } } }),
    ],
  },
  {
    title: 'login account-management, and with the password before',
    requests: [
      get('/v2/settings/account-authentication', {
        reads: { data: { relationships: { authentication_realm: { data: { id: '{realm}' } } } } },
      }),
      get(PASSWORDS, { reads: { data: [{ id: '{passwords}' }] } }),
      {
        ...signIn('correct horse 2', 201),
        reads: {
          data: [{ account_id: '{user}', account_name: 'Jane Roe', token: expect.any(String) }],
          meta: { account_member_id: '{user}' },
        },
        saves: { accountToken: 'data.0.token' },
      },
      {
        ...get('/v2/account-members', { reads: { data: [{ id: '{user}', name: 'Jane Roe' }] } }),
        headers: { 'EP-Account-Management-Authentication-Token': '{accountToken}' },
      },
      {
        ...signIn('correct horse', 400),
        reads: { errors: [{ status: '400', detail: 'authentication failed' }] },
      },
    ],
  },
  {
    title: 'get-all, which ends at an empty page',
    requests: [
      get(`${REALMS}?${page(25, 0)}`, {
        reads: { data: [{ id: '{realm}' }, { id: '{merchants}' }, { id: '{buyers}' }] },
      }),
      get(`${REALMS}?${page(25, 25)}`, { reads: { data: [] } }),
      get(`${PASSWORD_LINKS}?${page(100, 0)}`, { reads: { data: [{ id: '{credential}' }] } }),
      get(`${PASSWORD_LINKS}?${page(100, 100)}`, { reads: { data: [] } }),
    ],
  },
  {
    title: 'delete, and delete-all of users',
    requests: [
      remove(`${PASSWORD_LINKS}/{credential}`, PASSWORD_LINK_TYPE.type),
      remove(`${OIDC_LINKS}/{link}`, OIDC_LINK_TYPE.type),
      get(`${USERS}?page%5Blimit%5D=100`, { reads: { data: [{ id: '{user}' }, { id: '{member}' }] } }),
      ...[remove(`${USERS}/{user}`), remove(`${USERS}/{member}`)],
      get(`${USERS}?page%5Blimit%5D=100`, { reads: { data: [] } }),
      remove(`${OIDC}/{oidc}`, LOGIN_TYPE.type),
      remove(`${PASSWORDS}/{passwords}`, PASSWORD_TYPE.type),
    ],
  },
  {
    title: 'reset-store, which goes on where the service refuses',
    requests: [
      ...SETTINGS,
      get(REALMS),
      refused('PUT /v2/settings', { page_length: 25, type: 'settings' }, 405),
      ...['{realm}', '{merchants}', '{buyers}'].map((id) => update(`${REALMS}/${id}`, RESET)),
      update(`${REALMS}/{buyers}`, { name: 'Buyer Organization', ...REALM_TYPE }),
      update(`${REALMS}/{realm}`, { name: 'Account Management Realm', ...REALM_TYPE }),
      update('/v2/settings/account-authentication', {
        enable_self_signup: false,
        type: 'account_authentication_settings',
      }),
      refused('PUT /v2/settings/cart', { cart_expiry_days: 7, type: 'settings' }, 404),
    ],
  },
  {
    title: 'one-time passwords are refused',
    requests: [
      refused(
        `POST ${PASSWORDS}/{passwords}/one-time-password-token-request`,
        { purpose: 'reset_password', type: 'one_time_password_token_request', username: 'jane3' },
        404,
      ),
    ],
  },
  {
    title: 'login implicit',
    requests: [
      grant({ client_id: '{storefrontId}', grant_type: 'implicit' }),
      get('/v2/settings/account-authentication'),
      get(PASSWORDS, { reads: { data: [] } }),
    ],
  },
];

export const EPCC: RecordedClient = {
  name: 'epcc',
  version: 'of 9 March 2026',
  headers: { 'Content-Type': 'application/json', 'User-Agent': 'epcc-cli' },
  uses: USES,
};
