import type { Sort } from '../../directory/store.ts';
import type { FilterCondition, ParsedFilter } from '../../domain/filter/filter.ts';
import { LIMITS } from '../../domain/limits.ts';
import { ancestry, keyColumns, type Resource } from '../../domain/resource.ts';
import type { ListDialect } from '../dialect.ts';
import { unlessPurged } from '../records/purge_mark.ts';
import type { Statements } from '../records/statements.ts';
import { type ColumnOf, columnsOf, parameterCount } from './filters.ts';

/** An index as the engine has it: what it can serve is read from the schema, and so is described nowhere else. */
export interface Index {
  readonly name: string;
  readonly columns: readonly string[];
  readonly isUnique: boolean;
}

/** A table whose records are listed. */
export interface ListTable {
  readonly table: string;
  /** The resources from the realm down to this one. */
  readonly lineage: readonly Resource[];
  /** The columns of a record's address; the last one is its identifier. */
  readonly keys: readonly string[];
  readonly columnOf: ColumnOf;
  /** What a list reads of a row: the address, and the members a caller may see. */
  readonly select: string;
  readonly unlessPurged: string;
  readonly indexes: readonly Index[];
}

export function listTable(
  resource: Resource,
  { visible, unlessPurged }: Pick<Statements, 'visible' | 'unlessPurged'>,
  indexes: readonly Index[],
): ListTable {
  const keys = keyColumns(resource);
  const columns = [...keys.slice(0, -1), ...visible];
  return {
    table: resource.table,
    lineage: ancestry(resource),
    keys,
    columnOf: columnsOf(resource),
    select: `select ${columns.join(', ')} from ${resource.table}`,
    unlessPurged,
    indexes,
  };
}

/** The part of a list's question that decides its statements; values take no part. */
export interface ListShape {
  readonly depth: number;
  readonly filter: ParsedFilter;
  readonly hasOnly: boolean;
  readonly sort: Sort;
  /** The filter as a clause. */
  readonly where: string;
}

/**
 * One way to read some of a list. Values begin with those of scope, `only` and filter.
 * - `gather`: at most one more than `GATHERED_MAX` of them, in no order. By an index that finds these and no others.
 * - `probe`: `n`, how many there are, counted up to one more than LIMITS.listRecordsInlineMax.
 * - `few`: the same, and where they lie if the engine can tell.
 * - `count`: `n`, how many there are.
 * - `walk`: a page, read along an index that has them in order.
 * - `narrow`: a page of few, which are sorted then. Their slots take the place of scope, `only` and filter, if told.
 * - `free`: a page in whichever way the engine thinks best.
 * Pages take as values, `from` an offset: limit, offset; and `behind` a mark: its place, limit.
 */
export type ListStatement = 'gather' | 'probe' | 'few' | 'count' | `${PageWay} ${'from' | 'behind'}`;

type PageWay = 'walk' | 'narrow' | 'free';

/** How lists of one shape are read. */
export interface ListPlan {
  /** An index finds the records of scope and filter, and touches no others: `gather`, `probe` and `few` touch few. */
  readonly isServed: boolean;
  /** An index has just these records in their order: `walk` touches those of the page, and those its offset skips. */
  readonly isWalkable: boolean;
  /**
   * Records that are being purged are left out where there may be any; `gather` always leaves them out. Each text is
   * made once.
   */
  text(reading: ListStatement, mayBePurging: boolean): string;
  /** Those that were made. */
  made(): Iterable<string>;
}

export const GATHERED_MAX = LIMITS.pageRecordsMax;

