import type { KeyedRecord, ListPage, ListRequest, MaybePromise, Store } from '../../directory/store.ts';
import { LIMITS } from '../../domain/limits.ts';
import { ancestry, type KeyPrefix, type Resource } from '../../domain/resource.ts';
import { realm, resourceNamed } from '../../domain/resources.ts';
import { storedTotal } from '../audit/record_counts.ts';
import type { Dialect } from '../dialect.ts';
import type { Statements } from '../records/statements.ts';
import type { SqlValue, Work } from '../transaction_work.ts';
import { clauseOf } from './filters.ts';
import {
  type Index,
  type ListPlan,
  type ListTable,
  listTable,
  planList,
  scopePresenceText,
} from './list_plans.ts';
import {
  type Delegated,
  type ListOutcome,
  type ReadBudget,
  readList,
  type ScopedListRequest,
  startAtCursor,
  withConsistentTotal,
} from './list_reading.ts';
import { openTotalCache } from './totals.ts';
import { chooseWords } from './word_choice.ts';

/** A list request to a reader process. Plain data. */
export interface ReaderListRequest {
  /** The name of the resource. */
  readonly resource: string;
  readonly scope: KeyPrefix;
  readonly listing: ListRequest;
  readonly isTotalWanted: boolean;
}

/** Without `listed`, the record that the scope names does not exist. */
export interface ReaderListResponse {
  readonly listed?: ListPage;
}

/** Sends a request to a reader process. Rejects with Fault `overloaded` if too many wait. */
export type ReaderClient = (request: ReaderListRequest) => Promise<ReaderListResponse>;

export interface Lists {
  /** Reads in this process, however many rows that touches: for processes that need not answer other requests. */
  readonly local: Store['list'];
  /** Answers a request in the reader process. */
  serve(request: ReaderListRequest): Promise<ReaderListResponse>;
  /** Reads lists that touch at most LIMITS.listRecordsInlineMax rows, and delegates others to a reader process. */
  delegating(send: ReaderClient): Store['list'];
}

/** Reads lists within a budget. */
export type ReadLists<T> = (request: ScopedListRequest, budget: ReadBudget) => T;

export function openLists(readWithin: ReadLists<MaybePromise<ListOutcome>>): Lists {
  const all = (request: ScopedListRequest, isTotalWanted: boolean) =>
    readWithin(request, { isBounded: false, isTotalWanted, knownTotal: () => undefined }) as MaybePromise<
      ListPage | undefined
    >;

  return {
    local: (resource, scope, listing) => all({ resource, scope, listing }, true),
    async serve({ resource: name, scope, listing, isTotalWanted }) {
      const listed = await all({ resource: resourceNamed(name), scope, listing }, isTotalWanted);
      return listed ? { listed } : {};
    },
    delegating: (send) => listDelegating(readWithin, send),
  };
}

function listDelegating(readWithin: ReadLists<MaybePromise<ListOutcome>>, send: ReaderClient): Store['list'] {
  const totals = openTotalCache();
  const knownTotal = (request: ScopedListRequest) => totals.known(totalKey(request));
  const counted: ReadBudget = { isBounded: true, isTotalWanted: true, knownTotal };
  const uncounted: ReadBudget = { ...counted, isTotalWanted: false };

  /** Requests the page from a reader process, with the total if it is wanted and unknown. */
  async function requestPage(request: ScopedListRequest): Promise<ListPage | undefined> {
    const { resource, scope, listing } = request;
    const known = listing.page.kind === 'offset' ? knownTotal(request) : undefined;
    const isTotalWanted = listing.page.kind === 'offset' && known === undefined;
    const response = send({ resource: resource.name, scope, listing, isTotalWanted }).then(
      ({ listed }) => listed,
    );
    if (isTotalWanted) {
      totals.add(
        totalKey(request),
        response.then((listed) => listed?.total),
      );
    }
    const listed = await response;
    return listed && known !== undefined ? withConsistentTotal(listed, listing.page, known).listed : listed;
  }

  /** Concurrent requests for the first page of one list share one count, and each reads its own page. */
  async function joinCount(request: ScopedListRequest): Promise<ListPage | undefined> {
    const counting = totals.awaited(totalKey(request));
    if (!counting) return requestPage(request);
    const total = await counting;
    if (total === undefined) return undefined;
    const outcome = await readWithin(request, { ...counted, knownTotal: () => total });
    return typeof outcome === 'string' ? requestPage(request) : outcome;
  }

  async function complete(
    request: ScopedListRequest,
    pending: Promise<ListOutcome> | Delegated,
  ): Promise<ListPage | undefined> {
    const outcome = await pending;
    if (outcome === 'page elsewhere') return requestPage(request);
    return outcome === 'total elsewhere' ? joinCount(request) : outcome;
  }

  return (resource, scope, listing) => {
    const request = { resource, scope, listing };
    const outcome = readWithin(request, listing.page.kind === 'offset' ? counted : uncounted);
    return outcome instanceof Promise || typeof outcome === 'string' ? complete(request, outcome) : outcome;
  };
}

