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
import type { SqlValue } from '../records/statements.ts';
import { all, first, type Work } from '../transaction_work.ts';
import { GATHERED_MAX, type ListPlan, type ListStatement } from './list_plans.ts';

/** What another process must read: the page as well, or no more than how many there are in all. */
export type Delegated = 'page elsewhere' | 'total elsewhere';

/** Undefined where the record that the scope names is not there. */
export type ListOutcome = ListPage | undefined | Delegated;

/** What is asked of a store about a list. */
export interface ScopedListRequest {
  readonly resource: Resource;
  readonly scope: KeyPrefix;
  readonly listing: ListRequest;
}

/** How much may be read here, and what is known already. */
export interface ReadBudget {
  /** No more than LIMITS.listRecordsInlineMax rows may be touched. */
  readonly isBounded: boolean;
  readonly isTotalWanted: boolean;
  readonly knownTotal: (question: ScopedListRequest) => number | undefined;
}

/** A question in the words of its statements. */
export interface PlannedList {
  readonly question: ScopedListRequest;
  readonly plan: ListPlan;
  /** The values of scope, `only` and filter. */
  readonly values: readonly SqlValue[];
  readonly decode: (row: Row) => KeyedRecord;
  /** Answers whether anything is being purged; no row where the scope is not there. Parameters: the scope. */
  readonly presence: string;
}

type Row = Record<string, unknown>;

/**
 * Reads a list as far as the budget goes. What is touched is bounded by the statements alone: each of those that run
 * under a bounded budget walks an index that holds nothing else than what is asked for, and ends at a limit.
 */
export function* readList(asked: PlannedList, budget: ReadBudget): Work<ListOutcome> {
  const { isServed, isWalkable } = asked.plan;
  const gathered = isServed && !isWalkable ? yield* readAll(asked) : undefined;
  if (gathered && gathered.length > 0) return pageOf(gathered, asked);
  const present = yield* first<{ purging: number }>(asked.presence, ...asked.question.scope);
  if (present === undefined) return undefined;
  if (gathered) return pageOf(gathered, asked);
  const mayBePurging = present.purging === 1;
  return yield* (isWalkable ? walk : pick)(asked, mayBePurging, budget);
}

function read(
  { plan }: PlannedList,
  reading: ListStatement,
  values: readonly SqlValue[],
  mayBePurging: boolean,
) {
  return all<Row>(plan.text(reading, mayBePurging), ...values);
}

/** All records that are asked for, in no order; undefined where they are more than fit a page. */
function* readAll(asked: PlannedList): Work<KeyedRecord[] | undefined> {
  const rows = yield* read(asked, 'gather', asked.values, true);
  return rows.length > GATHERED_MAX ? undefined : rows.map(asked.decode);
}

/** The page of a list that is wholly at hand. */
function pageOf(all: KeyedRecord[], { question }: PlannedList): ListPage {
  const { sort, page } = question.listing;
  if (all.length > 1) all.sort((left, right) => compare(markOf(left, sort), markOf(right, sort), sort));
  const first = page.kind === 'offset' ? page.offset : indexBehind(all, page.after, sort);
  const items = all.slice(first, first + page.limit);
  const total = page.kind === 'offset' ? all.length : undefined;
  return { items, hasMore: all.length > first + page.limit, total };
}

function indexBehind(all: readonly KeyedRecord[], after: PagePosition | undefined, sort: Sort): number {
  if (!after) return 0;
  const found = all.findIndex((placed) => compare(markOf(placed, sort), after, sort) > 0);
  return found < 0 ? all.length : found;
}

function markOf({ record }: KeyedRecord, { by }: Sort): PagePosition {
  return { at: by === 'id' ? undefined : record[by], id: record.id };
}

/** Negative where the left one comes first. Identifiers are in the order of their bytes. */
function compare(left: PagePosition, right: PagePosition, { isDescending }: Sort): number {
  const byTime = (left.at ?? 0) - (right.at ?? 0);
  const ascending = byTime !== 0 ? byTime : left.id < right.id ? -1 : Number(left.id > right.id);
  return isDescending ? -ascending : ascending;
}

/** A page along the index of the order. It costs what it skips, so a deep one is read elsewhere. */
function* walk(asked: PlannedList, mayBePurging: boolean, budget: ReadBudget): Work<ListOutcome> {
  const { page } = asked.question.listing;
  const isDeep = page.kind === 'offset' && page.offset + page.limit >= LIMITS.listRecordsInlineMax;
  if (isDeep && budget.isBounded && (yield* probe(asked, mayBePurging)) === undefined)
    return 'page elsewhere';
  const listed = yield* readPage('walk', asked, mayBePurging);
  return yield* withTotal(listed, asked, budget, function* (isExact) {
    const few = yield* probe(asked, mayBePurging);
    if (few !== undefined) return few;
    return isExact ? yield* count(asked, mayBePurging) : undefined;
  });
}

