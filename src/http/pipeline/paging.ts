import { parseUuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { ListPage, PagePosition, PageRequest, Sort } from '../../model/store.ts';

/** The URL of a list. */
interface ListAddress {
  /** Without a query. */
  readonly url: string;
  /** The filter and sort parameters of the request, which every link repeats. */
  readonly carried: string;
}

/** A list whose filter must not be in a URL has no links, and neither has a complete one. */
export const NO_LINKS = '{"current":null,"first":null,"last":null,"next":null,"prev":null}';

/** The content of a page. */
export interface PageContent {
  readonly listed: ListPage;
  readonly page: PageRequest;
  readonly sort: Sort;
  /** Undefined for a list without links. */
  readonly address: ListAddress | undefined;
  /** The serialized records below the items, joined by commas; undefined for a list without. */
  readonly included?: string | undefined;
  /** Members of `meta` before those of the page. */
  readonly furtherMeta?: Readonly<Record<string, string>>;
}

/**
 * The body of a list: its serialized items, `meta` and the five links (docs/wire.md#lists). A page after a record is not
 * counted, so its `meta` has only the length.
 */
export function listBody(items: string, of: PageContent): string {
  const included = of.included === undefined ? '' : `],"included":[${of.included}`;
  const links = of.address ? linksOf(of, of.address) : NO_LINKS;
  return `{"data":[${items}${included}],"meta":${metaOf(of)},"links":${links}}`;
}

/** `current` counts from 1, and is 1 for an empty list (docs/wire.md#lists). */
function metaOf({ listed: { total }, page, furtherMeta }: PageContent): string {
  const further = furtherMeta ? `${JSON.stringify(furtherMeta).slice(1, -1)},` : '';
  if (page.kind === 'after' || total === undefined) return `{${further}"page":{"limit":${page.limit}}}`;
  const { limit, offset } = page;
  const current = total === 0 ? 1 : Math.floor(offset / limit) + 1;
  const pages = Math.ceil(total / limit);
  const numbers = `"limit":${limit},"offset":${offset},"current":${current},"total":${pages}`;
  return `{${further}"page":{${numbers}},"results":{"total":${total}}}`;
}

/**
 * The links of a page; null if there is no such page. None answers 400: beyond the maximum offset, `next` continues after a record, or is
 * null (docs/wire.md#lists).
 */
function linksOf({ listed, page, sort }: PageContent, { url, carried }: ListAddress): string {
  const { limit } = page;
  const at = (offset: number) => `${url}?page%5Blimit%5D=${limit}&page%5Boffset%5D=${offset}${carried}`;
  const after = (position: PagePosition | undefined) => linkAfter(url, limit, position, sort) + carried;
  const nextAfter = () => (listed.hasMore && hasCursors(sort) ? after(lastPosition(listed, sort)) : null);
  if (page.kind === 'after') {
    const [current, first] = [after(page.after), after(undefined)];
    return JSON.stringify({ current, first, last: null, next: nextAfter(), prev: null });
  }
  const { offset } = page;
  const following = offset + limit;
  const last = lastOffset(listed.total ?? 0, limit);
  return JSON.stringify({
    current: at(offset),
    first: at(0),
    last: at(last),
    next: listed.hasMore && following <= LIMITS.pageOffsetMax ? at(following) : nextAfter(),
    prev: offset === 0 ? null : at(Math.max(0, Math.min(offset - limit, last))),
  });
}

/** The URL of the page after a record; of the first such page without a position. */
export function linkAfter(
  url: string,
  limit: number,
  position: PagePosition | undefined,
  sort: Sort,
): string {
  const cursor = position ? writePageCursor(position, sort) : '';
  return `${url}?page%5Blimit%5D=${limit}&page%5Bafter%5D=${cursor}`;
}

/** The offset of the last page that an allowed offset can name. */
function lastOffset(total: number, limit: number): number {
  const last = Math.min(Math.max(total - 1, 0), LIMITS.pageOffsetMax);
  return last - (last % limit);
}

function lastPosition({ items }: ListPage, { by }: Sort): PagePosition | undefined {
  const record = items.at(-1)?.record;
  return record && { at: by === 'id' ? undefined : record[by], id: record.id };
}

/** Begins every cursor. Another layout gets another number. */
const CURSOR_VERSION = 1;
/** The sort keys (docs/wire.md#order). */
export const SORT_KEYS = ['created_at', 'updated_at', 'id'] as const satisfies readonly Sort['by'][];

/** Whether records keep their place when they are written; otherwise pages after a record would skip or repeat them. */
export function hasCursors({ by }: Sort): boolean {
  return by !== 'updated_at';
}

/**
 * A record's position as an opaque cursor: version, order, instant, ID. It is not secret: its holder has seen the record, and
 * access is checked again.
 */
export function writePageCursor({ at, id }: PagePosition, { by, isDescending }: Sort): string {
  return Buffer.from([CURSOR_VERSION, by, isDescending, at, id].join(' ')).toString('base64url');
}

/** Undefined for a text that `writePageCursor` did not make for this order. */
export function readPageCursor(text: string, sort: Sort): PagePosition | undefined {
  const [, , , instant, raw = ''] = Buffer.from(text, 'base64url').toString().split(' ');
  const at = sort.by === 'id' ? undefined : Number(instant);
  const id = parseUuid(raw);
  if (id === undefined || (at !== undefined && !Number.isSafeInteger(at))) return undefined;
  // Decoding skips invalid characters: a text that does not encode to itself was not made here.
  return writePageCursor({ at, id }, sort) === text ? { at, id } : undefined;
}
