import type { FilterCondition, ParsedFilter } from '../../../model/filter/filter.ts';
import { LIMITS } from '../../../model/limits.ts';
import { ancestry, keyColumns, type Resource } from '../../../model/resource.ts';
import { realm } from '../../../model/resources.ts';
import type { Sort } from '../../../model/store.ts';
import type { Dialect } from '../../../sql/dialect.ts';
import { storedTotal } from '../../../sql/tables/record_counts.ts';
import { parametersOf } from '../../../sql/tables/records.ts';
import type { Statements } from '../statements.ts';
import { type ColumnOf, columnsOf } from './filters.ts';

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
  /** SQL for a parameter as a column stores it. */
  readonly parameter: ReturnType<typeof parametersOf>;
  readonly visible: Statements['visible'];
  readonly decode: Statements['decode'];
  readonly decodeKeyed: Statements['decodeKeyed'];
  readonly indexes: readonly Index[];
  /** For each scope, by its length less one: selects a row if its record exists, with the stored `total` of all records. */
  readonly presences: readonly string[];
}

export function listTable(
  resource: Resource,
  { visible, decode, decodeKeyed }: Statements,
  indexes: readonly Index[],
  dialect: Dialect,
): ListTable {
  const keys = keyColumns(resource);
  return {
    table: resource.table,
    keys,
    columnOf: columnsOf(resource, dialect),
    parameter: parametersOf(resource, dialect),
    visible,
    decode,
    decodeKeyed,
    indexes,
    presences: ancestry(resource)
      .slice(0, -1)
      .map((scope) => presenceText(scope, scope === realm ? storedTotal(resource) : 'null', dialect)),
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
  /** How many records are gathered to sort them in the program. */
  readonly gatheredMax: number;
}

/**
 * The statements of a list. Their values begin with those of scope, `only` and filter.
 * - `few`: its records, unordered, up to LIMITS.pageRecordsMax + 1. SQLite would compile a limit that is a value at every run.
 * - `gather`: the same, up to `gatheredMax` + 1.
 * - `offset`: a page. Further values: limit and offset.
 * - `after`: a page after a position. Further values: position and limit.
 * - `count`: `n`, their number.
 * - `probe`: the same, counted up to LIMITS.listRecordsInlineMax + 1.
 */
export type ListStatement = 'few' | 'gather' | 'offset' | 'after' | 'count' | 'probe';

/** How lists of one shape are read. */
export interface ListPlan {
  /** An index has exactly these records in their order: a page touches its rows and those that the offset skips. */
  readonly isOrdered: boolean;
  /** An index finds the records by equal values: `gather` touches no others. */
  readonly isFound: boolean;
  readonly gatheredMax: number;
  /** The columns of IDs between those of the scope and the record's own. They and the visible members are selected. */
  readonly between: readonly string[];
  readonly texts: Readonly<Record<ListStatement, string>>;
}

export function planList(table: ListTable, shape: ListShape, dialect: Dialect): ListPlan {
  const { id: bound, lists } = dialect;
  const { indexes, keys } = table;
  const { depth, filter, hasOnly, sort, where, gatheredMax } = shape;
  const id = keys.at(-1) as string;
  const scope = keys.slice(0, depth);
  const between = keys.slice(depth, -1);
  const select = `select ${[...between, ...table.visible].join(', ')} from ${table.table}`;
  const comparisons = comparisonsOf(table, shape);
  const ordered = orderedIndex(indexes, comparisons, sort.by === 'id' ? [id] : [sort.by, id]);
  const finding = findingIndex(indexes, comparisons);
  const isFound = finding !== undefined && !hasWords(filter);
  // A list on the event loop names its index, because statistics of the engine might make it choose another one.
  const hintOf = (index: Index | undefined) => (index ? lists.indexHint(index.name) : '');
  const hint = hintOf(ordered ?? (isFound ? finding : scanIndex(table, shape)));
  const orderedHint = hintOf(ordered);
  const isByWord = shape.isByWord === true && !finding;
  const conditions = [
    ...scope.map(
      (column, index) =>
        `${isByWord ? WITHOUT_INDEX : ''}${column} = ${table.parameter(column, `?${index + 1}`)}`,
    ),
    ...(hasOnly ? [lists.isAmong(id, bound)] : []),
    ...(where === '' ? [] : [where]),
  ];
  const matches = conditions.length === 0 ? 'true' : conditions.join(' and ');
  const { order, after } = orderOf(sort, id, bound('?'));
  return {
    isOrdered: ordered !== undefined,
    isFound,
    gatheredMax,
    between,
    texts: {
      few: `${select}${hint} where ${matches} limit ${LIMITS.pageRecordsMax + 1}`,
      gather: `${select}${hint} where ${matches} limit ${gatheredMax + 1}`,
      offset: `${select}${orderedHint} where ${matches} order by ${order} limit ? offset ?`,
      after: `${select}${orderedHint} where ${matches} and ${after} order by ${order} limit ?`,
      count: `select count(*) as n from ${table.table}${hint} where ${matches}`,
      probe: `select count(*) as n from (select 1 from ${table.table}${hint} where ${matches}
        limit ${LIMITS.listRecordsInlineMax + 1}) as probed`,
    },
  };
}

/** Before a column: SQLite uses no index on it. */
const WITHOUT_INDEX = '+';

/** The ID breaks ties in the direction of the sort key (docs/wire.md#order). */
function orderOf({ by, isDescending }: Sort, id: string, bound: string) {
  const direction = isDescending ? ' desc' : '';
  const than = isDescending ? '<' : '>';
  return by === 'id'
    ? { order: `${id}${direction}`, after: `${id} ${than} ${bound}` }
    : { order: `${by}${direction}, ${id}${direction}`, after: `(${by}, ${id}) ${than} (?, ${bound})` };
}

/** Words are found by an index of their own. */
function hasWords(filter: ParsedFilter): boolean {
  return filter.flat().some(({ kind }) => kind === 'words');
}

/** What scope and filter compare. */
interface Comparisons {
  /** The columns with equal values, and how many values each has. */
  readonly equal: ReadonlyMap<string, number>;
  /** The other groups of the filter. */
  readonly rest: ParsedFilter;
}

function comparisonsOf({ keys, columnOf }: ListTable, { depth, hasOnly, filter }: ListShape): Comparisons {
  const equal = new Map(keys.slice(0, depth).map((column) => [column, 1]));
  if (hasOnly) equal.set(keys.at(-1) as string, Number.POSITIVE_INFINITY);
  const rest = filter.filter(([condition, ...others]) => {
    if (condition?.kind !== 'one_of' || others.length > 0) return true;
    const column = columnOf(condition);
    if (equal.has(column)) return true;
    equal.set(column, condition.values.length);
    return false;
  });
  return { equal, rest };
}

/** Whether an index begins with these columns, in any order, and continues with others. */
function hasColumns({ columns }: Index, first: Comparisons['equal'], next: readonly string[]): boolean {
  const isFirst = columns.slice(0, first.size).filter((column) => first.has(column)).length === first.size;
  return isFirst && next.every((column, at) => columns[first.size + at] === column);
}

/**
 * The index that finds the records by equal values: a unique one, whose few entries are then compared with all of the filter,
 * or one that begins with all compared columns. No filter has more than LIMITS.filterValuesMax values for the columns of an index.
 */
function findingIndex(indexes: readonly Index[], { equal, rest }: Comparisons): Index | undefined {
  return indexes.find(
    (index) =>
      (index.isUnique && index.columns.every((column) => equal.has(column))) ||
      (rest.length === 0 && hasColumns(index, equal, [])),
  );
}

/** The index that has the order after columns with one value each, if nothing but its first column has further bounds. */
function orderedIndex(
  indexes: readonly Index[],
  { equal, rest }: Comparisons,
  order: readonly string[],
): Index | undefined {
  const hasOneValueEach = [...equal.values()].every((count) => count === 1);
  const isBounded = rest.every(([condition, ...others]) => {
    return condition?.kind === 'range' && condition.member === order[0] && others.length === 0;
  });
  return hasOneValueEach && isBounded ? indexes.find((index) => hasColumns(index, equal, order)) : undefined;
}

/**
 * The index for reading a whole scope: one that has all columns of the filter, so that only matching rows are fetched, or else that of
 * the key, in whose order the rows are stored. The engine might choose any index that begins with the scope, and read each row from
 * another page. Undefined if it finds a better one: that of a group of the filter on one column, or of words. (It uses none for two
 * columns joined by OR, because it underestimates the scope.)
 */
function scanIndex({ indexes, keys, columnOf }: ListTable, { depth, filter }: ListShape): Index | undefined {
  const scope = keys.slice(0, depth);
  const scoped = indexes.filter(({ columns }) => scope.every((column, at) => columns[at] === column));
  const isSearched = (condition: FilterCondition) =>
    (condition.kind === 'one_of' ||
      condition.kind === 'range' ||
      (condition.kind === 'pattern' && condition.part === 'prefix')) &&
    scoped.some((index) => index.columns[depth] === columnOf(condition));
  const isHelped = filter.some(
    (group) =>
      (group.length === 1 && hasWords([group])) ||
      (group.every(isSearched) && new Set(group.map(columnOf)).size === 1),
  );
  if (isHelped) return undefined;
  const columns = filter.flat().map(columnOf);
  return (
    scoped.find((index) => columns.every((column) => index.columns.includes(column))) ??
    scoped.find((index) => index.columns[depth] === keys.at(-1))
  );
}

/** Values: the scope. */
function presenceText(scope: Resource, total: string, dialect: Dialect): string {
  const parameter = parametersOf(scope, dialect);
  const where = keyColumns(scope).map((column, depth) => `${column} = ${parameter(column, `?${depth + 1}`)}`);
  return `select ${total} as total from ${scope.table} where ${where.join(' and ')}`;
}
