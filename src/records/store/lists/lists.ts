import { LIMITS } from '../../../model/limits.ts';
import type { KeyPrefix, Resource } from '../../../model/resource.ts';
import { RESOURCES, resourceNamed } from '../../../model/resources.ts';
import type { ListPage, ListRequest, Store } from '../../../model/store.ts';
import type { Dialect } from '../../../sql/dialect.ts';
import type { SqlValue, Work } from '../../../sql/transaction_work.ts';
import type { Transactions } from '../../../sql/transactions.ts';
import type { Statements } from '../statements.ts';
import { clauseOf } from './filters.ts';
import { type Index, type ListPlan, listTable, planList } from './list_plans.ts';
import {
  isBoundedByShape,
  type ListOutcome,
  type PlannedList,
  readList,
  startAtCursor,
  withTotal,
} from './list_reading.ts';
import { chooseWords } from './word_choice.ts';

/** A list request to a reader process. Plain data. */
export interface ReaderListRequest {
  /** The name of the resource. */
  readonly resource: string;
  readonly scope: KeyPrefix;
  readonly listing: ListRequest;
  readonly isTotalWanted: boolean;
}

/** A list of a collection. */
export interface ScopedListRequest {
  readonly resource: Resource;
  readonly scope: KeyPrefix;
  readonly listing: ListRequest;
}

/** Sends a request to a reader process. Rejects with Fault `overloaded` if too many wait. */
export type ReaderClient = (request: ReaderListRequest) => Promise<ListPage | undefined>;

export type Lists = ReturnType<typeof openLists>;

export function openLists({ bounded, unbounded }: ListReading, read: Transactions['read']) {
  return {
    /** Reads in this process, however many rows that touches: for processes that need not answer other requests. */
    local: (resource: Resource, scope: KeyPrefix, listing: ListRequest) =>
      read(() => unbounded({ resource, scope, listing }, 'whole')),
    /** Answers a request in the reader process. */
    async serve({ resource: name, scope, listing, isTotalWanted }: ReaderListRequest) {
      const extent = isTotalWanted ? 'whole' : 'page';
      return read(() => unbounded({ resource: resourceNamed(name), scope, listing }, extent));
    },
    /** Reads lists that are bounded (docs/guides/lists-and-writes.md#lists), and delegates others to a reader process. */
    delegating(send: ReaderClient): Store['list'] {
      const delegate = openDelegation(send);
      return (resource, scope, listing) => {
        const request = { resource, scope, listing };
        const work = bounded(request);
        const outcome = work ? read(work) : 'elsewhere';
        if (!(outcome instanceof Promise)) return outcome === 'elsewhere' ? delegate(request) : outcome;
        return outcome.then((late) => (late === 'elsewhere' ? delegate(request) : late));
      };
    },
  };
}

/** Concurrent requests for pages of one list share one count, and each reads its own page meanwhile. */
function openDelegation(send: ReaderClient): (request: ScopedListRequest) => Promise<ListPage | undefined> {
  /** Totals that were requested within LIMITS.totalAgeMsMax, so they miss no older commit. Undefined: no such list. */
  const totals = new Map<string, Promise<number | undefined>>();
  return async ({ resource, scope, listing }) => {
    const { page, only, filter } = listing;
    const ask = (isTotalWanted: boolean) => send({ resource: resource.name, scope, listing, isTotalWanted });
    if (page.kind === 'after') return ask(false);
    const key = JSON.stringify([resource.name, scope, only, filter]);
    const counting = totals.get(key);
    if (counting) {
      const [known, listed] = await Promise.all([counting, ask(false)]);
      if (!listed) return undefined;
      if (known !== undefined) return withTotal(listed, page.offset, listed.total ?? known);
    }
    const counted = ask(true);
    if (totals.size >= LIMITS.totalsCachedMax) return counted;
    const total = counted.then((listed) => listed?.total);
    totals.set(key, total);
    setTimeout(() => totals.delete(key), LIMITS.totalAgeMsMax).unref();
    total.catch(() => totals.delete(key));
    return counted;
  };
}

interface ListReadingDeps {
  readonly of: (resource: Resource) => Statements;
  readonly dialect: Dialect;
  readonly indexesOf: (table: string) => readonly Index[];
  /** Called with statements that are no longer used. */
  readonly forget: (texts: Iterable<string>) => void;
}

type ListReading = ReturnType<typeof openListReading>;

/** The work that reads a list. */
export function openListReading({ of, dialect, indexesOf, forget }: ListReadingDeps) {
  // Described when the store is opened: a list is planned outside of its read, which retries and reports errors of the engine.
  const tables = new Map(
    RESOURCES.map((resource) => [
      resource,
      listTable(resource, of(resource), indexesOf(resource.table), dialect),
    ]),
  );
  const plans = new Map<string, ListPlan>();

  /** Caches a plan. Callers choose their filters, so the cache drops the oldest plan when it is full. */
  function cachePlan(name: string, plan: ListPlan): ListPlan {
    if (plans.size >= LIMITS.listStatementsCachedMax) {
      const oldest = plans.keys().next().value as string;
      forget(Object.values(plans.get(oldest)?.texts ?? {}));
      plans.delete(oldest);
    }
    plans.set(name, plan);
    return plan;
  }

  function planned(
    { resource, scope, listing: requested }: ScopedListRequest,
    isByWord = false,
  ): PlannedList {
    const listing = startAtCursor(requested);
    const { filter, sort, only, page } = listing;
    const table = tables.get(resource);
    if (!table) throw new Error(`${resource.name} has no table`);
    const depth = scope.length;
    const { text: where, values: filtered } = clauseOf(filter, table.columnOf, dialect);
    const hasOnly = only !== undefined;
    const gatheredMax = Math.max(dialect.lists.gatheredMax, page.limit);
    const shape = { depth, filter, hasOnly, isByWord, sort, where, gatheredMax };
    const order = `${sort.by} ${sort.isDescending}`;
    const name = `${table.table} ${depth} ${hasOnly} ${isByWord} ${order} ${gatheredMax} ${where}`;
    const plan = plans.get(name) ?? cachePlan(name, planList(table, shape, dialect));
    const values: SqlValue[] = hasOnly
      ? [...scope, dialect.lists.among(only), ...filtered]
      : [...scope, ...filtered];
    return { scope, listing, table, plan, values };
  }

  return {
    /**
     * Each statement finds at most one row more than LIMITS.listRecordsInlineMax; `elsewhere` if the list needs more. Undefined if its
     * shape sets no bound, as that of a filter by words, so no word is chosen. The work plans again: while it waited for a connection,
     * the plan may have been dropped, and its statements forgotten.
     */
    bounded(request: ScopedListRequest): (() => Work<ListOutcome>) | undefined {
      return isBoundedByShape(planned(request)) ? () => readList(planned(request), 'bounded') : undefined;
    },
    /** Touches any number of rows. */
    *unbounded(request: ScopedListRequest, extent: 'page' | 'whole'): Work<ListPage | undefined> {
      const { resource, listing } = request;
      const { filter, isNarrow } = yield* chooseWords(resource, listing.filter, dialect.words);
      const list = planned({ ...request, listing: { ...listing, filter } }, isNarrow);
      return (yield* readList(list, extent)) as ListPage | undefined;
    },
  };
}
