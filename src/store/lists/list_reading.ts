import type {
  KeyedRecord,
  ListPage,
  ListRequest,
  PagePosition,
  PageRequest,
  Sort,
} from '../../directory/store.ts';
import type { Bound, ComparableValue, FilterCondition } from '../../domain/filter/filter.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { KeyPrefix, Resource } from '../../domain/resource.ts';
import { all, first, type Long, type SqlValue, type Work } from '../transaction_work.ts';
import { GATHERED_MAX, type ListPlan, type ListStatement } from './list_plans.ts';

/** What another process must read: the page and its total, or only the total. */
export type Delegated = 'page elsewhere' | 'total elsewhere';

/** Undefined if the record that the scope names does not exist. */
export type ListOutcome = ListPage | undefined | Delegated;

export interface ScopedListRequest {
  readonly resource: Resource;
  readonly scope: KeyPrefix;
  readonly listing: ListRequest;
}

/** Decides whether a list is read on the event loop or in a reader process, and holds the known total. */
export interface ReadBudget {
  /** No more than LIMITS.listRecordsInlineMax rows may be touched. */
  readonly isBounded: boolean;
  readonly isTotalWanted: boolean;
  readonly knownTotal: (request: ScopedListRequest) => number | undefined;
}

/** A list request with its plan and values. */
export interface PlannedList {
  readonly request: ScopedListRequest;
  readonly plan: ListPlan;
  /** The values of scope, `only` and filter. */
  readonly values: readonly SqlValue[];
  readonly decode: (row: Row) => KeyedRecord;
  /**
   * Selects the total if it is stored; no row if the scope does not exist. Parameters: the scope. Undefined for a list without
   * a scope.
   */
  readonly presence: string | undefined;
}

interface PresenceRow {
  readonly total: Long | null;
}

type Row = Record<string, unknown>;

/**
 * Reads a list within a budget. The statements themselves bound the rows that they touch: under a bounded budget, each of
 * them reads an index with only the wanted records, up to a limit.
 */
export function* readList(planned: PlannedList, budget: ReadBudget): Work<ListOutcome> {
  const { isServed, isWalkable } = planned.plan;
  const gathered = isServed && !isWalkable ? yield* readAll(planned) : undefined;
  if (gathered && gathered.length > 0) return pageOf(gathered, planned);
  const present = yield* readPresence(planned);
  if (present === undefined) return undefined;
  if (gathered) return pageOf(gathered, planned);
  const { total } = present;
  const knownTotal = total === null ? budget.knownTotal : () => Number(total);
  return yield* (isWalkable ? walk : pick)(planned, { ...budget, knownTotal });
}

function* readPresence({ presence, request }: PlannedList): Work<PresenceRow | undefined> {
  return presence === undefined ? { total: null } : yield* first<PresenceRow>(presence, ...request.scope);
}

function read({ plan }: PlannedList, statement: ListStatement, values: readonly SqlValue[]) {
  return all<Row>(plan.text(statement), ...values);
}

/** All records of the list, unordered; undefined if they do not fit a page. */
function* readAll(planned: PlannedList): Work<KeyedRecord[] | undefined> {
  const rows = yield* read(planned, 'gather', planned.values);
  return rows.length > GATHERED_MAX ? undefined : rows.map(planned.decode);
}

/** The page of a list whose records are all in memory. */
function pageOf(all: KeyedRecord[], { request }: PlannedList): ListPage {
  const { sort, page } = request.listing;
  if (all.length > 1)
    all.sort((left, right) => compare(positionOf(left, sort), positionOf(right, sort), sort));
  const first = page.kind === 'offset' ? page.offset : indexAfter(all, page.after, sort);
  const items = all.slice(first, first + page.limit);
  const total = page.kind === 'offset' ? all.length : undefined;
  return { items, hasMore: all.length > first + page.limit, total };
}

function indexAfter(all: readonly KeyedRecord[], after: PagePosition | undefined, sort: Sort): number {
  if (!after) return 0;
  const found = all.findIndex((record) => compare(positionOf(record, sort), after, sort) > 0);
  return found < 0 ? all.length : found;
}

function positionOf({ record }: KeyedRecord, { by }: Sort): PagePosition {
  return { at: by === 'id' ? undefined : record[by], id: record.id };
}

/** Negative if the left position is first. IDs are in the order of their bytes. */
function compare(left: PagePosition, right: PagePosition, { isDescending }: Sort): number {
  const byTime = (left.at ?? 0) - (right.at ?? 0);
  const ascending = byTime !== 0 ? byTime : left.id < right.id ? -1 : Number(left.id > right.id);
  return isDescending ? -ascending : ascending;
}

/** Reads a page along the index of its order. Skipped rows cost as well, so another process reads deep pages. */
function* walk(planned: PlannedList, budget: ReadBudget): Work<ListOutcome> {
  const { page } = planned.request.listing;
  const isDeep = page.kind === 'offset' && page.offset + page.limit >= LIMITS.listRecordsInlineMax;
  if (isDeep && budget.isBounded && (yield* probe(planned)) === undefined) return 'page elsewhere';
  const listed = yield* readPage('walk', planned);
  return yield* withTotal(listed, planned, budget, function* (isExact) {
    const few = yield* probe(planned);
    if (few !== undefined) return few;
    return isExact ? yield* count(planned) : undefined;
  });
}

