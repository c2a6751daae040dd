import { z } from 'zod';
import { accountSettings } from './account_settings.ts';
import type { Filterable } from './filter/filter.ts';
import { passwordHash } from './imported_hash.ts';
import { mappingPrefix } from './mapping_prefix.ts';
import { password } from './password.ts';
import { annotate, type Resource, reference, resource } from './resource.ts';
import { email, username } from './text/folding.ts';
import { httpUrl, issuerUrl, redirectUri, text } from './text/text.ts';

/** The six resources. */

export const realm = resource({
  name: 'authentication-realm',
  number: 1,
  type: 'authentication-realm',
  collection: 'authentication-realms',
  table: 'realm',
  foreignKey: 'realm_id',
  parent: undefined,
  selfPrefix: '/v2',
  scope: 'realms',
  bodyId: 'own',
  protectedBy: 'preset',
  summary: 'A group of users and of the profiles they sign in through.',
  words: ['realm', 'realms'],
  members: {
    name: text(255).meta({ examples: ['Shop'] }),
    redirect_uris: z
      .array(redirectUri(2048))
      .max(100)
      .default([])
      .meta({ examples: [['https://shop.example.com/callback']] }),
    // In any letter case (docs/wire.md#realms).
    duplicate_email_policy: z
      .string()
      .toLowerCase()
      .pipe(z.enum(['allowed', 'api_only']))
      .default('allowed'),
    origin: annotate(
      z
        .object({
          data: z.object({
            id: text(255).meta({ examples: ['shop-1'] }),
            type: text(255).meta({ examples: ['account_authentication_settings'] }),
          }),
        })
        .optional(),
      {
        within: 'relationships',
        writableBy: 'creator',
        installation: 'account_authentication_settings',
      },
    ),
    preset: annotate(z.boolean().default(false), { hidden: true, writableBy: 'none', commandOnly: true }),
    // Of the login addresses of merchants. Clients write up to 28 characters (docs/wire.md#settings).
    prefix: annotate(mappingPrefix().optional(), {
      shownIn: 'merchant-realm-mappings',
      writableBy: 'none',
      commandOnly: true,
    }),
    account_settings: annotate(accountSettings().partial().optional(), {
      shownIn: 'account_authentication_settings',
      writableBy: 'none',
      commandOnly: true,
    }),
  },
  unique: [],
});

const WELL_KNOWN = '/.well-known/openid-configuration';

export const oidcProfile = resource({
  name: 'oidc-profile',
  number: 2,
  type: 'oidc-profile',
  collection: 'oidc-profiles',
  table: 'oidc_profile',
  parent: realm,
  selfPrefix: '/v2',
  scope: 'profiles',
  bodyId: 'own',
  // docs/wire.md#oidc-profiles. Clients append `&client_id=…` to the first.
  extraLinks: {
    'authorization-endpoint':
      '/oidc-idp/login/stores/{store}/authentication-realms/{realm}?elasticpath_commerce_cloud_profile_id={id}',
    'callback-endpoint': '/oidc-idp/callback/stores/{store}/authentication-realms/{realm}/oidc-profiles/{id}',
    'client-discovery-url': `/oidc-idp/stores/{store}/authentication-realms/{realm}${WELL_KNOWN}`,
  },
  searchAllRealms: { filterables: { id: { compared: 'identifier', operators: ['eq'] } }, by: [['id']] },
  summary: 'An external OpenID provider that users of the realm sign in through.',
  words: ['provider', 'providers'],
  creation: 'Add a provider to a realm.',
  members: {
    name: text(255).meta({ examples: ['Company login'] }),
    discovery_url: httpUrl(2048),
    client_id: text(1024).meta({ examples: ['authrealm'] }),
    client_secret: annotate(
      text(4096)
        .meta({ examples: ['a secret of the provider'] })
        .optional(),
      { secret: 'sealed', requiredOnCreate: true },
    ),
    issuer: annotate(issuerUrl(), {
      within: 'meta',
      writableBy: 'offline',
      immutableWhileReferenced: true,
      discoveredFrom: { member: 'discovery_url', suffix: WELL_KNOWN, secret: 'client_secret' },
    }),
  },
  unique: [],
});

