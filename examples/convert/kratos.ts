import { convert, type SourceLink, type UserReader } from './import_lines.ts';

/**
 * Users of Ory Kratos, from the pages of its admin API, one after another:
 *
 *     curl "$KRATOS/admin/identities?page_size=500&include_credential=password&include_credential=oidc" >identities.json
 *     bun kratos.ts --into realm.ndjson --issuer PROVIDER=URL identities.json >users.ndjson
 *
 * The header Link has the address of the next page; append it to the file.
 *
 * Format of Kratos 1.3: identity/handler.go, `listIdentitiesParameters`, identity/identity.go, `Identity`, identity/credentials.go,
 * `Credentials`, and identity/credentials_oidc.go, `CredentialsOIDCProvider`. The members of `traits` are those of its examples:
 * change them if your identity schema has others.
 */

interface KratosIdentity {
  readonly id: string;
  readonly state?: string;
  readonly created_at?: string;
  readonly traits: Traits;
  readonly verifiable_addresses?: readonly Address[] | null;
  readonly credentials?: Readonly<Record<string, Credential>>;
}

interface Traits {
  readonly email?: string;
  readonly name?: string | NameParts;
}

interface NameParts {
  readonly first?: string;
  readonly last?: string;
}

interface Address {
  readonly value: string;
  readonly via: string;
  readonly verified: boolean;
}

interface Credential {
  readonly identifiers?: readonly string[] | null;
  /** Absent if the request did not include the credential. */
  readonly config?: {
    readonly hashed_password?: string;
    readonly providers?: readonly SourceLink[];
  };
}

const readUser: UserReader<KratosIdentity> = (identity, drop) => {
  const { id, state, created_at: createdAt, traits, verifiable_addresses, credentials, ...rest } = identity;
  const { password, oidc, ...factors } = credentials ?? {};
  for (const factor of Object.keys(factors)) drop(`credential ${factor}`);
  const hash = password?.config?.hashed_password;
  if (password && !hash) drop('password without include_credential=password');
  if (oidc && !oidc.config) drop('links without include_credential=oidc');
  const addresses = (verifiable_addresses ?? []).filter(({ via }) => via === 'email');
  const { email = addresses[0]?.value, name, ...otherTraits } = traits;
  const { first, last }: NameParts = typeof name === 'object' ? { ...name } : {};
  return {
    ...{ id, email, createdAt, state: { state }, rest: { ...rest, ...otherTraits } },
    names: [typeof name === 'string' ? name : [first, last].filter(Boolean).join(' ')],
    ...{ givenName: first, familyName: last },
    // Kratos stores addresses in lower case.
    isEmailVerified: addresses.some(({ value, verified }) => verified && value === email?.toLowerCase()),
    passwords: (password?.identifiers ?? []).map((username) => ({ username, hash: hash || undefined })),
    links: oidc?.config?.providers ?? [],
  };
};

await convert(() => readUser);
