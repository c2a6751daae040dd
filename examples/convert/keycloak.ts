import { convert, type UserReader } from './import_lines.ts';

/**
 * Users of a realm of Keycloak, from the files of `kc.sh export --dir FOLDER --realm NAME`:
 *
 *     bun keycloak.ts --into realm.ndjson --issuer ALIAS=URL FOLDER/*-users-*.json >users.ndjson
 *
 * Format of Keycloak 26: docs/guides/server/importExport.adoc, "Exporting a Realm to a Directory", and in
 * core/src/main/java/org/keycloak/representations/idm/ UserRepresentation.java, CredentialRepresentation.java and
 * FederatedIdentityRepresentation.java.
 */

interface KeycloakUser {
  readonly id: string;
  readonly createdTimestamp?: number;
  /** Absent from the users of a user storage. */
  readonly username?: string;
  readonly enabled?: boolean;
  readonly emailVerified?: boolean;
  readonly firstName?: string;
  readonly lastName?: string;
  readonly email?: string;
  /** The client whose service account this is. */
  readonly serviceAccountClientId?: string;
  readonly credentials?: readonly Credential[];
  /** `userId` is the subject at the provider, `identityProvider` its alias. */
  readonly federatedIdentities?: readonly { readonly identityProvider: string; readonly userId: string }[];
}

interface Credential {
  readonly type: string;
  readonly secretData?: string;
  readonly credentialData?: string;
}

const readUser: UserReader<KeycloakUser> = (user, drop) => {
  const { id, username, email, emailVerified, firstName, lastName, createdTimestamp, ...others } = user;
  const { enabled, serviceAccountClientId, credentials = [], federatedIdentities = [], ...rest } = others;
  if (username === undefined || serviceAccountClientId !== undefined) {
    drop(username === undefined ? 'user of a user storage' : 'service account');
    return undefined;
  }
  const hashes = credentials.map(hashOf);
  for (const [at, { type }] of credentials.entries())
    if (hashes[at] === undefined) drop(`credential ${type}`);
  return {
    ...{ id, email, givenName: firstName, familyName: lastName, createdAt: createdTimestamp, rest },
    names: [[firstName, lastName].filter(Boolean).join(' '), username],
    isEmailVerified: emailVerified === true,
    state: { enabled },
    passwords: [{ username, hash: hashes.find((hash) => hash !== undefined) }],
    links: federatedIdentities.map(({ identityProvider, userId }) => ({
      provider: identityProvider,
      subject: userId,
    })),
  };
};

/**
 * Bytes of the digests of PBKDF2. Keycloak derives up to 64 with each of them; the first block of a key is enough for a comparison, and costs
 * a half with SHA-256 and a quarter with SHA-1.
 */
const PBKDF2_BYTES: Readonly<Record<string, number>> = {
  pbkdf2: 20,
  'pbkdf2-sha256': 32,
  'pbkdf2-sha512': 64,
};

/** A password hash in PHC form: Keycloak stores its parameters apart. Undefined for another credential. */
function hashOf({ type, secretData, credentialData }: Credential): string | undefined {
  if (type !== 'password' || !secretData || !credentialData) return undefined;
  const { value, salt } = JSON.parse(secretData);
  const { algorithm, hashIterations, additionalParameters: more } = JSON.parse(credentialData);
  if (algorithm !== 'argon2') {
    const key = Buffer.from(value, 'base64').subarray(0, PBKDF2_BYTES[algorithm]).toString('base64');
    return `$${algorithm}$i=${hashIterations}$${salt}$${key}`;
  }
  const kind = `argon2${more.type}$v=${String(more.version) === '1.3' ? 19 : 16}`;
  return `$${kind}$m=${more.memory},t=${hashIterations},p=${more.parallelism}$${salt}$${value}`;
}

await convert(() => readUser, { lists: ['users', 'federatedUsers'] });
