import { convert, type UserReader } from './import_lines.ts';

/**
 * Users of better-auth, one row of its table `user` a line with its rows of `account`; docs/guides/moving-in.md has the command for SQLite.
 * COPY would double backslashes:
 *
 *     psql "$BETTER_AUTH" -At -v FETCH_COUNT=1000 -c 'select row_to_json(u) from (select *, (select json_agg(a) from account a
 *       where a."userId" = "user".id) as accounts from "user") u' >rows.ndjson
 *     bun better_auth.ts --into realm.ndjson --issuer PROVIDER=URL rows.ndjson >users.ndjson
 *
 * Format of better-auth 1.7: better-auth.com/docs/concepts/database, "Core Schema", and docs/plugins/admin and docs/plugins/username, "Schema";
 * of hashes, @better-auth/utils src/password.node.ts.
 */

interface BetterAuthUser {
  readonly id: string;
  readonly name?: string | null;
  readonly email: string | null;
  /** SQLite has numbers for booleans. */
  readonly emailVerified?: boolean | number | null;
  readonly createdAt?: string | null;
  /** Of the plugin `username`. */
  readonly username?: string | null;
  /** Of the plugin `admin`. */
  readonly banned?: boolean | number | null;
  readonly banExpires?: string | null;
  readonly accounts: readonly Account[] | null;
}

interface Account {
  /** `credential` for a password. */
  readonly providerId: string;
  /** The subject at the provider. */
  readonly accountId: string;
  readonly password?: string | null;
}

const SCRYPT = /^([0-9a-f]+):([0-9a-f]{128})$/;
const unpadded = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '');

/** In PHC form; the salt is the text of its digits. A hash of another function, which applications may set, stays as it is. */
function readHash(hash: string): string {
  const [, salt, key] = SCRYPT.exec(hash) ?? [];
  if (salt === undefined || key === undefined) return hash;
  return `$scrypt$ln=14,r=16,p=1$${unpadded(Buffer.from(salt))}$${unpadded(Buffer.from(key, 'hex'))}`;
}

const readUser: UserReader<BetterAuthUser> = (user) => {
  const { id, name, email, emailVerified, createdAt, username, banned, banExpires, ...others } = user;
  const { accounts, ...rest } = others;
  const own = (accounts ?? []).find(({ providerId }) => providerId === 'credential');
  const hash = own?.password ? readHash(own.password) : undefined;
  return {
    ...{ id, email, names: [name, username], isEmailVerified: Boolean(emailVerified), rest },
    createdAt: createdAt ?? undefined,
    state: banned && banExpires ? { banned_until: banExpires } : { disabled: Boolean(banned) },
    passwords: [email, username].flatMap((login) => (login && own ? [{ username: login, hash }] : [])),
    links: (accounts ?? [])
      .filter((account) => account !== own)
      .map(({ providerId, accountId }) => ({ provider: providerId, subject: accountId })),
  };
};

await convert(() => readUser);
