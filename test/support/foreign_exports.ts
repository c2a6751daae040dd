import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { betterAuth } from './better_auth_export.ts';
import {
  AT,
  argon2,
  bcrypt,
  type Files,
  type ForeignExport,
  GOOGLE,
  ISSUER,
  login,
  pretty,
  text,
} from './foreign_export_parts.ts';
import type { Json } from './import_fixtures.ts';
import { keycloak } from './keycloak_export.ts';

/** Small exports of other systems in their published formats, which the converters in examples/convert/ name. */

function auth0(): [Files, ForeignExport] {
  const database = { provider: 'auth0', connection: 'Username-Password-Authentication', isSocial: false };
  const google = { provider: 'google-oauth2', connection: 'google-oauth2', isSocial: true };
  const email = 'jane.auth0@example.com';
  const user = (user_id: string, more: object) => ({
    ...{ user_id, email, email_verified: true, name: 'Jane Doe', created_at: AT, ...more },
  });
  const [first, second] = ['5dea9f9c82dd7c0e76e4ec93', 'euclid'];
  const subjects = ['110000000000000000002', '110000000000000000003'];
  const hashed = (id: object) => ({ ...id, passwordHash: bcrypt(), tenant: 'shop', email_verified: true });
  return [
    {
      'auth0/export.ndjson': text(
        user(`auth0|${first}`, {
          ...{ given_name: 'Jane', family_name: 'Doe', user_metadata: { plan: 'gold' }, app_metadata: {} },
          identities: [
            { ...database, user_id: first },
            { ...google, user_id: subjects[0], profileData: { email: 'jane@mail.example' } },
          ],
        }),
        // The same person once more, not linked.
        user(`google-oauth2|${subjects[1]}`, { identities: [{ ...google, user_id: subjects[1] }] }),
        user(`auth0|${second}`, {
          ...{ email: 'john.auth0@example.com', username: 'euclid', name: '', blocked: true },
          identities: [{ ...database, user_id: second }],
        }),
        user('github|583231', {
          ...{ email: undefined, name: 'Kim' },
          identities: [{ provider: 'github', connection: 'github', user_id: 583231, isSocial: true }],
        }),
        user('oidc|staff|s-1', {
          email: 'ann.auth0@example.com',
          identities: [{ provider: 'oidc', connection: 'staff', user_id: 'staff|s-1', isSocial: false }],
        }),
      ),
      'auth0/hashes.ndjson': text(
        hashed({ _id: { $oid: first } }),
        hashed({ _id: { $oid: '5dea9f9c82dd7c0e76e4ec94' }, alt_id: second }),
      ),
    },
    {
      ...{ system: 'auth0', files: ['auth0/export.ndjson'], importArgs: [], lines: 11 },
      args: [
        ...['--issuer', `google-oauth2=${GOOGLE}`, '--issuer', 'staff=https://login.example.com/'],
        ...['--passwords', 'FOLDER/auth0/hashes.ndjson'],
      ],
      report: `converted: users 5, usernames 3, passwords 3, links 3, users without an e-mail address 1
dropped: link of github without --issuer 1, user_metadata 1
`,
      passwords: [login(email)],
      disabled: [login('john.auth0@example.com'), login('euclid')],
      subjects,
    },
  ];
}

function firebase(): [Files, ForeignExport] {
  // The example of Firebase's own program (github.com/firebase/scrypt, README.md).
  const hash = {
    passwordHash: 'lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==',
    salt: '42xEC+ixf3L2lw==',
  };
  const signerKey =
    'jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==';
  const user = (localId: string, more: object) => ({
    ...{ localId, emailVerified: true, createdAt: String(Date.parse(AT)), disabled: false },
    ...{ providerUserInfo: [], ...more },
  });
  const google = { providerId: 'google.com', rawId: '110000000000000000004', email: 'jane@mail.example' };
  const users = [
    user('Zx81AbCdEfGhIjKlMnOpQrStUvW2', {
      ...{ email: 'jane.firebase@example.com', displayName: 'Jane Doe', customAttributes: '{"plan":"gold"}' },
      ...{ ...hash, providerUserInfo: [google, { providerId: 'facebook.com', rawId: '4' }] },
    }),
    user('Yx81AbCdEfGhIjKlMnOpQrStUvW2', {
      ...{ email: 'john.firebase@example.com', disabled: true, ...hash },
    }),
    user('Xx81AbCdEfGhIjKlMnOpQrStUvW2', { phoneNumber: '+15555550100', emailVerified: false }),
  ];
  return [
    {
      'firebase/users.json': `{"users": [\n${users.map((each) => pretty(each).trim()).join(',\n')}]}`,
      'firebase/hash_config.txt': `hash_config {
  algorithm: SCRYPT,
  base64_signer_key: ${signerKey},
  base64_salt_separator: Bw==,
  rounds: 8,
  mem_cost: 14,
}
`,
    },
    {
      ...{ system: 'firebase', files: ['firebase/users.json'], lines: 6 },
      args: ['--issuer', `google.com=${GOOGLE}`, '--hash-config', 'FOLDER/firebase/hash_config.txt'],
      importArgs: ['--firebase-config', 'FOLDER/firebase/hash_config.txt'],
      report: `converted: users 3, usernames 2, passwords 2, links 1, users without an e-mail address 1
dropped: customAttributes 1, link of facebook.com without --issuer 1, phoneNumber 1
`,
      passwords: [login('jane.firebase@example.com', 'user1password')],
      disabled: [login('john.firebase@example.com', 'user1password')],
      subjects: [google.rawId],
    },
  ];
}