/** A page of records that no index has in order: few of them are found and sorted, many are for another process. */
function* pick(asked: PlannedList, mayBePurging: boolean, budget: ReadBudget): Work<ListOutcome> {
  if (budget.isBounded && !asked.plan.isServed) return 'page elsewhere';
  const [found] = yield* read(asked, 'few', asked.values, mayBePurging);
  const few = fewOf(found);
  if (few === undefined && budget.isBounded) return 'page elsewhere';
  const listed = yield* few === undefined
    ? readPage('free', asked, mayBePurging)
    : readNarrow(asked, found?.slots, mayBePurging);
  return yield* withTotal(listed, asked, budget, function* () {
    return few ?? (yield* count(asked, mayBePurging));
  });
}

/** A page of few. What is being purged is not in their slots. */
function readNarrow(asked: PlannedList, slots: unknown, mayBePurging: boolean): Work<ListPage> {
  return slots === undefined
    ? readPage('narrow', asked, mayBePurging)
    : readPage('narrow', { ...asked, values: [slots as string] }, false);
}

/** How many there are, if they are few; undefined where they are more than may be touched in a turn. */
function* probe(asked: PlannedList, mayBePurging: boolean): Work<number | undefined> {
  return fewOf((yield* read(asked, 'probe', asked.values, mayBePurging))[0]);
}

function fewOf(row: Row | undefined): number | undefined {
  const found = Number(row?.n);
  return found > LIMITS.listRecordsInlineMax ? undefined : found;
}

function* count(asked: PlannedList, mayBePurging: boolean): Work<number> {
  return Number((yield* read(asked, 'count', asked.values, mayBePurging))[0]?.n);
}

function* readPage(
  way: 'walk' | 'narrow' | 'free',
  asked: PlannedList,
  mayBePurging: boolean,
): Work<ListPage> {
  const { values, decode } = asked;
  const { page, sort } = asked.question.listing;
  const more = page.limit + 1;
  const rows =
    page.kind === 'after' && page.after
      ? yield* read(
          asked,
          `${way} behind`,
          [...values, ...positionValues(page.after, sort), more],
          mayBePurging,
        )
      : yield* read(
          asked,
          `${way} from`,
          [...values, more, page.kind === 'offset' ? page.offset : 0],
          mayBePurging,
        );
  const hasMore = rows.length > page.limit;
  return { items: rows.slice(0, page.limit).map(decode), hasMore, total: undefined };
}

function positionValues({ at, id }: PagePosition, { by }: Sort): readonly SqlValue[] {
  if (by === 'id') return [id];
  if (at === undefined) throw new Error(`a mark of a list by ${by} has its instant`);
  return [at, id];
}

/** The page with its total, where one is wanted: told by the page itself, known already, or counted. */
function* withTotal(
  listed: ListPage,
  { question }: PlannedList,
  { isBounded, isTotalWanted, knownTotal }: ReadBudget,
  countAll: (isExact: boolean) => Work<number | undefined>,
): Work<ListOutcome> {
  const { page } = question.listing;
  if (page.kind === 'after' || !isTotalWanted) return listed;
  const told = withConsistentTotal(listed, page, 0);
  if (told.isEnd) return told.listed;
  const total = knownTotal(question) ?? (yield* countAll(!isBounded));
  return total === undefined ? 'total elsewhere' : withConsistentTotal(listed, page, total).listed;
}

/** A total that does not contradict its page, however old it is. `isEnd`: the page itself says how many there are. */
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
 * The same page of the same list, so asked that its mark alone says where it begins. An index is entered at one place:
 * asked for a bound of the filter as well, the engine enters there and reads on to the mark, the longer the deeper.
 */
export function startAtCursor(listing: ListRequest): ListRequest {
  const { filter, sort, page } = listing;
  const mark = page.kind === 'after' ? page.after : undefined;
  const place = sort.by === 'id' ? mark?.id : mark?.at;
  if (place === undefined) return listing;
  const bounds = filter.flatMap((group) => nearBound(group, sort) ?? []);
  if (bounds.some((bound) => isBeyond(place, bound, sort))) {
    return { ...listing, page: { kind: 'after', after: undefined, limit: page.limit } };
  }
  if (bounds.length === 0) return listing;
  return {
    ...listing,
    filter: filter.map((group) => farOnly(group, sort)).filter(({ length }) => length > 0),
  };
}

/** The bound that a list in this order comes to first, where this group of its filter is one. */
function nearBound([condition, ...others]: readonly FilterCondition[], sort: Sort): Bound | undefined {
  if (others.length > 0 || condition?.kind !== 'range' || condition.member !== sort.by) return undefined;
  return sort.isDescending ? condition.to : condition.from;
}

/** A group without that bound; empty where nothing is left of it. */
function farOnly(group: readonly FilterCondition[], sort: Sort): readonly FilterCondition[] {
  const [condition] = group;
  if (!nearBound(group, sort) || condition?.kind !== 'range') return group;
  const { kind, member, compared, from, to } = condition;
  if (sort.isDescending) return from ? [{ kind, member, compared, from }] : [];
  return to ? [{ kind, member, compared, to }] : [];
}

/** Whether a mark stands before all that a bound lets through, so that the page begins with the first of these. */
function isBeyond(place: ComparableValue, { value, isInclusive }: Bound, { isDescending }: Sort): boolean {
  if (place === value) return !isInclusive;
  return isDescending ? place > value : place < value;
}
