import type { Uuid } from './id.ts';
import type { Network } from './ip_address.ts';
import { RESOURCES } from './resources.ts';
import type { Rate } from './token_buckets.ts';

/** Resources that have children, the lowest first. */
const PARENTS = RESOURCES.filter((resource) =>
  RESOURCES.some(({ parent }) => parent === resource),
).toReversed();

/** The scope nouns of the descriptions: those of child resources come before their parent's. */
const SCOPE_NOUNS: ReadonlySet<string> = new Set(
  PARENTS.flatMap((above) => [...RESOURCES.filter(({ parent }) => parent === above), above]).map(
    ({ scope }) => scope,
  ),
);

/** `<noun>:read` and `<noun>:write` for each noun, and the scopes of other operations. */
export const SCOPES: readonly string[] = [
  ...[...SCOPE_NOUNS].flatMap((noun) => [`${noun}:read`, `${noun}:write`]),
  'settings:read',
  'settings:write',
  'changes:read',
  'history:read',
  'sign-in',
  'sign-up',
  'sign-in-throttles:write',
  // Not `:read` or `:write`, so that no short form contains it.
  'transfer',
  'admin',
];

const READ_SCOPES = SCOPES.filter((scope) => scope.endsWith(':read') && scope !== 'history:read');

/** The roles of the console: sets of scopes. None has `transfer`, which is granted apart from it. */
export const ROLES = {
  read: { scopes: READ_SCOPES, summary: 'see all records, settings and changes' },
  support: {
    // Without passwords: a session that sets a password can take over the account.
    scopes: [...READ_SCOPES, 'history:read', 'oidc-profile-infos:write', 'sign-in-throttles:write'],
    summary: 'also see sign-ins, change links, and lift throttles',
  },
  everything: {
    scopes: SCOPES.filter((scope) => scope !== 'transfer'),
    summary: 'all but import and export, in all realms, for one hour',
  },
};

/** Short forms of several scopes. A Map, because callers choose the key. */
const SCOPE_ALIASES: ReadonlyMap<string, readonly string[]> = new Map([
  ['profile-infos:read', ['oidc-profile-infos:read', 'password-profile-infos:read']],
  ['profile-infos:write', ['oidc-profile-infos:write', 'password-profile-infos:write']],
  ['support', ROLES.support.scopes],
]);

export type Scopes = ReadonlySet<string>;

/**
 * Parses a space-separated scope list (RFC 6749, 3.3) and expands short forms. Returns undefined if any of its words is
 * no scope.
 */
export function parseScopes(raw: string): Scopes | undefined {
  const scopes = new Set<string>();
  for (const word of raw.split(' ')) {
    if (word === '') continue;
    for (const scope of SCOPE_ALIASES.get(word) ?? [word]) {
      if (!SCOPES.includes(scope)) return undefined;
      scopes.add(scope);
    }
  }
  return scopes;
}

/** All scopes and short forms, for help texts and error messages. */
export const SCOPE_WORDS: readonly string[] = [...SCOPE_ALIASES.keys(), ...SCOPES];

/** The realms that a caller may access: all, or those listed. */
export type Realms = '*' | ReadonlySet<Uuid>;

export function intersectScopes(left: Scopes, right: Scopes): Scopes {
  return new Set([...left].filter((scope) => right.has(scope)));
}

export function intersectRealms(left: Realms, right: Realms): Realms {
  if (left === '*') return right;
  if (right === '*') return left;
  return new Set([...left].filter((realm) => right.has(realm)));
}

/**
 * Where a client that signs in end users by its secret reports their addresses: in a header of each request, or nowhere. By its ID
 * alone the end user is the caller.
 */
export const END_USER_ADDRESSES = ['header', 'none'] as const;

export type EndUserAddress = (typeof END_USER_ADDRESSES)[number];

/** The limits of a caller that has sent the ID of a client alone. */
export interface ImplicitLimits {
  readonly ratePerAddress: Rate;
  /** The servers of the storefront itself: they have no rate, and their address is not that of the end user. */
  readonly storefronts: readonly Network[];
}

/** The caller of a request, with the rights that both its token and its client have now. */
export interface Principal {
  readonly clientId: string;
  readonly scopes: Scopes;
  readonly realms: Realms;
  /** Set if the ID of a client alone gave the rights. */
  readonly implicit?: ImplicitLimits | undefined;
  /** Undefined for a session, and for a token of an external issuer, which must report it. */
  readonly endUserAddress?: EndUserAddress | undefined;
}

/**
 * Whether this is the ID of a client: the IDs of sessions and of tokens of external issuers have a colon, client IDs
 * have none.
 */
export function isClientId(clientId: string): boolean {
  return !clientId.includes(':');
}

export function mayAccessRealm(principal: Principal, realm: Uuid): boolean {
  return principal.realms === '*' || principal.realms.has(realm);
}

/** All that the ID of a client alone may give (docs/guides/clients-and-tokens.md#storefronts). */
export const IMPLICIT_SCOPES: Scopes = new Set(['settings:read', 'profiles:read', 'sign-in', 'sign-up']);

/** Whether one client may hold these rights together: `admin` goes beyond single realms. */
export function areGrantable(scopes: Scopes, realms: Realms): boolean {
  return realms === '*' || !scopes.has('admin');
}
