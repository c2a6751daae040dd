import { BOUNDS } from './bounds.ts';
import { AuthrealmError } from './error.ts';
import { exchange, type Identity, type Line } from './exchange.ts';
import { clock } from './patience.ts';

interface Held {
  readonly token: string;
  /** On this library's own clock. */
  readonly usableUntil: number;
}

export interface Credentials {
  readonly clientId: string;
  readonly clientSecret: string;
}

/**
 * The identity of a client: its token is fetched when it is first needed, shared by all calls, and fetched again shortly
 * before it ends or once it is refused.
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
      // Another call may have renewed it meanwhile.
      if (held !== undefined && bearer(held.token).Authorization === refused.Authorization) held = undefined;
      return true;
    },
  };
}

/** An identity whose tokens are somebody else's care: they are asked for one before each attempt. */
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
    throw new AuthrealmError('the token endpoint answered no token: see that the URL is that of the service');
  }
  const life = seconds * 1_000;
  return { token, usableUntil: askedAt + Math.max(life - BOUNDS.tokenLeewayMs, life * 0.9) };
}

function bearer(token: string): { readonly Authorization: string } {
  // Said here, for the words of a runtime would repeat the token.
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new AuthrealmError('the token holds characters that no header may');
  return { Authorization: `Bearer ${token}` };
}

/** Waits for what others wait for as well: this caller may go, the work goes on. */
function unless<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}
