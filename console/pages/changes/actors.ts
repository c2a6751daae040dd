import { useCallback } from 'preact/hooks';
import { ADMIN, clientPages, type ListedClient } from '../../api/admin.ts';
import { pagesOf, readPages } from '../../api/list_page.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { useObservable } from '../../observable.ts';
import { hasScope, session } from '../../session/session.ts';

/** Pages of 100 clients. Further ones are named by their ID. */
const PAGES_MAX = 10;
const NO_CLIENTS: Clients = new Map();

/** By their IDs. */
export type Clients = ReadonlyMap<string, ListedClient>;

/** The display name of an actor: that of the client, if this session can read clients. */
export type NameActor = (who: string) => string;

/** Names the actors of changes. */
export function useActorNames(): NameActor {
  const clients = useClients();
  return useCallback((who: string) => actorName(clients, who), [clients]);
}

export function actorName(clients: Clients, who: string): string {
  return clients.get(who)?.name ?? who;
}

/** The clients that are named; none if this session cannot read them. */
export function useClients(): Clients {
  const isAdmin = hasScope(useObservable(session), ADMIN);
  const { answer = NO_CLIENTS } = useFetch(
    async (signal) => (isAdmin ? readClients(signal) : NO_CLIENTS),
    [isAdmin],
  );
  return answer;
}

async function readClients(signal: AbortSignal): Promise<Clients> {
  const { items } = await readPages(pagesOf(clientPages(), signal), PAGES_MAX);
  return new Map(items.map((client) => [client.id, client]));
}
