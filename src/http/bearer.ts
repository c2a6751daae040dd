import type { Tokens } from '../access/token.ts';
import type { Stage } from './call.ts';
import { faultReply, type Reply } from './reply.ts';

/** Challenges of RFC 6750, 3. No error code where no token was sent. */
const REALM = 'Bearer realm="authrealm"';
const NO_TOKEN = faultReply('unauthenticated', { 'WWW-Authenticate': REALM });
const BAD_TOKEN = faultReply('unauthenticated', { 'WWW-Authenticate': `${REALM}, error="invalid_token"` });

export function insufficientScope(scope: string): Reply {
  return faultReply('insufficient_scope', {
    'WWW-Authenticate': `${REALM}, error="insufficient_scope", scope="${scope}"`,
  });
}

/**
 * Turns the Authorization header into a principal. The header is the only place a token may stand (contract 8, row
 * 43): in a query or a body it would end up in other people's logs.
 */
export function authenticate(tokens: Tokens): Stage {
  return (call) => {
    const header = call.request.headers.get('authorization');
    if (header === null) return NO_TOKEN;
    const token = bearerToken(header);
    if (token === undefined) return NO_TOKEN;
    const principal = tokens.verify(token);
    if (principal instanceof Promise) {
      return principal.then((later) => {
        if (!later) return BAD_TOKEN;
        call.principal = later;
        return undefined;
      });
    }
    if (!principal) return BAD_TOKEN;
    call.principal = principal;
    return undefined;
  };
}

/**
 * What stands behind `Bearer `; the scheme's name is case-insensitive (RFC 9110, 11.1). Another scheme, or nothing
 * behind this one, is a request without a token (RFC 6750, 3.1). Whether it is a token is for the verifier to say.
 */
export function bearerToken(header: string): string | undefined {
  if (!header.startsWith('Bearer ') && !/^bearer /i.test(header)) return undefined;
  return header.slice('Bearer '.length).trimStart() || undefined;
}
