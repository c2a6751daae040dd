import type { ComparableValue, FilterCondition } from '../../../model/filter/filter.ts';
import { LIMITS } from '../../../model/limits.ts';
import type { Key, KeyPrefix } from '../../../model/resource.ts';
import type { KeyedRecord, ListPage, ListRequest, PagePosition, Sort } from '../../../model/store.ts';
import { all, first, type Long, type SqlValue, type Work } from '../../../sql/transaction_work.ts';
import type { ListPlan, ListStatement, ListTable } from './list_plans.ts';

/** Undefined if the record that the scope names does not exist; `elsewhere` if another process must read the list. */
export type ListOutcome = ListPage | undefined | 'elsewhere';

/**
 * How much of a list is read: `bounded`, the page and the total, by statements that find at most one row more than
 * LIMITS.listRecordsInlineMax; `page`, the page alone; `whole`, the page and the total.
 */
export type ReadExtent = 'bounded' | 'page' | 'whole';

/** A list request with its plan and values. */
export interface PlannedList {
  readonly scope: KeyPrefix;
  readonly listing: ListRequest;
  readonly table: ListTable;
  readonly plan: ListPlan;
  /** The values of scope, `only` and filter. */
  readonly values: readonly SqlValue[];
}

interface PresenceRow {
  readonly total: Long | null;
}

type Row = Record<string, unknown>;

/**
 * Whether the shape of a list bounds the rows that are touched: a page in the order of an index, without a great offset, and records
 * that an index finds, because `gather` reads only so many.
 */
export function isBoundedByShape({ plan, listing: { filter, page } }: PlannedList): boolean {
  const isNear = page.kind === 'after' || page.offset + page.limit <= LIMITS.listRecordsInlineMax;
  const isExact = filter.every(([condition]) => condition?.kind === 'one_of');
  return plan.isOrdered ? isExact && isNear : plan.isFound;
}

/** Gathers the records and sorts them here, or reads a page in the order of the list. */
export function* readList(planned: PlannedList, extent: ReadExtent): Work<ListOutcome> {
  const { plan, listing } = planned;
  const { page } = listing;
  const gathered = plan.isOrdered ? undefined : yield* gather(planned, extent);
  if (extent === 'bounded' && !plan.isOrdered && !gathered) return 'elsewhere';
  if (gathered && gathered.length > 0) return pageOf(gathered, listing);
  const present = yield* readPresence(planned);
  if (present === undefined) return undefined;
  if (gathered) return pageOf(gathered, listing);
  const listed = yield* readPage(planned);
  if (page.kind === 'after' || extent === 'page') return listed;
  const stored = listing.filter.length === 0 ? present.total : undefined;
  const total = totalAtEnd(listed, page.offset) ?? stored ?? (yield* count(planned, extent));
  return total === undefined ? 'elsewhere' : withTotal(listed, page.offset, Number(total));
}

function* readPresence({ table, scope }: PlannedList): Work<PresenceRow | undefined> {
  const presence = table.presences[scope.length - 1];
  return presence === undefined ? { total: null } : yield* first<PresenceRow>(presence, ...scope);
}

function read({ plan }: PlannedList, statement: ListStatement, values: readonly SqlValue[]) {
  return all<Row>(plan.texts[statement], ...values);
}

/** Where the scope has all IDs above a record, its row becomes the record: a copy would take longer than reading it. */
function recordsIn({ scope, table, plan }: PlannedList, rows: readonly Row[]): KeyedRecord[] {
  return rows.map((row) => {
    if (plan.between.length > 0) {
      const { key, record } = table.decodeKeyed(row);
      return { key: [...scope, ...key] as unknown as Key, record };
    }
    const record = table.decode(row);
    return { key: [...scope, record.id] as unknown as Key, record };
  });
}

/**
 * All records of the list, unordered; undefined if they are more than `gatheredMax`. A bounded list that exceeds a page is counted in
 * its index before the rest is fetched, so that at most a page is fetched in vain.
 */
