import type { Sort } from '../../directory/store.ts';
import type { FilterCondition, ParsedFilter } from '../../domain/filter/filter.ts';
import { LIMITS } from '../../domain/limits.ts';
import { keyColumns, type Resource } from '../../domain/resource.ts';
import type { Dialect, ListDialect } from '../dialect.ts';
import type { Statements } from '../records/statements.ts';
import { type ColumnOf, columnsOf, parameterCount } from './filters.ts';

/** An index of the database, as read from its schema. */
export interface Index {
  readonly name: string;
  readonly columns: readonly string[];
  readonly isUnique: boolean;
}

/** A table whose records are listed. */
export interface ListTable {
  readonly table: string;
  /** The key columns; the last one is the ID. */
  readonly keys: readonly string[];
  readonly columnOf: ColumnOf;
  /** Selects the key and the visible members. */
  readonly select: string;
  readonly indexes: readonly Index[];
}

export function listTable(
  resource: Resource,
  { visible }: Pick<Statements, 'visible'>,
  indexes: readonly Index[],
  dialect: Pick<Dialect, 'words'>,
): ListTable {
  const keys = keyColumns(resource);
  const columns = [...keys.slice(0, -1), ...visible];
  return {
    table: resource.table,
    keys,
    columnOf: columnsOf(resource, dialect),
    select: `select ${columns.join(', ')} from ${resource.table}`,
    indexes,
  };
}

/** The part of a list request that determines its statements; values do not matter. */
export interface ListShape {
  readonly depth: number;
  readonly filter: ParsedFilter;
  readonly hasOnly: boolean;
  /** The row IDs of a word find the records, on an engine that would read the whole scope instead. */
  readonly isByWord?: boolean;
  readonly sort: Sort;
  /** The filter as a clause. */
  readonly where: string;
}

/**
 * The statements of a list. Their values begin with those of scope, `only` and filter.
 * - `gather`: up to `GATHERED_MAX` + 1 records, unordered, by an index that finds only these.
 * - `probe`: `n`, their number, counted up to LIMITS.listRecordsInlineMax + 1.
 * - `few`: the same, and their row IDs if the engine has them.
 * - `count`: `n`, their number.
 * - `walk`: a page, read along an index in the order of the list.
 * - `narrow`: a page of few records, which are then sorted. Their row IDs, if known, replace scope, `only` and filter.
 * - `free`: a page by the engine's own plan.
 * Further values of pages: limit and offset for `offset`; position and limit for `after`.
 */
export type ListStatement = 'gather' | 'probe' | 'few' | 'count' | `${PageWay} ${'offset' | 'after'}`;

type PageWay = 'walk' | 'narrow' | 'free';

/** How lists of one shape are read. */
export interface ListPlan {
  /** An index finds exactly the records of scope and filter, so that `gather`, `probe` and `few` touch few rows. */
  readonly isServed: boolean;
  /** An index has exactly these records in order: `walk` touches those of the page and those that the offset skips. */
  readonly isWalkable: boolean;
  /** The statement. Each text is built once. */
  text(statement: ListStatement): string;
  /** The statements built so far. */
  builtTexts(): Iterable<string>;
}

export const GATHERED_MAX = LIMITS.pageRecordsMax;

export function planList(table: ListTable, shape: ListShape, dialect: ListDialect): ListPlan {
  const { select, keys } = table;
  const id = keys.at(-1) as string;
  const wanted = indexConditions(table, shape);
  const walking = table.indexes.find((index) => isWalkableBy(index, wanted, shape.sort, id));
  const served = walking ?? findIndex(table, wanted);
  const by = (index: Index | undefined) => (index ? dialect.indexHint(index.name) : '');
  const conditions = conditionsOf(table, { ...shape, isByWord: shape.isByWord === true && !served }, dialect);
  const { order, after } = orderOf(shape.sort, id);

  const most = LIMITS.listRecordsInlineMax + 1;

  function page(way: PageWay, isAfter: boolean): string {
    const where = (way === 'narrow' ? dialect.isInRowIds : undefined) ?? conditions;
    const source = `${select}${way === 'walk' ? by(walking) : ''} where ${where}`;
    return isAfter
      ? `${source} and ${after} order by ${order} limit ?`
      : `${source} order by ${order} limit ? offset ?`;
  }

  function build(statement: ListStatement): string {
    const source = `from ${table.table}${by(served ?? scanIndex(table, shape))} where ${conditions}`;
    switch (statement) {
      case 'gather':
        return `${select}${by(served)} where ${conditions} limit ${GATHERED_MAX + 1}`;
      case 'probe':
        return `select count(*) as n from (select 1 ${source} limit ${most}) as probed`;
      case 'few':
        return dialect.few(source, most);
      case 'count':
        return `select count(*) as n ${source}`;
      default: {
        const [way, position] = statement.split(' ') as [PageWay, string];
        return page(way, position === 'after');
      }
    }
  }

  const texts = new Map<ListStatement, string>();
  return {
    isServed: served !== undefined,
    isWalkable: walking !== undefined,
    text(statement) {
      let text = texts.get(statement);
      if (text === undefined) {
        text = build(statement);
        texts.set(statement, text);
      }
      return text;
    },
    builtTexts: () => texts.values(),
  };
}

/** Before a column: SQLite uses no index on it. */
const WITHOUT_INDEX = '+';

function conditionsOf(
  { keys }: ListTable,
  { depth, hasOnly, isByWord, where }: ListShape,
  { isAmong }: ListDialect,
): string {
  const conditions = [
    ...keys
      .slice(0, depth)
      .map((column, index) => `${isByWord ? WITHOUT_INDEX : ''}${column} = ?${index + 1}`),
    ...(hasOnly ? [isAmong(keys.at(-1) as string)] : []),
    ...(where === '' ? [] : [where]),
  ];
  return conditions.length === 0 ? 'true' : conditions.join(' and ');
}

