import { readFileSync } from 'node:fs';
import { convert, ExportError, type UserReader } from './import_lines.ts';

/**
 * Users of Firebase, from `firebase auth:export users.json`, and the hash parameters of the project, copied from its console:
 *
 *     bun firebase.ts --into realm.ndjson --issuer google.com=https://accounts.google.com \
 *       --hash-config hash_config.txt users.json >users.ndjson
 *
 * The lines contain the signer key of the project. That command exports passwords of Firebase's own hash, and of the providers
 * google.com, facebook.com, twitter.com and github.com alone.
 *
 * Format: firebase.google.com/docs/cli/auth, "JSON" and "Password hash parameters"; of firebase-tools src/accountExporter.ts,
 * `transUserJson`.
 */

interface FirebaseUser {
  readonly localId: string;
  readonly email?: string;
  readonly emailVerified?: boolean;
  readonly displayName?: string;
  readonly passwordHash?: string;
  readonly salt?: string;
  /** Milliseconds since the epoch. */
  readonly createdAt?: string;
  readonly disabled?: boolean;
  readonly providerUserInfo?: readonly { readonly providerId: string; readonly rawId: string }[];
}

/** Spells a hash as Kratos does, with the parameters of the project. */
type HashWriter = (salt: string, hash: string) => string;

function readHashConfig(file: string): HashWriter {
  const text = readFileSync(file, 'utf8');
  const memberOf = (name: string): string => {
    const value = new RegExp(`${name}"?\\s*:\\s*"?([A-Za-z0-9+/=]+)`).exec(text)?.[1];
    if (value === undefined)
      throw new ExportError(`${file} has no ${name}: copy the hash parameters from the Firebase console`);
    return value;
  };
  const [cost, rounds] = [memberOf('mem_cost'), memberOf('rounds')];
  const project = `${memberOf('base64_salt_separator')}$${memberOf('base64_signer_key')}`;
  return (salt, hash) => `$firescrypt$ln=${cost},r=${rounds},p=1$${salt}$${hash}$${project}`;
}

const userReader =
  (writeHash: HashWriter | undefined): UserReader<FirebaseUser> =>
  (user, drop) => {
    const { localId: id, email, emailVerified, displayName, createdAt, disabled, ...others } = user;
    const { passwordHash, salt = '', providerUserInfo = [], ...rest } = others;
    if (passwordHash && !writeHash) drop('password without --hash-config');
    return {
      ...{ id, email, names: [displayName], isEmailVerified: emailVerified === true },
      ...{ createdAt: createdAt === undefined ? undefined : Number(createdAt), state: { disabled }, rest },
      passwords: email && passwordHash ? [{ username: email, hash: writeHash?.(salt, passwordHash) }] : [],
      links: providerUserInfo.map(({ providerId, rawId }) => ({ provider: providerId, subject: rawId })),
    };
  };

await convert((file) => userReader(file === undefined ? undefined : readHashConfig(file)), {
  lists: ['users'],
  option: 'hash-config',
});
