import { convert, type UserReader } from './import_lines.ts';

/**
 * Users of Supabase Auth, one row of `auth.users` a line with its rows of `auth.identities`. COPY would double backslashes:
 *
 *     psql "$SUPABASE" -At -v FETCH_COUNT=1000 -c "select row_to_json(u) from (select *, (select json_agg(i) from auth.identities i
 *       where i.user_id = users.id) as identities from auth.users) u" >rows.ndjson
 *     bun supabase.ts --into realm.ndjson [--issuer PROVIDER=URL] rows.ndjson >users.ndjson
 *
 * Format: of supabase/auth internal/models/user.go, `User`, and internal/models/identity.go, `Identity`, whose `db` names are the columns;
 * supabase.com/docs/guides/auth/identities, "The user identity object".
 */

interface SupabaseUser {
  readonly id: string;
  readonly email: string | null;
  readonly phone: string | null;
  readonly email_confirmed_at: string | null;
  /** Empty without a password. Of bcrypt, argon2 or Firebase's scrypt. */
  readonly encrypted_password: string | null;
  readonly raw_user_meta_data: { readonly name?: unknown; readonly full_name?: unknown } | null;
  readonly created_at: string | null;
  readonly banned_until?: string | null;
  readonly deleted_at?: string | null;
  readonly is_anonymous?: boolean;
  readonly identities: readonly Identity[] | null;
}

interface Identity {
  readonly id: string;
  /** The subject at the provider. Of `email` and `phone`, the ID of the user. */
  readonly provider_id: string;
  readonly provider: string;
  readonly identity_data: { readonly iss?: string } | null;
}

/** Providers that are Supabase itself. */
const OWN: ReadonlySet<string> = new Set(['email', 'phone']);

const readUser: UserReader<SupabaseUser> = (user, drop) => {
  const { id, email, phone, email_confirmed_at, encrypted_password: hash, created_at, ...others } = user;
  const { banned_until, deleted_at, is_anonymous, raw_user_meta_data: data, ...more } = others;
  const { identities, ...rest } = more;
  if (deleted_at || is_anonymous) {
    drop(deleted_at ? 'deleted user' : 'anonymous user');
    return undefined;
  }
  const links = (identities ?? []).filter(({ provider }) => !OWN.has(provider));
  // A magic link or a code is sent to the address, so it is a username without a password.
  const isOwn = Boolean(hash) || links.length < (identities ?? []).length;
  const { name, full_name, ...metadata } = { ...data };
  return {
    ...{ id, email, isEmailVerified: Boolean(email_confirmed_at), createdAt: created_at ?? undefined },
    ...{ names: [full_name, name].filter((each) => typeof each === 'string'), state: { banned_until } },
    passwords: [email, phone].flatMap((username) =>
      username && isOwn ? [{ username, hash: hash || undefined }] : [],
    ),
    links: links.map((link) => ({ ...link, subject: link.provider_id, issuer: link.identity_data?.iss })),
    rest: { ...rest, raw_user_meta_data: metadata, phone: isOwn ? undefined : phone },
  };
};

await convert(() => readUser);