/** Reads a page of records without an index in their order: few are found and sorted here, many by another process. */
function* pick(planned: PlannedList, budget: ReadBudget): Work<ListOutcome> {
  if (budget.isBounded && !planned.plan.isServed) return 'page elsewhere';
  const [found] = yield* read(planned, 'few', planned.values);
  const few = fewOf(found);
  if (few === undefined && budget.isBounded) return 'page elsewhere';
  const listed = yield* few === undefined ? readPage('free', planned) : readNarrow(planned, found?.slots);
  return yield* withTotal(listed, planned, budget, function* () {
    return few ?? (yield* count(planned));
  });
}

/** A page of few records. */
function readNarrow(planned: PlannedList, slots: unknown): Work<ListPage> {
  return slots === undefined
    ? readPage('narrow', planned)
    : readPage('narrow', { ...planned, values: [slots as string] });
}

/** Their number; undefined if there are more than LIMITS.listRecordsInlineMax. */
function* probe(planned: PlannedList): Work<number | undefined> {
  return fewOf((yield* read(planned, 'probe', planned.values))[0]);
}

function fewOf(row: Row | undefined): number | undefined {
  const found = Number(row?.n);
  return found > LIMITS.listRecordsInlineMax ? undefined : found;
}

function* count(planned: PlannedList): Work<number> {
  return Number((yield* read(planned, 'count', planned.values))[0]?.n);
}

function* readPage(way: 'walk' | 'narrow' | 'free', planned: PlannedList): Work<ListPage> {
  const { values, decode } = planned;
  const { page, sort } = planned.request.listing;
  const more = page.limit + 1;
  const rows =
    page.kind === 'after' && page.after
      ? yield* read(planned, `${way} after`, [...values, ...positionValues(page.after, sort), more])
      : yield* read(planned, `${way} offset`, [...values, more, page.kind === 'offset' ? page.offset : 0]);
  const hasMore = rows.length > page.limit;
  return { items: rows.slice(0, page.limit).map(decode), hasMore, total: undefined };
}

function positionValues({ at, id }: PagePosition, { by }: Sort): readonly SqlValue[] {
  if (by === 'id') return [id];
  if (at === undefined) throw new Error(`a position in a list by ${by} has a timestamp`);
  return [at, id];
}

/** Adds the total, if it is wanted: derived from the page, already known, or counted. */
function* withTotal(
  listed: ListPage,
  { request }: PlannedList,
  { isBounded, isTotalWanted, knownTotal }: ReadBudget,
  countAll: (isExact: boolean) => Work<number | undefined>,
): Work<ListOutcome> {
  const { page } = request.listing;
  if (page.kind === 'after' || !isTotalWanted) return listed;
  const derived = withConsistentTotal(listed, page, 0);
  if (derived.isEnd) return derived.listed;
  const total = knownTotal(request) ?? (yield* countAll(!isBounded));
  return total === undefined ? 'total elsewhere' : withConsistentTotal(listed, page, total).listed;
}

/** Adds a total that does not contradict the page, however old it is. `isEnd`: the page determines the total. */
export function withConsistentTotal(
  listed: ListPage,
  page: PageRequest,
  total: number,
): { readonly listed: ListPage; readonly isEnd: boolean } {
  const first = page.kind === 'offset' ? page.offset : 0;
  const seen = first + listed.items.length;
  const isEnd = !listed.hasMore && (listed.items.length > 0 || first === 0);
  const least = listed.hasMore ? seen + 1 : 0;
  return { listed: { ...listed, total: isEnd ? seen : Math.max(total, least) }, isEnd };
}

/**
 * The same list request without the filter bound that the cursor implies. An engine starts an index scan at one bound: with
 * the filter's bound as well, it might start there and read on to the cursor, which takes longer for deeper pages.
 */
export function startAtCursor(listing: ListRequest): ListRequest {
  const { filter, sort, page } = listing;
  const position = page.kind === 'after' ? page.after : undefined;
  const sortValue = sort.by === 'id' ? position?.id : position?.at;
  if (sortValue === undefined) return listing;
  const bounds = filter.flatMap((group) => nearBound(group, sort) ?? []);
  if (bounds.some((bound) => isBeyond(sortValue, bound, sort))) {
    return { ...listing, page: { kind: 'after', after: undefined, limit: page.limit } };
  }
  if (bounds.length === 0) return listing;
  return {
    ...listing,
    filter: filter.map((group) => farOnly(group, sort)).filter(({ length }) => length > 0),
  };
}

/** The bound of this group at the start of the list, if the group is a range of the sort key. */
function nearBound([condition, ...others]: readonly FilterCondition[], sort: Sort): Bound | undefined {
  if (others.length > 0 || condition?.kind !== 'range' || condition.member !== sort.by) return undefined;
  return sort.isDescending ? condition.to : condition.from;
}

/** The group without that bound; empty if nothing is left. */
function farOnly(group: readonly FilterCondition[], sort: Sort): readonly FilterCondition[] {
  const [condition] = group;
  if (!nearBound(group, sort) || condition?.kind !== 'range') return group;
  const { kind, member, compared, from, to } = condition;
  if (sort.isDescending) return from ? [{ kind, member, compared, from }] : [];
  return to ? [{ kind, member, compared, to }] : [];
}

/** Whether a position is before all records within a bound, so that the page begins with the first of them. */
function isBeyond(
  sortValue: ComparableValue,
  { value, isInclusive }: Bound,
  { isDescending }: Sort,
): boolean {
  if (sortValue === value) return !isInclusive;
  return isDescending ? sortValue > value : sortValue < value;
}
