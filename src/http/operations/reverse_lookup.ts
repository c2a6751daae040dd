import { z } from 'zod';
import { Fault } from '../../model/fault.ts';
import {
  equalityValues,
  type Filterables,
  type ParsedFilter,
  parseFilter,
} from '../../model/filter/filter.ts';
import { parseLookupFilter } from '../../model/filter/lookup_filter.ts';
import type { Uuid } from '../../model/id.ts';
import { LIMITS } from '../../model/limits.ts';
import type { LookupKey, LookupRules, Resource } from '../../model/resource.ts';
import { includableBelow } from '../../model/resources.ts';
import type { KeyedRecord, ListRequest, MaybePromise } from '../../model/store.ts';
import { filterExample } from '../openapi/examples.ts';
import { FILTER_PARAMETER, PAGE_PARAMETERS } from '../openapi/parameters.ts';
import { recordPageSchema, searchSchema } from '../openapi/schemas.ts';
import type { Call } from '../pipeline/call.ts';
import { collectionPattern, reverseLookupPattern } from '../pipeline/links.ts';
import type { Operation } from '../pipeline/operation.ts';
import { listBody } from '../pipeline/paging.ts';
import { type RecordDeps, recordReply } from '../pipeline/pipeline.ts';
import { itemPresenterOf } from '../pipeline/present.ts';
import { NEWEST_FIRST, onlyFilter, readQuery } from '../pipeline/query.ts';
import { readDocument } from '../pipeline/reading.ts';
import type { Reply } from '../server/reply.ts';
import { listResponder, pageOf } from './lists.ts';
import { pageAnswer, parametersOfPage, recordOperation } from './record_operation.ts';

/**
 * A reverse lookup: a collection of the whole realm that requires a filter. A filter that names none of the sets of its
 * rules is 400.
 */
export function find(resource: Resource, rules: LookupRules): Operation<RecordDeps> {
  return recordOperation(resource, {
    name: `find-${resource.name}`,
    method: 'GET',
    path: reverseLookupPattern(resource),
    right: 'read',
    work: 'find',
    locates: 'scope',
    loopUse: 'lookup',
    handle(deps) {
      const answer = lookupResponder(resource, deps);
      return (call) => {
        const { url } = call.request;
        const text = onlyFilter(url);
        const lookupKey = text === undefined ? undefined : parseLookupFilter(text, rules);
        return answer(call, lookupKey, LIMITS.pageRecordsDefault, () => {
          const query = readQuery(url, ['filter']);
          const filter = readFilter(query.filter, rules);
          return { filter, page: pageOf(query, lengthFor(filter)), carried: query.carried };
        });
      };
    },
    document: ({ schemas, examples }) => ({
      summary: `Find ${resource.words[1]} in a realm by ${rules.by[0]?.join(' and ')}.`,
      isExtension: true,
      query: z.object({
        filter: FILTER_PARAMETER.meta({
          param: {
            description: `One of: ${lookupForms(rules, '`')}.`,
            example: filterExample(resource, rules.by[0] ?? []),
          },
        }),
        ...PAGE_PARAMETERS,
      }),
      success: pageAnswer(recordPageSchema(resource, schemas, 'found'), examples.found(resource)),
      faults: ['malformed_filter'],
    }),
  });
}

/**
 * The same with the filter in the body, for callers whose proxies log URLs. A link to another page would contain the
 * filter, so all links are null.
 */
export function search(resource: Resource, rules: LookupRules): Operation<RecordDeps> {
  return searchOperation(resource, {
    path: `${reverseLookupPattern(resource)}/search`,
    work: 'find',
    loopUse: 'lookup',
    filters: `The filter is one of: ${lookupForms(rules, '`')}.`,
    handle(deps) {
      const answer = lookupResponder(resource, deps);
      return (call) => {
        const { filter: text, limit, offset } = readSearch(call);
        const lookupKey = offset > 0 ? undefined : parseLookupFilter(text, rules);
        return answer(call, lookupKey, limit ?? LIMITS.pageRecordsDefault, () => {
          const filter = inBody(() => readFilter(text, rules));
          const page = { kind: 'offset', offset, limit: limit ?? lengthFor(filter) } as const;
          return { filter, page, carried: undefined };
        });
      };
    },
  });
}

/**
 * A list with the filter in the body. Every page is counted. Records beyond the maximum offset are reached by a narrower
 * filter.
 */
export function searchList(resource: Resource, filterables: Filterables): Operation<RecordDeps> {
  return searchOperation(resource, {
    path: `${collectionPattern(resource)}/search`,
    includes: includableBelow(resource),
    filters: 'The filter is that of the list.',
    handle(deps) {
      const list = listResponder(resource, false, deps);
      return (call) => {
        const { filter: text, limit, offset } = readSearch(call);
        const filter = inBody(() => parseFilter(text, filterables));
        const page = { kind: 'offset', offset, limit: limit ?? LIMITS.pageRecordsDefault } as const;
        return list(call, { filter, page, sort: NEWEST_FIRST }, undefined);
      };
    },
  });
}

