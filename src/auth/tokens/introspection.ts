import { type Caller, createAuditEntry } from '../../domain/audit_entry.ts';
import { overloaded } from '../../domain/fault.ts';
import type { Clock } from '../../domain/id.ts';
import { type OAuthError, oauthError } from '../clients/client_credentials.ts';
import type { AuthStore, Client } from '../port.ts';
import type { IssuedToken, Tokens } from './token.ts';

/** Where a request came from, for the log. */
export type RequestOrigin = Pick<Caller, 'address' | 'requestId'>;

/** Where a client asks about its own tokens, as it sent them, and gives them back. The tokens of others are none to it. */
export interface IntrospectionAndRevocation {
  /** Takes a token back (RFC 7009): every process refuses it within a second. Rejects with Fault `overloaded`. */
  revoke(
    client: Client,
    token: string | undefined,
    from: RequestOrigin,
  ): Promise<OAuthError | { readonly kind: 'done' }>;
  /** What a token is worth now (RFC 7662); undefined where it is none of this client, or no longer accepted. */
  introspect(
    client: Client,
    token: string | undefined,
  ): Promise<OAuthError | { readonly kind: 'told'; readonly token: IssuedToken | undefined }>;
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
    client: Client,
    token: string | undefined,
  ): Promise<OAuthError | { readonly kind: 'told'; readonly token: IssuedToken | undefined }> {
    if (token === undefined) return oauthError('invalid_request', 'token is missing');
    const found = await tokens.inspect(token);
    return { kind: 'told', token: found?.clientId === client.clientId ? found : undefined };
  }

  return {
    introspect: ownToken,
    async revoke(client, token, from) {
      const answer = await ownToken(client, token);
      if (answer.kind === 'refused') return answer;
      if (answer.token) {
        const { jti, clientId, expires } = answer.token;
        const caller = { ...from, actor: clientId };
        const auditEntry = createAuditEntry(
          'token.revoked',
          { object: jti, detail: {} },
          { now: clock.now, caller },
        );
        const isRevoked = await store.revokeToken({ jti, clientId, expiresAt: expires * 1000 }, auditEntry);
        // Whoever is told so takes the token for a live one (RFC 7009, 2.2.1).
        if (!isRevoked) throw overloaded('REVOCATION_LIMIT');
      }
      return { kind: 'done' };
    },
  };
}
