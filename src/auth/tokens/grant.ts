import { type Act, actOf, type Occasion } from '../../domain/act.ts';
import type { Clock } from '../../domain/id.ts';
import { parseScopes, type Scopes } from '../../domain/principal.ts';
import { type GrantRefusal, refuse } from '../clients/client_credentials.ts';
import type { Client } from '../port.ts';
import type { MintedToken, Tokens } from './token.ts';
import type { Whence } from './token_endpoint.ts';

export type GrantAnswer =
  | { readonly kind: 'granted'; readonly minted: MintedToken; readonly scopes: Scopes }
  | GrantRefusal;

/** Grants what the scope asks for, as the client sent it. */
export type GrantToken = (client: Client, scope: string | undefined, from: Whence) => Promise<GrantAnswer>;

/** Whether this type of grant is offered, whoever asks: the client credentials grant (RFC 6749, 4.4) alone. */
export function refusalOfType(grantType: string | undefined): GrantRefusal | undefined {
  if (grantType === undefined) return refuse('invalid_request', 'grant_type is missing');
  if (grantType === 'client_credentials') return undefined;
  return refuse('unsupported_grant_type', 'the only grant_type is client_credentials');
}

/**
 * The client credentials grant (RFC 6749, 4.4), the only one offered: RFC 9700, 2.1.2 closes the implicit one. A token is
 * given out once `note` has taken down that it is.
 */
export function openGrants(
  tokens: Pick<Tokens, 'mint'>,
  clock: Pick<Clock, 'now' | 'mintId'>,
  note: (granted: Act) => Promise<void>,
): GrantToken {
  return async (client, scope, from) => {
    const scopes = narrowed(client.scopes, scope);
    if (!scopes) return refuse('invalid_scope', 'scope asks for more than the client holds');
    const minted = await tokens.mint(client, scopes);
    const asker = { ...from, actor: client.clientId };
    await note(actOfGrant(client, scopes, minted, { ...clock, asker }));
    return { kind: 'granted', minted, scopes };
  };
}

function actOfGrant(
  { clientId, realms }: Client,
  scopes: Scopes,
  { jti, expires }: MintedToken,
  occasion: Pick<Occasion, 'now' | 'mintId' | 'asker'>,
): Act {
  const detail = {
    scope: [...scopes].join(' '),
    realms: realms === '*' ? realms : [...realms],
    jti,
    expires_at: new Date(expires * 1_000).toISOString(),
  };
  return actOf('token.granted', { id: occasion.mintId(), object: clientId, detail }, occasion);
}

/** What was asked for, all that is held where nothing was; undefined where it is more than that. */
function narrowed(held: Scopes, scope: string | undefined): Scopes | undefined {
  if (scope === undefined || scope.trim() === '') return held;
  const asked = parseScopes(scope);
  return asked && [...asked].every((each) => held.has(each)) ? asked : undefined;
}
