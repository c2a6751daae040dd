import type { Resource } from '../../src/model/resource.ts';
import {
  oidcProfile,
  oidcProfileInfo,
  passwordProfile,
  passwordProfileInfo,
  RESOURCES,
  realm,
  user,
} from '../../src/model/resources.ts';
import { ISSUER, type Sendable, type Service } from './service.ts';

/** The resources as the suites write them, one row for each; a test fails where one is missing. */

/** Every scope that reads or writes a record. */
export const FULL_SCOPE = ['realms', 'profiles', 'users', 'profile-infos']
  .flatMap((noun) => [`${noun}:read`, `${noun}:write`])
  .join(' ');

/** IDs of the records that other records depend on. */
export interface ParentIds {
  readonly realm: string;
  readonly oidcProfile: string;
  readonly passwordProfile: string;
  readonly user: string;
}

export type Data = Readonly<Record<string, unknown>>;

/** The form of a member; `max` in characters. */
export type Form =
  | { readonly of: 'text'; readonly max: number; readonly isNullable?: true }
  | { readonly of: 'email'; readonly max: number }
  | { readonly of: 'url'; readonly max: number }
  | { readonly of: 'issuer'; readonly max: number }
  | { readonly of: 'username'; readonly max: number }
  | { readonly of: 'choice' }
  | { readonly of: 'boolean' }
  | { readonly of: 'addresses' }
  | { readonly of: 'reference' }
  | { readonly of: 'password' };

export interface Kind {
  readonly name: string;
  readonly resource: Resource;
  /** The path of its collection. */
  collection(home: ParentIds): string;
  /** The unique `data` of a valid POST. */
  fresh(home: ParentIds): Data;
  /** New values of every member that a PUT may change. */
  changes(): Data;
  /** The members that a caller may write. */
  readonly forms: Readonly<Record<string, Form>>;
  /** Those of them that a POST requires. */
  readonly required: readonly string[];
  /** The `data` of a record created from `input`, without `id`, `type` and timestamps. */
  shown(input: Data, installation: string): Data;
  /** Its links without `self`. */
  links?(home: ParentIds, id: string, installation: string): Readonly<Record<string, string>>;
}

let count = 0;

/** A word that no other test uses. */
export function uniqueWord(stem: string): string {
  count += 1;
  return `${stem}-${process.pid}-${count}`;
}

const text = (max: number): Form => ({ of: 'text', max });
const REALMS = '/v2/authentication-realms';

export const PASSWORD = 'correct horse battery';
export const CLIENT_SECRET = 'of-a-provider-and-nobody-else';

export const KINDS: readonly [Kind, Kind, Kind, Kind, Kind, Kind] = [
  {
    name: 'realm',
    resource: realm,
    collection: () => REALMS,
    fresh: () => ({ type: 'authentication-realm', name: uniqueWord('Shop') }),
    changes: () => ({
      name: 'Store',
      redirect_uris: ['https://shop.example/callback', 'http://localhost:8080/callback'],
      duplicate_email_policy: 'api_only',
    }),
    forms: {
      name: text(255),
      redirect_uris: { of: 'addresses' },
      duplicate_email_policy: { of: 'choice' },
    },
    required: ['name'],
    shown: ({ name }, installation) => ({
      name,
      redirect_uris: [],
      duplicate_email_policy: 'allowed',
      relationships: { origin: { data: { type: 'account_authentication_settings', id: installation } } },
      meta: {},
    }),
  },
  {
    name: 'OIDC profile',
    resource: oidcProfile,
    collection: (home) => `${REALMS}/${home.realm}/oidc-profiles`,
    fresh: () => ({
      type: 'oidc-profile',
      name: uniqueWord('Login'),
      discovery_url: `${ISSUER}.well-known/openid-configuration`,
      client_id: uniqueWord('shop'),
      client_secret: CLIENT_SECRET,
    }),
    changes: () => ({ name: 'Company', client_id: 'portal', client_secret: `${CLIENT_SECRET}-2` }),
    forms: {
      name: text(255),
      discovery_url: { of: 'url', max: 2048 },
      client_id: text(1024),
      client_secret: text(4096),
      issuer: { of: 'issuer', max: 1024 },
    },
    required: ['name', 'discovery_url', 'client_id', 'client_secret'],
    shown: ({ name, discovery_url, client_id }) => ({
      name,
      discovery_url,
      client_id,
      meta: { issuer: ISSUER.slice(0, -1) },
    }),
    links: (home, id, installation) => ({
      'authorization-endpoint': `/oidc-idp/login/stores/${installation}/authentication-realms/${home.realm}?elasticpath_commerce_cloud_profile_id=${id}`,
      'callback-endpoint': `/oidc-idp/callback/stores/${installation}/authentication-realms/${home.realm}/oidc-profiles/${id}`,
      'client-discovery-url': `/oidc-idp/stores/${installation}/authentication-realms/${home.realm}/.well-known/openid-configuration`,
    }),
  },
  {
    name: 'password profile',
    resource: passwordProfile,
    collection: (home) => `${REALMS}/${home.realm}/password-profiles`,
    fresh: () => ({ type: 'password_profile', name: uniqueWord('Passwords') }),
    changes: () => ({ name: 'Names', username_format: 'email', enable_one_time_password_token: true }),
    forms: {
      name: text(255),
      username_format: { of: 'choice' },
      enable_one_time_password_token: { of: 'boolean' },
    },
    required: ['name'],
    shown: ({ name }) => ({ name, username_format: 'any', enable_one_time_password_token: false, meta: {} }),
  },
  {
    name: 'user',
    resource: user,
    collection: (home) => `${REALMS}/${home.realm}/user-authentication-info`,
    fresh: () => ({
      type: 'user_authentication_info',
      name: uniqueWord('Jane'),
      email: `${uniqueWord('jane')}@example.com`,
    }),
    changes: () => ({
      name: 'Jane Doe',
      email: 'jane@example.org',
      given_name: 'Jane',
      middle_name: 'M.',
      family_name: 'Doe',
      enabled: false,
    }),
    forms: {
      name: text(255),
      email: { of: 'email', max: 320 },
      given_name: { of: 'text', max: 255, isNullable: true },
      middle_name: { of: 'text', max: 255, isNullable: true },
      family_name: { of: 'text', max: 255, isNullable: true },
      enabled: { of: 'boolean' },
    },
    required: ['name', 'email'],
    shown: ({ name, email }) => ({
      name,
      email,
      given_name: null,
      middle_name: null,
      family_name: null,
      meta: { creation_status: 'COMPLETE' },
    }),
  },
  {
    name: 'OIDC profile info',
    resource: oidcProfileInfo,
    collection: (home) => `${userPath(home)}/user-authentication-oidc-profile-info`,
    fresh: (home) => ({
      type: 'user_authentication_oidc_profile_info',
      subject: uniqueWord('auth0|subject'),
      issuer: ISSUER,
      oidc_profile_id: home.oidcProfile,
    }),
    changes: () => ({ subject: uniqueWord('auth0|another'), issuer: 'https://other.example/' }),
    forms: {
      subject: text(255),
      issuer: { of: 'issuer', max: 1024 },
      oidc_profile_id: { of: 'reference' },
    },
    required: ['subject', 'issuer', 'oidc_profile_id'],
    shown: ({ subject, issuer, oidc_profile_id }) => ({ subject, issuer, oidc_profile_id, meta: {} }),
  },
  {
    name: 'password profile info',
    resource: passwordProfileInfo,
    collection: (home) => `${userPath(home)}/user-authentication-password-profile-info`,
    fresh: (home) => ({
      type: 'user_authentication_password_profile_info',
      username: uniqueWord('jane'),
      password: PASSWORD,
      password_profile_id: home.passwordProfile,
    }),
    changes: () => ({ username: uniqueWord('jane-doe'), password: `${PASSWORD} staple` }),
    forms: {
      username: { of: 'username', max: 255 },
      password: { of: 'password' },
      password_profile_id: { of: 'reference' },
    },
    required: ['username', 'password', 'password_profile_id'],
    shown: ({ username, password_profile_id }) => ({ username, password_profile_id, meta: {} }),
  },
];

