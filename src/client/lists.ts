import { LIMITS } from '../model/limits.ts';
import type { Resource } from '../model/resource.ts';
import { parseIdentifier, recordPath, searchPath } from './address.ts';
import type { CallOptions, FindableCollection, ListOptions, PageOptions, RecordPage } from './collection.ts';
import { type Envelope, type FlatRecord, readMany } from './envelope.ts';
import { AuthrealmError } from './error.ts';
import { JSON_BODY, type SendRequest } from './exchange.ts';
import { allOf, eq, type Filter, oneOf } from './filter.ts';
import type { WireFormat } from './wires.ts';

type Scope = readonly string[];

/** Every record of a list, by cursor pages, so that none is returned twice. */
export async function* listRecords(
  wire: WireFormat,
  send: SendRequest,
  scope: Scope,
  options: ListOptions<Resource>,
): AsyncGenerator<FlatRecord, void, undefined> {
  const path = recordPath(wire, scope, wire.collections.length - 1);
  const limit = options.pageSize ?? LIMITS.pageRecordsMax;
  let query = queryOf({ 'page[limit]': String(limit), 'page[after]': '', ...filterAndSort(options) });
  for (;;) {
    const { body } = await send({ method: 'GET', path: path + query, signal: options.signal });
    const { records, next } = readMany(wire, body, scope);
    yield* records;
    if (next === undefined) return;
    // Only the query of the link is used: a response must not choose where the token is sent.
    const nextQuery = new URL(next).search;
    if (nextQuery === query) throw new AuthrealmError('the list response links to itself as its next page');
    query = nextQuery;
  }
}

/** One page of a list, by offset. */
export async function fetchPage(
  wire: WireFormat,
  send: SendRequest,
  scope: Scope,
  options: PageOptions<Resource>,
): Promise<RecordPage<Resource>> {
  const path = recordPath(wire, scope, wire.collections.length - 1);
  const query = queryOf({
    ...(options.limit === undefined ? {} : { 'page[limit]': String(options.limit) }),
    ...(options.offset === undefined ? {} : { 'page[offset]': String(options.offset) }),
    ...filterAndSort(options),
  });
  const { body } = await send({ method: 'GET', path: path + query, signal: options.signal });
  return pageOf(readMany(wire, body, scope));
}

/** The additional methods of collections whose records can be found by value. */
export function searchMethods(
  wire: WireFormat,
  send: SendRequest,
): Pick<FindableCollection<Resource>, 'find' | 'getMany'> {
  const find = async (
    realm: string,
    filter: Filter,
    { signal }: CallOptions,
  ): Promise<readonly FlatRecord[]> => {
    const found: FlatRecord[] = [];
    for (;;) {
      const page = { limit: LIMITS.pageRecordsMax, offset: found.length };
      const body = JSON.stringify({ filter: filter.text, page });
      const path = searchPath(wire, realm);
      const answer = await send({ method: 'POST', path, headers: JSON_BODY, body, signal });
      const { records, total } = pageOf(readMany(wire, answer.body, [realm]));
      found.push(...records);
      if (records.length === 0 || found.length >= total) return found;
    }
  };
  return {
    find: (realm, criteria, options = {}) =>
      find(realm, allOf(...Object.entries(criteria).map(([name, value]) => eq(name, value))), options),
    async getMany(realm, ids, options = {}) {
      const distinctIds = [...new Set(ids.map((id) => parseIdentifier(id)))];
      const found = new Map<string, FlatRecord>();
      for (let from = 0; from < distinctIds.length; from += LIMITS.filterValuesMax) {
        const batch = distinctIds.slice(from, from + LIMITS.filterValuesMax);
        for (const record of await find(realm, oneOf('id', batch), options)) found.set(record.id, record);
      }
      return distinctIds.flatMap((id) => found.get(id) ?? []);
    },
  };
}

function pageOf({ records, total }: Envelope): RecordPage<Resource> {
  if (total === undefined) throw new AuthrealmError('the list response has no total');
  return { records, total };
}

function filterAndSort({ filter, sort }: PageOptions<Resource>): Readonly<Record<string, string>> {
  return { ...(filter ? { filter: filter.text } : {}), ...(sort ? { sort } : {}) };
}

/** `encodeURIComponent` leaves some characters of filters unencoded, which servers accept. */
function queryOf(parameters: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(parameters);
  if (pairs.length === 0) return '';
  return `?${pairs.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&')}`;
}
