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

/** The name of the client, if this session can read it. */
export function actorName(clients: Clients, who: string): string {
  return clients.get(who)?.name ?? who;
}

/** The ID of the actor with this name, in any letter case; the text itself if no client has it. */
export function actorId(clients: Clients, text: string): string {
  return [...clients.values()].find(({ name }) => name?.toLowerCase() === text.toLowerCase())?.id ?? text;
}

/** The clients that are named; none if this session cannot read them. */
export function useClients(): Clients {
  const isAdmin = hasScope(useObservable(session), ADMIN);
  const read = async (signal: AbortSignal): Promise<Clients> => {
    if (!isAdmin) return NO_CLIENTS;
    const { items } = await readPages(pagesOf(clientPages(), signal), PAGES_MAX);
    return new Map(items.map((client) => [client.id, client]));
  };
  return useFetch(read, [isAdmin]).answer ?? NO_CLIENTS;
}
