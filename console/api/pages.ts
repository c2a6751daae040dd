import { DESCRIBED } from 'authrealm:described';
import type { Description } from '../description.ts';
import { ask } from './caller.ts';
import type { ListPage, ReadPage } from './list_page.ts';
import { type Key, pathOf, type Shown, shown } from './records.ts';

export type { ListPage, ReadPage };

interface Listed {
  readonly data: readonly Readonly<Record<string, unknown>>[];
  readonly links: { readonly next: string | null };
}

/** The newest first, or the oldest. */
export type Order = '-created_at' | 'created_at';

/** The records of a collection, behind one after the other: none comes twice, however long the list is. */
export function pagesOf(description: Description, above: Key, order: Order = '-created_at'): ReadPage<Shown> {
  return async (cursor, signal) => {
    const query = new URLSearchParams({
      'page[limit]': String(DESCRIBED.limits.pageRecordsMax),
      'page[after]': cursor,
      sort: order,
    });
    const path = `${pathOf(description, above)}?${query}`;
    const { body } = await ask<Listed>({ path, signal, scope: `${description.scope}:read` });
    return { items: body.data.map((data) => shown(description, data)), next: cursorIn(body.links.next) };
  };
}

/** Of the link to the next page its cursor alone: where the token goes is not for an answer to say. */
export function cursorIn(link: string | null): string | undefined {
  if (link === null) return undefined;
  return new URL(link, location.href).searchParams.get('page[after]') ?? undefined;
}

/** How many records a collection has; undefined where that is not told. */
export async function countOf(
  description: Description,
  above: Key,
  signal: AbortSignal,
): Promise<number | undefined> {
  const path = `${pathOf(description, above)}?${new URLSearchParams({ 'page[limit]': '1' })}`;
  const { body } = await ask<{ meta?: { results?: { total?: number } } }>({ path, signal });
  return body.meta?.results?.total;
}
