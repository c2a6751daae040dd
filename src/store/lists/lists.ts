import type { KeyedRecord, ListPage, ListRequest, MaybePromise, Store } from '../../directory/store.ts';
import { LIMITS } from '../../domain/limits.ts';
import { ancestry, type KeyPrefix, type Resource } from '../../domain/resource.ts';
import { resourceNamed } from '../../domain/resources.ts';
import type { Dialect } from '../dialect.ts';
import type { SqlValue, Statements } from '../records/statements.ts';
import type { Work } from '../transaction_work.ts';
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

/** What is asked of another process about a list. Plain data. */
export interface ReaderListRequest {
  /** The name of the resource. */
  readonly resource: string;
  readonly scope: KeyPrefix;
  readonly listing: ListRequest;
  readonly isTotalWanted: boolean;
}

/** Without `listed` the record that the scope names is not there. */
export interface ReaderListResponse {
  readonly listed?: ListPage;
}

/** Asks a process beside this one. Rejects with Fault `overloaded` where too much waits. */
export type ReaderClient = (question: ReaderListRequest) => Promise<ReaderListResponse>;

export interface Lists {
  /** Answers here, however much that touches: for whoever has nothing else to answer meanwhile. */
  readonly local: Store['list'];
  /** Answers here what is asked of another process. */
  serve(question: ReaderListRequest): Promise<ReaderListResponse>;
  /** Answers what touches at most LIMITS.listRecordsInlineMax rows, and asks another process for the rest. */
  delegating(ask: ReaderClient): Store['list'];
}

/** Reads lists, each as far as its budget goes. */
export type ReadLists<T> = (question: ScopedListRequest, budget: ReadBudget) => T;

/** Lists over whatever reads them. */
export function openLists(within: ReadLists<MaybePromise<ListOutcome>>): Lists {
  const all = (question: ScopedListRequest, isTotalWanted: boolean) =>
    within(question, { isBounded: false, isTotalWanted, knownTotal: () => undefined }) as MaybePromise<
      ListPage | undefined
    >;

  return {
    local: (resource, scope, listing) => all({ resource, scope, listing }, true),
    async serve({ resource: name, scope, listing, isTotalWanted }) {
      const listed = await all({ resource: resourceNamed(name), scope, listing }, isTotalWanted);
      return listed ? { listed } : {};
    },
    delegating: (ask) => listDelegating(within, ask),
  };
}

function listDelegating(within: ReadLists<MaybePromise<ListOutcome>>, ask: ReaderClient): Store['list'] {
  const totals = openTotalCache();
  const knownTotal = (question: ScopedListRequest) => totals.known(totalKey(question));
  const counted: ReadBudget = { isBounded: true, isTotalWanted: true, knownTotal };
  const uncounted: ReadBudget = { ...counted, isTotalWanted: false };

  /** The page by another process; and the total, where one is wanted and none is known. */
  async function askAll(question: ScopedListRequest): Promise<ListPage | undefined> {
    const { resource, scope, listing } = question;
    const known = listing.page.kind === 'offset' ? knownTotal(question) : undefined;
    const isTotalWanted = listing.page.kind === 'offset' && known === undefined;
    const asked = ask({ resource: resource.name, scope, listing, isTotalWanted }).then(
      ({ listed }) => listed,
    );
    if (isTotalWanted) {
      totals.keep(
        totalKey(question),
        asked.then((listed) => listed?.total),
      );
    }
    const listed = await asked;
    return listed && known !== undefined ? withConsistentTotal(listed, listing.page, known).listed : listed;
  }

  /** Many ask for the beginning of one list at once: one of them has it counted, each reads its own page. */
  async function joinOrAsk(question: ScopedListRequest): Promise<ListPage | undefined> {
    const counting = totals.awaited(totalKey(question));
    if (!counting) return askAll(question);
    const total = await counting;
    if (total === undefined) return undefined;
    const outcome = await within(question, { ...counted, knownTotal: () => total });
    return typeof outcome === 'string' ? askAll(question) : outcome;
  }

  async function later(
    question: ScopedListRequest,
    pending: Promise<ListOutcome> | Delegated,
  ): Promise<ListPage | undefined> {
    const outcome = await pending;
    if (outcome === 'page elsewhere') return askAll(question);
    return outcome === 'total elsewhere' ? joinOrAsk(question) : outcome;
  }

  return (resource, scope, listing) => {
    const question = { resource, scope, listing };
    const outcome = within(question, listing.page.kind === 'offset' ? counted : uncounted);
    return outcome instanceof Promise || typeof outcome === 'string' ? later(question, outcome) : outcome;
  };
}

/** What two questions with one total have in common. */
function totalKey({ resource, scope, listing: { only, filter } }: ScopedListRequest): string {
  return JSON.stringify([resource.name, scope, only, filter]);
}

/** A table with what all of its lists have in common. */
interface Table {
  readonly list: ListTable;
  readonly decode: (row: Record<string, unknown>) => KeyedRecord;
  /** By the length of a scope. */
  readonly presences: readonly string[];
}

interface ListReadingDeps {
  readonly of: (resource: Resource) => Statements;
  readonly dialect: Pick<Dialect, 'lists' | 'position'>;
  readonly indexesOf: (table: string) => readonly Index[];
  /** Told of texts that nobody asks for any more. */
  readonly forget: (texts: Iterable<string>) => void;
}

/** Makes the work of a list. */
export function openListReading({
  of,
  dialect,
  indexesOf,
  forget,
}: ListReadingDeps): ReadLists<Work<ListOutcome>> {
  const tables = new Map<Resource, Table>();
  const shapes = new Map<string, ListPlan>();

  function tableOf(resource: Resource): Table {
    let table = tables.get(resource);
    if (!table) {
      const line = ancestry(resource);
      table = {
        list: listTable(resource, of(resource), indexesOf(resource.table)),
        decode: of(resource).decodePlaced,
        presences: line.map((_, depth) => scopePresenceText(line.slice(0, depth))),
      };
      tables.set(resource, table);
    }
    return table;
  }

  /** Callers choose the shapes of their filters: the oldest one makes room for one more. */
  function keep(name: string, plan: ListPlan): ListPlan {
    if (shapes.size >= LIMITS.listStatementsCachedMax) {
      const oldest = shapes.keys().next().value as string;
      forget(shapes.get(oldest)?.made() ?? []);
      shapes.delete(oldest);
    }
    shapes.set(name, plan);
    return plan;
  }

  return ({ resource, scope, listing: given }, budget) => {
    const listing = startAtCursor(given);
    const { filter, sort, only } = listing;
    const { list, decode, presences } = tableOf(resource);
    const depth = scope.length;
    const { text: where, values: filtered } = clauseOf(filter, list.columnOf, dialect);
    const hasOnly = only !== undefined;
    const name = `${list.table} ${depth} ${hasOnly} ${sort.by} ${sort.isDescending} ${where}`;
    const plan =
      shapes.get(name) ?? keep(name, planList(list, { depth, filter, hasOnly, sort, where }, dialect.lists));
    const values: SqlValue[] = hasOnly
      ? [...scope, dialect.lists.among(only), ...filtered]
      : [...scope, ...filtered];
    const presence = presences[depth] as string;
    return readList({ question: { resource, scope, listing }, plan, values, decode, presence }, budget);
  };
}