export function planList(table: ListTable, shape: ListShape, dialect: ListDialect): ListPlan {
  const { select, keys } = table;
  const id = keys.at(-1) as string;
  const wanted = indexConditions(table, shape);
  const walking = table.indexes.find(
    (index) => isOrderedBy(index, shape, keys) && isWalkableBy(index, shape, wanted),
  );
  const served = walking ?? findIndex(table, wanted);
  const by = (index: Index | undefined) => (index ? dialect.indexHint(index.name) : '');
  const all = conditionsOf(table, shape, dialect);
  const { order, behind } = orderOf(shape.sort, id);

  const most = LIMITS.listRecordsInlineMax + 1;

  function page(way: PageWay, isBehind: boolean, conditions: string): string {
    const where = (way === 'narrow' ? dialect.isInRowIds : undefined) ?? conditions;
    const source = `${select}${way === 'walk' ? by(walking) : ''} where ${where}`;
    return isBehind
      ? `${source} and ${behind} order by ${order} limit ?`
      : `${source} order by ${order} limit ? offset ?`;
  }

  function make(reading: ListStatement, mayBePurging: boolean): string {
    const conditions = mayBePurging ? all + table.unlessPurged : all;
    const source = `from ${table.table}${by(served ?? scanIndex(table, shape))} where ${conditions}`;
    switch (reading) {
      case 'gather': {
        const present = all + table.unlessPurged + scopeUnlessPurged(table.lineage.slice(0, shape.depth));
        return `${select}${by(served)} where ${present} limit ${GATHERED_MAX + 1}`;
      }
      case 'probe':
        return `select count(*) as n from (select 1 ${source} limit ${most}) as probed`;
      case 'few':
        return dialect.few(source, most);
      case 'count':
        return `select count(*) as n ${source}`;
      default: {
        const [way, place] = reading.split(' ') as [PageWay, string];
        return page(way, place === 'behind', conditions);
      }
    }
  }

  const usual = new Map<ListStatement, string>();
  const whilePurging = new Map<ListStatement, string>();
  return {
    isServed: served !== undefined,
    isWalkable: walking !== undefined,
    text(reading, mayBePurging) {
      const texts = mayBePurging ? whilePurging : usual;
      let text = texts.get(reading);
      if (text === undefined) {
        text = make(reading, mayBePurging);
        texts.set(reading, text);
      }
      return text;
    },
    made: () => [...usual.values(), ...whilePurging.values()],
  };
}

function conditionsOf(
  { keys }: ListTable,
  { depth, hasOnly, where }: ListShape,
  { isAmong }: ListDialect,
): string {
  const conditions = [
    ...keys.slice(0, depth).map((column, place) => `${column} = ?${place + 1}`),
    ...(hasOnly ? [isAmong(keys.at(-1) as string)] : []),
    ...(where === '' ? [] : [where]),
  ];
  return conditions.length === 0 ? 'true' : conditions.join(' and ');
}

/** Nothing of a scope that is being purged is there. The values of the scope are the first ones of a statement. */
function scopeUnlessPurged(line: readonly Resource[]): string {
  return line.map((resource, depth) => unlessPurged(resource, '?1', `?${depth + 1}`)).join('');
}

/** The identifier breaks ties in the direction of the sort key (contract 8, row 27). */
function orderOf(
  { by, isDescending }: Sort,
  id: string,
): { readonly order: string; readonly behind: string } {
  const direction = isDescending ? ' desc' : '';
  const than = isDescending ? '<' : '>';
  return by === 'id'
    ? { order: `${id}${direction}`, behind: `${id} ${than} ?` }
    : { order: `${by}${direction}, ${id}${direction}`, behind: `(${by}, ${id}) ${than} (?, ?)` };
}

/** What scope and filter ask of the columns, as far as an index can serve it. */
interface IndexConditions {
  /** Columns that must have one of so many values. */
  readonly equal: ReadonlyMap<string, number>;
  /** Columns that must lie between two values, or on one side of one. */
  readonly ranged: ReadonlySet<string>;
  /** Something is asked that must be looked at row by row. */
  readonly hasMore: boolean;
}

