import { decodeJwt, decodeProtectedHeader, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import type { MaybePromise } from '../../directory/store.ts';
import { Fault } from '../../domain/fault.ts';
import { type Clock, parseUuid, type Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import {
  intersectRealms,
  intersectScopes,
  isClient,
  type Principal,
  type Realms,
  SCOPES,
  type Scopes,
} from '../../domain/principal.ts';
import { type LoadKey, openImportedKeys } from '../keys/imported_keys.ts';
import type { Keyring } from '../keys/keyring.ts';
import { ALGORITHM, importPrivateKey, importPublicKey } from '../keys/signing.ts';
import type { Client, SigningKey } from '../port.ts';
import type { AuthCache, AuthView } from './auth_cache.ts';
import type { ExternalTokens } from './external_tokens.ts';
import {
  type IssuedClaims,
  openVerifiedTokenCache,
  principalOf,
  REFUSED_HEADERS,
  type VerificationOutcome,
  type VerifiedToken,
} from './verified_tokens.ts';

/** Claims and `typ` of RFC 9068. */
const TYPE = 'at+jwt';

/**
 * Three segments, the last an Ed25519 signature in its one canonical spelling: a decoder would let pass what the last
 * character says beyond its 512 bits, and one token would then have several spellings.
 */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]{85}[AQgw]$/;

export interface MintedToken {
  readonly token: string;
  /** Seconds. */
  readonly expiresIn: number;
  /** Seconds since the epoch. */
  readonly expires: number;
  /** What tells it from every other token. */
  readonly jti: string;
}

/** A token of our own that is accepted now, and what it is worth. */
export interface IssuedToken extends IssuedClaims {
  /** It is of a session, whose rights are those it says, and of no client. */
  readonly isSession: boolean;
  readonly clientId: string;
  readonly scopes: Scopes;
}

/** How a token differs from what the settings say of tokens. */
export interface TokenOptions {
  readonly jti?: Uuid;
  readonly lifetimeSeconds?: number;
}

export interface Tokens {
  /** For a client, or a session that is named as none is. */
  mint(
    holder: Pick<Client, 'clientId' | 'realms'>,
    scopes: Scopes,
    options?: TokenOptions,
  ): Promise<MintedToken>;
  /** Who is asking by a token whose signature was checked before; undefined otherwise. Rejects as `verify` does. */
  verifyCached(token: string): MaybePromise<Principal | undefined>;
  /**
   * Who is asking; undefined where the token is not to be trusted, `unchecked` where nobody can tell, because its issuer
   * is out of reach. Rejects with Fault `unavailable`.
   */
  verify(token: string): MaybePromise<Principal | 'unchecked' | undefined>;
  /** What a token of our own says, where `verify` accepts it. Rejects as that does. */
  inspect(token: string): Promise<IssuedToken | undefined>;
  /**
   * Opens the private halves of the keys in use ahead: what is open in a process still signs after the master key was
   * changed. Of any other key nothing stays in memory.
   */
  loadSigningKeys(keys: readonly SigningKey[]): void;
}

export interface TokenSettings {
  /** Issuer and audience: the base URL. */
  readonly issuer: string;
  readonly lifetimeSeconds: number;
  /** What the names of sessions that are believed begin with, up to the colon; without it none is. */
  readonly sessions?: ReadonlySet<string>;
  /** Verifies what others issued; without it nobody else is believed. */
  readonly external?: ExternalTokens;
}

export function openTokens(
  cache: AuthCache,
  keyring: Keyring,
  settings: TokenSettings,
  clock: Clock,
): Tokens {
  const privateKeys = openImportedKeys((key) => importPrivateKey(key, keyring));
  const publicKeys = openImportedKeys(importPublicKey);
  return {
    mint: openMint(cache, privateKeys.get, settings, clock),
    ...openVerify(cache, publicKeys.get, settings, clock),
    loadSigningKeys(keys) {
      const inUse = keys.filter(({ withdrawnAt }) => withdrawnAt === undefined);
      const usable = inUse.filter(({ privateSealed }) => privateSealed.length > 0);
      publicKeys.retainOnly(inUse);
      privateKeys.retainOnly(usable);
      // What does not open is told when it is needed.
      for (const key of usable) privateKeys.get(key).catch(() => undefined);
    },
  };
}

function openMint(
  cache: AuthCache,
  privateKeys: LoadKey,
  { issuer, lifetimeSeconds: defaultLifetime }: TokenSettings,
  clock: Clock,
): Tokens['mint'] {
  return async (holder, scopes, { jti = clock.mintId(), lifetimeSeconds = defaultLifetime } = {}) => {
    const { keys } = await cache.fresh();
    if (!keys.signer) throw new Fault('unavailable', [], new Error('no signing key'));
    const issuedAt = Math.floor(clock.now() / 1000);
    const expires = issuedAt + lifetimeSeconds;
    const token = await new SignJWT({
      client_id: holder.clientId,
      scope: [...scopes].join(' '),
      ...realmsClaim(holder.realms),
    })
      .setProtectedHeader({ alg: ALGORITHM, typ: TYPE, kid: keys.signer.kid })
      .setIssuer(issuer)
      .setAudience(issuer)
      .setSubject(holder.clientId)
      .setIssuedAt(issuedAt)
      .setNotBefore(issuedAt)
      .setExpirationTime(expires)
      .setJti(jti)
      .sign(await privateKeys(keys.signer));
    return { token, expiresIn: lifetimeSeconds, expires, jti };
  };
}

function openVerify(
  cache: AuthCache,
  publicKeys: LoadKey,
  { issuer, external, sessions = NO_SESSIONS }: TokenSettings,
  clock: Clock,
): Pick<Tokens, 'verifyCached' | 'verify' | 'inspect'> {
  const cached = openVerifiedTokenCache();

  async function checkOwn(token: string, view: AuthView): Promise<VerifiedToken | undefined> {
    const key = claimedKey(token, view);
    if (!key) return undefined;
    try {
      const { payload } = await jwtVerify(token, await publicKeys(key), {
        issuer,
        audience: issuer,
        algorithms: [ALGORITHM],
        typ: TYPE,
        clockTolerance: LIMITS.clockLeewayMs / 1000,
        currentDate: new Date(clock.now()),
        requiredClaims: ['sub', 'client_id', 'exp', 'iat', 'jti', 'scope'],
      });
      return readClaims(payload, key.kid, { issuer, sessions });
    } catch {
      return undefined;
    }
  }

  /** By its issuer, before anything else: a key of one vouches for nothing of another. */
  function check(token: string, view: AuthView): Promise<VerificationOutcome> | undefined {
    const claimed = claimedIssuer(token, clock.now());
    if (claimed === issuer) return checkOwn(token, view);
    return claimed === undefined ? undefined : external?.verify(token, claimed);
  }

  /** One that has ended is accepted for as long as clocks may differ, and not worth remembering. */
  async function checkUnknown(token: string, view: AuthView): Promise<VerificationOutcome> {
    const entry = await check(token, view);
    if (isVerified(entry) && entry.expiresAt > clock.now()) cached.set(token, entry);
    return entry;
  }

  async function verifyUnknown(token: string, view: AuthView): Promise<Principal | 'unchecked' | undefined> {
    const entry = await checkUnknown(token, view);
    if (!isVerified(entry)) return entry;
    return principalOf(entry, await cache.fresh(), clock.now());
  }

  function verifyCachedWith(token: string, view: AuthView): Principal | undefined {
    const entry = cached.get(token);
    if (!entry) return undefined;
    const now = clock.now();
    if (entry.expiresAt <= now) cached.delete(token);
    return principalOf(entry, view, now);
  }

  function verifyWith(token: string, view: AuthView): MaybePromise<Principal | 'unchecked' | undefined> {
    return cached.get(token) ? verifyCachedWith(token, view) : verifyUnknown(token, view);
  }

  function verify(token: string): MaybePromise<Principal | 'unchecked' | undefined> {
    const view = cache.fresh();
    return view instanceof Promise ? view.then((later) => verifyWith(token, later)) : verifyWith(token, view);
  }

  return {
    verify,
    async inspect(token) {
      const entry = cached.get(token) ?? (await checkUnknown(token, await cache.fresh()));
      if (!isVerified(entry)) return undefined;
      const principal = principalOf(entry, await cache.fresh(), clock.now());
      return principal && entry.own
        ? {
            ...entry.own,
            clientId: principal.clientId,
            scopes: principal.scopes,
            isSession: !isClient(principal.clientId),
          }
        : undefined;
    },
    verifyCached(token) {
      const view = cache.fresh();
      return view instanceof Promise
        ? view.then((later) => verifyCachedWith(token, later))
        : verifyCachedWith(token, view);
    },
  };
}

const NO_SESSIONS: ReadonlySet<string> = new Set();

function isVerified(entry: VerificationOutcome): entry is VerifiedToken {
  return typeof entry === 'object';
}

/** Who is said to have issued a token that is not too long and may be in time. Nothing of it is proven. */
function claimedIssuer(token: string, now: number): string | undefined {
  if (token.length > LIMITS.tokenBytesMax) return undefined;
  try {
    const { iss, exp } = decodeJwt(token);
    const isInTime = now < Number(exp) * 1000 + LIMITS.clockLeewayMs;
    return typeof iss === 'string' && isInTime ? iss : undefined;
  } catch {
    return undefined;
  }
}

/** Everything that can be refused for free is refused before a signature is checked. */
function claimedKey(token: string, view: AuthView): SigningKey | undefined {
  if (!COMPACT.test(token)) return undefined;
  try {
    const header = decodeProtectedHeader(token);
    if (header.alg !== ALGORITHM || header.typ !== TYPE || typeof header.kid !== 'string') return undefined;
    if (REFUSED_HEADERS.some((name) => name in header)) return undefined;
    return view.keys.accepted.get(header.kid);
  } catch {
    return undefined;
  }
}

function realmsClaim(realms: Realms): { readonly realms?: readonly string[] } {
  if (realms === '*') return { realms: ['*'] };
  return realms.size <= LIMITS.tokenRealmsMax ? { realms: [...realms] } : {};
}

/** Kept for every token that is known, so it holds little: texts that all of them have in common are no copies. */
function readClaims(
  payload: JWTPayload,
  kid: string,
  { issuer, sessions }: { readonly issuer: string; readonly sessions: ReadonlySet<string> },
): VerifiedToken | undefined {
  const { client_id, sub, scope, realms, jti = '', iat = 0, exp, nbf = 0 } = payload;
  if (typeof client_id !== 'string' || sub !== client_id || typeof scope !== 'string') return undefined;
  const claimed = readRealms(realms);
  if (claimed === undefined || exp === undefined) return undefined;
  // No table says anything of a session: what it may not do it must say itself.
  const isUnknown = realms === undefined || !sessions.has(client_id.slice(0, client_id.indexOf(':')));
  if (!isClient(client_id) && isUnknown) return undefined;
  return {
    notBefore: nbf * 1000,
    expiresAt: exp * 1000,
    resolvePrincipal: isClient(client_id)
      ? clientPrincipalResolver({ kid, jti, clientId: client_id }, { scope, realms: claimed })
      : sessionPrincipalResolver({ kid, jti, clientId: client_id }, { scope, realms: claimed }),
    own: { issuer, jti, issuedAt: iat, notBefore: nbf, expires: exp },
  };
}

/** What a token claims. */
interface ClaimedRights {
  readonly scope: string;
  readonly realms: Realms;
}

/** What came last of each client's claims: its tokens mostly claim the same, and then have one principal in common. */
const lastPrincipal = new WeakMap<
  Client,
  { readonly claimed: ClaimedRights; readonly principal: Principal }
>();

function principalWith(client: Client, claimed: ClaimedRights): Principal {
  const last = lastPrincipal.get(client);
  if (last && last.claimed.scope === claimed.scope && last.claimed.realms === claimed.realms)
    return last.principal;
  const principal: Principal = {
    clientId: client.clientId,
    scopes: intersectScopes(new Set(claimed.scope.split(' ')), client.scopes),
    realms: intersectRealms(claimed.realms, client.realms),
  };
  lastPrincipal.set(client, { claimed, principal });
  return principal;
}

/** A token, and whom it names. */
interface TokenIdentity {
  readonly kid: string;
  readonly jti: string;
  readonly clientId: string;
}

/** What the token of a session says. It ends with its key, or when it is taken back. */
function sessionPrincipalResolver(
  { kid, jti, clientId }: TokenIdentity,
  claimed: ClaimedRights,
): VerifiedToken['resolvePrincipal'] {
  const scopes = intersectScopes(new Set(claimed.scope.split(' ')), new Set(SCOPES));
  const principal: Principal = { clientId, scopes, realms: claimed.realms };
  return (view) => (view.keys.accepted.has(kid) && !view.isRevoked(jti) ? principal : undefined);
}

/** What the token says, no more than its client holds now: of the client nothing is kept, which may be another one soon. */
function clientPrincipalResolver(
  { kid, jti, clientId }: TokenIdentity,
  claimed: ClaimedRights,
): VerifiedToken['resolvePrincipal'] {
  return (view) => {
    const client = view.client(clientId);
    if (!client || client.disabledAt !== undefined) return undefined;
    if (!view.keys.accepted.has(kid) || view.isRevoked(jti)) return undefined;
    return principalWith(client, claimed);
  };
}

/** An absent list leaves the decision to the client table. */
function readRealms(claim: unknown): Realms | undefined {
  if (claim === undefined) return '*';
  if (!Array.isArray(claim)) return undefined;
  if (claim.length === 1 && claim[0] === '*') return '*';
  const realms = claim.map((realm) => (typeof realm === 'string' ? parseUuid(realm) : undefined));
  return realms.includes(undefined) ? undefined : new Set(realms as Uuid[]);
}
