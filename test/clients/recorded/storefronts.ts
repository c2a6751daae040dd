import { expect } from 'bun:test';
import { get, grant, PASSWORD_LINKS, PASSWORDS, USERS } from './paths.ts';
import type { RecordedClient, RecordedRequest } from './recording.ts';

/**
 * Two storefronts with one application key: one renders its pages on a server, which has the secret, the other one runs in a browser,
 * which has the ID alone. Their calls are those of the public storefronts, which call the SDK.
 */

const SDK_HEADERS = {
  'Content-Type': 'application/json',
  'X-MOLTIN-SDK-LANGUAGE': 'JS',
  'X-MOLTIN-SDK-VERSION': '35.0.0',
  'X-MOLTIN-LANGUAGE': 'en',
  'X-MOLTIN-CURRENCY': 'USD',
  'EP-Beta-Features': 'account-management',
};

const TOKENS = 'POST /v2/account-members/tokens';
const TOKEN_TYPE = 'account_management_authentication_token';
/** Of the shopper who signed in. */
const SIGNED_IN = { 'EP-Account-Management-Authentication-Token': '{accountToken}' };
const TYPES = { user: 'user_authentication_info', password: 'user_authentication_password_profile_info' };

const signIn = (
  username: string,
  password: string,
  more: Partial<RecordedRequest> = {},
): RecordedRequest => ({
  send: TOKENS,
  data: {
    type: TOKEN_TYPE,
    authentication_mechanism: 'password',
    password_profile_id: '{passwords}',
    username,
    password,
  },
  status: 201,
  reads: { data: [{ type: TOKEN_TYPE, token: expect.any(String), expires: expect.any(String) }] },
  saves: { accountToken: 'data.0.token', account: 'data.0.account_id', user: 'meta.account_member_id' },
  ...more,
});

const refused = (status: number, detail: unknown): Partial<RecordedRequest> => ({
  status,
  reads: { errors: [{ status: String(status), detail }] },
  saves: {},
});
const WRONG = refused(400, 'authentication failed');
const SIGNED_OUT = refused(401, expect.stringMatching(/^Unable to validate access token/));

/** A shopper who switches accounts gets new tokens for the one that is sent. */
const RENEWAL: RecordedRequest = {
  send: TOKENS,
  data: { type: TOKEN_TYPE, authentication_mechanism: TOKEN_TYPE },
  headers: SIGNED_IN,
  status: 201,
  reads: { data: [{ account_id: '{account}' }], meta: { account_member_id: '{user}' } },
  saves: { accountToken: 'data.0.token' },
};

/** The realm of the shoppers, and where their passwords are. */
const SETTINGS: readonly RecordedRequest[] = [
  get('/v2/settings/account-authentication', {
    saves: { realm: 'data.relationships.authentication_realm.data.id' },
  }),
  get(PASSWORDS, { reads: { data: [{ id: '{profile}' }] }, saves: { passwords: 'data.0.id' } }),
];

const own = (path: string, reads: object): RecordedRequest => get(path, { headers: SIGNED_IN, reads });

/** The pages of an account. The lists have the shopper alone. */
const ACCOUNT_PAGES: readonly RecordedRequest[] = [
  own('/v2/account-members/{user}', { data: { id: '{user}', type: 'account_member', name: 'Jane Doe' } }),
  own('/v2/account-members', { data: [{ id: '{user}' }], meta: { results: { total: 1 } } }),
  own('/v2/accounts?page%5Blimit%5D=25&page%5Boffset%5D=0', {
    data: [{ id: '{account}', name: 'Jane Doe' }],
  }),
  own('/v2/accounts/{account}', { data: { id: '{account}', type: 'account' } }),
  own('/v2/accounts/{account}/account-memberships', {
    data: [{ relationships: { account_member: { data: { id: '{user}' } } } }],
  }),
];

/** A new shopper, who is signed in at once. */
const selfSignup = (username: string): RecordedRequest => ({
  ...signIn(username, 'correct horse'),
  data: {
    type: TOKEN_TYPE,
    authentication_mechanism: 'self_signup',
    password_profile_id: '{passwords}',
    username,
    password: 'correct horse',
    name: 'New Shopper',
    email: username,
  },
});

