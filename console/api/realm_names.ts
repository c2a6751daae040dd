import { hasScope, session } from '../session/session.ts';
import { unlessAbsent } from './problem.ts';
import { RESOURCES, readRecord, recordPages } from './records.ts';

const SCOPE = `${RESOURCES.realms.scope}:read`;

export interface NamedRealm {
  readonly id: string;
  readonly name: string;
}

/** Realms to choose from; undefined if there is more than one page, or this session cannot list them. */
export async function readRealmNames(signal?: AbortSignal): Promise<readonly NamedRealm[] | undefined> {
  if (!hasScope(session.get(), SCOPE)) return undefined;
  const { items, next } = await recordPages(RESOURCES.realms, [], 'created_at')('', signal);
  return next === undefined ? items.map(({ id, name }) => ({ id, name: String(name) })) : undefined;
}

/** What was read for the present page and user: the next page reads it again. */
let page = '';
let names = new Map<string, Promise<string | undefined>>();
let list: ReturnType<typeof readRealmNames> | undefined;

/** The name of a realm; undefined where this session cannot read it. */
export function readRealmName(id: string): Promise<string | undefined> {
  const here = `${session.get().page} ${location.hash.replace(/\?.*/, '')}`;
  if (page !== here) {
    page = here;
    names = new Map();
    list = undefined;
  }
  const reading = names.get(id) ?? (names.size === 0 ? readName(id) : findName(id));
  names.set(id, reading);
  // The next attempt reads it again.
  reading.catch(() => names.delete(id));
  return reading;
}

/** A page that shows several realms reads the list of them first. */
async function findName(id: string): Promise<string | undefined> {
  list ??= readRealmNames().catch((error: unknown) => {
    list = undefined;
    throw error;
  });
  const realm = (await list)?.find((each) => each.id === id);
  return realm ? realm.name : readName(id);
}

async function readName(id: string): Promise<string | undefined> {
  if (!hasScope(session.get(), SCOPE)) return undefined;
  const realm = await unlessAbsent(readRecord(RESOURCES.realms, [id]));
  return realm && String(realm.record.name);
}
