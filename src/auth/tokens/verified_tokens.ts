import { LIMITS } from '../../domain/limits.ts';
import type { Principal } from '../../domain/principal.ts';
import type { AuthView } from './auth_cache.ts';

/** Header members that would have the token choose its own key (RFC 8725, 3.5 and 3.10). */
export const REFUSED_HEADERS = ['crit', 'jwk', 'jku', 'x5u', 'x5c'] as const;

/** What else a token of our own says. Instants are seconds since the epoch, as they stand there. */
export interface IssuedClaims {
  readonly issuer: string;
  readonly jti: string;
  readonly issuedAt: number;
  readonly notBefore: number;
  readonly expires: number;
}

/** What a checked signature vouches for. Instants are milliseconds since the epoch. */
export interface VerifiedToken {
  readonly notBefore: number;
  readonly expiresAt: number;
  /** Who it is, by what is known as of a view; undefined where key or client no longer count. */
  readonly resolvePrincipal: (view: AuthView) => Principal | undefined;
  /** What else a token of our own says. */
  readonly own?: IssuedClaims;
  /** The view that was asked last, and what it said. */
  viewSerial?: number;
  principal?: Principal | undefined;
}

/** The result of verifying a token: `unchecked` while its issuer cannot be reached, undefined where it is not valid. */
export type VerificationOutcome = VerifiedToken | 'unchecked' | undefined;

/** What the token says, no more than its client holds now. */
export function principalOf(entry: VerifiedToken, view: AuthView, now: number): Principal | undefined {
  if (now >= entry.expiresAt + LIMITS.clockLeewayMs || now < entry.notBefore - LIMITS.clockLeewayMs)
    return undefined;
  if (entry.viewSerial !== view.serial) {
    entry.principal = entry.resolvePrincipal(view);
    entry.viewSerial = view.serial;
  }
  return entry.principal;
}

export interface VerifiedTokenCache {
  get(token: string): VerifiedToken | undefined;
  set(token: string, entry: VerifiedToken): void;
  delete(token: string): void;
}

/**
 * The tokens whose signatures were checked, each under its SHA-256: no collection of tokens is kept. They stand in two
 * generations. What is used goes to the younger one, and when that is full or old, the older one is forgotten: so those of a
 * busy client stay, and one that nobody shows any more leaves nothing behind, also where no other one comes. Only the one that
 * came last is also known as it came, because that of a busy client comes again at once and a digest costs more than the rest
 * of the check. It ends in a signature nobody can guess, so how long the comparison takes tells nothing of use.
 */
export function openVerifiedTokenCache(): VerifiedTokenCache {
  let younger = new Map<string, VerifiedToken>();
  let older: typeof younger = new Map();
  let last: { readonly token: string; readonly entry: VerifiedToken } | undefined;
  /** Runs as long as anything is remembered. */
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
    get(token) {
      if (token === last?.token) return last.entry;
      const entry = find(digestOf(token));
      if (entry) last = { token, entry };
      return entry;
    },
    set(token, entry) {
      insert(digestOf(token), entry);
    },
    delete(token) {
      const digest = digestOf(token);
      younger.delete(digest);
      older.delete(digest);
      last = undefined;
    },
  };
}