export function userPath({ realm, user }: ParentIds): string {
  return `${REALMS}/${realm}/user-authentication-info/${user}`;
}

export function kindOf(resource: Resource): Kind {
  const found = KINDS.find((kind) => kind.resource === resource);
  if (!found) throw new Error(`test/support/resource_cases.ts has no row for ${resource.name}`);
  return found;
}

/** The response body of a single record. */
export interface RecordBody {
  readonly data: Readonly<Record<string, unknown>> & {
    readonly id: string;
    readonly meta: Readonly<Record<string, string>>;
  };
  readonly links: Readonly<Record<string, string>>;
}

export interface CreatedRecord {
  readonly id: string;
  /** The path of the record. */
  readonly path: string;
  readonly etag: string;
  readonly body: RecordBody;
}

/** Creates a record over HTTP; throws where the service rejects it. */
export async function createRecord(
  service: Pick<Service, 'post'>,
  token: string,
  { kind, home, data }: { readonly kind: Kind; readonly home: ParentIds; readonly data?: Data },
): Promise<CreatedRecord> {
  const input: Sendable = { data: { ...kind.fresh(home), ...data } };
  const answer = await service.post(kind.collection(home), token, input);
  if (answer.status !== 201) throw new Error(`${kind.name}: ${answer.status} ${await answer.text()}`);
  const body = (await answer.json()) as RecordBody;
  const etag = answer.headers.get('etag') ?? '';
  return { id: body.data.id, path: `${kind.collection(home)}/${body.data.id}`, etag, body };
}

/** Creates a realm with a profile of each kind and a user over HTTP; `login` has members of the OIDC profile. */
export async function createParents(
  service: Pick<Service, 'post'>,
  token: string,
  login: Data = {},
): Promise<ParentIds> {
  let home: ParentIds = { realm: '', oidcProfile: '', passwordProfile: '', user: '' };
  const members: [keyof ParentIds, Resource][] = [
    ['realm', realm],
    ['oidcProfile', oidcProfile],
    ['passwordProfile', passwordProfile],
    ['user', user],
  ];
  for (const [member, resource] of members) {
    const data = resource === oidcProfile ? login : {};
    const { id } = await createRecord(service, token, { kind: kindOf(resource), home, data });
    home = { ...home, [member]: id };
  }
  return home;
}

/** Settings of a service that derives the issuer of a profile from its URL. */
export const OFFLINE = { offline: 'true' } as const;

const COUNTED = [...RESOURCES.map(({ table }) => table), 'log_entry', 'idempotency'];
const COUNTS = COUNTED.map((table) => `select '${table}' as name, count(*) as n from ${table}`).join(
  ' union all ',
);

/** The numbers of records, changes and idempotency records, by table. */
export async function rowCounts({ database }: Service): Promise<Readonly<Record<string, number>>> {
  const counts = await database.query<{ name: string; n: number }>(COUNTS);
  return Object.fromEntries(counts.map(({ name, n }) => [name, n]));
}
