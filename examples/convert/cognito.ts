import { convert, type SourceLink, type UserReader } from './import_lines.ts';

/**
 * Users of a user pool of Cognito, from `aws cognito-idp list-users --user-pool-id ID --output json`:
 *
 *     bun cognito.ts --into realm.ndjson --issuer PROVIDER=URL users.json >users.ndjson
 *
 * Cognito never exports passwords: users come with their usernames, and set a password again. The CSV file whose header
 * `get-csv-header` returns is for imports into Cognito.
 *
 * Format: docs.aws.amazon.com/cognito-user-identity-pools/latest/APIReference/API_ListUsers.html, "Response Syntax", and
 * API_UserType.html; of the attribute `identities`, the developer guide, "Linking federated users to an existing user profile".
 */

interface CognitoUser {
  readonly Username: string;
  readonly Attributes?: readonly { readonly Name: string; readonly Value?: string }[];
  /** Seconds since the epoch from version 1 of the command line. */
  readonly UserCreateDate?: string | number;
  readonly Enabled?: boolean;
  readonly UserStatus?: string;
}

/** An element of the attribute `identities`. */
interface Identity {
  readonly providerName: string;
  /** The subject at the provider. */
  readonly userId: string;
}

const readLinks = (identities = '[]'): SourceLink[] =>
  (JSON.parse(identities) as readonly Identity[]).map(({ providerName, userId }) => ({
    provider: providerName,
    subject: userId,
  }));

const readUser: UserReader<CognitoUser> = (user, drop) => {
  const { Username, Attributes = [], UserCreateDate: created, Enabled, UserStatus, ...rest } = user;
  const attributes: Partial<Record<string, string>> = Object.fromEntries(
    Attributes.map(({ Name, Value }) => [Name, Value]),
  );
  const { sub, email, email_verified, phone_number, identities, ...others } = attributes;
  const { name, given_name, family_name, ...unread } = others;
  // In a pool where users sign in with their address, the username is the ID.
  const username = Username === sub ? (email ?? phone_number) : Username;
  const isFederated = UserStatus === 'EXTERNAL_PROVIDER';
  if (!isFederated) drop('password');
  return {
    ...{ id: sub ?? Username, email, isEmailVerified: email_verified === 'true' },
    names: [name, [given_name, family_name].filter(Boolean).join(' '), username],
    ...{ givenName: given_name, familyName: family_name, state: { Enabled, UserStatus } },
    createdAt: typeof created === 'number' ? created * 1000 : created,
    passwords: username === undefined || isFederated ? [] : [{ username }],
    links: readLinks(identities),
    rest: { ...rest, ...unread, phone_number: phone_number === username ? undefined : phone_number },
  };
};

await convert(() => readUser, { lists: ['Users'] });