function cognito(): [Files, ForeignExport] {
  const user = (number: number, Username: string, attributes: Readonly<Record<string, string>>) => ({
    Username,
    Attributes: Object.entries({ sub: `10000000-0000-4000-8000-00000000000${number}`, ...attributes }).map(
      ([Name, Value]) => ({ Name, Value }),
    ),
    ...{ UserCreateDate: '2024-05-06T07:08:09.123000+02:00', UserLastModifiedDate: AT },
    ...{ Enabled: true, UserStatus: 'CONFIRMED' },
  });
  const subject = '110000000000000000005';
  const identity = { userId: subject, providerName: 'Google', providerType: 'Google', issuer: null };
  const sub = '10000000-0000-4000-8000-000000000003';
  return [
    {
      'cognito/users.json': pretty({
        Users: [
          user(1, 'jane.cognito', {
            ...{ email: 'jane.cognito@example.com', email_verified: 'true', name: 'Jane Doe' },
            ...{ phone_number: '+15555550100', 'custom:plan': 'gold' },
          }),
          {
            ...user(2, `Google_${subject}`, {
              ...{ email: 'kim@mail.example', given_name: 'Kim', family_name: 'Lee' },
              identities: JSON.stringify([{ ...identity, primary: true, dateCreated: Date.parse(AT) }]),
            }),
            UserStatus: 'EXTERNAL_PROVIDER',
          },
          {
            ...user(3, sub, { email: 'john.cognito@example.com' }),
            ...{ Enabled: false, UserCreateDate: 1689980857.949 },
          },
        ],
      }),
    },
    {
      ...{ system: 'cognito', files: ['cognito/users.json'], importArgs: [], lines: 6 },
      args: ['--issuer', `Google=${GOOGLE}`],
      report: `converted: users 3, usernames 2, passwords 0, links 1
dropped: UserLastModifiedDate 3, custom:plan 1, password 2, phone_number 1
`,
      ...{ passwords: [], disabled: [], subjects: [subject] },
    },
  ];
}

function supabase(): [Files, ForeignExport] {
  // Go's bcrypt has another letter for the same hash.
  const hash = bcrypt().replace('$2b$', '$2a$');
  const at = '2024-05-06T07:08:09.123456+00:00';
  const row = (number: number, email: string | null, more: object) => ({
    ...{ instance_id: null, id: `20000000-0000-4000-8000-00000000000${number}`, aud: 'authenticated', email },
    ...{ encrypted_password: '', email_confirmed_at: at, confirmation_token: '', created_at: at },
    ...{ raw_user_meta_data: {}, banned_until: null, deleted_at: null, is_anonymous: false },
    ...{ is_sso_user: false, phone: null, identities: null, ...more },
  });
  const identity = (provider: string, provider_id: string, iss?: string) => ({
    ...{ id: crypto.randomUUID(), provider, provider_id, identity_data: { sub: provider_id, iss } },
  });
  const [own, subject] = [identity('email', '20000000-0000-4000-8000-000000000001'), '110000000000000000006'];
  return [
    {
      'supabase/rows.ndjson': text(
        row(1, 'jane.supabase@example.com', {
          ...{ encrypted_password: hash, raw_user_meta_data: { full_name: 'Jane "JD" Doe', plan: 'gold' } },
          identities: [own, identity('google', subject, GOOGLE)],
        }),
        row(2, 'john.supabase@example.com', {
          ...{ encrypted_password: hash, banned_until: '2999-01-01T00:00:00+00:00', identities: [own] },
        }),
        row(3, null, { deleted_at: at }),
        row(4, null, { is_anonymous: true }),
        row(5, 'joan.supabase@example.com', { identities: [own] }),
        row(6, 'kim.supabase@example.com', {
          identities: [identity('github', '583231', 'https://api.github.com')],
        }),
      ),
    },
    {
      ...{ system: 'supabase', files: ['supabase/rows.ndjson'], args: [], importArgs: [], lines: 8 },
      report: `converted: users 4, usernames 3, passwords 2, links 1
dropped: anonymous user 1, aud 4, deleted user 1, link of github: no OIDC profile of https://api.github.com 1, raw_user_meta_data 1
`,
      passwords: [login('jane.supabase@example.com')],
      disabled: [login('john.supabase@example.com')],
      subjects: [subject],
    },
  ];
}

