import type { GrantFaultCode } from '../domain/fault.ts';
import type { Ambient } from '../domain/id.ts';
import { parseScopes, type Scopes } from '../domain/principal.ts';
import { isSecretOf } from './clients.ts';
import type { AccessCache } from './table.ts';
import type { MintedToken, Tokens } from './token.ts';

/** What a caller of the token endpoint sent, as it sent it. */
export interface GrantRequest {
  readonly grantType: string | undefined;
  readonly clientId: string | undefined;
  readonly clientSecret: string | undefined;
  readonly scope: string | undefined;
}

export type GrantAnswer =
  | { readonly kind: 'granted'; readonly minted: MintedToken; readonly scopes: Scopes }
  | { readonly kind: 'refused'; readonly code: GrantFaultCode; readonly description: string };

export type GrantToken = (request: GrantRequest) => Promise<GrantAnswer>;

function refuse(code: GrantFaultCode, description: string): GrantAnswer {
  return { kind: 'refused', code, description };
}

/**
 * The client credentials grant (RFC 6749, 4.4), the only one offered: RFC 9700, 2.1.2 closes the implicit one. An
 * unknown client, a wrong secret and a disabled client are one answer and the same work.
 */
export function openGrants(cache: AccessCache, tokens: Tokens, ambient: Ambient): GrantToken {
  return async ({ grantType, clientId, clientSecret, scope }) => {
    if (grantType === undefined) return refuse('invalid_request', 'grant_type is missing');
    if (grantType !== 'client_credentials') {
      return refuse('unsupported_grant_type', 'the only grant_type is client_credentials');
    }
    if (clientId === undefined || clientSecret === undefined) {
      return refuse('invalid_client', 'client_id and client_secret are both needed');
    }
    const client = (await cache.fresh()).client(clientId);
    if (!isSecretOf(client, clientSecret, ambient.now()) || !client) {
      return refuse('invalid_client', 'the client is unknown, disabled, or its secret is another one');
    }
    const scopes = narrowed(client.scopes, scope);
    if (!scopes) return refuse('invalid_scope', 'scope asks for more than the client holds');
    return { kind: 'granted', minted: await tokens.mint(client, scopes), scopes };
  };
}

/** What was asked for, all that is held where nothing was; undefined where it is more than that. */
function narrowed(held: Scopes, scope: string | undefined): Scopes | undefined {
  if (scope === undefined || scope.trim() === '') return held;
  const asked = parseScopes(scope);
  return asked && [...asked].every((each) => held.has(each)) ? asked : undefined;
}
