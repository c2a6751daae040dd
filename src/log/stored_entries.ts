import { attempt } from '../model/attempt.ts';
import type { Uuid } from '../model/id.ts';
import type { MaybePromise } from '../model/store.ts';
import type { LogKeys } from './keys.ts';
import type { StoredEntry } from './store/entry_row.ts';
import type { LogStore } from './store/reading.ts';

/** Pages of entries up to the sequence number `end`; `read` returns the page after a sequence number. */
export async function* pagesAfter<Entry extends { readonly seq: number }>(
  after: number,
  read: (after: number) => MaybePromise<readonly Entry[]>,
  end = Number.POSITIVE_INFINITY,
): AsyncGenerator<readonly Entry[]> {
  for (let last = after; last < end; ) {
    const page = (await read(last)).filter(({ seq }) => seq <= end);
    const at = page.at(-1);
    if (!at) return;
    yield page;
    last = at.seq;
  }
}

/**
 * Returns a function that decrypts the personal values of one of these entries, which are in the log of this realm: `erased` if its
 * user has no key any more, `unreadable` if they were edited, undefined if the entry has none.
 */
export async function openPersonalValues(
  realm: Uuid,
  entries: readonly StoredEntry[],
  store: Pick<LogStore, 'userKeys'>,
  keys: Pick<LogKeys, 'decrypt'>,
) {
  const users = new Set(
    entries.flatMap(({ columns }) => (columns.personal && columns.user_id ? [columns.user_id as Uuid] : [])),
  );
  const userKeys = users.size === 0 ? new Map<Uuid, Uint8Array>() : await store.userKeys(realm, [...users]);
  return ({
    columns: { personal, user_id },
  }: StoredEntry): Uint8Array | 'erased' | 'unreadable' | undefined => {
    if (!(personal instanceof Uint8Array)) return undefined;
    // Only tampering leaves an entry without the user of its personal values.
    if (user_id === null) return 'unreadable';
    const user = user_id as Uuid;
    const userKey = userKeys.get(user);
    if (!userKey) return 'erased';
    return attempt(() => keys.decrypt(userKey, { realm, user }, personal)) ?? 'unreadable';
  };
}