function* gather(planned: PlannedList, extent: ReadExtent): Work<KeyedRecord[] | undefined> {
  const { values, plan, listing } = planned;
  const { pageRecordsMax } = LIMITS;
  if (extent === 'bounded' && listing.page.limit <= pageRecordsMax && plan.gatheredMax > pageRecordsMax) {
    const rows = yield* read(planned, 'few', values);
    if (rows.length <= pageRecordsMax) return recordsIn(planned, rows);
    if ((yield* count(planned, extent)) === undefined) return undefined;
  }
  const rows = yield* read(planned, 'gather', values);
  return rows.length > plan.gatheredMax ? undefined : recordsIn(planned, rows);
}

/** The page of a list whose records are all in memory. */
function pageOf(all: KeyedRecord[], { sort, page }: ListRequest): ListPage {
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

/** Their number; undefined if it is bounded and greater than LIMITS.listRecordsInlineMax. */
function* count(planned: PlannedList, extent: ReadExtent): Work<number | undefined> {
  const isBounded = extent === 'bounded';
  const [row] = yield* read(planned, isBounded ? 'probe' : 'count', planned.values);
  const found = Number(row?.n);
  return isBounded && found > LIMITS.listRecordsInlineMax ? undefined : found;
}

function* readPage(planned: PlannedList): Work<ListPage> {
  const { values, listing } = planned;
  const { page, sort } = listing;
  const more = page.limit + 1;
  const rows =
    page.kind === 'after' && page.after
      ? yield* read(planned, 'after', [...values, ...positionValues(page.after, sort), more])
      : yield* read(planned, 'offset', [...values, more, page.kind === 'offset' ? page.offset : 0]);
  const hasMore = rows.length > page.limit;
  return { items: recordsIn(planned, rows.slice(0, page.limit)), hasMore, total: undefined };
}

function positionValues({ at, id }: PagePosition, { by }: Sort): readonly SqlValue[] {
  if (by === 'id') return [id];
  if (at === undefined) throw new Error(`a position in a list by ${by} has a timestamp`);
  return [at, id];
}

/** The total of a list that ends on the page at this offset. */
function totalAtEnd({ items, hasMore }: ListPage, offset: number): number | undefined {
  return hasMore || (items.length === 0 && offset > 0) ? undefined : offset + items.length;
}

/** Adds a total that does not contradict the page at this offset, however old it is. */
export function withTotal(listed: ListPage, offset: number, total: number): ListPage {
  const least = listed.hasMore ? offset + listed.items.length + 1 : 0;
  return { ...listed, total: totalAtEnd(listed, offset) ?? Math.max(total, least) };
}

/**
 * The same list request without the filter bounds that the cursor implies. An engine starts an index scan at one bound: with
 * those of the filter as well, it might start there and read on to the cursor, which takes longer for deeper pages.
 */
export function startAtCursor(listing: ListRequest): ListRequest {
  const { filter, sort, page } = listing;
  const position = page.kind === 'after' ? page.after : undefined;
  const sortValue = sort.by === 'id' ? position?.id : position?.at;
  if (sortValue === undefined) return listing;
  const bounds = filter.flatMap((group) => nearBound(group, sort) ?? []);
  if (bounds.some((bound) => isBeyond(sortValue, bound))) {
    return { ...listing, page: { kind: 'after', after: undefined, limit: page.limit } };
  }
  return { ...listing, filter: filter.filter((group) => !nearBound(group, sort)) };
}

type Range = Extract<FilterCondition, { kind: 'range' }>;

/** The bound of this group at the start of the list, if the group is a range of the sort key. */
function nearBound([range, ...others]: readonly FilterCondition[], sort: Sort): Range | undefined {
  if (others.length > 0 || range?.kind !== 'range' || range.member !== sort.by) return undefined;
  return range.operator.startsWith(sort.isDescending ? 'l' : 'g') ? range : undefined;
}

/** Whether a position is before all records within a bound, so that the page begins with the first of them. */
function isBeyond(sortValue: ComparableValue, { operator, value }: Range): boolean {
  if (sortValue === value) return operator === 'gt' || operator === 'lt';
  return operator.startsWith('g') ? sortValue < value : sortValue > value;
}
