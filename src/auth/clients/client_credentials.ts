import type { GrantFaultCode } from '../../domain/fault.ts';
import type { Clock } from '../../domain/id.ts';
import type { Client } from '../port.ts';
import type { AccessCache } from '../tokens/access_table.ts';
import { isSecretOf } from './clients.ts';

/** Why a caller gets nothing, in the words of RFC 6749, 5.2. */
export interface GrantRefusal {
  readonly kind: 'refused';
  readonly code: GrantFaultCode;
  readonly description: string;
}

export function refuse(code: GrantFaultCode, description: string): GrantRefusal {
  return { kind: 'refused', code, description };
}

/** What a caller says it is, as it sent it. */
export interface Credentials {
  readonly clientId: string | undefined;
  readonly clientSecret: string | undefined;
}

export type AuthenticateClient = (sent: Credentials) => Promise<Client | GrantRefusal>;

/** An unknown client, a wrong secret and a disabled client are one answer and the same work. */
export function openClientCredentials(cache: AccessCache, clock: Pick<Clock, 'now'>): AuthenticateClient {
  return async ({ clientId, clientSecret }) => {
    if (clientId === undefined || clientSecret === undefined) {
      return refuse('invalid_client', 'client_id and client_secret are both needed');
    }
    const client = (await cache.fresh()).client(clientId);
    if (!isSecretOf(client, clientSecret, clock.now()) || !client) {
      return refuse('invalid_client', 'the client is unknown, disabled, or its secret is another one');
    }
    return client;
  };
}