/** A wrong password, the right one, and the account before and after a switch to it. */
const SIGN_IN = [
  signIn('{username}', 'wrong horse', WRONG),
  signIn('{username}', '{password}'),
  ...ACCOUNT_PAGES,
  RENEWAL,
  ...ACCOUNT_PAGES,
];

export const SERVER_STOREFRONT: RecordedClient = {
  name: 'a storefront on a server',
  version: 'with the secret of its key',
  headers: { ...SDK_HEADERS, 'Authrealm-End-User-Address': '192.0.2.1' },
  uses: [
    {
      title: 'a token by the secret, the settings, and the password profile',
      requests: [
        grant({ client_id: '{clientId}', client_secret: '{secret}', grant_type: 'client_credentials' }),
        ...SETTINGS,
      ],
    },
    {
      title: 'a shopper signs in, sees the account, and switches to it again',
      requests: SIGN_IN,
    },
    {
      title: 'a shopper changes the name and the password, which ends the earlier sign-in',
      requests: [
        {
          send: `PUT ${USERS}/{user}`,
          data: { type: TYPES.user, name: 'Jane Roe' },
          status: 200,
          reads: { data: { name: 'Jane Roe' } },
        },
        own('/v2/account-members/{user}', { data: { name: 'Jane Roe' } }),
        get(PASSWORD_LINKS, { reads: { data: [{ id: expect.any(String) }] }, saves: { link: 'data.0.id' } }),
        {
          send: `PUT ${PASSWORD_LINKS}/{link}`,
          data: { type: TYPES.password, id: '{link}', password: 'another horse' },
          status: 200,
        },
        { ...RENEWAL, ...SIGNED_OUT },
        { ...get('/v2/account-members/{user}', { headers: SIGNED_IN }), ...SIGNED_OUT },
        signIn('{username}', '{password}', WRONG),
        signIn('{username}', 'another horse'),
      ],
    },
    {
      title: 'a new shopper signs up, and another one is registered by the server and signs in',
      requests: [
        selfSignup('jill@shop.example'),
        own('/v2/account-members', { data: [{ id: '{user}', name: 'New Shopper' }] }),
        {
          send: `POST ${USERS}`,
          data: { type: TYPES.user, name: 'Joe Doe', email: 'joe@shop.example' },
          status: 201,
          saves: { user: 'data.id' },
        },
        {
          send: `POST ${PASSWORD_LINKS}`,
          data: {
            type: TYPES.password,
            password_profile_id: '{passwords}',
            username: 'joe@shop.example',
            password: 'correct horse',
          },
          status: 201,
        },
        signIn('joe@shop.example', 'correct horse'),
        own('/v2/account-members', { data: [{ id: '{user}', name: 'Joe Doe' }] }),
      ],
    },
  ],
};

export const BROWSER_STOREFRONT: RecordedClient = {
  name: 'a storefront in a browser',
  version: 'with the ID of its key alone',
  headers: SDK_HEADERS,
  uses: [
    {
      title: 'a token by the ID alone, the settings, and the password profile',
      requests: [grant({ client_id: '{clientId}', grant_type: 'implicit' }), ...SETTINGS],
    },
    {
      title: 'a shopper signs in, sees the account, and switches to it again',
      requests: [...SIGN_IN, get('/v2/account-members/{member}', { headers: SIGNED_IN, status: 404 })],
    },
    {
      title: 'a page that is loaded again gets another token, and keeps the shopper signed in',
      requests: [grant({ client_id: '{clientId}', grant_type: 'implicit' }), RENEWAL, ...ACCOUNT_PAGES],
    },
    {
      title: 'nothing is read after the sign-out, and nothing is written',
      requests: [
        { ...get('/v2/account-members'), ...SIGNED_OUT },
        { ...get('/v2/accounts/{account}'), ...SIGNED_OUT },
        get(USERS, { status: 403 }),
        { send: `PUT ${USERS}/{user}`, data: { type: TYPES.user, name: 'Jane Roe' }, status: 403 },
      ],
    },
    {
      title: 'a new shopper signs up, and is signed in',
      requests: [
        selfSignup('joan@shop.example'),
        own('/v2/account-members', { data: [{ id: '{user}', name: 'New Shopper' }] }),
        { ...selfSignup('joan@shop.example'), status: 422, reads: {}, saves: {} },
      ],
    },
  ],
};