function indexConditions({ keys, columnOf }: ListTable, shape: ListShape): IndexConditions {
  const equal = new Map(keys.slice(0, shape.depth).map((column) => [column, 1]));
  if (shape.hasOnly) equal.set(keys.at(-1) as string, Number.POSITIVE_INFINITY);
  const bounds = new Map<string, Set<string>>();

  /** Answers false where no index looks at it: a second value set for a column, or a second bound on its side. */
  function take(condition: FilterCondition): boolean {
    const column = columnOf(condition);
    if (condition.kind === 'one_of') {
      if (equal.has(column)) return false;
      equal.set(column, parameterCount(condition));
      return true;
    }
    const taken = bounds.get(column) ?? new Set();
    const sides = sidesOf(condition);
    if (sides.length === 0 || sides.some((side) => taken.has(side))) return false;
    bounds.set(column, taken.union(new Set(sides)));
    return true;
  }

  const rest = shape.filter.filter(([first, ...others]) => !first || others.length > 0 || !take(first));
  return { equal, ranged: new Set(bounds.keys()), hasMore: rest.length > 0 };
}

function sidesOf(condition: FilterCondition): readonly string[] {
  if (condition.kind === 'pattern') return condition.part === 'prefix' ? ['from', 'to'] : [];
  if (condition.kind !== 'range') return [];
  return [...(condition.from ? ['from'] : []), ...(condition.to ? ['to'] : [])];
}

/** Whether an index finds just what is wanted: by its first columns, of which the last may be ranged. */
function isServedBy({ columns }: Index, { equal, ranged, hasMore }: IndexConditions): boolean {
  if (hasMore || ranged.size > 1) return false;
  const [range] = ranged;
  if (range !== undefined && equal.has(range)) return false;
  const first = columns.slice(0, equal.size);
  if (first.length < equal.size || !first.every((column) => equal.has(column))) return false;
  return range === undefined || columns[equal.size] === range;
}

/**
 * Whether an index that has the order of a list can be read along for it. Nothing but the scope may be set to a value:
 * of a thousand records of one instant, an index would look at each for one place among them.
 */
function isWalkableBy(index: Index, { depth }: ListShape, wanted: IndexConditions): boolean {
  return wanted.equal.size === depth && isServedBy(index, wanted);
}

/** Whether an index finds so few of its entries that what else is wanted can be looked at row by row. */
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
 * The index to read a whole scope along where none is of help: that of the key, beside which the rows lie. The engine
 * would take any that begins with the scope, and fetch each row from another page. Undefined where one is of help: it
 * finds what some group of the filter asks of one column, or holds every column that the filter looks at. (Of two columns
 * joined by OR the engine looks into no index: it takes a scope for smaller than it is.)
 */
function scanIndex({ indexes, keys, columnOf }: ListTable, { depth, filter }: ListShape): Index | undefined {
  const above = keys.slice(0, depth);
  const scoped = indexes.filter(({ columns }) => above.every((column, place) => columns[place] === column));
  const columns = filter.flat().map(columnOf);
  const isFound = (condition: FilterCondition) =>
    (condition.kind === 'one_of' || sidesOf(condition).length > 0) &&
    scoped.some((index) => index.columns[depth] === columnOf(condition));
  const isOfHelp =
    filter.some((group) => group.every(isFound) && new Set(group.map(columnOf)).size === 1) ||
    scoped.some((index) => columns.every((column) => index.columns.includes(column)));
  return isOfHelp ? undefined : scoped.find((index) => index.columns[depth] === keys.at(-1));
}

/** Whether an index has the records of a scope in this order. */
function isOrderedBy({ columns }: Index, { depth, sort }: ListShape, keys: readonly string[]): boolean {
  const id = keys.at(-1) as string;
  const ordered = [...keys.slice(0, depth), ...(sort.by === 'id' ? [] : [sort.by]), id];
  return ordered.every((column, place) => columns[place] === column);
}

/**
 * Answers a row where the record of this scope is there and neither it nor one above it is being purged; `purging` says
 * whether anything is. Values: the scope.
 */
export function scopePresenceText(line: readonly Resource[]): string {
  const scope = line.at(-1);
  const purging = 'select case when exists (select 1 from purge) then 1 else 0 end as purging';
  if (!scope) return purging;
  const where = keyColumns(scope).map((column, depth) => `${column} = ?${depth + 1}`);
  return `${purging} from ${scope.table} where ${where.join(' and ')}${scopeUnlessPurged(line)}`;
}
