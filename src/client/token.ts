import { BOUNDS } from './bounds.ts';
import { AuthrealmError } from './error.ts';
import { exchange, type Identity, type Line } from './exchange.ts';
import { clock } from './patience.ts';

interface Held {
  readonly token: string;
  /** By the monotonic clock of this library. */
  readonly usableUntil: number;
}

export interface Credentials {
  readonly clientId: string;
  readonly clientSecret: string;
}

/**
 * Authenticates by client credentials. The token is fetched at the first request, shared by all requests, and renewed shortly
 * before it expires or when it is rejected.
 */
export function clientIdentity(line: Line, credentials: Credentials): Identity {
  let held: Held | undefined;
  let coming: Promise<Held> | undefined;
  const fetchOnce = (): Promise<Held> => {
    coming ??= fetchToken(line, credentials)
      .then((fetched) => {
        held = fetched;
        return fetched;
      })
      .finally(() => {
        coming = undefined;
      });
    return coming;
  };
  return {
    async headers(signal) {
      const { token } =
        held !== undefined && clock() < held.usableUntil ? held : await unless(signal, fetchOnce());
      return bearer(token);
    },
    renew(refused) {
      // A concurrent request may have renewed it already.
      if (held !== undefined && bearer(held.token).Authorization === refused.Authorization) held = undefined;
      return true;
    },
  };
}

/** Authenticates by tokens of the caller, whose function is called before each attempt. */
export function lentIdentity(token: () => Promise<string>): Identity {
  return {
    headers: async (signal) => bearer(await unless(signal, token())),
    renew: () => true,
  };
}

async function fetchToken(line: Line, { clientId, clientSecret }: Credentials): Promise<Held> {
  const askedAt = clock();
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret };
  const { body } = await exchange(line, {
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
  return { token, usableUntil: askedAt + Math.max(life - BOUNDS.tokenLeewayMs, life * 0.9) };
}

function bearer(token: string): { readonly Authorization: string } {
  // Checked here, because the error of the runtime would contain the token.
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new AuthrealmError('the token contains characters that are invalid in a header');
  return { Authorization: `Bearer ${token}` };
}

/** Waits for shared work: the signal aborts only this wait. */
function unless<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}
