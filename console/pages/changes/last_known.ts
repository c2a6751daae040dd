import { callApi } from '../../api/call_api.ts';
import { pagesOf, type ReadPage, readPages } from '../../api/list_page.ts';
import { cursorOf } from '../../api/records.ts';
import type { Entry } from './entry.ts';

/** The members of a user or a link that name it. */
const NAMES = ['name', 'username', 'subject'] as const;

/** The members before and after a change. */
export interface Sides {
  readonly before?: Readonly<Record<string, unknown>>;
  readonly after?: Readonly<Record<string, unknown>>;
}

interface LoggedChange {
  readonly object: string | null;
  readonly personal: Sides | string | null;
}

interface LogBody {
  readonly data: readonly LoggedChange[];
  readonly links: { readonly next: string | null };
}

/** Pages of 100 entries. Of a user with more, the last name is not looked for. */
const PAGES_MAX = 5;

/** Reads the last known names of deleted records from the audit log, once for each user. */
export interface LastKnownNames {
  /** Undefined if the log has none: it was erased, or removed with old entries. */
  of(entry: Entry, signal: AbortSignal): Promise<string | undefined>;
}

/** For sessions with the scope `admin`: the feed holds no personal value, the log does. Reads one user at a time. */
export function openLastKnownNames(): LastKnownNames {
  const names = new Map<string, ReadonlyMap<string, string>>();
  let previous: Promise<unknown> = Promise.resolve();
  return {
    async of({ realm, user, record }, signal) {
      if (user === undefined) return undefined;
      const read = async () => {
        signal.throwIfAborted();
        const found = names.get(user) ?? (await readNames(realm, user, signal));
        names.set(user, found);
        return found.get(record);
      };
      const name = previous.then(read);
      previous = name.catch(() => undefined);
      return name;
    },
  };
}

async function readNames(
  realm: string,
  user: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const { items, next } = await readPages(pagesOf(logPages(realm, user), signal), PAGES_MAX);
  if (next !== undefined) return new Map();
  return new Map(
    items.flatMap(({ object, personal }) => {
      const sides = typeof personal === 'string' ? {} : (personal ?? {});
      const name = nameIn(sides.after) ?? nameIn(sides.before);
      return object === null || name === undefined ? [] : [[object, name] as const];
    }),
  );
}

/** The entries of a user and its links, oldest first. */
function logPages(realm: string, user: string): ReadPage<LoggedChange> {
  return async (cursor, signal) => {
    const query = new URLSearchParams({ user_id: user, 'page[limit]': '100', 'page[after]': cursor });
    const path = `admin/v1/realms/${encodeURIComponent(realm)}/log?${query}`;
    const { body } = await callApi<LogBody>({ path, scope: 'admin', signal });
    return { items: body.data, next: cursorOf(body.links.next, 'page[after]') };
  };
}

function nameIn(values: Sides['after']): string | undefined {
  return NAMES.map((member) => values?.[member]).find((value): value is string => typeof value === 'string');
}
