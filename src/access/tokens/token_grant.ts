import type { Clock } from '../../model/id.ts';
import { type AuditEntry, createAuditEntry } from '../../model/log/audit_entry.ts';
import { type Principal, parseScopes, type Scopes } from '../../model/principal.ts';
import { type OAuthError, oauthError } from '../clients/client_credentials.ts';
import { loggedRights } from './claim_rights.ts';
import type { RequestOrigin } from './introspection.ts';
import type { Tokens } from './token.ts';

/**
 * The grant types: client credentials (RFC 6749, 4.4); and what existing clients call `implicit`, a request at the token
 * endpoint with the ID of a client alone (docs/wire.md#tokens).
 */
export const GRANT_TYPES = ['client_credentials', 'implicit'] as const;

/** Undefined for a supported grant type; else the error. */
export function checkGrantType(grantType: string | undefined): OAuthError | undefined {
  if (grantType === undefined) return oauthError('invalid_request', 'grant_type is missing');
  if (GRANT_TYPES.some((type) => type === grantType)) return undefined;
  return oauthError('unsupported_grant_type', `grant_type must be ${GRANT_TYPES.join(' or ')}`);
}

export type GrantToken = ReturnType<typeof openTokenGrants>;

/** Issues tokens with the requested scope. A token is returned only after `note` has logged its grant. */
export function openTokenGrants(
  tokens: Pick<Tokens, 'mint'>,
  { now }: Pick<Clock, 'now'>,
  note: (granted: AuditEntry) => Promise<void>,
) {
  return async (client: Principal, scope: string | undefined, from: RequestOrigin) => {
    const scopes = grantedScopes(client.scopes, scope);
    if (!scopes) return oauthError('invalid_scope', 'scope asks for more than the client holds');
    const minted = await tokens.mint(client, scopes);
    const { clientId, realms, implicit } = client;
    const detail = {
      ...loggedRights({ scopes, realms }),
      ...(implicit ? { grant: 'implicit' } : {}),
      jti: minted.jti,
      expires_at: new Date(minted.expires * 1_000).toISOString(),
    };
    const caller = { ...from, actor: clientId };
    await note(createAuditEntry('token.granted', { object: clientId, detail }, { now, caller }));
    return { kind: 'granted' as const, minted, scopes };
  };
}

/** The requested scopes, or by default all that the client holds; undefined if more was requested. */
function grantedScopes(granted: Scopes, scope: string | undefined): Scopes | undefined {
  if (scope === undefined || scope.trim() === '') return granted;
  const requested = parseScopes(scope);
  return requested && [...requested].every((each) => granted.has(each)) ? requested : undefined;
}
