import type { ServiceConnection } from './attempt.ts';
import { BOUNDS } from './bounds.ts';
import { AuthrealmError } from './error.ts';
import { type Identity, sendWithRetries } from './exchange.ts';
import { abortable } from './retries.ts';

type CachedToken = Awaited<ReturnType<typeof fetchToken>>;

export interface SecretCredentials {
  readonly clientId: string;
  readonly clientSecret: string;
}

/**
 * Authenticates by client credentials. The token is fetched at the first request, shared by all requests, and renewed shortly
 * before it expires or when it is rejected.
 */
export function clientCredentialsIdentity(
  connection: ServiceConnection,
  credentials: SecretCredentials,
): Identity {
  let cached: CachedToken | undefined;
  let pending: Promise<CachedToken> | undefined;
  const fetchOnce = (): Promise<CachedToken> => {
    pending ??= fetchToken(connection, credentials)
      .then((fetched) => {
        cached = fetched;
        return fetched;
      })
      .finally(() => {
        pending = undefined;
      });
    return pending;
  };
  return {
    async headers(signal) {
      const { token } =
        cached !== undefined && performance.now() < cached.usableUntil
          ? cached
          : await abortable(signal, fetchOnce());
      return bearer(token);
    },
    renew(refused) {
      // A concurrent request may have renewed it already.
      if (cached !== undefined && bearer(cached.token).Authorization === refused.Authorization)
        cached = undefined;
      return true;
    },
  };
}

/** Authenticates by tokens of the caller, whose function is called before each attempt. */
export function tokenIdentity(token: () => Promise<string>): Identity {
  return {
    headers: async (signal) => bearer(await abortable(signal, token())),
    renew: () => true,
  };
}

/** Requests a token. `usableUntil`: by the monotonic clock. */
async function fetchToken(connection: ServiceConnection, { clientId, clientSecret }: SecretCredentials) {
  const requestedAt = performance.now();
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret };
  const { body } = await sendWithRetries(connection, {
    method: 'POST',
    path: '/oauth/access_token',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded', Accept: 'application/json' },
    body: new URLSearchParams(form).toString(),
  });
  const { access_token: token, expires_in: seconds } = (body ?? {}) as Record<string, unknown>;
  if (typeof token !== 'string' || typeof seconds !== 'number') {
    throw new AuthrealmError('the token endpoint returned no token: check the URL of the service');
  }
  const life = seconds * 1_000;
  return { token, usableUntil: requestedAt + Math.max(life - BOUNDS.tokenLeewayMs, life * 0.9) };
}

function bearer(token: string): { readonly Authorization: string } {
  // Checked here, because the error of the runtime would contain the token.
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new AuthrealmError('the token contains characters that are invalid in a header');
  return { Authorization: `Bearer ${token}` };
}
