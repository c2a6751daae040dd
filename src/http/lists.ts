import type { Listed, Listing, MaybePromise, Page, Placed, Sought, Store } from '../directory/store.ts';
import { type Complaint, Fault } from '../domain/fault.ts';
import { type Filter, type Finished, parseFilter, valuesOf } from '../domain/filter.ts';
import type { Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Principal } from '../domain/principal.ts';
import { type Finding, lineage, type Resource, type Scope } from '../domain/resource.ts';
import { authenticate } from './bearer.ts';
import { parseJson, readBody } from './body.ts';
import { type Answer, type Call, type Stage, walk } from './call.ts';
import { collectionLinks } from './links.ts';
import { type ListAddress, listBody } from './paging.ts';
import { locateScope, permit, RECORD_CACHING, type Rooms } from './pipeline.ts';
import { itemPresenterOf } from './present.ts';
import { type ListQuery, NEWEST_FIRST, readQuery } from './query.ts';
import { faultReply, JSON_TYPE, REQUEST_ID, type Reply } from './reply.ts';

/** What the paths of lists are built from. */
export interface ListingRooms extends Rooms {
  readonly store: Pick<Store, 'get' | 'list' | 'find'>;
  /** How many records a page holds unless the caller says. */
  readonly pageLength: number;
}

const NOT_FOUND = faultReply('not_found');
const NO_FILTER: Filter = Object.freeze([]);

/**
 * The path of a collection: who asks (401), may they at all (403), may they here (404), what they ask for (400), the
 * page (404 where the record above is not there), the body. Of realms a limited client sees its own.
 */
export function list(resource: Resource, rooms: ListingRooms): Answer {
  const { filterables } = resource;
  const rules = { hasFilter: filterables !== undefined, hasSort: filterables !== undefined };
  const answer = answering(resource, { line: lineage(resource), saysParent: false }, rooms);
  const read: Stage = (call) => {
    const query = readQuery(call.request.url, rules);
    const filter =
      filterables && query.filter !== undefined ? parseFilter(query.filter, filterables) : NO_FILTER;
    const listing = { filter, sort: query.sort, page: pageOf(query, rooms.pageLength), ...ownRealms(call) };
    return answer(call, listing, { carried: query.carried, sought: undefined });
  };
  return walk([...entrance(resource, rooms), locateScope(resource), read]);
}

/**
 * The path of a reverse lookup: a collection of the whole realm that is only ever asked for few of its records. Without
 * a filter that names one of the sets of its description 400.
 */
export function find(resource: Resource, rooms: ListingRooms): Answer {
  const finding = findingOf(resource);
  const answer = answering(resource, { line: realmLine(resource), saysParent: true }, rooms);
  const read: Stage = (call) => {
    const query = readQuery(call.request.url, { hasFilter: true, hasSort: false });
    const { filter, sought } = soughtBy(query.filter, finding);
    const listing = { filter, sort: NEWEST_FIRST, page: pageOf(query, lengthFor(filter, rooms)) };
    return answer(call, listing, { carried: query.carried, sought });
  };
  return walk([...entrance(resource, rooms), locateRealm(resource), read]);
}

/**
 * The same with the question in the body, for callers whose proxies log URLs. A link to another page would have to hold
 * the filter, so all links are null.
 */
export function search(resource: Resource, rooms: ListingRooms): Answer {
  const finding = findingOf(resource);
  const answer = answering(resource, { line: realmLine(resource), saysParent: true }, rooms);
  const read: Stage = (call) => {
    const asked = readSearch(call.body ?? '');
    const { filter, sought } = inBody(() => soughtBy(asked.filter, finding));
    const page: Page = {
      kind: 'offset',
      offset: asked.offset ?? 0,
      limit: asked.limit ?? lengthFor(filter, rooms),
    };
    return answer(call, { filter, sort: NEWEST_FIRST, page }, { carried: undefined, sought });
  };
  return walk([...entrance(resource, rooms), locateRealm(resource), readBody, read]);
}

function entrance(resource: Resource, { tokens }: ListingRooms): readonly Stage[] {
  return [authenticate(tokens), permit(`${resource.scope}:read`)];
}

/** The resources above a collection of the whole realm, and its own. */
function realmLine(resource: Resource): readonly Resource[] {
  return [...lineage(resource).slice(0, 1), resource];
}

/** The scope of a collection of the whole realm is that of what hangs right below it. */
function locateRealm(resource: Resource): Stage {
  const [, below] = lineage(resource);
  return locateScope(below ?? resource);
}

function findingOf({ finding, name }: Resource): Finding {
  if (!finding) throw new Error(`${name} is not found by what it says`);
  return finding;
}

function ownRealms({ principal, scope }: Call): Pick<Listing, 'only'> {
  const { realms } = principal as Principal;
  return realms === '*' || scope?.length !== 0 ? {} : { only: [...realms] };
}

function pageOf({ limit, offset, after }: ListQuery, length: number): Page {
  if (after === undefined) return { kind: 'offset', offset: offset ?? 0, limit: limit ?? length };
  return { kind: 'after', after: after === 'start' ? undefined : after, limit: limit ?? length };
}

/** A filter that a reverse lookup may have; `sought` where it names one value of each member. */
interface SoughtFilter {
  readonly filter: Filter;
  readonly sought: Sought | undefined;
}

