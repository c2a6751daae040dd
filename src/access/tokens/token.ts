import { decodeJwt, type JWTPayload } from 'jose';
import { attempt } from '../../model/attempt.ts';
import { type Clock, parseUuid, type Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import {
  intersectRealms,
  intersectScopes,
  isClientId,
  type Principal,
  type Realms,
  SCOPES,
  type Scopes,
} from '../../model/principal.ts';
import type { MaybePromise } from '../../model/store.ts';
import { principalByIdAlone, principalBySecret } from '../clients/clients.ts';
import type { Client } from '../store/clients.ts';
import type { AuthCache, AuthView } from './auth_cache.ts';
import type { VerifyExternalToken } from './external_tokens.ts';
import type { JwtKind, OwnJwts } from './own_jwts.ts';
import {
  type IssuedClaims,
  openVerifiedTokenCache,
  principalOf,
  type VerificationOutcome,
  type VerifiedToken,
} from './verified_tokens.ts';

/** The claim `gty`, the grant type by the name that Auth0 gives it; absent if the client has proved its secret. */
const IMPLICIT = 'implicit';

/** A token that we issued and that is accepted now, with its rights. */
export interface IssuedToken extends IssuedClaims {
  readonly clientId: string;
  readonly scopes: Scopes;
}

/** The session that a token belongs to, whose rights are in the token. */
export interface TokenSession {
  readonly sessionId: Uuid;
  readonly lifetimeSeconds: number;
}

export type Tokens = ReturnType<typeof openTokens>;

export interface TokenSettings {
  /** Issuer and audience: the base URL. */
  readonly issuer: string;
  readonly lifetimeSeconds: number;
  /**
   * Accepted prefixes, up to the colon, of the actors of console sessions; default: no session is accepted.
   */
  readonly sessions?: ReadonlySet<string>;
  /** Verifies tokens of external issuers; default: none is accepted. */
  readonly external?: VerifyExternalToken;
}

/** Issues tokens for clients and console sessions, and verifies those and the tokens of external issuers. */
export function openTokens(
  cache: AuthCache,
  jwts: OwnJwts,
  { issuer, lifetimeSeconds: defaultLifetime, external, sessions = new Set() }: TokenSettings,
  clock: Clock,
) {
  const cached = openVerifiedTokenCache();
  /** Claims and `typ` of RFC 9068. */
  const kind: JwtKind = {
    type: 'at+jwt',
    issuer,
    audience: issuer,
    requiredClaims: ['sub', 'client_id', 'exp', 'iat', 'jti', 'scope'],
  };

  async function checkOwn(token: string, { keys }: AuthView): Promise<VerifiedToken | undefined> {
    const verified = await jwts.verify(kind, token, keys);
    return verified && readClaims(verified.payload, verified.kid, { issuer, sessions });
  }

  /** The issuer is compared first: the keys of one issuer never verify a token of another. */
  function check(token: string, view: AuthView): Promise<VerificationOutcome> | undefined {
    const claimed = claimedIssuer(token, clock.now());
    if (claimed === issuer) return checkOwn(token, view);
    return claimed === undefined ? undefined : external?.(token, claimed);
  }

  /** An expired token may be accepted within the clock leeway, but is not cached. */
  async function entryOf(token: string): Promise<VerificationOutcome> {
    const view = await cache.fresh();
    const known = cached.get(token, clock.now());
    if (known) return known;
    const entry = await check(token, view);
    if (isVerified(entry) && entry.expiresAt > clock.now()) cached.set(token, entry);
    return entry;
  }

  const principalNow = async (entry: VerifiedToken) => principalOf(entry, await cache.fresh(), clock.now());

  function verifyCachedWith(token: string, view: AuthView): Principal | undefined {
    const now = clock.now();
    const entry = cached.get(token, now);
    return entry && principalOf(entry, view, now);
  }

  return {
    /** `expiresIn`: seconds. `expires`: seconds since the epoch. `jti`: the unique identifier of the token (RFC 7519, 4.1.7). */
    async mint(
      holder: Pick<Principal, 'clientId' | 'realms' | 'implicit'>,
      scopes: Scopes,
      session?: TokenSession,
    ) {
      const { keys } = await cache.fresh();
      const jti = clock.mintId();
      const lifetimeSeconds = session?.lifetimeSeconds ?? defaultLifetime;
      const issuedAt = Math.floor(clock.now() / 1000);
      const expires = issuedAt + lifetimeSeconds;
      const claims = {
        client_id: holder.clientId,
        scope: [...scopes].join(' '),
        ...realmsClaim(holder.realms),
        ...(holder.implicit ? { gty: IMPLICIT } : {}),
        ...(session ? { sid: session.sessionId } : {}),
        ...{ iss: issuer, aud: issuer, sub: holder.clientId },
        ...{ iat: issuedAt, nbf: issuedAt, exp: expires, jti },
      };
      return { token: await jwts.sign(kind, claims, keys), expiresIn: lifetimeSeconds, expires, jti };
    },
    /**
     * The principal of a token; undefined for an invalid token, `unchecked` while its issuer cannot be reached.
     * Rejects with Fault `unavailable`.
     */
    async verify(token: string): Promise<Principal | 'unchecked' | undefined> {
      const entry = await entryOf(token);
      return isVerified(entry) ? principalNow(entry) : entry;
    },
    /** The claims of a token that we issued and that `verify` accepts. Rejects as `verify` does. */
    async inspect(token: string): Promise<IssuedToken | undefined> {
      const entry = await entryOf(token);
      if (!isVerified(entry) || !entry.own) return undefined;
      const principal = await principalNow(entry);
      return principal && { ...entry.own, clientId: principal.clientId, scopes: principal.scopes };
    },
    /** The principal of a token in the cache of verified tokens; undefined for others. Rejects as `verify` does. */
    verifyCached(token: string): MaybePromise<Principal | undefined> {
      const view = cache.fresh();
      return view instanceof Promise
        ? view.then((later) => verifyCachedWith(token, later))
        : verifyCachedWith(token, view);
    },
  };
}

function isVerified(entry: VerificationOutcome): entry is VerifiedToken {
  return typeof entry === 'object';
}

/** The unverified `iss` of a token that is not too long and not expired. */
function claimedIssuer(token: string, now: number): string | undefined {
  if (token.length > LIMITS.tokenBytesMax) return undefined;
  const { iss, exp } = attempt(() => decodeJwt(token)) ?? {};
  // Not verified yet: `exp` may be anything that JSON can have.
  const isInTime = typeof exp === 'number' && now < exp * 1000 + LIMITS.clockLeewayMs;
  return typeof iss === 'string' && isInTime ? iss : undefined;
}

function realmsClaim(realms: Realms): { readonly realms?: readonly string[] } {
  if (realms === '*') return { realms: ['*'] };
  return realms.size <= LIMITS.tokenRealmsMax ? { realms: [...realms] } : {};
}

/**
 * The cached part of the claims. It is small, because there is one per token: common strings are shared.
 */
function readClaims(
  payload: JWTPayload,
  kid: string,
  { issuer, sessions }: { readonly issuer: string; readonly sessions: ReadonlySet<string> },
): VerifiedToken | undefined {
  const { client_id, sub, scope, realms, sid, gty, jti = '', iat = 0, exp, nbf = 0 } = payload;
  if (gty !== undefined && gty !== IMPLICIT) return undefined;
  if (typeof client_id !== 'string' || sub !== client_id || typeof scope !== 'string') return undefined;
  const claimed = readRealms(realms);
  if (claimed === undefined || exp === undefined) return undefined;
  const own = { issuer, jti, issuedAt: iat, notBefore: nbf, expires: exp };
  const times = { notBefore: nbf * 1000, expiresAt: exp * 1000 };
  const rights = { scope, realms: claimed, isImplicit: gty === IMPLICIT };
  const isAccepted = (view: AuthView, revocableId: string) =>
    view.keys.accepted.has(kid) && !view.isRevoked(revocableId);
  if (isClientId(client_id)) {
    /** The client is looked up each time, as it may change. */
    const resolvePrincipal = (view: AuthView) => {
      const client = view.client(client_id);
      if (!client || client.disabledAt !== undefined || !isAccepted(view, jti)) return undefined;
      return principalWith(client, rights);
    };
    return { ...times, resolvePrincipal, own };
  }
  // A session has no client record: its token must limit it.
  const isUnknown = realms === undefined || !sessions.has(client_id.slice(0, client_id.indexOf(':')));
  if (isUnknown || typeof sid !== 'string') return undefined;
  const scopes = intersectScopes(new Set(scope.split(' ')), new Set(SCOPES));
  const principal: Principal = { clientId: client_id, scopes, realms: claimed };
  const resolvePrincipal = (view: AuthView) => (isAccepted(view, sid) ? principal : undefined);
  return { ...times, resolvePrincipal, own: { ...own, sessionId: sid } };
}

interface ClaimedRights {
  readonly scope: string;
  readonly realms: Realms;
  readonly isImplicit: boolean;
}

/**
 * The last principal of each client: its tokens mostly claim the same rights and then share one principal.
 */
const lastPrincipal = new WeakMap<
  Client,
  { readonly claimed: ClaimedRights; readonly principal: Principal }
>();

/** The rights in a token, limited to those its client holds now. */
function principalWith(client: Client, claimed: ClaimedRights): Principal | undefined {
  const { scope, realms, isImplicit } = claimed;
  const last = lastPrincipal.get(client);
  if (
    last?.claimed.scope === scope &&
    last.claimed.realms === realms &&
    last.claimed.isImplicit === isImplicit
  )
    return last.principal;
  const held = isImplicit ? principalByIdAlone(client) : principalBySecret(client);
  if (!held) return undefined;
  const principal: Principal = {
    ...held,
    scopes: intersectScopes(new Set(scope.split(' ')), held.scopes),
    realms: intersectRealms(realms, held.realms),
  };
  lastPrincipal.set(client, { claimed, principal });
  return principal;
}

/** Without the claim the client record decides. */
function readRealms(claim: unknown): Realms | undefined {
  if (claim === undefined) return '*';
  if (!Array.isArray(claim)) return undefined;
  if (claim.length === 1 && claim[0] === '*') return '*';
  const realms = claim.map((realm) => (typeof realm === 'string' ? parseUuid(realm) : undefined));
  return realms.includes(undefined) ? undefined : new Set(realms as Uuid[]);
}