export const passwordProfile = resource({
  name: 'password-profile',
  number: 3,
  type: 'password_profile',
  collection: 'password-profiles',
  table: 'password_profile',
  parent: realm,
  selfPrefix: '/v2',
  scope: 'profiles',
  bodyId: 'own',
  searchAllRealms: { filterables: { id: { compared: 'identifier', operators: ['eq'] } }, by: [['id']] },
  summary: 'A set of usernames with passwords that users of the realm sign in through.',
  words: ['password profile', 'password profiles'],
  creation: 'Give a realm a password profile, so that its users can have usernames.',
  members: {
    name: text(255).meta({ examples: ['Passwords'] }),
    username_format: z.enum(['any', 'email']).default('any'),
    enable_one_time_password_token: z.boolean().default(false),
  },
  unique: [],
});

/** A part of the name of a user, which may be null. */
function namePart(example: string) {
  const schema = text(255).nullable().default(null);
  return annotate(schema.meta({ examples: [example] }), { foldedKeyColumn: true, personal: true });
}

/** The names and the e-mail address of a user, by the beginnings of their words. */
const USER_TEXT = {
  compared: 'words',
  operators: ['match'],
  members: ['name', 'email', 'given_name', 'middle_name', 'family_name'],
} as const satisfies Filterable;

export const user = resource({
  name: 'user-authentication-info',
  number: 4,
  type: 'user_authentication_info',
  collection: 'user-authentication-info',
  table: 'user_info',
  foreignKey: 'user_id',
  parent: realm,
  selfPrefix: '/v2',
  scope: 'users',
  bodyId: 'ignored',
  filterables: {
    id: { compared: 'identifier', operators: ['eq', 'in', 'gt', 'ge', 'lt', 'le'] },
    name: { compared: 'folded', operators: ['eq', 'in', 'like', 'ilike'] },
    email: { compared: 'folded', operators: ['eq', 'in', 'like', 'ilike'] },
    given_name: { compared: 'folded', operators: ['eq', 'in', 'like', 'ilike', 'is_null'] },
    middle_name: { compared: 'folded', operators: ['eq', 'in', 'like', 'ilike', 'is_null'] },
    family_name: { compared: 'folded', operators: ['eq', 'in', 'like', 'ilike', 'is_null'] },
    created_at: { compared: 'instant', operators: ['eq', 'gt', 'ge', 'lt', 'le'] },
    updated_at: { compared: 'instant', operators: ['eq', 'gt', 'ge', 'lt', 'le'] },
    enabled: { compared: 'flag', operators: ['eq'] },
    text: USER_TEXT,
  },
  searchAllRealms: {
    filterables: {
      id: { compared: 'identifier', operators: ['eq'] },
      name: { compared: 'folded', operators: ['eq', 'like'] },
      email: { compared: 'folded', operators: ['eq', 'like'] },
      text: USER_TEXT,
    },
    by: [['id'], ['email'], ['name'], ['text']],
  },
  summary: 'A user of the realm.',
  words: ['user', 'users'],
  creation: 'Create a user, with its links and usernames if they are given.',
  members: {
    name: annotate(text(255).meta({ examples: ['Jane Doe'] }), { foldedKeyColumn: true, personal: true }),
    email: annotate(email().meta({ examples: ['jane@example.com'] }), {
      foldedKeyColumn: true,
      personal: true,
    }),
    given_name: namePart('Jane'),
    middle_name: namePart('Mary'),
    family_name: namePart('Doe'),
    creation_status: annotate(z.enum(['COMPLETE', 'IN_PROGRESS']).default('COMPLETE'), {
      within: 'meta',
      writableBy: 'none',
    }),
    // False for an address that the user or a provider stated without proof: no sign-in finds the user by it.
    email_vouched: annotate(z.boolean().default(true), {
      within: 'meta',
      hidden: true,
      writableBy: 'none',
      resetBy: 'email',
    }),
    enabled: annotate(
      z.boolean().default(true).meta({
        description: 'False for a user who cannot sign in. Responses omit it where it is true.',
        'x-authrealm-extension': true,
      }),
      { omittedIf: true },
    ),
  },
  unique: [],
});

