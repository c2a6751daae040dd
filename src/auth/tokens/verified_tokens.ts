import { LIMITS } from '../../domain/limits.ts';
import type { Principal } from '../../domain/principal.ts';
import type { AuthView } from './auth_cache.ts';

/** Header parameters with which a token would choose its own key (RFC 8725, 3.5 and 3.10). */
export const REFUSED_HEADERS = ['crit', 'jwk', 'jku', 'x5u', 'x5c'] as const;

/** Further claims of a token that we issued. Instants are seconds since the epoch, as in the token. */
export interface IssuedClaims {
  readonly issuer: string;
  readonly jti: string;
  /** The console session that the token belongs to, if not to a client. */
  readonly sessionId?: string;
  readonly issuedAt: number;
  readonly notBefore: number;
  readonly expires: number;
}

/** The content of a token whose signature was verified. Instants are milliseconds since the epoch. */
export interface VerifiedToken {
  readonly notBefore: number;
  readonly expiresAt: number;
  /** The principal as of a view; undefined if key or client are no longer valid. */
  readonly resolvePrincipal: (view: AuthView) => Principal | undefined;
  /** Set for tokens that we issued. */
  readonly own?: IssuedClaims;
  /** The view used last, and its result. */
  viewSerial?: number;
  principal?: Principal | undefined;
}

/**
 * The result of verifying a token: `unchecked` while its issuer cannot be reached, undefined for an invalid
 * token.
 */
export type VerificationOutcome = VerifiedToken | 'unchecked' | undefined;

/**
 * The principal of a token now: undefined outside its validity period, or if key or client are no longer
 * valid.
 */
export function principalOf(entry: VerifiedToken, view: AuthView, now: number): Principal | undefined {
  if (now >= entry.expiresAt + LIMITS.clockLeewayMs || now < entry.notBefore - LIMITS.clockLeewayMs)
    return undefined;
  if (entry.viewSerial !== view.serial) {
    entry.principal = entry.resolvePrincipal(view);
    entry.viewSerial = view.serial;
  }
  return entry.principal;
}

/**
 * Caches tokens whose signatures were verified, keyed by SHA-256, so that no tokens are stored. There are two
 * generations: a token that is used moves to the younger one, and when that is full or old the older one is
 * dropped. So tokens of active clients stay, and unused tokens go even without traffic. Only the last token
 * is also stored in plain form, because a busy client sends it again at once and the digest costs more than all
 * other checks. It ends in an unguessable signature, so the timing of the comparison reveals nothing useful.
 */
export function openVerifiedTokenCache() {
  let younger = new Map<string, VerifiedToken>();
  let older: typeof younger = new Map();
  let last: { readonly token: string; readonly entry: VerifiedToken } | undefined;
  /** Runs while the cache is not empty. */
  let timer: ReturnType<typeof setTimeout> | undefined;
  const digestOf = (token: string) => Bun.SHA256.hash(token, 'base64');
  const scheduleRotation = () => setTimeout(rotate, LIMITS.verifiedTokensTurnMs).unref();

  function rotate(): void {
    [older, younger] = [younger, new Map()];
    last = undefined;
    clearTimeout(timer);
    timer = older.size > 0 ? scheduleRotation() : undefined;
  }

  function insert(digest: string, entry: VerifiedToken): void {
    if (younger.size >= LIMITS.verifiedTokensMax / 2) rotate();
    younger.set(digest, entry);
    timer ??= scheduleRotation();
  }

  function find(digest: string): VerifiedToken | undefined {
    const entry = younger.get(digest);
    if (entry) return entry;
    const aged = older.get(digest);
    if (aged) insert(digest, aged);
    return aged;
  }

  return {
    get(token: string): VerifiedToken | undefined {
      if (token === last?.token) return last.entry;
      const entry = find(digestOf(token));
      if (entry) last = { token, entry };
      return entry;
    },
    set(token: string, entry: VerifiedToken): void {
      insert(digestOf(token), entry);
    },
    delete(token: string): void {
      const digest = digestOf(token);
      younger.delete(digest);
      older.delete(digest);
      last = undefined;
    },
  };
}
