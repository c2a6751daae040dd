import type { Uuid } from './id.ts';
import { RESOURCES } from './resources.ts';

/** Resources that others hang under, the lowest first. */
const PARENTS = RESOURCES.filter((resource) =>
  RESOURCES.some(({ parent }) => parent === resource),
).toReversed();

/** The nouns that descriptions give to scopes: those of what hangs under a record stand before its own. */
const SCOPE_NOUNS: ReadonlySet<string> = new Set(
  PARENTS.flatMap((above) => [...RESOURCES.filter(({ parent }) => parent === above), above]).map(
    ({ scope }) => scope,
  ),
);

/** Each noun as `<noun>:read` and `<noun>:write`, and the scopes that stand alone. */
export const SCOPES: readonly string[] = [
  ...[...SCOPE_NOUNS].flatMap((noun) => [`${noun}:read`, `${noun}:write`]),
  'changes:read',
  'admin',
];

/** Short forms: what is written on the left means what is listed on the right. A map, for callers choose the word. */
const SCOPE_ALIASES: ReadonlyMap<string, readonly string[]> = new Map([
  ['profile-infos:read', ['oidc-profile-infos:read', 'password-profile-infos:read']],
  ['profile-infos:write', ['oidc-profile-infos:write', 'password-profile-infos:write']],
]);

export type Scopes = ReadonlySet<string>;

/**
 * Reads a space-separated scope list (RFC 6749, 3.3), short forms expanded. Answers undefined when any of its
 * words is no scope of ours.
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

/** Every scope word a person may write, short forms included; for help texts and error messages. */
export const SCOPE_WORDS: readonly string[] = [...SCOPE_ALIASES.keys(), ...SCOPES];

/** The realms someone may touch: all of them, or those listed. */
export type Realms = '*' | ReadonlySet<Uuid>;

export function intersectScopes(left: Scopes, right: Scopes): Scopes {
  return new Set([...left].filter((scope) => right.has(scope)));
}

export function intersectRealms(left: Realms, right: Realms): Realms {
  if (left === '*') return right;
  if (right === '*') return left;
  return new Set([...left].filter((realm) => right.has(realm)));
}

/** Who is asking, and what they may do where: what the token says, no more than its client holds now. */
export interface Principal {
  readonly clientId: string;
  readonly scopes: Scopes;
  readonly realms: Realms;
}

/**
 * Whether this is the name of a client: those of sessions, and of tokens that an external issuer gave out, have a colon,
 * which no client's has.
 */
export function isClientId(clientId: string): boolean {
  return !clientId.includes(':');
}

export function mayAccessRealm(principal: Principal, realm: Uuid): boolean {
  return principal.realms === '*' || principal.realms.has(realm);
}

/** Scopes that reach beyond any one realm: only a client with all realms may hold them. */
export const INSTALLATION_SCOPES: Scopes = new Set(['admin']);

/** Whether these rights may stand on one client together. */
export function areGrantable(scopes: Scopes, realms: Realms): boolean {
  return realms === '*' || intersectScopes(scopes, INSTALLATION_SCOPES).size === 0;
}