/** The common part of the two searches of a realm. */
function searchOperation(
  resource: Resource,
  {
    filters,
    ...operation
  }: Pick<Operation<RecordDeps>, 'path' | 'work' | 'includes' | 'loopUse' | 'handle'> & {
    readonly filters: string;
  },
): Operation<RecordDeps> {
  return recordOperation(resource, {
    name: `search-${resource.name}`,
    method: 'POST',
    right: 'read',
    locates: 'scope',
    body: 'json',
    ...operation,
    document: ({ schemas, examples }) => ({
      summary: `Find ${resource.words[1]} in a realm with the filter in the body, which keeps it out of URL logs.`,
      isExtension: true,
      description: `${resource.summary} ${filters}`,
      query: parametersOfPage(resource),
      body: {
        schema: searchSchema,
        example: {
          filter: filterExample(resource, resource.reverseLookup?.by[0] ?? ['id']),
          page: { limit: 25, offset: 0 },
        },
      },
      success: pageAnswer(recordPageSchema(resource, schemas, 'searched'), examples.found(resource)),
    }),
  });
}

/** Reads the body of a search. Throws Fault `malformed` or `invalid`. */
function readSearch({ body = '' }: Call) {
  const { filter, page: { limit, offset = 0 } = {} } = readDocument(searchSchema, body);
  return { filter, limit, offset };
}

/**
 * Creates the function that answers a reverse lookup. A filter in the plain spelling that matches one record is answered by an
 * index; any other is parsed by `readWhole` and answered as a list.
 */
function lookupResponder(resource: Resource, deps: RecordDeps) {
  const { store, loopBudget } = deps;
  const list = listResponder(resource, true, deps);
  const present = itemPresenterOf(resource, deps, true);
  return (
    call: Call,
    lookupKey: LookupKey | undefined,
    limit: number,
    readWhole: () => Pick<ListRequest, 'filter' | 'page'> & { readonly carried: string | undefined },
  ): MaybePromise<Reply> => {
    const listAll = () => {
      const { carried, ...request } = readWhole();
      return list(call, { ...request, sort: NEWEST_FIRST }, carried);
    };
    const answer = (found: KeyedRecord | undefined) => {
      if (!found) return listAll();
      const page = { kind: 'offset', offset: 0, limit } as const;
      const body = listBody(present(found.record, found.key), { ...COMPLETE, page });
      return recordReply(call, body);
    };
    // A lookup that finds nothing is a lookup as well, and takes no turn.
    if (!lookupKey) return Promise.resolve(loopBudget.admit(call)).then(listAll);
    const found = store.find(resource, call.scope?.[0] as Uuid, lookupKey);
    return found instanceof Promise ? found.then(answer) : answer(found);
  };
}

/** A page with the only record. */
const COMPLETE = { listed: { items: [], hasMore: false, total: 1 }, sort: NEWEST_FIRST, address: undefined };

/** Reads the filter of a reverse lookup. Throws Fault `invalid_query` if the rules do not allow it. */
function readFilter(text: string | undefined, rules: LookupRules): ParsedFilter {
  const filter = text === undefined ? undefined : parseFilter(text, rules.filterables);
  // A member that does not allow `in` has one value: the parser rejected the rest.
  if (filter && filteredSets(rules).some((members) => equalityValues(filter, members))) return filter;
  const rule = `must be one of: ${lookupForms(rules)}`;
  throw new Fault('invalid_query', [{ field: 'filter', rule }]);
}

/** The sets of members that a filter may name. */
function filteredSets({ by, listedBy }: LookupRules): LookupRules['by'] {
  return listedBy === undefined ? by : [...by, [listedBy]];
}

/** The accepted filters of a reverse lookup, as texts between quotes. */
function lookupForms(rules: LookupRules, quote = ''): string {
  const terms = (member: string) => {
    const operators = rules.filterables[member]?.operators.map((operator) => `${operator}(${member},…)`);
    return operators?.join(' or ');
  };
  const forms = filteredSets(rules).map((members) => members.map(terms).join(':'));
  return forms.map((form) => quote + form + quote).join('; ');
}

/** The default page length: a lookup of many IDs returns all of them on one page. */
function lengthFor([group]: ParsedFilter): number {
  const condition = group?.[0];
  return condition?.kind === 'one_of' && condition.values.length > 1
    ? LIMITS.pageRecordsMax
    : LIMITS.pageRecordsDefault;
}

/** Reports a rejected filter as a member of the body, and not as a parameter. */
export function inBody<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof Fault ? new Fault('invalid', error.fieldErrors) : error;
  }
}
