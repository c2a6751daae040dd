import { LIMITS } from '../../model/limits.ts';
import type { Principal } from '../../model/principal.ts';
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
 * Caches tokens whose signatures were verified, keyed by SHA-256, so that no tokens are stored. Above `verifiedTokensMax` the oldest is
 * dropped; if it is used again, it is verified again. Only the last token is also stored in plain form, because a busy client sends it
 * again at once and the digest costs more than all other checks. It ends in an unguessable signature, so the timing of the comparison
 * reveals nothing useful.
 */
export function openVerifiedTokenCache() {
  const entries = new Map<string, VerifiedToken>();
  let last: { readonly token: string; readonly entry: VerifiedToken } | undefined;
  const digestOf = (token: string) => Bun.SHA256.hash(token, 'base64');

  return {
    /** Undefined for a token that has expired: within the clock leeway it is verified each time. */
    get(token: string, now: number): VerifiedToken | undefined {
      if (token !== last?.token) {
        const entry = entries.get(digestOf(token));
        if (!entry) return undefined;
        last = { token, entry };
      }
      const { entry } = last;
      if (entry.expiresAt > now) return entry;
      entries.delete(digestOf(token));
      last = undefined;
      return undefined;
    },
    set(token: string, entry: VerifiedToken): void {
      entries.set(digestOf(token), entry);
      if (entries.size > LIMITS.verifiedTokensMax) entries.delete(entries.keys().next().value as string);
    },
  };
}
