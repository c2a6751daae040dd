import { z } from 'zod';
import type { KeyedRecord, ListRequest, MaybePromise } from '../../directory/store.ts';
import { Fault } from '../../domain/fault.ts';
import { type Filter, parseFilter, valuesOf } from '../../domain/filter/filter.ts';
import { readPlain } from '../../domain/filter/plain.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type LookupKey, type LookupRules, lineage, type Resource } from '../../domain/resource.ts';
import { filterExample } from '../openapi/examples.ts';
import { FILTER_PARAMETER, PAGE_PARAMETERS } from '../openapi/parameters.ts';
import { foundSchema, searchedSchema, searchSchema } from '../openapi/schemas.ts';
import { readBody } from '../pipeline/body.ts';
import type { Call, Stage } from '../pipeline/call.ts';
import { reverseLookupPattern } from '../pipeline/links.ts';
import type { Operation } from '../pipeline/operation.ts';
import { singleItemBody } from '../pipeline/paging.ts';
import { locateScope, shedLoad } from '../pipeline/pipeline.ts';
import { itemPresenterOf } from '../pipeline/present.ts';
import { NEWEST_FIRST, onlyFilter, readQuery } from '../pipeline/query.ts';
import type { Reply } from '../server/reply.ts';
import { authorizeRead, type ListDeps, listResponder, pageOf, pageReply } from './lists.ts';
import { pageAnswer, recordOperation, schemaOf } from './record_operation.ts';
import { readSearch, type SearchRequest } from './search_body.ts';

/**
 * The path of a reverse lookup: a collection of the whole realm that is only ever asked for few of its records. Without
 * a filter that names one of the sets of its description 400.
 */
export function find(resource: Resource): Operation<ListDeps> {
  return recordOperation(resource, {
    name: `find-${resource.name}`,
    method: 'GET',
    path: reverseLookupPattern(resource),
    right: 'read',
    stages: (deps) => [
      ...shedLoad(deps.store.overloaded.find),
      ...authorizeRead(resource, deps),
      locateRealm(resource),
      lookupByQuery(resource, deps),
    ],
    document: ({ foundItems, examples }) => ({
      summary: `Find ${resource.name} records of a whole realm by what they say.`,
      isExtension: true,
      query: findParameters(resource),
      success: pageAnswer(foundSchema(resource, schemaOf(foundItems, resource)), {
        counted: examples.found(resource, 'offset'),
        followed: examples.found(resource, 'after'),
      }),
      faults: ['malformed_filter', 'not_found'],
    }),
  });
}

function lookupByQuery(resource: Resource, deps: ListDeps): Stage {
  const reverseLookup = lookupRulesOf(resource);
  const seek = lookupResponder(resource, deps, (url: string) => {
    const query = readQuery(url, { hasFilter: true, hasSort: false });
    const filter = readFilter(query.filter, reverseLookup);
    return { filter, page: pageOf(query, lengthFor(filter, deps)), carried: query.carried };
  });
  return (call) => {
    const { url } = call.request;
    const filter = onlyFilter(url);
    const sought = filter === undefined ? undefined : readPlain(filter, reverseLookup);
    return seek(call, url, sought, deps.pageLength);
  };
}

/**
 * The same with the question in the body, for callers whose proxies log URLs. A link to another page would have to hold
 * the filter, so all links are null.
 */
export function search(resource: Resource, path: string): Operation<ListDeps> {
  return searchOperation(resource, path, {
    filters: `The filter is ${lookupDescription(lookupRulesOf(resource))}`,
    stages: (deps) => [
      ...shedLoad(deps.store.overloaded.find),
      ...authorizeRead(resource, deps),
      locateRealm(resource),
      readBody,
      lookupByBody(resource, deps),
    ],
  });
}

function lookupByBody(resource: Resource, deps: ListDeps): Stage {
  const reverseLookup = lookupRulesOf(resource);
  const seek = lookupResponder(resource, deps, ({ filter: text, limit, offset = 0 }: SearchRequest) => {
    const filter = inBody(() => readFilter(text, reverseLookup));
    const page = { kind: 'offset', offset, limit: limit ?? lengthFor(filter, deps) } as const;
    return { filter, page, carried: undefined };
  });
  return (call) => {
    const said = readSearch(call.body ?? '');
    const { filter, limit, offset = 0 } = said;
    const sought = filter === undefined || offset > 0 ? undefined : readPlain(filter, reverseLookup);
    return seek(call, said, sought, limit ?? deps.pageLength);
  };
}

/**
 * A list with the filter in the body. Every page of it is counted; of what lies beyond the bound of offsets a narrower filter
 * tells.
 */
export function searchList(resource: Resource, path: string): Operation<ListDeps> {
  return searchOperation(resource, path, {
    filters: 'The filter is one of the list.',
    stages: (deps) => [
      ...authorizeRead(resource, deps),
      locateScope(resource),
      readBody,
      listByBody(resource, deps),
    ],
  });
}

