import { type Asker, actOf } from '../../domain/act.ts';
import { overloaded } from '../../domain/fault.ts';
import type { Clock } from '../../domain/id.ts';
import { type GrantRefusal, refuse } from '../clients/client_credentials.ts';
import type { AccessStore, Client } from '../port.ts';
import type { OwnToken, Tokens } from './token.ts';

/** Where a request came from, for the log. */
export type Whence = Pick<Asker, 'address' | 'requestId'>;

/** Where a client asks about its own tokens, as it sent them, and gives them back. The tokens of others are none to it. */
export interface TokenDesk {
  /** Takes a token back (RFC 7009): every process refuses it within a second. Rejects with Fault `overloaded`. */
  revoke(
    client: Client,
    token: string | undefined,
    from: Whence,
  ): Promise<GrantRefusal | { readonly kind: 'done' }>;
  /** What a token is worth now (RFC 7662); undefined where it is none of this client, or no longer accepted. */
  introspect(
    client: Client,
    token: string | undefined,
  ): Promise<GrantRefusal | { readonly kind: 'told'; readonly token: OwnToken | undefined }>;
}

interface Means {
  readonly tokens: Pick<Tokens, 'inspect'>;
  readonly store: Pick<AccessStore, 'revokeToken'>;
  readonly clock: Pick<Clock, 'now'>;
}

export function openTokenDesk({ tokens, store, clock }: Means): TokenDesk {
  async function ownToken(
    client: Client,
    token: string | undefined,
  ): Promise<GrantRefusal | { readonly kind: 'told'; readonly token: OwnToken | undefined }> {
    if (token === undefined) return refuse('invalid_request', 'token is missing');
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
        const asker = { ...from, actor: clientId };
        const act = actOf('token.revoked', { object: jti, detail: {} }, { now: clock.now, asker });
        const isKept = await store.revokeToken({ jti, clientId, expiresAt: expires * 1000 }, act);
        // Whoever is told so takes the token for a live one (RFC 7009, 2.2.1).
        if (!isKept) throw overloaded('REVOCATIONS_FULL');
      }
      return { kind: 'done' };
    },
  };
}
