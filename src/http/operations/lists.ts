import { type ParsedFilter, parseFilter } from '../../model/filter/filter.ts';
import { LIMITS } from '../../model/limits.ts';
import type { Principal } from '../../model/principal.ts';
import { ancestry, type KeyPrefix, type Resource } from '../../model/resource.ts';
import { includableBelow } from '../../model/resources.ts';
import type { ListRequest, PageRequest } from '../../model/store.ts';
import { listParameters } from '../openapi/parameters.ts';
import { recordPageSchema } from '../openapi/schemas.ts';
import type { Call } from '../pipeline/call.ts';
import { collectionLinks, collectionPattern } from '../pipeline/links.ts';
import type { Operation } from '../pipeline/operation.ts';
import { listBody, type PageContent } from '../pipeline/paging.ts';
import { type RecordDeps, recordReply } from '../pipeline/pipeline.ts';
import { itemPresenterOf } from '../pipeline/present.ts';
import { type FurtherParameters, type ListQuery, NEWEST_FIRST, readQuery } from '../pipeline/query.ts';
import { NOT_FOUND_REPLY, type Reply } from '../server/reply.ts';
import { openPageIncluding } from './included.ts';
import { pageAnswer, parametersOfPage, recordOperation } from './record_operation.ts';

export const NO_FILTER: ParsedFilter = Object.freeze([]);

/**
 * A list of a collection: authentication (401), scope (403), path (404), query (400), the page (404 if the parent does not
 * exist), the body. A client with a realm list sees only its realms.
 */
export function listCollection(resource: Resource): Operation<RecordDeps> {
  return recordOperation(resource, {
    name: `list-${resource.name}`,
    method: 'GET',
    path: collectionPattern(resource),
    right: 'read',
    includes: includableBelow(resource),
    locates: 'scope',
    handle(deps) {
      const { filterables } = resource;
      const further: FurtherParameters = [
        ...(filterables ? (['filter', 'sort'] as const) : []),
        ...(includableBelow(resource).length > 0 ? (['include'] as const) : []),
      ];
      const answer = listResponder(resource, false, deps);
      return (call) => {
        const query = readQuery(call.request.url, further);
        const filter =
          filterables && query.filter !== undefined ? parseFilter(query.filter, filterables) : NO_FILTER;
        const { realms } = call.principal as Principal;
        const only = realms === '*' || call.scope?.length !== 0 ? {} : { only: [...realms] };
        return answer(call, { filter, sort: query.sort, page: pageOf(query), ...only }, query.carried);
      };
    },
    document: ({ schemas, examples }) => ({
      summary: `List the ${resource.words[1]}${resource.parent ? ` of a ${resource.parent.words[0]}` : ''}, newest first.`,
      query: parametersOfPage(resource, listParameters(resource)),
      success: pageAnswer(recordPageSchema(resource, schemas, 'page'), examples.page(resource)),
      faults: resource.filterables ? ['malformed_filter'] : [],
    }),
  });
}

/** The requested page; `length` is its length without `page[limit]`. */
export function pageOf(
  { limit, offset, after }: ListQuery,
  length: number = LIMITS.pageRecordsDefault,
): PageRequest {
  if (after === undefined) return { kind: 'offset', offset: offset ?? 0, limit: limit ?? length };
  return { kind: 'after', after: after === 'start' ? undefined : after, limit: limit ?? length };
}

/**
 * Makes the function that reads a page and writes it. `carried` is repeated by links; without it there are none. The items of a whole realm
 * name their parent, which the path does not name.
 */
export function listResponder(resource: Resource, isOfRealm: boolean, deps: RecordDeps) {
  const { store, baseUrl } = deps;
  const present = itemPresenterOf(resource, deps, isOfRealm);
  const line = ancestry(resource);
  const urlOf = collectionLinks(isOfRealm ? [...line.slice(0, 1), resource] : line, baseUrl);
  const readIncluded = openPageIncluding(resource, deps);

  return async (call: Call, listing: ListRequest, carried: string | undefined): Promise<Reply> => {
    const listed = await store.list(resource, call.scope as KeyPrefix, listing);
    if (!listed) return NOT_FOUND_REPLY;
    let items = '';
    for (const { key, record } of listed.items)
      items += items === '' ? present(record, key) : `,${present(record, key)}`;
    const { page, sort } = listing;
    // The complete result has no other page to link to.
    const isComplete = page.kind === 'offset' && page.offset === 0 && isOfRealm && !listed.hasMore;
    const isLinked = carried !== undefined && !isComplete;
    const address = isLinked ? { url: urlOf(call.scope as KeyPrefix), carried } : undefined;
    const included = await readIncluded(call, listed.items);
    return recordReply(call, listBody(items, { listed, page, sort, address, included }));
  };
}

/** A counted page of a list that has at most one item. */
interface ShortPage extends Pick<PageContent, 'furtherMeta'> {
  readonly url: string;
  readonly total: number;
  readonly limit: number;
  readonly offset?: number | undefined;
}

/** The body of a list that has at most one item, which is made for a page that contains it. */
export function shortListBody(
  items: readonly object[],
  { url, total, limit, offset = 0, ...more }: ShortPage,
): string {
  const listed = { items: [], hasMore: false, total };
  const page = { kind: 'offset', offset, limit } as const;
  const content = { listed, page, sort: NEWEST_FIRST, address: { url, carried: '' }, ...more };
  return listBody(items.map((item) => JSON.stringify(item)).join(), content);
}
