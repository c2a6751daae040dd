import { actorName } from '../changes/actors.ts';
import type { Entry } from '../changes/entry.ts';
import type { Changes } from './history.tsx';
import type { Link } from './load_user.ts';

/** The actor of an import, and the prefix of people who signed in to the console by a link (docs/audit.md#entries). */
const IMPORT = 'import';
const CONSOLE = 'console:';

/** How a link came into being, from the change that created it; undefined if that change has not been read. */
export function linkOrigin({ record, description }: Link, { fetched, clients }: Changes): string | undefined {
  const entries = fetched.answer?.items ?? [];
  const created = entries.find((entry) => isCreationOf(entry, record.id));
  if (!created) return undefined;
  const { client_id: who, user_id: user, request_id: request, at } = created;
  if (who === IMPORT) return 'imported';
  if (who.startsWith(CONSOLE)) return `added in the console (${who.slice(CONSOLE.length)})`;
  // User and link of a sign-up are one commit.
  const isWithUser = entries.some(
    (entry) => isCreationOf(entry, user) && entry.request_id === request && entry.at === at,
  );
  const { scopes = [] } = clients.get(who) ?? {};
  const name = actorName(clients, who);
  // With both scopes, the client may have written the link itself.
  if (scopes.includes('sign-up') && !scopes.includes(`${description.scope}:write`))
    return isWithUser ? `signed up through ${name}` : `linked at a sign-in through ${name}`;
  return `${isWithUser ? 'created with the user' : 'added'} by ${name}`;
}

function isCreationOf({ record_id, what }: Entry, id: string | null): boolean {
  return record_id === id && what === 'created';
}