function kratos(): [Files, ForeignExport] {
  const identity = (number: number, more: object) => ({
    ...{ id: `30000000-0000-4000-8000-00000000000${number}`, schema_id: 'person', state: 'active' },
    ...{ schema_url: 'https://id.example/person', state_changed_at: AT, metadata_public: null },
    ...{ created_at: AT, updated_at: AT, ...more },
  });
  const password = (identifier: string, hashed_password: string) => ({
    ...{ type: 'password', identifiers: [identifier], config: { hashed_password }, version: 0 },
  });
  const oidc = (provider: string, subject: string) => ({
    ...{ type: 'oidc', identifiers: [`${provider}:${subject}`], version: 0 },
    config: { providers: [{ provider, subject, initial_id_token: '', organization: '' }] },
  });
  const [jane, john] = ['jane.kratos@example.com', 'john.kratos@example.com'];
  const subject = '110000000000000000007';
  const pages = [
    [
      identity(1, {
        traits: { email: jane, name: { first: 'Jane', last: 'Doe' } },
        verifiable_addresses: [{ value: jane, via: 'email', verified: true, status: 'completed' }],
        credentials: {
          ...{ password: password(jane, argon2(8192, 3)), oidc: oidc('google', subject) },
          totp: { type: 'totp', identifiers: ['1'], version: 0 },
        },
      }),
      identity(2, {
        ...{ traits: { email: john, name: 'John' }, state: 'inactive' },
        credentials: { password: password(john, bcrypt()) },
      }),
    ],
    [
      identity(3, {
        traits: { email: 'kim.kratos@example.com', phone: '1' },
        credentials: { oidc: oidc('github', '583231') },
      }),
    ],
  ];
  return [
    { 'kratos/identities.json': pages.map((page) => JSON.stringify(page)).join('\n') },
    {
      ...{ system: 'kratos', files: ['kratos/identities.json'], lines: 6 },
      ...{ args: ['--issuer', ISSUER], importArgs: [] },
      report: `converted: users 3, usernames 2, passwords 2, links 1
dropped: credential totp 1, link of github without --issuer 1, phone 1, schema_id 3, schema_url 3, state_changed_at 3, updated_at 3
`,
      passwords: [login(jane)],
      disabled: [login(john)],
      subjects: [subject],
    },
  ];
}

/** Writes the exports into a folder. */
export function writeForeignExports(folder: string): readonly ForeignExport[] {
  const exports = [keycloak(), auth0(), firebase(), cognito(), supabase(), kratos(), betterAuth()];
  return exports.map(([files, foreign]) => {
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), content);
    }
    const inFolder = (word: string) => word.replace('FOLDER', folder);
    return {
      ...foreign,
      files: foreign.files.map((file) => join(folder, file)),
      args: foreign.args.map(inFolder),
      importArgs: foreign.importArgs.map(inFolder),
    };
  });
}

/** The lines of a realm with a profile for usernames and two for links. */
export function targetLines(realm: string): readonly Json[] {
  const id = (number: number) => `${realm.slice(0, -1)}${number}`;
  const oidc = (number: number, issuer: string) => ({
    ...{ type: 'oidc-profile', realm_id: realm, id: id(number), name: issuer, client_id: 'shop' },
    ...{ client_secret: 'from the provider', meta: { issuer } },
    discovery_url: `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
  });
  return [
    { type: 'authentication-realm', id: realm, name: 'Shop' },
    { type: 'password_profile', realm_id: realm, id: id(1), name: 'Passwords' },
    oidc(2, GOOGLE),
    oidc(3, 'https://login.example.com/'),
  ];
}
