import { convert, objectsOf, type SourceLink, type SourceUser } from './import_lines.ts';

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
  readonly identities: readonly Identity[];
}

interface Identity {
  /** `auth0` for a database of Auth0. */
  readonly provider: string;
  readonly connection: string;
  /** Some providers, such as GitHub, have numbers. */
  readonly user_id: string | number;
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
function readHashes(file: string | undefined): ReadonlyMap<string, string> {
  const hashes = new Map<string, string>();
  if (file === undefined) return hashes;
  for (const [{ _id, alt_id, passwordHash }] of objectsOf<ExportedHash>(file))
    if (passwordHash) hashes.set(alt_id ?? _id.$oid, passwordHash);
  return hashes;
}

function readLink({ connection, user_id }: Identity): SourceLink {
  const id = String(user_id);
  // That of an enterprise connection begins with the name of the connection.
  const prefix = `${connection}|`;
  return { provider: connection, subject: id.startsWith(prefix) ? id.slice(prefix.length) : id };
}

type Hashes = ReturnType<typeof readHashes>;

/** A user may sign in by the e-mail address or, where the connection has them, by the username. */
function readPasswords(
  { email, username, identities }: Auth0User,
  hashes: Hashes,
  drop: (kind: string) => void,
): SourceUser['passwords'] {
  return identities.flatMap(({ provider, user_id, profileData = {} }, at) => {
    if (provider !== 'auth0') return [];
    const hash = hashes.get(String(user_id));
    if (hash === undefined) drop('password that is not in --passwords');
    const login = at === 0 ? { email, username } : profileData;
    return [login.email, login.username].flatMap((name) => (name ? [{ username: name, hash }] : []));
  });
}

function readUser(source: Auth0User, hashes: Hashes, drop: (kind: string) => void): SourceUser {
  const { user_id: id, email, email_verified, username, name, given_name, family_name, ...others } = source;
  const { created_at: createdAt, blocked, identities, ...rest } = others;
  return {
    ...{ id, email, givenName: given_name, familyName: family_name, createdAt, rest },
    ...{ names: [name, username], isEmailVerified: email_verified === true, state: { blocked } },
    passwords: readPasswords(source, hashes, drop),
    links: identities.filter(({ provider }) => provider !== 'auth0').map(readLink),
  };
}

await convert<Auth0User>(
  (file) => {
    const hashes = readHashes(file);
    return (user, drop) => readUser(user, hashes, drop);
  },
  { option: 'passwords' },
);
