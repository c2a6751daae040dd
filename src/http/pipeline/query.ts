import { attempt } from '../../model/attempt.ts';
import { Fault, type FieldError } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import type { Resource } from '../../model/resource.ts';
import type { PagePosition, Sort } from '../../model/store.ts';
import { hasCursors, readPageCursor, SORT_KEYS } from './paging.ts';

/** The list parameters of a URL. */
export interface ListQuery {
  readonly limit: number | undefined;
  readonly offset: number | undefined;
  /** The position to continue after; `start` for the first such page. */
  readonly after: PagePosition | 'start' | undefined;
  /** The filter, decoded and not parsed. */
  readonly filter: string | undefined;
  readonly sort: Sort;
  /** The part of the query that links to other pages repeat: `&filter=…&sort=…&include=…`, percent-encoded. */
  readonly carried: string;
}

/** Newest first (docs/wire.md#order). */
export const NEWEST_FIRST: Sort = Object.freeze({ by: 'created_at', isDescending: true });

const PAGE = ['page[limit]', 'page[offset]', 'page[after]'] as const;
const FURTHER = ['filter', 'sort', 'include'] as const;
type Name = (typeof PAGE | typeof FURTHER)[number];

/** The parameters that a list reads besides those of its page. It ignores all others (docs/wire.md#order). */
export type FurtherParameters = readonly (typeof FURTHER)[number][];

const SORTS: ReadonlyMap<string, Sort> = new Map(
  SORT_KEYS.flatMap((by): [string, Sort][] => [
    [by, Object.freeze({ by, isDescending: false })],
    [`-${by}`, Object.freeze({ by, isDescending: true })],
  ]),
);

const ONLY_FILTER = 'filter=';

/** The decoded filter of a URL without any other parameter; undefined for any other URL. */
export function onlyFilter(url: string): string | undefined {
  const start = url.indexOf('?') + 1;
  if (!url.startsWith(ONLY_FILTER, start) || url.includes('&', start) || url.includes('#', start))
    return undefined;
  return decoded(url.slice(start + ONLY_FILTER.length));
}

/** A parameter of the URL, raw and decoded. */
interface RawParameter {
  readonly raw: string;
  readonly text: string;
}

/**
 * Reads the query of a URL. Throws Fault `invalid_query` that names every invalid parameter and the rule it breaks.
 */
export function readQuery(url: string, further: FurtherParameters = []): ListQuery {
  const fieldErrors: FieldError[] = [];
  const parameters = parametersOf(url, [...PAGE, ...further], fieldErrors);
  const limit = numberOf('page[limit]', parameters, [1, LIMITS.pageRecordsMax], fieldErrors);
  const offset = numberOf('page[offset]', parameters, [0, LIMITS.pageOffsetMax], fieldErrors);
  const sort = sortOf(parameters.get('sort'), fieldErrors);
  const after = afterOf(parameters, sort, fieldErrors);
  if (fieldErrors.length > 0) throw new Fault('invalid_query', fieldErrors);
  const filter = parameters.get('filter');
  const carried = FURTHER.map((name) => linkPart(name, parameters.get(name))).join('');
  return { limit, offset, after, filter: filter?.text, sort, carried };
}

/**
 * The resources that the `include` of a URL names, of those that it may name; it may have unknown values. Throws
 * Fault `invalid_query` if it is given twice or cannot be decoded.
 */
export function childrenNamed(includable: readonly Resource[], url: string): readonly Resource[] {
  if (!url.includes('?')) return NO_CHILDREN;
  const fieldErrors: FieldError[] = [];
  const parameters = parametersOf(url, ['include'], fieldErrors);
  if (fieldErrors.length > 0) throw new Fault('invalid_query', fieldErrors);
  const names = parameters.get('include')?.text.split(',') ?? [];
  return includable.filter(({ includedAs = '' }) => names.includes(includedAs));
}

export const NO_CHILDREN: readonly Resource[] = Object.freeze([]);

