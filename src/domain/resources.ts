import { z } from 'zod';
import { email, username } from './folding.ts';
import { passwordHash } from './password_hash.ts';
import { place, type Resource, reference, resource } from './resource.ts';
import { httpUrl, issuerUrl, text } from './text.ts';

/** The six resources. A member's name is written here and nowhere else. */

export const realm = resource({
  name: 'authentication-realm',
  type: 'authentication-realm',
  collection: 'authentication-realms',
  table: 'realm',
  foreignKey: 'realm_id',
  parent: undefined,
  selfPrefix: '/v2',
  scope: 'realms',
  summary: 'A group of users and of the profiles they sign in through.',
  members: {
    name: text(255),
    redirect_uris: z.array(httpUrl(2048)).max(100).default([]),
    duplicate_email_policy: z.enum(['allowed', 'api_only']).default('allowed'),
    origin: place(z.object({ data: z.object({ id: text(255), type: text(255) }) }).optional(), {
      within: 'relationships',
      installation: 'account_authentication_settings',
    }),
  },
  unique: [],
});

export const oidcProfile = resource({
  name: 'oidc-profile',
  type: 'oidc-profile',
  collection: 'oidc-profiles',
  table: 'oidc_profile',
  parent: realm,
  selfPrefix: '/v2',
  scope: 'profiles',
  summary: 'An external OpenID provider that users of the realm sign in through.',
  members: {
    name: text(255),
    discovery_url: httpUrl(2048),
    client_id: text(1024),
    client_secret: place(text(4096).optional(), { secret: 'sealed' }),
    issuer: place(issuerUrl(), {
      within: 'meta',
      derived: { from: 'discovery_url', without: '/.well-known/openid-configuration' },
    }),
  },
  unique: [],
});

export const passwordProfile = resource({
  name: 'password-profile',
  type: 'password_profile',
  collection: 'password-profiles',
  table: 'password_profile',
  parent: realm,
  selfPrefix: '/v2',
  scope: 'profiles',
  summary: 'A set of usernames with passwords that users of the realm sign in through.',
  members: {
    name: text(255),
    username_format: z.enum(['any', 'email']).default('any'),
    enable_one_time_password_token: z.boolean().default(false),
  },
  unique: [],
});

export const user = resource({
  name: 'user-authentication-info',
  type: 'user_authentication_info',
  collection: 'user-authentication-info',
  table: 'user_info',
  foreignKey: 'user_id',
  parent: realm,
  selfPrefix: '/v2',
  scope: 'users',
  summary: 'A user of the realm.',
  members: {
    name: place(text(255), { folded: true }),
    email: place(email(), { folded: true }),
    given_name: text(255).nullable().default(null),
    middle_name: text(255).nullable().default(null),
    family_name: text(255).nullable().default(null),
    creation_status: place(z.enum(['COMPLETE', 'IN_PROGRESS']).default('COMPLETE'), { within: 'meta' }),
  },
  unique: [],
});

export const oidcProfileInfo = resource({
  name: 'user-authentication-oidc-profile-info',
  type: 'user_authentication_oidc_profile_info',
  collection: 'user-authentication-oidc-profile-info',
  table: 'oidc_profile_info',
  parent: user,
  selfPrefix: '/v2',
  scope: 'oidc-profile-infos',
  summary: 'The link between a user and a subject at an issuer.',
  members: {
    subject: text(255),
    issuer: issuerUrl(),
    oidc_profile_id: reference('oidc-profile'),
  },
  unique: [['issuer', 'subject']],
});

export const passwordProfileInfo = resource({
  name: 'user-authentication-password-profile-info',
  type: 'user_authentication_password_profile_info',
  collection: 'user-authentication-password-profile-info',
  table: 'password_profile_info',
  parent: user,
  // The self link of a single record of this kind lacks the version segment (seed 4.2).
  selfPrefix: '',
  scope: 'password-profile-infos',
  summary: 'The link between a user and a username with a password.',
  members: {
    username: place(username(), {
      folded: true,
      emailWhere: { reference: 'password_profile_id', member: 'username_format', is: 'email' },
    }),
    password_profile_id: reference('password-profile'),
    password_hash: place(passwordHash().optional(), { secret: 'hashed' }),
  },
  unique: [['password_profile_id', 'username']],
});

/** Parents before children: the order in which records can be written. */
export const RESOURCES: readonly Resource[] = [
  realm,
  oidcProfile,
  passwordProfile,
  user,
  oidcProfileInfo,
  passwordProfileInfo,
];