/** The ID breaks ties in the direction of the sort key (docs/wire.md#order). */
function orderOf({ by, isDescending }: Sort, id: string): { readonly order: string; readonly after: string } {
  const direction = isDescending ? ' desc' : '';
  const than = isDescending ? '<' : '>';
  return by === 'id'
    ? { order: `${id}${direction}`, after: `${id} ${than} ?` }
    : { order: `${by}${direction}, ${id}${direction}`, after: `(${by}, ${id}) ${than} (?, ?)` };
}

/** The conditions of scope and filter that an index can serve. */
interface IndexConditions {
  /** Columns with one of so many values. */
  readonly equal: ReadonlyMap<string, number>;
  /** Columns in a range with one or two bounds. */
  readonly ranged: ReadonlySet<string>;
  /** Further conditions must be checked row by row. */
  readonly hasMore: boolean;
}

function indexConditions({ keys, columnOf }: ListTable, shape: ListShape): IndexConditions {
  const equal = new Map(keys.slice(0, shape.depth).map((column) => [column, 1]));
  if (shape.hasOnly) equal.set(keys.at(-1) as string, Number.POSITIVE_INFINITY);
  const bounds = new Map<string, Set<string>>();

  /** Returns false if no index can serve it: a second set of values for a column, or a second bound on one side. */
  function add(condition: FilterCondition): boolean {
    const column = columnOf(condition);
    if (condition.kind === 'one_of') {
      if (equal.has(column)) return false;
      equal.set(column, parameterCount(condition));
      return true;
    }
    const bounded = bounds.get(column) ?? new Set();
    const sides = sidesOf(condition);
    if (sides.length === 0 || sides.some((side) => bounded.has(side))) return false;
    bounds.set(column, bounded.union(new Set(sides)));
    return true;
  }

  const rest = shape.filter.filter(([first, ...others]) => !first || others.length > 0 || !add(first));
  return { equal, ranged: new Set(bounds.keys()), hasMore: rest.length > 0 };
}

function sidesOf(condition: FilterCondition): readonly string[] {
  if (condition.kind === 'pattern') return condition.part === 'prefix' ? ['from', 'to'] : [];
  if (condition.kind !== 'range') return [];
  return [...(condition.from ? ['from'] : []), ...(condition.to ? ['to'] : [])];
}

/** Whether an index finds exactly the wanted records: by its first columns, of which the last may be a range. */
function isServedBy({ columns }: Index, { equal, ranged, hasMore }: IndexConditions): boolean {
  if (hasMore || ranged.size > 1) return false;
  const [range] = ranged;
  if (range !== undefined && equal.has(range)) return false;
  const first = columns.slice(0, equal.size);
  if (first.length < equal.size || !first.every((column) => equal.has(column))) return false;
  return range === undefined || columns[equal.size] === range;
}

/**
 * Whether a list can be read along an index in its order: after columns with one value each, the index has the columns of the
 * order. Otherwise it would read all entries of one timestamp to find a position among them.
 */
function isWalkableBy(index: Index, wanted: IndexConditions, { by }: Sort, id: string): boolean {
  const order = by === 'id' ? [id] : [by, id];
  const ordered = index.columns.slice(wanted.equal.size);
  const isSingle = [...wanted.equal.values()].every((count) => count === 1);
  return isSingle && isServedBy(index, wanted) && order.every((column, at) => ordered[at] === column);
}

/** Whether an index finds so few entries that other conditions can be checked row by row. */
function isNarrowedBy({ columns, isUnique }: Index, { equal }: IndexConditions): boolean {
  const found = columns.reduce((product, column) => product * (equal.get(column) ?? Number.NaN), 1);
  return isUnique && found <= LIMITS.listRecordsInlineMax;
}

function findIndex({ indexes }: ListTable, wanted: IndexConditions): Index | undefined {
  return (
    indexes.find((index) => isNarrowedBy(index, wanted)) ?? indexes.find((index) => isServedBy(index, wanted))
  );
}

/**
 * The index for reading a whole scope if no index helps: that of the key, in whose order the rows are stored. The engine
 * might choose any index that begins with the scope, and read each row from another page. Undefined if an index helps: it
 * serves a group of the filter on one column, or has all columns of the filter. (The engine uses no index for two columns
 * joined by OR, because it underestimates the scope.) Words have an index of their own.
 */
function scanIndex({ indexes, keys, columnOf }: ListTable, { depth, filter }: ListShape): Index | undefined {
  const scopeColumns = keys.slice(0, depth);
  const scoped = indexes.filter(({ columns }) =>
    scopeColumns.every((column, index) => columns[index] === column),
  );
  const columns = filter.flat().map(columnOf);
  const isFound = (condition: FilterCondition) =>
    (condition.kind === 'one_of' || sidesOf(condition).length > 0) &&
    scoped.some((index) => index.columns[depth] === columnOf(condition));
  const isHelpful =
    filter.some((group) => group.length === 1 && group[0]?.kind === 'words') ||
    filter.some((group) => group.every(isFound) && new Set(group.map(columnOf)).size === 1) ||
    scoped.some((index) => columns.every((column) => index.columns.includes(column)));
  return isHelpful ? undefined : scoped.find((index) => index.columns[depth] === keys.at(-1));
}

/** Selects a row if the record of this scope exists; `total`: the result of this expression. Values: the scope. */
export function scopePresenceText(scope: Resource, total: string): string {
  const where = keyColumns(scope).map((column, depth) => `${column} = ?${depth + 1}`);
  return `select ${total} as total from ${scope.table} where ${where.join(' and ')}`;
}