export const oidcProfileInfo = resource({
  name: 'user-authentication-oidc-profile-info',
  number: 5,
  type: 'user_authentication_oidc_profile_info',
  collection: 'user-authentication-oidc-profile-info',
  table: 'oidc_profile_info',
  parent: user,
  includedAs: 'oidc_profile_infos',
  selfPrefix: '/v2',
  scope: 'oidc-profile-infos',
  bodyId: 'own_or_parent',
  reverseLookup: {
    filterables: {
      id: { compared: 'identifier', operators: ['eq', 'in'] },
      issuer: { compared: 'exact', operators: ['eq'] },
      subject: { compared: 'exact', operators: ['eq'] },
      oidc_profile_id: { compared: 'identifier', operators: ['eq'] },
    },
    by: [['issuer', 'subject'], ['id']],
    listedBy: 'oidc_profile_id',
  },
  searchAllRealms: {
    filterables: {
      id: { compared: 'identifier', operators: ['eq'] },
      issuer: { compared: 'exact', operators: ['eq'] },
      subject: { compared: 'exact', operators: ['eq'] },
    },
    by: [['id'], ['subject'], ['issuer', 'subject']],
  },
  summary: 'The link between a user and a subject at an issuer.',
  words: ['link', 'links'],
  creation: 'Link a subject to a user.',
  members: {
    subject: annotate(text(255).meta({ examples: ['auth0|5f7c8ec7c33c6c004bbafe82'] }), {
      hashColumn: true,
      personal: true,
    }),
    issuer: annotate(issuerUrl(), { sameAs: { reference: 'oidc_profile_id', member: 'issuer' } }),
    oidc_profile_id: reference('oidc-profile'),
  },
  unique: [['issuer', 'subject']],
});

export const passwordProfileInfo = resource({
  name: 'user-authentication-password-profile-info',
  number: 6,
  type: 'user_authentication_password_profile_info',
  collection: 'user-authentication-password-profile-info',
  table: 'password_profile_info',
  parent: user,
  includedAs: 'password_profile_infos',
  // The self link of a single record has no version segment (docs/wire.md#self-links).
  selfPrefix: '',
  scope: 'password-profile-infos',
  bodyId: 'own',
  reverseLookup: {
    filterables: {
      id: { compared: 'identifier', operators: ['eq', 'in'] },
      username: { compared: 'folded', operators: ['eq'] },
      password_profile_id: { compared: 'identifier', operators: ['eq'] },
    },
    by: [['username'], ['username', 'password_profile_id'], ['id']],
    listedBy: 'password_profile_id',
  },
  inputs: {
    password: { schema: password(), hash: 'password_hash', isNormalised: 'password_normalised' },
  },
  searchAllRealms: {
    filterables: {
      id: { compared: 'identifier', operators: ['eq'] },
      username: { compared: 'folded', operators: ['eq'] },
      text: { compared: 'words', operators: ['match'], members: ['username'] },
    },
    by: [['id'], ['username'], ['text']],
  },
  summary: 'The link between a user and a username with a password.',
  words: ['username', 'usernames'],
  creation: 'Give a user a username.',
  members: {
    username: annotate(username().meta({ examples: ['jane'] }), {
      foldedKeyColumn: true,
      hashColumn: true,
      personal: true,
      emailIf: { reference: 'password_profile_id', member: 'username_format', equals: 'email' },
    }),
    password_profile_id: reference('password-profile'),
    password_hash: annotate(passwordHash().optional(), { secret: 'plain', writableBy: 'none' }),
    // Unknown for an imported hash.
    password_normalised: annotate(z.boolean().optional(), { secret: 'plain', writableBy: 'none' }),
  },
  unique: [['password_profile_id', 'username']],
});

/**
 * All resources, parents before children: the order in which records can be written. The client library uses these
 * names for their collections.
 */
export const DESCRIPTIONS = {
  realms: realm,
  oidcProfiles: oidcProfile,
  passwordProfiles: passwordProfile,
  users: user,
  oidcProfileInfos: oidcProfileInfo,
  passwordProfileInfos: passwordProfileInfo,
} as const satisfies Readonly<Record<string, Resource>>;

export type CollectionName = keyof typeof DESCRIPTIONS;

export const RESOURCES: readonly Resource[] = Object.values(DESCRIPTIONS);

/** The resources whose records can be included with their parent record. */
export function includableBelow(parent: Resource): readonly Resource[] {
  return RESOURCES.filter((resource) => resource.parent === parent && resource.includedAs !== undefined);
}

/** The resource of that name. Throws if there is none: a bug of the caller. */
export function resourceNamed(name: string): Resource {
  const found = RESOURCES.find((resource) => resource.name === name);
  if (!found) throw new Error(`no resource ${name}`);
  return found;
}
