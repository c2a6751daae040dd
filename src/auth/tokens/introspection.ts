import { type Caller, createAuditEntry } from '../../domain/audit_entry.ts';
import { overloaded } from '../../domain/fault.ts';
import type { Clock } from '../../domain/id.ts';
import type { AuthStore } from '../../store/auth/access.ts';
import { type OAuthError, oauthError } from '../clients/client_credentials.ts';
import type { IssuedToken, Tokens } from './token.ts';

/** Where a request came from, for the audit log. */
export type RequestOrigin = Pick<Caller, 'address' | 'requestId'>;

/** Introspection and revocation of a client's own tokens; the tokens of other clients count as unknown. */
export interface IntrospectionAndRevocation {
  /**
   * Revokes a token (RFC 7009): every process rejects it within a second. Rejects with Fault `overloaded`.
   */
  revoke(
    clientId: string,
    token: string | undefined,
    from: RequestOrigin,
  ): Promise<OAuthError | { readonly kind: 'done' }>;
  /** Describes a token (RFC 7662); undefined if it belongs to another client or is no longer accepted. */
  introspect(
    clientId: string,
    token: string | undefined,
  ): Promise<OAuthError | { readonly kind: 'introspected'; readonly token: IssuedToken | undefined }>;
}

interface IntrospectionDeps {
  readonly tokens: Pick<Tokens, 'inspect'>;
  readonly store: Pick<AuthStore, 'revokeToken'>;
  readonly clock: Pick<Clock, 'now'>;
}

export function openIntrospectionAndRevocation({
  tokens,
  store,
  clock,
}: IntrospectionDeps): IntrospectionAndRevocation {
  async function ownToken(
    clientId: string,
    token: string | undefined,
  ): Promise<OAuthError | { readonly kind: 'introspected'; readonly token: IssuedToken | undefined }> {
    if (token === undefined) return oauthError('invalid_request', 'token is missing');
    const found = await tokens.inspect(token);
    return { kind: 'introspected', token: found?.clientId === clientId ? found : undefined };
  }

  return {
    introspect: ownToken,
    async revoke(clientId, token, from) {
      const answer = await ownToken(clientId, token);
      if (answer.kind === 'refused') return answer;
      if (answer.token) {
        const { jti, expires } = answer.token;
        const caller = { ...from, actor: clientId };
        const auditEntry = createAuditEntry(
          'token.revoked',
          { object: jti, detail: {} },
          { now: clock.now, caller },
        );
        const isRevoked = await store.revokeToken({ jti, clientId, expiresAt: expires * 1000 }, auditEntry);
        // The client then knows that the token is still active (RFC 7009, 2.2.1).
        if (!isRevoked) throw overloaded('REVOCATION_LIMIT');
      }
      return { kind: 'done' };
    },
  };
}
