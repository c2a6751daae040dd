import type { Clock } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { MaybePromise } from '../../model/store.ts';
import { type KeySet, keySetAt } from '../keys/signing.ts';
import type { AuthState, AuthStore } from '../store/access.ts';
import type { Client } from '../store/clients.ts';

/** Clients, signing keys and revoked tokens, at most one second old. */
export interface AuthView {
  client(clientId: string): Client | undefined;
  readonly keys: KeySet;
  /** Whether the token with this identifier was revoked, or the session with it ended. */
  isRevoked(id: string): boolean;
  /** Differs for every view: what was derived from a view stays valid while the serial is the same. */
  readonly serial: number;
}

export type AuthCache = Omit<ReturnType<typeof openAuthCache>, 'ageMs'>;

/** `onState` is called with every state that differs from the previous one. */
export function openAuthCache(
  store: AuthStore,
  clock: Clock,
  onState: (state: AuthState) => void = () => undefined,
) {
  let version: number | undefined;
  let state: AuthState = { version: 0, clients: [], signingKeys: [], revoked: new Set(), keyIds: [] };
  let clients: ReadonlyMap<string, Client> = new Map();
  let view: AuthView | undefined;
  let serial = 0;
  let readAt = 0;
  let reading: Promise<AuthView> | undefined;

  /** Adopts the state read from the store; it is as old as its request. */
  function adopt(found: AuthState | undefined, requestedAt: number): AuthView {
    if (found) {
      version = found.version;
      state = found;
      clients = new Map(
        found.clients.filter(({ isForged }) => !isForged).map((client) => [client.clientId, client]),
      );
      onState(found);
    }
    const current = clients;
    const { revoked } = state;
    serial += 1;
    view = {
      client: (clientId) => current.get(clientId),
      keys: keySetAt(state.signingKeys, clock.now()),
      isRevoked: (id) => revoked.has(id),
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

  function viewOfAge(ageMsMax: number): MaybePromise<AuthView> {
    return view && clock.monotonic() - readAt < ageMsMax ? view : reread();
  }

  return {
    /** How old the view is, in milliseconds; undefined before the first one. */
    ageMs: (): number | undefined => (view ? clock.monotonic() - readAt : undefined),
    /**
     * The view; it is read from the store first if it is older than the limit. Throws or rejects with Fault
     * `unavailable` if that fails: an outdated view is never trusted.
     */
    fresh: () => viewOfAge(LIMITS.accessTableAgeMsMax),
    /**
     * A view that is at most `accessTableRecheckMs` old, before a client is refused that may have been created or changed since the
     * last reading. However many requests are refused, the store is read once in that time.
     */
    recent: () => viewOfAge(LIMITS.accessTableRecheckMs),
  };
}
