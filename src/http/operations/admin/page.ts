import { z } from 'zod';
import { LIMITS } from '../../../domain/limits.ts';
import { PAGE_PARAMETERS } from '../../openapi/parameters.ts';
import { followedMeta, pageLinks } from '../../openapi/schemas.ts';
import { ADMIN_PATH } from './operation.ts';

/** The form of the IDs that a page can start after. */
export interface IdRule {
  readonly pattern: RegExp;
  readonly example: string;
}

/** The page parameters of a query. */
export interface PageQuery {
  readonly 'page[limit]'?: number | undefined;
  readonly 'page[after]'?: string | undefined;
}

/** The parameters of a list. Pages follow an ID and are not counted. */
export function pageParameters({ pattern, example }: IdRule) {
  const after = z
    .string()
    .refine((text) => text === '' || pattern.test(text), {
      error: 'must be empty, or an identifier of this list',
    })
    .optional()
    .meta({
      param: {
        description: 'Start after the item with this `id`, as in `links.next`. Empty for the first page.',
        example,
      },
    });
  return { 'page[limit]': PAGE_PARAMETERS['page[limit]'] as z.ZodOptional<z.ZodInt>, 'page[after]': after };
}

/** The part of a list that is read. */
export interface PageRange {
  /** One more than the page length: the extra item shows that there is another page. */
  readonly limit: number;
  /** The ID that it starts after. */
  readonly after: string | undefined;
}

export function pageRangeOf(query: PageQuery): PageRange {
  return {
    limit: (query['page[limit]'] ?? LIMITS.pageRecordsDefault) + 1,
    after: query['page[after]'] || undefined,
  };
}

/** A page of items that are in memory, ordered by ID. */
export function pageSlice<T>(
  items: readonly T[],
  idOf: (item: T) => string,
  { limit, after }: PageRange,
): readonly T[] {
  const sorted = [...items].sort((left, right) => (idOf(left) < idOf(right) ? -1 : 1));
  return sorted.filter((item) => after === undefined || idOf(item) > after).slice(0, limit);
}

/** The body of a page. `carried` is appended to its links: `&user_id=…`. */
export function pageBody(
  found: readonly { readonly id: string }[],
  { limit, after }: PageRange,
  url: string,
  carried = '',
): object {
  const length = limit - 1;
  const data = found.slice(0, length);
  const at = (id: string) =>
    `${url}?page%5Blimit%5D=${length}&page%5Bafter%5D=${encodeURIComponent(id)}${carried}`;
  const last = data.at(-1);
  const next = found.length > length && last ? at(last.id) : null;
  return {
    data,
    meta: { page: { limit: length } },
    links: { current: at(after ?? ''), first: at(''), last: null, next, prev: null },
  };
}

/** The example links of a single page. */
export function linksExample(path: string): object {
  const first = `https://idp.example${ADMIN_PATH}${path}?page%5Blimit%5D=25&page%5Bafter%5D=`;
  return { current: first, first, last: null, next: null, prev: null };
}

/** The schema of a page. */
export function pageSchema(item: z.ZodType, id: string): z.ZodType {
  const data = z.array(item).max(LIMITS.pageRecordsMax);
  return z.strictObject({ data, meta: followedMeta, links: pageLinks }).meta({ id });
}
