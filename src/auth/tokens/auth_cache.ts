import type { MaybePromise } from '../../directory/store.ts';
import type { Clock } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type KeySet, keySetAt } from '../keys/signing.ts';
import type { AuthState, AuthStore, Client } from '../port.ts';

/** Who may ask and which keys count, at most one second old. */
export interface AuthView {
  client(clientId: string): Client | undefined;
  readonly keys: KeySet;
  /** Whether the token of this identifier was taken back. */
  isRevoked(jti: string): boolean;
  /** Another one for every reading: what was concluded from one view holds as long as it is the same. */
  readonly serial: number;
}

export interface AuthCache {
  /**
   * The view, read again from the store first when it is older than the limit. Throws or rejects with Fault
   * `unavailable` where that fails: an old view is never trusted.
   */
  fresh(): MaybePromise<AuthView>;
}

export interface ObservableAuthCache extends AuthCache {
  /** How old the view is, in milliseconds; undefined before the first one. */
  ageMs(): number | undefined;
}

/** `onTable` is told every table that differs from the one before. */
export function openAuthCache(
  store: AuthStore,
  clock: Clock,
  onState: (state: AuthState) => void = () => undefined,
): ObservableAuthCache {
  let version: number | undefined;
  let state: AuthState = { version: 0, clients: [], signingKeys: [], revoked: new Set(), keyIds: [] };
  let clients: ReadonlyMap<string, Client> = new Map();
  let view: AuthView | undefined;
  let serial = 0;
  let readAt = 0;
  let reading: Promise<AuthView> | undefined;

  /** Takes over what the store answered; its moment is when it was asked. */
  function adopt(found: AuthState | undefined, requestedAt: number): AuthView {
    if (found) {
      version = found.version;
      state = found;
      clients = new Map(found.clients.map((client) => [client.clientId, client]));
      onState(found);
    }
    const current = clients;
    const { revoked } = state;
    serial += 1;
    view = {
      client: (clientId) => current.get(clientId),
      keys: keySetAt(state.signingKeys, clock.now()),
      isRevoked: (jti) => revoked.has(jti),
      serial,
    };
    readAt = requestedAt;
    return view;
  }

  function reread(): MaybePromise<AuthView> {
    if (reading) return reading;
    const requestedAt = clock.monotonic();
    const found = store.state(version);
    if (!(found instanceof Promise)) return adopt(found, requestedAt);
    reading = found
      .then((later) => adopt(later, requestedAt))
      .finally(() => {
        reading = undefined;
      });
    return reading;
  }

  return {
    ageMs: () => (view ? clock.monotonic() - readAt : undefined),
    fresh: () => (view && clock.monotonic() - readAt < LIMITS.accessAgeMsMax ? view : reread()),
  };
}
