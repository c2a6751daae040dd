import type { Listed, Listing, Mark, Page, Placed, Sort } from '../../directory/store.ts';
import type { Bound, Condition, Finished } from '../../domain/filter.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Resource, Scope } from '../../domain/resource.ts';
import type { SqlValue } from '../statements.ts';
import { GATHERED_MAX, type ListStatements, type Reading } from './list_statements.ts';

/** What another process must read: the page as well, or no more than how many there are in all. */
export type Elsewhere = 'page elsewhere' | 'total elsewhere';

/** Undefined where the record that the scope names is not there. */
export type Outcome = Listed | undefined | Elsewhere;

/** What is asked of a store about a list. */
export interface Question {
  readonly resource: Resource;
  readonly scope: Scope;
  readonly listing: Listing;
}

/** How much may be read here, and what is known already. */
export interface Budget {
  /** No more than LIMITS.listRecordsInTurnMax rows may be touched. */
  readonly isBounded: boolean;
  readonly isTotalWanted: boolean;
  readonly knownTotal: (question: Question) => number | undefined;
}

/** A question in the words of its statements. */
export interface Asked {
  readonly question: Question;
  readonly statements: ListStatements;
  /** The values of scope, `only` and filter. */
  readonly values: readonly SqlValue[];
  readonly decode: (row: Record<string, unknown>) => Placed;
  /** 1 where some record is being purged, 0 where none is; undefined where the scope is not there. */
  readonly purging: (scope: Scope) => number | undefined;
}

/**
 * Reads a list as far as the budget goes. What is touched is bounded by the statements alone: each of those that run
 * under a bounded budget walks an index that holds nothing else than what is asked for, and ends at a limit.
 */
export function readList(asked: Asked, budget: Budget): Outcome {
  const { isServed, isWalkable } = asked.statements.plan;
  const gathered = isServed && !isWalkable ? gather(asked) : undefined;
  if (gathered && gathered.length > 0) return cut(gathered, asked);
  const purging = asked.purging(asked.question.scope);
  if (purging === undefined) return undefined;
  if (gathered) return cut(gathered, asked);
  const mayBePurging = purging === 1;
  return isWalkable ? walk(asked, mayBePurging, budget) : pick(asked, mayBePurging, budget);
}

/** All records that are asked for, in no order; undefined where they are more than fit a page. */
function gather({ statements, values, decode }: Asked): Placed[] | undefined {
  const rows = statements.all('gather', values, true);
  return rows.length > GATHERED_MAX ? undefined : rows.map(decode);
}

/** The page of a list that is wholly at hand. */
function cut(all: Placed[], { question }: Asked): Listed {
  const { sort, page } = question.listing;
  if (all.length > 1) all.sort((left, right) => compare(markOf(left, sort), markOf(right, sort), sort));
  const first = page.kind === 'offset' ? page.offset : indexBehind(all, page.after, sort);
  const items = all.slice(first, first + page.limit);
  const total = page.kind === 'offset' ? all.length : undefined;
  return { items, hasMore: all.length > first + page.limit, total };
}

function indexBehind(all: readonly Placed[], after: Mark | undefined, sort: Sort): number {
  if (!after) return 0;
  const found = all.findIndex((placed) => compare(markOf(placed, sort), after, sort) > 0);
  return found < 0 ? all.length : found;
}

function markOf({ record }: Placed, { by }: Sort): Mark {
  return { at: by === 'id' ? undefined : record[by], id: record.id };
}

/** Negative where the left one comes first. Identifiers are in the order of their bytes. */
function compare(left: Mark, right: Mark, { isDescending }: Sort): number {
  const byTime = (left.at ?? 0) - (right.at ?? 0);
  const ascending = byTime !== 0 ? byTime : left.id < right.id ? -1 : Number(left.id > right.id);
  return isDescending ? -ascending : ascending;
}

/** A page along the index of the order. It costs what it skips, so a deep one is read elsewhere. */
function walk(asked: Asked, mayBePurging: boolean, budget: Budget): Outcome {
  const { page } = asked.question.listing;
  const isDeep = page.kind === 'offset' && page.offset + page.limit >= LIMITS.listRecordsInTurnMax;
  if (isDeep && budget.isBounded && probe(asked, mayBePurging) === undefined) return 'page elsewhere';
  const listed = readPage('walk', asked, mayBePurging);
  return withTotal(listed, asked, budget, (isExact) => {
    const few = probe(asked, mayBePurging);
    if (few !== undefined) return few;
    return isExact ? count(asked, mayBePurging) : undefined;
  });
}