/** Reads the filter of a reverse lookup. Throws Fault `query_invalid` where it is none of those it may be. */
function soughtBy(text: string | undefined, { filterables, by }: Finding): SoughtFilter {
  const filter = text === undefined ? undefined : parseFilter(text, filterables);
  for (const members of filter ? by : []) {
    const all = valuesOf(filter as Filter, members);
    if (!all) continue;
    if (all.every(({ length }) => length === 1)) {
      const values = all.map(([value]) => value as Finished);
      return { filter: filter as Filter, sought: { members, values } };
    }
    // As many values as `in` takes, where it may ask for a member.
    if (members.every((member) => filterables[member]?.operators.includes('in'))) {
      return { filter: filter as Filter, sought: undefined };
    }
  }
  const rule = `must be one of: ${findingFilters({ filterables, by }).join('; ')}`;
  throw new Fault('query_invalid', [{ field: 'filter', rule }]);
}

/** The filters that a reverse lookup takes, as they are written. */
export function findingFilters({ filterables, by }: Finding): readonly string[] {
  const terms = (member: string) => {
    const operators = filterables[member]?.operators.map((operator) => `${operator}(${member},…)`);
    return operators?.join(' or ');
  };
  return by.map((members) => members.map(terms).join(':'));
}

/** Whoever asks for many records by their identifiers wants all of them. */
function lengthFor([group]: Filter, { pageLength }: ListingRooms): number {
  const condition = group?.[0];
  return condition?.kind === 'one_of' && condition.values.length > 1 ? LIMITS.pageRecordsMax : pageLength;
}

/** A filter that is refused is a member of the body here, and no parameter. */
function inBody<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof Fault ? new Fault('invalid', error.complaints) : error;
  }
}

interface Search {
  readonly filter: string | undefined;
  readonly limit: number | undefined;
  readonly offset: number | undefined;
}

/** The body of a search. Throws Fault `malformed` for what is no JSON, `invalid` for what is no search. */
function readSearch(body: string): Search {
  const complaints: Complaint[] = [];
  const { filter, page } = membersOfObject(parseJson(body), 'body', complaints);
  const { limit, offset } = page === undefined ? {} : membersOfObject(page, 'page', complaints);
  const number = (field: string, value: unknown, [min, max]: readonly [number, number]) => {
    if (value === undefined) return undefined;
    if (Number.isInteger(value) && Number(value) >= min && Number(value) <= max) return Number(value);
    complaints.push({ field, rule: `must be a whole number from ${min} to ${max}` });
    return undefined;
  };
  if (filter !== undefined && typeof filter !== 'string') {
    complaints.push({ field: 'filter', rule: 'must be a string' });
  }
  const asked = {
    filter: typeof filter === 'string' ? filter : undefined,
    limit: number('page.limit', limit, [1, LIMITS.pageRecordsMax]),
    offset: number('page.offset', offset, [0, LIMITS.pageOffsetMax]),
  };
  if (complaints.length > 0) throw new Fault('invalid', complaints);
  return asked;
}

function membersOfObject(
  value: unknown,
  field: string,
  complaints: Complaint[],
): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  complaints.push({ field, rule: 'must be a JSON object' });
  return {};
}

interface Collection {
  /** The resources whose collections its path names. */
  readonly line: readonly Resource[];
  /** Its items say whose they are. */
  readonly saysParent: boolean;
}

/** How a list was asked for. */
interface Way {
  /** What links take along; without it there are none. */
  readonly carried: string | undefined;
  /** What one record may say that is all there is to find. */
  readonly sought: Sought | undefined;
}

/** A reverse lookup is mostly answered whole; then there is no other page, and no link to one. */
function isWhole({ page }: Listing, { hasMore }: Listed): boolean {
  return page.kind === 'offset' && page.offset === 0 && !hasMore;
}

/** Asks the store and writes the page. */
function answering(resource: Resource, { line, saysParent }: Collection, rooms: ListingRooms) {
  const { store, baseUrl, installation } = rooms;
  const present = itemPresenterOf(resource, { baseUrl, installation, saysParent });
  const urlOf = collectionLinks(line, baseUrl);

  function reply(
    call: Call,
    listing: Listing,
    listed: Listed | undefined,
    carried: string | undefined,
  ): Reply {
    if (!listed) return NOT_FOUND;
    let items = '';
    for (const { key, record } of listed.items)
      items += items === '' ? present(record, key) : `,${present(record, key)}`;
    const address: ListAddress | undefined =
      carried === undefined || (saysParent && isWhole(listing, listed))
        ? undefined
        : { url: urlOf(call.scope as Scope), carried };
    return {
      status: 200,
      headers: { 'Content-Type': JSON_TYPE, 'Cache-Control': RECORD_CACHING, [REQUEST_ID]: call.requestId },
      body: listBody(items, { listed, page: listing.page, sort: listing.sort, address }),
    };
  }

  function listAll(call: Call, listing: Listing, { carried }: Way): MaybePromise<Reply> {
    const listed = store.list(resource, call.scope as Scope, listing);
    return listed instanceof Promise
      ? listed.then((later) => reply(call, listing, later, carried))
      : reply(call, listing, listed, carried);
  }

  function replyFound(call: Call, listing: Listing, found: Placed): Reply {
    return reply(call, listing, { items: [found], hasMore: false, total: 1 }, undefined);
  }

  return (call: Call, listing: Listing, way: Way): MaybePromise<Reply> => {
    const { page } = listing;
    if (way.sought === undefined || page.kind === 'after' || page.offset > 0)
      return listAll(call, listing, way);
    const found = store.find(resource, call.scope?.[0] as Uuid, way.sought);
    if (found instanceof Promise) {
      return found.then((later) => (later ? replyFound(call, listing, later) : listAll(call, listing, way)));
    }
    return found ? replyFound(call, listing, found) : listAll(call, listing, way);
  };
}
