import type { Ambient } from '../domain/id.ts';
import { parseScopes, type Scopes } from '../domain/principal.ts';
import { authenticateClient, type Credentials, type GrantRefusal, refuse } from './client_credentials.ts';
import type { AccessCache } from './table.ts';
import type { MintedToken, Tokens } from './token.ts';

/** What a caller of the token endpoint sent, as it sent it. */
export interface GrantRequest extends Credentials {
  readonly grantType: string | undefined;
  readonly scope: string | undefined;
}

export type GrantAnswer =
  | { readonly kind: 'granted'; readonly minted: MintedToken; readonly scopes: Scopes }
  | GrantRefusal;

export type GrantToken = (request: GrantRequest) => Promise<GrantAnswer>;

/**
 * The client credentials grant (RFC 6749, 4.4), the only one offered: RFC 9700, 2.1.2 closes the implicit one.
 */
export function openGrants(cache: AccessCache, tokens: Tokens, ambient: Ambient): GrantToken {
  return async ({ grantType, scope, ...credentials }) => {
    if (grantType === undefined) return refuse('invalid_request', 'grant_type is missing');
    if (grantType !== 'client_credentials') {
      return refuse('unsupported_grant_type', 'the only grant_type is client_credentials');
    }
    const client = await authenticateClient(credentials, cache, ambient);
    if ('kind' in client) return client;
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