/** The same for all requests with the same total. */
function totalKey({ resource, scope, listing: { only, filter } }: ScopedListRequest): string {
  return JSON.stringify([resource.name, scope, only, filter]);
}

/** A table with the parts that all of its lists share. */
interface Table {
  readonly list: ListTable;
  readonly decode: (row: Record<string, unknown>) => KeyedRecord;
  /** The presence queries of scopes, by their length less one. */
  readonly presences: readonly string[];
  /** The presence query of a list of the whole collection of a realm, whose total is stored. */
  readonly realmPresence: string;
}

interface ListReadingDeps {
  readonly of: (resource: Resource) => Statements;
  readonly dialect: Pick<Dialect, 'lists' | 'position' | 'words'>;
  readonly indexesOf: (table: string) => readonly Index[];
  /** Called with statements that are no longer used. */
  readonly forget: (texts: Iterable<string>) => void;
}

/** Creates the work that reads a list. */
export function openListReading({
  of,
  dialect,
  indexesOf,
  forget,
}: ListReadingDeps): ReadLists<Work<ListOutcome>> {
  const tables = new Map<Resource, Table>();
  const plans = new Map<string, ListPlan>();

  function tableOf(resource: Resource): Table {
    let table = tables.get(resource);
    if (!table) {
      const scopes = ancestry(resource).slice(0, -1);
      table = {
        list: listTable(resource, of(resource), indexesOf(resource.table), dialect),
        decode: of(resource).decodeKeyed,
        presences: scopes.map((scope) => scopePresenceText(scope, 'null')),
        realmPresence: scopePresenceText(realm, storedTotal(resource)),
      };
      tables.set(resource, table);
    }
    return table;
  }

  /** Caches a plan. Callers choose their filters, so the cache drops the oldest plan when it is full. */
  function cachePlan(name: string, plan: ListPlan): ListPlan {
    if (plans.size >= LIMITS.listStatementsCachedMax) {
      const oldest = plans.keys().next().value as string;
      forget(plans.get(oldest)?.builtTexts() ?? []);
      plans.delete(oldest);
    }
    plans.set(name, plan);
    return plan;
  }

  return function* ({ resource, scope, listing: requested }, budget) {
    const listing = startAtCursor(requested);
    const { sort, only } = listing;
    // A list by words that is not read by its IDs is delegated, and chosen there.
    const { filter, isNarrow: isByWord } = budget.isBounded
      ? { filter: listing.filter, isNarrow: false }
      : yield* chooseWords(resource, listing.filter, dialect.words);
    const { list, decode, presences, realmPresence } = tableOf(resource);
    const depth = scope.length;
    const { text: where, values: filtered } = clauseOf(filter, list.columnOf, dialect);
    const hasOnly = only !== undefined;
    const name = `${list.table} ${depth} ${hasOnly} ${isByWord} ${sort.by} ${sort.isDescending} ${where}`;
    const plan =
      plans.get(name) ??
      cachePlan(name, planList(list, { depth, filter, hasOnly, isByWord, sort, where }, dialect.lists));
    const values: SqlValue[] = hasOnly
      ? [...scope, dialect.lists.among(only), ...filtered]
      : [...scope, ...filtered];
    const isCounted = depth === 1 && filter.length === 0 && !hasOnly && listing.page.kind === 'offset';
    const presence = isCounted ? realmPresence : presences[depth - 1];
    return yield* readList({ request: { resource, scope, listing }, plan, values, decode, presence }, budget);
  };
}