/** The parameters that are read, by name. Clients send brackets raw and percent-encoded (docs/wire.md#lists). */
function parametersOf(
  url: string,
  read: readonly Name[],
  fieldErrors: FieldError[],
): ReadonlyMap<Name, RawParameter> {
  const parameters = new Map<Name, RawParameter>();
  for (const pair of (/\?([^#]*)/.exec(url)?.[1] ?? '').split('&')) {
    const [rawName = ''] = pair.split('=', 1);
    const given = decoded(rawName);
    if (given === undefined) fieldErrors.push({ field: 'query', rule: `a name in it ${NOT_DECODABLE}` });
    const name = read.find((each) => each === given);
    if (name === undefined) continue;
    if (parameters.has(name)) fieldErrors.push({ field: name, rule: 'must be given at most once' });
    const raw = pair.slice(rawName.length + 1);
    const text = decoded(raw);
    if (text === undefined) fieldErrors.push({ field: name, rule: NOT_DECODABLE });
    parameters.set(name, { raw, text: text ?? '' });
  }
  return parameters;
}

const NOT_DECODABLE = 'must be UTF-8, percent-encoded';

/** `+` is a space, as in a form. Undefined for invalid percent-encoding or UTF-8. */
function decoded(raw: string): string | undefined {
  const spaced = raw.includes('+') ? raw.replaceAll('+', ' ') : raw;
  return spaced.includes('%') ? attempt(() => decodeURIComponent(spaced)) : spaced;
}

const NUMBER = /^(?:0|[1-9]\d{0,5})$/;

function numberOf(
  name: Name,
  parameters: ReadonlyMap<Name, RawParameter>,
  [min, max]: readonly [number, number],
  fieldErrors: FieldError[],
): number | undefined {
  const text = parameters.get(name)?.text;
  if (text === undefined) return undefined;
  const value = NUMBER.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  fieldErrors.push({ field: name, rule: `must be a whole number from ${min} to ${max}` });
  return undefined;
}

function sortOf(parameter: RawParameter | undefined, fieldErrors: FieldError[]): Sort {
  if (parameter === undefined) return NEWEST_FIRST;
  const sort = SORTS.get(parameter.text);
  if (!sort) fieldErrors.push({ field: 'sort', rule: `must be one of ${[...SORTS.keys()].join(', ')}` });
  return sort ?? NEWEST_FIRST;
}

const NO_CURSORS =
  'cannot be combined with a sort by updated_at, in which a write moves its record: follow the change feed instead, ' +
  'GET /v2/authentication-realms/{realm_id}/changes';

function afterOf(
  parameters: ReadonlyMap<Name, RawParameter>,
  sort: Sort,
  fieldErrors: FieldError[],
): ListQuery['after'] {
  const text = parameters.get('page[after]')?.text;
  if (text === undefined) return undefined;
  if (parameters.has('page[offset]')) {
    fieldErrors.push({ field: 'page[after]', rule: 'cannot be combined with page[offset]' });
  }
  if (!hasCursors(sort)) {
    fieldErrors.push({ field: 'page[after]', rule: NO_CURSORS });
    return undefined;
  }
  if (text === '') return 'start';
  const position = readPageCursor(text, sort);
  if (!position) {
    const rule = 'must be empty, or come from links.next of a list in the same order';
    fieldErrors.push({ field: 'page[after]', rule });
  }
  return position;
}

/** Texts that need no encoding in a query (RFC 3986, 3.4, without `&`, `=` and `#`) and no escaping in JSON. */
const SAFE_IN_LINKS = /^[\w.~%!$()*+,;:@/?-]*$/;

function linkPart(name: Name, parameter: RawParameter | undefined): string {
  if (parameter === undefined) return '';
  return `&${name}=${SAFE_IN_LINKS.test(parameter.raw) ? parameter.raw : encodeURIComponent(parameter.text).replaceAll("'", '%27')}`;
}
