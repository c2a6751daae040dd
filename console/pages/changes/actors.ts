import { useCallback } from 'preact/hooks';
import { ADMIN, clientPages } from '../../api/admin.ts';
import { pagesOf, readPages } from '../../api/list_page.ts';
import { useFetch } from '../../api/use_fetch.ts';
import { useObservable } from '../../observable.ts';
import { hasScope, session } from '../../session/session.ts';

/** Pages of 100 clients. Further ones are named by their ID. */
const PAGES_MAX = 10;
const NO_NAMES: ReadonlyMap<string, string> = new Map();

/** The display name of an actor: that of the client, if this session can read clients. */
export type NameActor = (who: string) => string;

/** Names the actors of changes. */
export function useActorNames(): NameActor {
  const isAdmin = hasScope(useObservable(session), ADMIN);
  const { answer: names = NO_NAMES } = useFetch(
    async (signal) => (isAdmin ? readClientNames(signal) : NO_NAMES),
    [isAdmin],
  );
  return useCallback((who: string) => names.get(who) ?? who, [names]);
}

async function readClientNames(signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const { items } = await readPages(pagesOf(clientPages(), signal), PAGES_MAX);
  return new Map(items.map(({ id, name }) => [id, name]));
}
