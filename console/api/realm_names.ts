import { may, session } from '../session/session.ts';
import { pagesOf } from './pages.ts';
import { RESOURCES, readRecord } from './records.ts';

const SCOPE = `${RESOURCES.realms.scope}:read`;

export interface NamedRealm {
  readonly id: string;
  readonly name: string;
}

/** The realms to choose from; undefined where there are too many for that, or this session may not list them. */
export async function readRealmNames(signal: AbortSignal): Promise<readonly NamedRealm[] | undefined> {
  if (!may(session.get(), SCOPE)) return undefined;
  const { items, next } = await pagesOf(RESOURCES.realms, [], 'created_at')('', signal);
  return next === undefined ? items.map(({ id, name }) => ({ id, name: String(name) })) : undefined;
}

/** Undefined where this session may not read realms. */
export async function readRealmName(id: string, signal: AbortSignal): Promise<string | undefined> {
  if (!may(session.get(), SCOPE)) return undefined;
  return String((await readRecord(RESOURCES.realms, [id], signal)).record.name);
}
