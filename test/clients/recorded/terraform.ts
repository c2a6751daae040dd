import { expect } from 'bun:test';
import type { RecordedClient, RecordedRequest, RecordedUse } from './recording.ts';

/**
 * The Terraform provider of the family: its six acceptance tests on realms, profiles, users and mappings. Each command of Terraform
 * gets a token of its own and reads before it writes; requests that are sent again with the same content are listed once.
 */

const TOKEN: RecordedRequest = {
  send: 'POST /oauth/access_token',
  form: { client_id: '{clientId}', client_secret: '{secret}', grant_type: 'client_credentials' },
  headers: { Accept: 'application/json', 'Content-Type': 'application/x-www-form-urlencoded' },
  status: 200,
  reads: { access_token: expect.any(String), expires: expect.any(Number), expires_in: expect.any(Number) },
  saves: { token: 'access_token' },
};

const CUSTOMERS: RecordedRequest = {
  send: 'GET /v2/settings/customer-authentication',
  status: 200,
  reads: { data: { id: expect.any(String), type: 'customer-authentication-settings' } },
  saves: { realm: 'data.relationships.authentication-realm.data.id' },
};

const ACCOUNTS: RecordedRequest = {
  send: 'GET /v2/settings/account-authentication',
  status: 200,
  reads: { data: { id: expect.any(String), type: 'account_authentication_settings' } },
  saves: { realm: 'data.relationships.authentication_realm.data.id' },
};

const MAPPING: RecordedRequest = {
  send: 'GET /v2/merchant-realm-mappings',
  status: 200,
  reads: { data: { type: 'merchant-realm-mappings', store_id: expect.any(String) } },
  saves: { realm: 'data.realm_id', mapping: 'data.id' },
};

/** The provider sends every member, null ones too. */
const realmOf = (name: string, redirect_uris: readonly string[], duplicate_email_policy: string) => ({
  id: '{realm}',
  ...{ type: 'authentication-realm', name, redirect_uris, duplicate_email_policy },
  relationships: null,
});

const getRealm = (reads: object): RecordedRequest => ({
  send: 'GET /v2/authentication-realms/{realm}',
  status: 200,
  reads: { data: reads },
});

const putRealm = (data: object): RecordedRequest => ({
  send: 'PUT /v2/authentication-realms/{realm}',
  data,
  status: 200,
  reads: { data: { id: '{realm}' } },
});

/** Changes the realm that settings name, and resets it. The provider reads the origin, and ends where there is none. */
function realmTest(found: RecordedRequest, origin: string, names: readonly [own: string, reset: string]) {
  const [own, reset] = names;
  const relationships = { origin: { data: { id: expect.any(String), type: origin } } };
  const changed = realmOf(own, ['https://yahoo.co.uk/'], 'api_only');
  const before = realmOf(reset, [], 'allowed');
  const shown = ({ relationships: _, ...members }: ReturnType<typeof realmOf>) => ({
    ...members,
    relationships,
  });
  return [
    ...[TOKEN, found, getRealm({ relationships }), putRealm(changed), getRealm(shown(changed))],
    ...[TOKEN, putRealm(before), TOKEN, found, getRealm(shown(before))],
  ];
}

const REALM_RESOURCE: readonly RecordedRequest[] = [
  ...[TOKEN, CUSTOMERS, getRealm({ id: '{realm}' })],
  putRealm(realmOf('test_realm', ['https://google.com/'], 'allowed')),
  getRealm({ name: 'test_realm' }),
];
const REALM_RESET = putRealm(realmOf('Buyer Organization', [], 'allowed'));

const PROFILE = {
  ...{ type: 'oidc-profile', name: 'test_profile', client_id: 'epcc-integrations' },
  discovery_url: 'https://elasticpath-customer.okta.com/.well-known/openid-configuration',
};
const PROFILES = '/v2/authentication-realms/{realm}/oidc-profiles';
const LINKS = {
  'callback-endpoint': expect.stringMatching(/^https?:/),
  'authorization-endpoint': expect.stringMatching(/^https?:.*\?/),
  'client-discovery-url': expect.stringMatching(/^https?:/),
};

const USER = { type: 'user_authentication_info', name: 'John Doe', email: 'john.doe@banks.com' };
const USERS = '/v2/authentication-realms/{realm}/user-authentication-info';

const putPrefix = (prefix: string): RecordedRequest => ({
  send: 'PUT /v2/merchant-realm-mappings/{mapping}',
  data: { id: '', prefix, type: 'merchant-realm-mappings' },
  status: 200,
  reads: { data: { id: '{mapping}', prefix } },
});

const USES: readonly RecordedUse[] = [
  {
    title: 'AuthenticationRealmWithCustomerAuthenticationSettings',
    requests: realmTest(CUSTOMERS, 'customer-authentication-settings', ['test_realm', 'Buyer Organization']),
  },
  {
    title: 'AuthenticationRealmWithAccountAuthenticationSettings',
    requests: realmTest(ACCOUNTS, 'account_authentication_settings', [
      'test_realm_2',
      'Account Management Realm',
    ]),
  },
  {
    title: 'AuthenticationRealmWithMerchantRealmMappings',
    requests: realmTest(MAPPING, 'merchant-realm-mappings', ['test_realm_2', 'Merchant Organization']),
  },
  {
    title: 'OidcProfile',
    requests: [
      ...REALM_RESOURCE,
      {
        send: `POST ${PROFILES}/`,
        data: { id: '', ...PROFILE, client_secret: '86c8986d-e1b2-4ce4-a24c-8430ec1ab383' },
        status: 201,
        saves: { profile: 'data.id' },
      },
      {
        send: `GET ${PROFILES}/{profile}`,
        status: 200,
        reads: { data: { id: '{profile}', ...PROFILE }, links: LINKS },
      },
      { send: `DELETE ${PROFILES}/{profile}`, status: 204, text: '' },
      REALM_RESET,
    ],
  },
  {
    title: 'UserAuthenticationInfo',
    requests: [
      ...REALM_RESOURCE,
      { send: `POST ${USERS}/`, data: { id: '', ...USER }, status: 201, saves: { user: 'data.id' } },
      { send: `GET ${USERS}/{user}`, status: 200, reads: { data: { id: '{user}', ...USER } } },
      { send: `DELETE ${USERS}/{user}`, status: 204, text: '' },
      REALM_RESET,
    ],
  },
  {
    title: 'MerchantRealmMappingPrefix',
    requests: [
      ...[TOKEN, MAPPING, putPrefix('abcdefghijklmnopqrst'), MAPPING],
      putPrefix('deletedat1700000000000000000'),
    ],
  },
];

export const TERRAFORM: RecordedClient = {
  name: 'terraform-provider-epcc',
  version: 'of 3 March 2022',
  headers: { 'Content-Type': 'application/json', 'User-Agent': 'terraform-provider-epcc / dev' },
  uses: USES,
};
