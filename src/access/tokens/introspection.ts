import { overloaded } from '../../model/fault.ts';
import type { Clock } from '../../model/id.ts';
import { type Caller, createAuditEntry } from '../../model/log/audit_entry.ts';
import { type OAuthError, oauthError } from '../clients/client_credentials.ts';
import type { AuthStore } from '../store/access.ts';
import type { IssuedToken, Tokens } from './token.ts';

/** Where a request came from, for the audit log. */
export type RequestOrigin = Pick<Caller, 'address' | 'requestId'>;

/** Introspection and revocation of a client's own tokens; the tokens of other clients count as unknown. */
export function openIntrospectionAndRevocation(
  tokens: Pick<Tokens, 'inspect'>,
  store: Pick<AuthStore, 'revokeToken'>,
  clock: Pick<Clock, 'now'>,
) {
  /** Describes a token (RFC 7662); undefined if it belongs to another client or is no longer accepted. */
  async function introspect(
    clientId: string,
    token: string | undefined,
  ): Promise<OAuthError | { readonly kind: 'introspected'; readonly token: IssuedToken | undefined }> {
    if (token === undefined) return oauthError('invalid_request', 'token is missing');
    const found = await tokens.inspect(token);
    return { kind: 'introspected', token: found?.clientId === clientId ? found : undefined };
  }

  /** Revokes a token (RFC 7009): every process rejects it within a second. Rejects with Fault `overloaded`. */
  async function revoke(clientId: string, token: string | undefined, from: RequestOrigin) {
    const answer = await introspect(clientId, token);
    if (answer.kind === 'introspected' && answer.token) {
      const { jti, expires } = answer.token;
      const caller = { ...from, actor: clientId };
      const event = { object: jti, detail: {} };
      const auditEntry = createAuditEntry('token.revoked', event, { now: clock.now, caller });
      const revoked = await store.revokeToken({ jti, clientId, expiresAt: expires * 1000 }, auditEntry);
      // The client then knows that the token is still active (RFC 7009, 2.2.1).
      if (revoked === 'too many') throw overloaded('REVOCATION_LIMIT');
    }
    return answer;
  }

  return { introspect, revoke };
}
