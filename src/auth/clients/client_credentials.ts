import type { GrantFaultCode } from '../../domain/fault.ts';
import type { Clock } from '../../domain/id.ts';
import type { Principal } from '../../domain/principal.ts';
import type { Client } from '../../store/auth/clients.ts';
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

/** Client credentials as sent, not verified. */
export interface ClientCredentials {
  readonly clientId: string | undefined;
  readonly clientSecret: string | undefined;
}

/** Resolves with what the credentials of a client give it. */
export type AuthenticateClient = (credentials: ClientCredentials) => Promise<Principal | OAuthError>;

/**
 * Unknown clients, wrong secrets and disabled clients get the same answer in the same time. The access table is read once more
 * before, because a client may have been created or rotated since.
 */
export function openClientCredentials(cache: AuthCache, clock: Pick<Clock, 'now'>): AuthenticateClient {
  return async ({ clientId, clientSecret }) => {
    if (clientId === undefined || clientSecret === undefined) {
      return oauthError('invalid_client', 'client_id and client_secret are both needed');
    }
    const known = (await cache.fresh()).client(clientId);
    if (isSecretOf(known, clientSecret, clock.now()) && known) return principalBySecret(known);
    const client = (await cache.recent()).client(clientId);
    if (!isSecretOf(client, clientSecret, clock.now()) || !client) {
      const error = oauthError(
        'invalid_client',
        'the client is unknown, disabled, or its secret is another one',
      );
      return client ? { ...error, clientId } : error;
    }
    return principalBySecret(client);
  };
}

/**
 * An ID alone that gives nothing gets the same answer, whether a client has it or not; the access table is read once more before, as
 * for credentials.
 */
export function openImplicitClients(cache: AuthCache): AuthenticateClient {
  const usable = (client: Client | undefined) =>
    client && client.disabledAt === undefined ? principalByIdAlone(client) : undefined;
  return async ({ clientId }) => {
    if (clientId === undefined) return oauthError('invalid_request', 'client_id is missing');
    const known = usable((await cache.fresh()).client(clientId));
    if (known) return known;
    const client = (await cache.recent()).client(clientId);
    const found = usable(client);
    if (found) return found;
    const error = oauthError('unsupported_grant_type', NOT_IMPLICIT);
    return client ? { ...error, clientId } : error;
  };
}

const NOT_IMPLICIT = 'grant_type implicit is for clients whose ID alone gives scopes';
