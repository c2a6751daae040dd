import { convert, objectsOf, type SourceLink, type SourcePassword, type SourceUser } from './import_lines.ts';

/**
 * Users of Auth0, from a bulk export of JSON with the fields below, and from the password hashes that Auth0's support exports:
 *
 *     bun auth0.ts --into realm.ndjson --issuer CONNECTION=URL [--passwords hashes.ndjson] export.ndjson >users.ndjson
 *
 * Format: auth0.com/docs/manage-users/user-migration/bulk-user-exports and …/user-accounts/user-profiles/user-profile-structure, "User
 * profile attributes"; support.auth0.com, "How to Use the Password Hashes Export from Auth0", "Data format".
 */

interface Auth0User {
  readonly user_id: string;
  readonly email?: string;
  readonly email_verified?: boolean;
  readonly username?: string;
  readonly name?: string;
  readonly given_name?: string;
  readonly family_name?: string;
  readonly created_at?: string;
  readonly blocked?: boolean;
  readonly identities?: readonly Identity[];
}

interface Identity {
  /** `auth0` for a database of Auth0. */
  readonly provider: string;
  readonly connection?: string;
  readonly user_id: string;
  /** Of an account that was linked later. */
  readonly profileData?: { readonly email?: string; readonly username?: string };
}

interface ExportedHash {
  readonly _id: { readonly $oid: string };
  /** The ID of a user who came with it. */
  readonly alt_id?: string;
  readonly passwordHash?: string;
}

/** By the ID of the user in the database of Auth0. */
async function readHashes(file: string | undefined): Promise<ReadonlyMap<string, string>> {
  const hashes = new Map<string, string>();
  if (file === undefined) return hashes;
  for await (const { _id, alt_id, passwordHash } of objectsOf<ExportedHash>(file))
    if (passwordHash) hashes.set(alt_id ?? _id.$oid, passwordHash);
  return hashes;
}

/** An export without the field `identities` has the first one in the ID alone. */
function firstIdentity(userId: string): Identity {
  const [provider = '', ...id] = userId.split('|');
  return { provider, user_id: id.join('|') };
}

function readLink({ provider, connection = provider, user_id }: Identity): SourceLink {
  // That of an enterprise connection begins with the name of the connection.
  const prefix = `${connection}|`;
  return {
    provider: connection,
    subject: user_id.startsWith(prefix) ? user_id.slice(prefix.length) : user_id,
  };
}

type Hashes = Awaited<ReturnType<typeof readHashes>>;

function readPasswords(
  { email, username, identities = [] }: Auth0User,
  hashes: Hashes,
  drop: (kind: string) => void,
): SourcePassword[] {
  const passwords: SourcePassword[] = [];
  for (const [at, { provider, user_id, profileData }] of identities.entries()) {
    if (provider !== 'auth0') continue;
    const hash = hashes.get(user_id);
    if (hash === undefined) drop('password that is not in --passwords');
    const login = at === 0 ? { email, username } : { ...profileData };
    for (const each of [login.email, login.username]) if (each) passwords.push({ username: each, hash });
  }
  return passwords;
}

function readUser(source: Auth0User, hashes: Hashes, drop: (kind: string) => void): SourceUser {
  const { user_id: id, email, email_verified, username, name, given_name, family_name, ...others } = source;
  const { created_at: createdAt, blocked, identities = [firstIdentity(id)], ...rest } = others;
  return {
    ...{ id, email, givenName: given_name, familyName: family_name, createdAt, rest },
    ...{ names: [name, username], isEmailVerified: email_verified === true, state: { blocked } },
    passwords: readPasswords({ ...source, identities }, hashes, drop),
    links: identities.filter(({ provider }) => provider !== 'auth0').map(readLink),
  };
}

await convert<Auth0User>(
  async (option) => {
    const hashes = await readHashes(option('passwords'));
    return (user, drop) => readUser(user, hashes, drop);
  },
  { options: ['passwords'] },
);
