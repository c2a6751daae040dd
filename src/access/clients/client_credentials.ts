import type { GrantFaultCode } from '../../model/fault.ts';
import type { Clock } from '../../model/id.ts';
import type { Principal } from '../../model/principal.ts';
import type { Client } from '../store/clients.ts';
import type { AuthCache } from '../tokens/auth_cache.ts';
import { isSecretOf, principalByIdAlone, principalBySecret } from './clients.ts';

/** An error response of the token endpoint (RFC 6749, 5.2). */
export interface OAuthError {
  readonly kind: 'refused';
  readonly code: GrantFaultCode;
  readonly description: string;
  /** The existing client whose credentials were rejected. */
  readonly clientId?: string;
}

export function oauthError(code: GrantFaultCode, description: string): OAuthError {
  return { kind: 'refused', code, description };
}

/** Resolves with what the credentials of a client, as sent, give it. */
export type AuthenticateClient = (credentials: {
  readonly clientId: string | undefined;
  readonly clientSecret: string | undefined;
}) => Promise<Principal | OAuthError>;

/** Unknown clients, wrong secrets and disabled clients get the same answer in the same time. */
export function openClientCredentials(cache: AuthCache, clock: Pick<Clock, 'now'>): AuthenticateClient {
  return async ({ clientId, clientSecret }) => {
    if (clientId === undefined || clientSecret === undefined) {
      return oauthError('invalid_client', 'client_id and client_secret are both needed');
    }
    const give = (client: Client | undefined) =>
      isSecretOf(client, clientSecret, clock.now()) && client ? principalBySecret(client) : undefined;
    return authenticate(cache, clientId, give, UNKNOWN_CLIENT);
  };
}

const UNKNOWN_CLIENT = oauthError(
  'invalid_client',
  'the client is unknown, disabled, or its secret is another one',
);

/** An ID alone that gives nothing gets the same answer, whether a client has it or not. */
export function openImplicitClients(cache: AuthCache): AuthenticateClient {
  const give = (client: Client | undefined) =>
    client && client.disabledAt === undefined ? principalByIdAlone(client) : undefined;
  return async ({ clientId }) =>
    clientId === undefined
      ? oauthError('invalid_request', 'client_id is missing')
      : authenticate(cache, clientId, give, NOT_IMPLICIT);
}

const NOT_IMPLICIT = oauthError(
  'unsupported_grant_type',
  'grant_type implicit is for clients whose ID alone gives scopes',
);

/** The access table is read once more before a refusal, because a client may have been created or changed since. */
async function authenticate(
  cache: AuthCache,
  clientId: string,
  give: (client: Client | undefined) => Principal | undefined,
  refusal: OAuthError,
): Promise<Principal | OAuthError> {
  const known = give((await cache.fresh()).client(clientId));
  if (known) return known;
  const client = (await cache.recent()).client(clientId);
  return give(client) ?? (client ? { ...refusal, clientId } : refusal);
}
