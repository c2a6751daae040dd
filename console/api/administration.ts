import { DESCRIBED } from 'authrealm:described';
import { ask } from './caller.ts';
import { cursorIn, type ReadPage } from './pages.ts';

/** What the paths of administration have in common. */

export const ADMIN = 'admin';

interface Listed<T> {
  readonly data: readonly T[];
  readonly links: { readonly next: string | null };
}

/** A list of administration, behind one identifier after the other. */
export function adminPages<T>(collection: string): ReadPage<T> {
  return async (cursor, signal) => {
    const query = new URLSearchParams({
      'page[limit]': String(DESCRIBED.limits.pageRecordsMax),
      'page[after]': cursor,
    });
    const path = `admin/v1/${collection}?${query}`;
    const { body } = await ask<Listed<T>>({ path, signal, scope: ADMIN });
    return { items: body.data, next: cursorIn(body.links.next) };
  };
}
