import type { MaybePromise } from '../../directory/store.ts';
import type { Clock } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type KeySet, keySetAt } from '../keys/signing.ts';
import type { AccessStore, AccessTable, Client } from '../port.ts';

/** Who may ask and which keys count, at most one second old. */
export interface AccessView {
  client(clientId: string): Client | undefined;
  readonly keys: KeySet;
  /** Whether the token of this identifier was taken back. */
  isRevoked(jti: string): boolean;
  /** Another one for every reading: what was concluded from one view holds as long as it is the same. */
  readonly serial: number;
}

export interface AccessCache {
  /**
   * The view, read again from the store first when it is older than the limit. Throws or rejects with Fault
   * `unavailable` where that fails: an old view is never trusted.
   */
  fresh(): MaybePromise<AccessView>;
}

export interface WatchedAccessCache extends AccessCache {
  /** How old the view is, in milliseconds; undefined before the first one. */
  ageMs(): number | undefined;
}

/** `onTable` is told every table that differs from the one before. */
export function openAccessCache(
  store: AccessStore,
  clock: Clock,
  onTable: (table: AccessTable) => void = () => undefined,
): WatchedAccessCache {
  let version: number | undefined;
  let table: AccessTable = { version: 0, clients: [], signingKeys: [], revoked: new Set(), keyIds: [] };
  let clients: ReadonlyMap<string, Client> = new Map();
  let view: AccessView | undefined;
  let serial = 0;
  let readAt = 0;
  let reading: Promise<AccessView> | undefined;

  /** Takes over what the store answered; its moment is when it was asked. */
  function adopt(found: AccessTable | undefined, askedAt: number): AccessView {
    if (found) {
      version = found.version;
      table = found;
      clients = new Map(found.clients.map((client) => [client.clientId, client]));
      onTable(found);
    }
    const current = clients;
    const { revoked } = table;
    serial += 1;
    view = {
      client: (clientId) => current.get(clientId),
      keys: keySetAt(table.signingKeys, clock.now()),
      isRevoked: (jti) => revoked.has(jti),
      serial,
    };
    readAt = askedAt;
    return view;
  }

  function reread(): MaybePromise<AccessView> {
    if (reading) return reading;
    const askedAt = clock.monotonic();
    const found = store.table(version);
    if (!(found instanceof Promise)) return adopt(found, askedAt);
    reading = found
      .then((later) => adopt(later, askedAt))
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