/** A page of records that no index has in order: few of them are found and sorted, many are for another process. */
function pick(asked: Asked, mayBePurging: boolean, budget: Budget): Outcome {
  if (budget.isBounded && !asked.statements.plan.isServed) return 'page elsewhere';
  const [found] = asked.statements.all('few', asked.values, mayBePurging);
  const few = fewOf(found);
  if (few === undefined && budget.isBounded) return 'page elsewhere';
  const listed =
    few === undefined
      ? readPage('free', asked, mayBePurging)
      : readPage('narrow', { ...asked, values: [found?.slots as string] }, false);
  return withTotal(listed, asked, budget, () => few ?? count(asked, mayBePurging));
}

/** How many there are, if they are few; undefined where they are more than may be touched in a turn. */
function probe({ statements, values }: Asked, mayBePurging: boolean): number | undefined {
  return fewOf(statements.all('probe', values, mayBePurging)[0]);
}

function fewOf(row: Record<string, unknown> | undefined): number | undefined {
  const found = Number(row?.n);
  return found > LIMITS.listRecordsInTurnMax ? undefined : found;
}

function count({ statements, values }: Asked, mayBePurging: boolean): number {
  return Number(statements.all('count', values, mayBePurging)[0]?.n);
}

function readPage(way: 'walk' | 'narrow' | 'free', asked: Asked, mayBePurging: boolean): Listed {
  const { values, decode } = asked;
  const { page, sort } = asked.question.listing;
  const more = page.limit + 1;
  const read = (reading: Reading, own: readonly SqlValue[]) =>
    asked.statements.all(reading, [...values, ...own], mayBePurging);
  const rows =
    page.kind === 'after' && page.after
      ? read(`${way} behind`, [...placeOf(page.after, sort), more])
      : read(`${way} from`, [more, page.kind === 'offset' ? page.offset : 0]);
  const hasMore = rows.length > page.limit;
  if (hasMore) rows.pop();
  return { items: rows.map(decode), hasMore, total: undefined };
}

function placeOf({ at, id }: Mark, { by }: Sort): readonly SqlValue[] {
  if (by === 'id') return [id];
  if (at === undefined) throw new Error(`a mark of a list by ${by} has its instant`);
  return [at, id];
}

/** The page with its total, where one is wanted: told by the page itself, known already, or counted. */
function withTotal(
  listed: Listed,
  { question }: Asked,
  { isBounded, isTotalWanted, knownTotal }: Budget,
  countAll: (isExact: boolean) => number | undefined,
): Outcome {
  const { page } = question.listing;
  if (page.kind === 'after' || !isTotalWanted) return listed;
  const told = fit(listed, page, 0);
  if (told.isEnd) return told.listed;
  const total = knownTotal(question) ?? countAll(!isBounded);
  return total === undefined ? 'total elsewhere' : fit(listed, page, total).listed;
}

/** A total that does not contradict its page, however old it is. `isEnd`: the page itself says how many there are. */
export function fit(
  listed: Listed,
  page: Page,
  total: number,
): { readonly listed: Listed; readonly isEnd: boolean } {
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
export function entered(listing: Listing): Listing {
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
function nearBound([condition, ...others]: readonly Condition[], sort: Sort): Bound | undefined {
  if (others.length > 0 || condition?.kind !== 'range' || condition.member !== sort.by) return undefined;
  return sort.isDescending ? condition.to : condition.from;
}

/** A group without that bound; empty where nothing is left of it. */
function farOnly(group: readonly Condition[], sort: Sort): readonly Condition[] {
  const [condition] = group;
  if (!nearBound(group, sort) || condition?.kind !== 'range') return group;
  const { kind, member, compared, from, to } = condition;
  if (sort.isDescending) return from ? [{ kind, member, compared, from }] : [];
  return to ? [{ kind, member, compared, to }] : [];
}

/** Whether a mark stands before all that a bound lets through, so that the page begins with the first of these. */
function isBeyond(place: Finished, { value, isInclusive }: Bound, { isDescending }: Sort): boolean {
  if (place === value) return !isInclusive;
  return isDescending ? place > value : place < value;
}
