import { z } from 'zod';
import { LIMITS } from '../../../domain/limits.ts';
import { PAGE_PARAMETERS } from '../../openapi/parameters.ts';
import { followedLinks, followedMeta } from '../../openapi/schemas.ts';
import { ADMIN_PATH } from './operation.ts';

/** How the identifiers of a list look that a page can begin behind; the empty text begins the list. */
export interface IdRule {
  readonly pattern: RegExp;
  readonly example: string;
}

/** What a query says about a page. */
export interface PageQuery {
  readonly 'page[limit]'?: number | undefined;
  readonly 'page[after]'?: string | undefined;
}

/** The parameters of a list: pages follow an identifier, and are not counted. */
export function pageParameters({ pattern, example }: IdRule) {
  const after = z
    .string()
    .refine((text) => text === '' || pattern.test(text), {
      error: 'must be empty, or an identifier of this list',
    })
    .optional()
    .meta({
      param: {
        description:
          'Behind which entry the page begins: its `id`, as it stands in `links.next`. Empty for the first page.',
        example,
      },
    });
  return { 'page[limit]': PAGE_PARAMETERS['page[limit]'] as z.ZodOptional<z.ZodInt>, 'page[after]': after };
}

/** What a list asks of whoever holds its items. */
export interface PageRange {
  /** One more than the page holds: whether there is another page. */
  readonly limit: number;
  /** The identifier behind which it begins. */
  readonly after: string | undefined;
}

/** `length` is that of a page unless the query says. */
export function pageRangeOf(query: PageQuery, length: number): PageRange {
  return { limit: (query['page[limit]'] ?? length) + 1, after: query['page[after]'] || undefined };
}

/** Items in the order of their identifiers, from memory. */
export function pageSlice<T>(
  items: readonly T[],
  idOf: (item: T) => string,
  { limit, after }: PageRange,
): readonly T[] {
  const sorted = [...items].sort((left, right) => (idOf(left) < idOf(right) ? -1 : 1));
  return sorted.filter((item) => after === undefined || idOf(item) > after).slice(0, limit);
}

/** The body of a page. `carried` is what its links take along beside the place: `&user_id=…`. */
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

/** The links of a page in the examples: the first and only one. */
export function linksExample(path: string): object {
  const first = `https://idp.example${ADMIN_PATH}${path}?page%5Blimit%5D=25&page%5Bafter%5D=`;
  return { current: first, first, last: null, next: null, prev: null };
}

/** The schema of such a page. */
export function pageSchema(item: z.ZodType, id: string): z.ZodType {
  const data = z.array(item).max(LIMITS.pageRecordsMax);
  return z.strictObject({ data, meta: followedMeta, links: followedLinks }).meta({ id });
}