/** What the two searches of a realm have in common. */
function searchOperation(
  resource: Resource,
  path: string,
  { filters, stages }: Pick<Operation<ListDeps>, 'stages'> & { readonly filters: string },
): Operation<ListDeps> {
  return recordOperation(resource, {
    name: `search-${resource.name}`,
    method: 'POST',
    path,
    right: 'read',
    stages,
    document: ({ items, foundItems, examples }) => ({
      summary: `Find ${resource.name} records with the filter in the body: it stands in no log of URLs.`,
      isExtension: true,
      description: `${resource.summary} ${filters}`,
      body: {
        schema: searchSchema,
        example: {
          filter: filterExample(resource, resource.reverseLookup?.by[0] ?? ['id']),
          page: { limit: 25, offset: 0 },
        },
      },
      // The path of a list in one realm says whose the items are.
      success: pageAnswer(
        searchedSchema(resource, schemaOf(resource.reverseLookup ? foundItems : items, resource)),
        { counted: examples.found(resource, 'search') },
      ),
      faults: ['not_found'],
    }),
  });
}

function listByBody(resource: Resource, deps: ListDeps): Stage {
  const list = listResponder(resource, { line: lineage(resource), includesParent: false }, deps);
  return (call) => {
    const { filter: text, limit, offset = 0 } = readSearch(call.body ?? '');
    if (text === undefined) throw new Fault('invalid', [{ field: 'filter', rule: 'is missing' }]);
    const filter = inBody(() => parseFilter(text, resource.filterables ?? {}));
    const page = { kind: 'offset', offset, limit: limit ?? deps.pageLength } as const;
    return list(call, { filter, page, sort: NEWEST_FIRST }, undefined);
  };
}

/** A reverse lookup as a list; `carried` is what links take along. */
interface LookupListRequest extends Pick<ListRequest, 'filter' | 'page'> {
  readonly carried: string | undefined;
}

/**
 * Makes what answers a filter of the plain spelling that one record meets, by the shortest way there is. Whatever is
 * asked, or met, otherwise is read whole, by `readWhole` from what was said, and answered as a list.
 */
function lookupResponder<Said>(
  resource: Resource,
  deps: ListDeps,
  readWhole: (said: Said) => LookupListRequest,
) {
  const { store, baseUrl, installation } = deps;
  const list = listResponder(resource, { line: realmPath(resource), includesParent: true }, deps);
  const present = itemPresenterOf(resource, { baseUrl, installation, includesParent: true });

  function listAll(call: Call, said: Said): MaybePromise<Reply> {
    const { carried, ...asked } = readWhole(said);
    return list(call, { ...asked, sort: NEWEST_FIRST }, carried);
  }

  function answer(
    call: Call,
    said: Said,
    found: KeyedRecord | undefined,
    limit: number,
  ): MaybePromise<Reply> {
    return found
      ? pageReply(call, singleItemBody(present(found.record, found.key), limit))
      : listAll(call, said);
  }

  return (call: Call, said: Said, sought: LookupKey | undefined, limit: number): MaybePromise<Reply> => {
    if (!sought) return listAll(call, said);
    const found = store.find(resource, call.scope?.[0] as Uuid, sought);
    if (found instanceof Promise) return found.then((later) => answer(call, said, later, limit));
    return answer(call, said, found, limit);
  };
}

/** The resources above a collection of the whole realm, and its own. */
function realmPath(resource: Resource): readonly Resource[] {
  return [...lineage(resource).slice(0, 1), resource];
}

/** The scope of a collection of the whole realm is that of what hangs right below it. */
function locateRealm(resource: Resource): Stage {
  const [, below] = lineage(resource);
  return locateScope(below ?? resource);
}

function lookupRulesOf({ reverseLookup, name }: Resource): LookupRules {
  if (!reverseLookup) throw new Error(`${name} is not found by what it says`);
  return reverseLookup;
}

/** Reads the filter of a reverse lookup. Throws Fault `invalid_query` where it is none of those it may be. */
function readFilter(text: string | undefined, { filterables, by }: LookupRules): Filter {
  const filter = text === undefined ? undefined : parseFilter(text, filterables);
  // Of a member that `in` may not ask for there is one value: the parser refused the rest.
  if (filter && by.some((members) => valuesOf(filter, members))) return filter;
  const rule = `must be one of: ${lookupFilters({ filterables, by }).join('; ')}`;
  throw new Fault('invalid_query', [{ field: 'filter', rule }]);
}

/** The filters that a reverse lookup takes, as they are written. */
function lookupFilters({ filterables, by }: LookupRules): readonly string[] {
  const terms = (member: string) => {
    const operators = filterables[member]?.operators.map((operator) => `${operator}(${member},…)`);
    return operators?.join(' or ');
  };
  return by.map((members) => members.map(terms).join(':'));
}

/** The same as a sentence of the document. */
function lookupDescription(rules: LookupRules): string {
  const ways = lookupFilters(rules).map((filter) => `\`${filter}\``);
  return `One of: ${ways.join('; ')}.`;
}

/** Parameters of a reverse lookup: without its filter there is nothing to look for. */
function findParameters(resource: Resource): z.ZodObject {
  const filter = FILTER_PARAMETER.meta({
    param: {
      description: lookupDescription(lookupRulesOf(resource)),
      example: filterExample(resource, resource.reverseLookup?.by[0] ?? []),
    },
  });
  return z.object({ filter, ...PAGE_PARAMETERS });
}

/** Whoever asks for many records by their identifiers wants all of them. */
function lengthFor([group]: Filter, { pageLength }: ListDeps): number {
  const condition = group?.[0];
  return condition?.kind === 'one_of' && condition.values.length > 1 ? LIMITS.pageRecordsMax : pageLength;
}

/** A filter that is refused is a member of the body here, and no parameter. */
export function inBody<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof Fault ? new Fault('invalid', error.complaints) : error;
  }
}
