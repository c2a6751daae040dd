import type { PagePosition, Sort } from '../../directory/store.ts';
import { type Complaint, Fault } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import { readPageCursor, SORT_KEYS } from './paging.ts';

/** What a URL says about a list. */
export interface ListQuery {
  readonly limit: number | undefined;
  readonly offset: number | undefined;
  /** Behind which record; `start` where the caller begins to read so. */
  readonly after: PagePosition | 'start' | undefined;
  /** The filter, decoded and not yet read. */
  readonly filter: string | undefined;
  readonly sort: Sort;
  /** What a link to another page takes along: `&filter=…&sort=…`, encoded as it may stand in a URL. */
  readonly carried: string;
}

/** What a list understands. It ignores what it does not, and any other parameter (contract 8, row 29). */
export interface QueryRules {
  readonly hasFilter: boolean;
  readonly hasSort: boolean;
}

/** Newest first (contract 8, row 27). */
export const NEWEST_FIRST: Sort = Object.freeze({ by: 'created_at', isDescending: true });

const DEFAULT_QUERY: ListQuery = Object.freeze({
  limit: undefined,
  offset: undefined,
  after: undefined,
  filter: undefined,
  sort: NEWEST_FIRST,
  carried: '',
});

type Name = 'filter' | 'sort' | 'page[limit]' | 'page[offset]' | 'page[after]';

/** Clients send brackets raw and encoded (contract 3.3). */
const NAMES: ReadonlyMap<string, Name> = new Map(
  (['filter', 'sort', 'page[limit]', 'page[offset]', 'page[after]'] as const).flatMap((name) => [
    [name, name],
    [encodeURIComponent(name), name],
  ]),
);

const SORTS: ReadonlyMap<string, Sort> = new Map(
  SORT_KEYS.flatMap((by): [string, Sort][] => [
    [by, Object.freeze({ by, isDescending: false })],
    [`-${by}`, Object.freeze({ by, isDescending: true })],
  ]),
);

const ONLY_FILTER = 'filter=';

/** The filter of a URL that says nothing else, decoded; undefined where it says more, or less, or is not decodable. */
export function onlyFilter(url: string): string | undefined {
  const start = url.indexOf('?') + 1;
  if (!url.startsWith(ONLY_FILTER, start) || url.includes('&', start) || url.includes('#', start))
    return undefined;
  return decoded(url.slice(start + ONLY_FILTER.length));
}

/** A parameter as it stands in the URL, and what it says. */
interface RawParameter {
  readonly raw: string;
  readonly text: string;
}

/**
 * Reads the query of a URL. Throws Fault `invalid_query`, which names every parameter that is wrong and the rule it
 * breaks.
 */
export function readQuery(url: string, rules: QueryRules): ListQuery {
  const start = url.indexOf('?') + 1;
  if (start === 0 || start === url.length) return DEFAULT_QUERY;
  const complaints: Complaint[] = [];
  const said = parametersOf(url, start, rules, complaints);
  const limit = numberOf('page[limit]', said, [1, LIMITS.pageRecordsMax], complaints);
  const offset = numberOf('page[offset]', said, [0, LIMITS.pageOffsetMax], complaints);
  const sort = sortOf(said.get('sort'), complaints);
  const after = afterOf(said, sort, complaints);
  if (complaints.length > 0) throw new Fault('invalid_query', complaints);
  const filter = said.get('filter');
  const carried = carriedOf('filter', filter) + carriedOf('sort', said.get('sort'));
  return { limit, offset, after, filter: filter?.text, sort, carried };
}

function parametersOf(
  url: string,
  start: number,
  { hasFilter, hasSort }: QueryRules,
  complaints: Complaint[],
): ReadonlyMap<Name, RawParameter> {
  const said = new Map<Name, RawParameter>();
  const end = orEnd(url.indexOf('#', start), url.length);
  for (let from = start, to = 0; from < end; from = to + 1) {
    to = orEnd(url.indexOf('&', from), end);
    const nameEnd = orEnd(url.indexOf('=', from), to);
    const name = nameOf(url.slice(from, nameEnd), complaints);
    if (name === undefined || (name === 'filter' && !hasFilter) || (name === 'sort' && !hasSort)) continue;
    if (said.has(name)) complaints.push({ field: name, rule: 'must be given at most once' });
    const raw = url.slice(Math.min(nameEnd + 1, to), to);
    const text = decoded(raw);
    if (text === undefined) complaints.push({ field: name, rule: NOT_DECODABLE });
    said.set(name, { raw, text: text ?? '' });
  }
  return said;
}

/** A place that was found before the end, or the end. */
function orEnd(found: number, end: number): number {
  return found < 0 || found > end ? end : found;
}

const NOT_DECODABLE = 'must be UTF-8, percent-encoded';

/** The parameter of this name, however it is encoded; undefined for one that no list knows. */
function nameOf(raw: string, complaints: Complaint[]): Name | undefined {
  const known = NAMES.get(raw);
  if (known !== undefined || !raw.includes('%')) return known;
  const name = decoded(raw);
  if (name === undefined) complaints.push({ field: 'query', rule: `a name in it ${NOT_DECODABLE}` });
  return name === undefined ? undefined : NAMES.get(name);
}

/** `+` is a space, as in a form. Undefined for what is not percent-encoded UTF-8. */
function decoded(raw: string): string | undefined {
  const spaced = raw.includes('+') ? raw.replaceAll('+', ' ') : raw;
  if (!spaced.includes('%')) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return undefined;
  }
}

const NUMBER = /^(?:0|[1-9]\d{0,5})$/;

function numberOf(
  name: Name,
  said: ReadonlyMap<Name, RawParameter>,
  [min, max]: readonly [number, number],
  complaints: Complaint[],
): number | undefined {
  const text = said.get(name)?.text;
  if (text === undefined) return undefined;
  const value = NUMBER.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  complaints.push({ field: name, rule: `must be a whole number from ${min} to ${max}` });
  return undefined;
}

function sortOf(said: RawParameter | undefined, complaints: Complaint[]): Sort {
  if (said === undefined) return NEWEST_FIRST;
  const sort = SORTS.get(said.text);
  if (!sort) complaints.push({ field: 'sort', rule: `must be one of ${[...SORTS.keys()].join(', ')}` });
  return sort ?? NEWEST_FIRST;
}

function afterOf(
  said: ReadonlyMap<Name, RawParameter>,
  sort: Sort,
  complaints: Complaint[],
): ListQuery['after'] {
  const text = said.get('page[after]')?.text;
  if (text === undefined) return undefined;
  if (said.has('page[offset]')) {
    complaints.push({ field: 'page[after]', rule: 'cannot stand beside page[offset]' });
  }
  if (text === '') return 'start';
  const mark = readPageCursor(text, sort);
  if (!mark) {
    const rule = 'must be empty, or come from links.next of a list in the same order';
    complaints.push({ field: 'page[after]', rule });
  }
  return mark;
}

/** What may stand in the query of a URL as it is, and in JSON as well (RFC 3986, 3.4, without `&`, `=` and `#`). */
const FIT_FOR_LINKS = /^[\w.~%!$()*+,;:@/?-]*$/;

function carriedOf(name: Name, said: RawParameter | undefined): string {
  if (said === undefined) return '';
  return `&${name}=${FIT_FOR_LINKS.test(said.raw) ? said.raw : encodeURIComponent(said.text).replaceAll("'", '%27')}`;
}
