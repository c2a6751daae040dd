import type { Tokens } from '../../access/tokens/token.ts';
import type { Principal } from '../../model/principal.ts';
import type { MaybePromise } from '../../model/store.ts';
import type { RateLimits } from '../server/rate_limits.ts';
import { faultReply, type Reply } from '../server/reply.ts';
import type { Call, Stage } from './call.ts';

export const NOT_SENT = 'none was sent';
export const NOT_VALID = 'not valid or expired';

/** Challenges of RFC 6750, 3. No error code where no token was sent. */
const REALM = 'Bearer realm="authrealm"';
const NO_TOKEN = faultReply('unauthenticated', { 'WWW-Authenticate': REALM }, NOT_SENT);
export const BAD_TOKEN = faultReply(
  'unauthenticated',
  { 'WWW-Authenticate': `${REALM}, error="invalid_token"` },
  NOT_VALID,
);

/** `missing` is for callers that hold the scope. */
export function insufficientScope(scope: string, missing = `needs the scope ${scope}`): Reply {
  const challenge = `${REALM}, error="insufficient_scope", scope="${scope}"`;
  return faultReply('insufficient_scope', { 'WWW-Authenticate': challenge }, missing);
}

/**
 * Turns the Authorization header into a principal. Tokens are read from this header only
 * (docs/wire.md#request-headers): in a query they would end up in logs.
 */
export function authenticate(tokens: Tokens, { caller, badCredentials }: RateLimits): Stage {
  function enter(call: Call, principal: Principal): Reply | undefined {
    call.principal = principal;
    return caller(call, principal);
  }

  /** A token that could not be checked may be valid, so it does not count as a bad credential of its address. */
  function toReply(call: Call, verified: Principal | 'unchecked' | undefined): Reply | undefined {
    if (typeof verified === 'object') return enter(call, verified);
    if (verified !== 'unchecked') badCredentials?.countFailure(call);
    call.refused = verified === 'unchecked' ? 'token not checked' : 'bad token';
    return BAD_TOKEN;
  }

  /** Checks a token that is not cached, unless its address has sent too many bad ones. */
  function check(call: Call, token: string): MaybePromise<Reply | undefined> {
    return badCredentials?.admit(call) ?? tokens.verify(token).then((later) => toReply(call, later));
  }

  return (call) => {
    const header = call.authorization;
    const token = header === null ? undefined : bearerToken(header);
    if (token === undefined) {
      call.refused = 'no token';
      return NO_TOKEN;
    }
    const known = tokens.verifyCached(token);
    if (known instanceof Promise) {
      return known.then((later) => (later ? enter(call, later) : check(call, token)));
    }
    return known ? enter(call, known) : check(call, token);
  };
}

/**
 * The text after `Bearer `; the scheme is case-insensitive (RFC 9110, 11.1). Another scheme, or no text, is a request
 * without a token (RFC 6750, 3.1).
 */
export function bearerToken(header: string): string | undefined {
  if (!header.startsWith('Bearer ') && !/^bearer /i.test(header)) return undefined;
  return header.slice('Bearer '.length).trimStart() || undefined;
}
