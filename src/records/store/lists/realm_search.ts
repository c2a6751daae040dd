import type { ParsedFilter } from '../../../model/filter/filter.ts';
import { type StoredId, type Uuid, uuidText } from '../../../model/id.ts';
import { LIMITS } from '../../../model/limits.ts';
import { type Key, keyColumns, membersOf, type Resource } from '../../../model/resource.ts';
import type { MaybePromise, RealmSearch, RealmSearchPage, Store } from '../../../model/store.ts';
import type { Dialect, RealmRows } from '../../../sql/dialect.ts';
import { hashColumn } from '../../../sql/tables/derived_columns.ts';
import { COUNTED_RESOURCES, countColumn } from '../../../sql/tables/record_counts.ts';
import { all, first, type SqlValue, type Work } from '../../../sql/transaction_work.ts';
import type { Statements } from '../statements.ts';
import { type Clause, clauseOf, columnsOf } from './filters.ts';
import { chooseWords } from './word_choice.ts';

/** A request to a reader process for a search of all realms. Plain data. */
export interface ReaderSearchRequest {
  /** The name of the resource. */
  readonly resource: string;
  readonly search: RealmSearch;
}

type RealmSearches = ReturnType<typeof openRealmSearches>;

type Row = Record<string, unknown>;

/** The statements of searches. */
function openSearchReading(of: (resource: Resource) => Statements, dialect: Dialect) {
  function partsOf(resource: Resource, filter: ParsedFilter, words = dialect.words) {
    const { visibleKeyed, decodeKeyed } = of(resource);
    const { text, values } = clauseOf(filter, columnsOf(resource, dialect), { ...dialect, words });
    return { visibleKeyed, matches: text || 'true', values, decodeKeyed };
  }

  /** Rows in the order of their realms. `condition` precedes the filter. */
  function* ordered(
    resource: Resource,
    { filter, limit }: Pick<RealmSearch, 'filter' | 'limit'>,
    condition: Clause,
    { words, rows }: SearchedRows,
  ): Work<RealmSearchPage['items']> {
    const { table } = resource;
    const { visibleKeyed, matches, values, decodeKeyed } = partsOf(resource, filter, words);
    const text = `select ${visibleKeyed(rows.id(table))} from ${rows.source(table)} where ${condition.text}${matches}
      order by ${rows.id(table)}, ${keyColumns(resource).at(-1)} limit ?`;
    return (yield* all<Row>(text, ...condition.values, ...values, limit)).map(decodeKeyed);
  }

  /**
   * A page in the order of realms. With `only`, the rest of the realm of `after` is read by itself: from a set of realms,
   * an engine would read each from its beginning.
   */
  function* page(
    resource: Resource,
    search: RealmSearch,
    { words = dialect.words, rows = dialect.foundRows, hashed }: Partial<SearchedRows> = {},
  ): Work<RealmSearchPage['items']> {
    const items: RealmSearchPage['items'][number][] = [];
    for (const part of partsByRealm(search)) {
      const limit = search.limit - items.length;
      if (limit === 0) break;
      const bounds = boundsOf(resource, part, dialect, { rows, hashed });
      items.push(...(yield* ordered(resource, { ...part, limit }, bounds, { words, rows })));
    }
    return items;
  }

  /** Undefined if there are too many to count. */
  function* count(
    resource: Resource,
    { filter, only }: RealmSearch,
    hashed?: HashedValue,
  ): Work<number | undefined> {
    if (filter.length === 0 && COUNTED_RESOURCES.includes(resource))
      return yield* countAll(resource, only, dialect);
    const { foundRows: rows } = dialect;
    const condition = boundsOf(resource, { filter, only, after: undefined, limit: 0 }, dialect, {
      rows,
      hashed,
    });
    const { matches, values } = partsOf(resource, filter);
    const source = `from ${resource.table} where ${condition.text}${matches}`;
    const text = `select count(*) as n from (select 1 ${source} limit ${LIMITS.searchCountMax + 1}) as matching`;
    const found = yield* numberOf(text, [...condition.values, ...values]);
    return found > LIMITS.searchCountMax ? undefined : found;
  }

  return { partsOf, page, count };
}

/** Searches of records of all realms. */
export function openRealmSearches(of: (resource: Resource) => Statements, dialect: Dialect) {
  const { indexHint } = dialect.lists;
  const { partsOf, page, count } = openSearchReading(of, dialect);

  function* byHashColumn(
    resource: Resource,
    { filter, only, after, afterId, limit, isCounted }: RealmSearch,
    { column, hash }: HashedValue,
  ): Work<RealmSearchPage | undefined> {
    const { table } = resource;
    const { visibleKeyed, matches, values, decodeKeyed } = partsOf(resource, filter);
    const columns = visibleKeyed(dialect.foundRows.id(table));
    // Sorted here: SQLite compiles a statement with ORDER BY again for other values.
    const text = `select ${columns}, ${matches} as is_match from ${table}${indexHint(`${table}_${column}`)}
      where ${column} = ? limit ?`;
    const rows = yield* all<Row>(text, ...values, hash, LIMITS.listRecordsInlineMax + 1);
    if (rows.length > LIMITS.listRecordsInlineMax) return undefined;
    const items = rows
      .filter(({ is_match }) => is_match === 1)
      .map(({ is_match: _, ...row }) => decodeKeyed(row))
      .filter(({ key: [realm] }) => !only || only.includes(realm));
    const start = after === undefined ? '' : `${after}${afterId ?? LAST_ID}`;
    const rest = items.filter(({ key }) => positionOf(key) > start);
    const found = { items: rest.sort(byKey).slice(0, limit), through: undefined };
    return isCounted ? { ...found, total: items.length } : found;
  }

  /** By an index without the realm, or in the order of the key for a search without a filter. */
  function* byIndex(resource: Resource, search: RealmSearch, hashed?: HashedValue): Work<RealmSearchPage> {
    const { filter, isBroad } = yield* chooseWords(resource, search.filter, dialect.words);
    const chosen = { ...search, filter };
    const { choice } = dialect.words;
    const words = choice && isBroad ? { ...dialect.words, ...choice.broad } : dialect.words;
    // Few rows are found and sorted; many are read in their order, up to the end of the page.
    const rows = isBroad || filter.length === 0 ? dialect.orderedRows : dialect.foundRows;
    const items = yield* page(resource, chosen, { words, rows, hashed });
    const total = search.isCounted && !isBroad ? yield* count(resource, chosen, hashed) : undefined;
    return { items, through: undefined, ...(total === undefined ? {} : { total }) };
  }

  function* byRealms(resource: Resource, search: RealmSearch): Work<RealmSearchPage> {
    const realms = yield* nextRealms(search, dialect);
    const searched = realms.slice(0, LIMITS.searchRealmsMax);
    const items = yield* page(resource, { ...search, only: searched });
    return { items, through: realms.length > searched.length ? searched.at(-1) : undefined };
  }

  return {
    /** By an index without the realm. Undefined if the filter has none, or too many rows have its hash. */
    byHash(resource: Resource, search: RealmSearch): Work<RealmSearchPage | undefined> | undefined {
      const hashed = hashedValue(resource, search.filter);
      if (!hashed) return undefined;
      return dialect.hasHashColumns
        ? byHashColumn(resource, search, hashed)
        : byIndex(resource, search, hashed);
    },
    /** By any filter: by such an index, by the index of words, or by the indexes of at most LIMITS.searchRealmsMax realms. */
    whole(resource: Resource, search: RealmSearch): Work<RealmSearchPage> {
      const hashed = hashedValue(resource, search.filter);
      return hashed || search.filter.length === 0 || hasWords(search.filter)
        ? byIndex(resource, search, hashed)
        : byRealms(resource, search);
    },
  };
}

/** The next realms in the order of their IDs, and one more than are searched. The first may be one that was searched, in part or whole. */
function* nextRealms(
  { only, after = '' as Uuid, afterId }: RealmSearch,
  { id }: Dialect,
): Work<readonly Uuid[]> {
  const count = LIMITS.searchRealmsMax + 1;
  if (only)
    return [...only]
      .sort()
      .filter((realm) => realm >= after)
      .slice(0, count);
  const condition = after === '' ? '' : `where realm_id ${afterId === undefined ? '>' : '>='} ${id('?')} `;
  const text = `select realm_id from realm ${condition}order by realm_id limit ?`;
  const rows = yield* all<{ realm_id: StoredId }>(text, ...(after === '' ? [] : [after]), count);
  return rows.map(({ realm_id }) => uuidText(realm_id));
}

/** The rest of the realm in which a search continues, and the later ones of `only`. */
function partsByRealm(search: RealmSearch): readonly RealmSearch[] {
  const { only, after, afterId } = search;
  if (!only || after === undefined) return [search];
  const isCut = afterId !== undefined && only.includes(after);
  const later = only.filter((each) => each > after);
  return [
    ...(isCut ? [{ ...search, only: [after] }] : []),
    { ...search, only: later, after: undefined, afterId: undefined },
  ];
}

/** How the rows of a search are found. */
interface SearchedRows {
  readonly words: Dialect['words'];
  readonly rows: RealmRows;
  readonly hashed?: HashedValue | undefined;
}

/** The conditions of a part of a search besides its filter, each with ` and ` behind it. A part with `only` and `after` is of one realm. */
function boundsOf(
  resource: Resource,
  { only, after, afterId }: RealmSearch,
  { id, lists: { isAmong, among }, hasHashColumns }: Dialect,
  { rows, hashed }: Pick<SearchedRows, 'rows' | 'hashed'>,
): Clause {
  const isInOne = after !== undefined && only !== undefined;
  const conditions = [
    ...(after === undefined
      ? []
      : [positionAfter(resource, { realm: after, id: afterId, isInOne }, rows, id)]),
    ...(hasHashColumns && hashed ? [{ text: `${hashed.column} = ?`, values: [hashed.hash] }] : []),
    ...(only === undefined || isInOne
      ? []
      : [{ text: isAmong(rows.realm, rows.compared), values: [among(only) as string] }]),
  ];
  return {
    text: conditions.map(({ text }) => `${text} and `).join(''),
    values: conditions.flatMap(({ values }) => values),
  };
}

/** The sum of the stored totals. */
function* countAll(
  resource: Resource,
  only: RealmSearch['only'],
  { lists: { isAmong, among } }: Pick<Dialect, 'lists'>,
): Work<number> {
  const realms = only ? isAmong('realm_id') : 'true';
  const text = `select sum(${countColumn(resource)}) as n from realm_clock where ${realms}`;
  return yield* numberOf(text, only ? [among(only)] : []);
}

/** After all records of a realm, or after one of them; `isInOne`: in that realm only. It has the first parameters. */
function positionAfter(
  resource: Resource,
  { realm, id, isInOne }: { readonly realm: Uuid; readonly id: Uuid | undefined; readonly isInOne: boolean },
  rows: RealmRows,
  bound: Dialect['id'],
): Clause {
  const { table } = resource;
  if (id === undefined) return { text: `${rows.id(table)} > ?1`, values: [realm] };
  const own = keyColumns(resource).at(-1) as string;
  return isInOne
    ? { text: `${rows.realm} = ${rows.compared('?1')} and ${own} > ${bound('?2')}`, values: [realm, id] }
    : { text: rows.isAfter(table, '?1', own, bound('?2')), values: [realm, id] };
}

function* numberOf(text: string, values: readonly SqlValue[]): Work<number> {
  return Number((yield* first(text, ...values))?.n ?? 0);
}

/** Whether an index of words, which has no realm, finds the records. */
function hasWords(filter: ParsedFilter): boolean {
  return filter.some(([first]) => first?.kind === 'words');
}

/** A hash column and the hash of a value. */
interface HashedValue {
  readonly column: string;
  readonly hash: number;
}

/** The value of a filter that an index without the realm answers. */
function hashedValue(resource: Resource, filter: ParsedFilter): HashedValue | undefined {
  const hashed = membersOf(resource).find(({ annotation }) => annotation.hashColumn);
  const condition = filter.flat().find(({ member }) => member === hashed?.name);
  if (!hashed || condition?.kind !== 'one_of') return undefined;
  return { column: hashColumn(hashed.name), hash: Bun.hash.crc32(String(condition.values[0])) };
}

function byKey(
  { key: left }: RealmSearchPage['items'][number],
  { key: right }: RealmSearchPage['items'][number],
) {
  return positionOf(left) < positionOf(right) ? -1 : 1;
}

function positionOf(key: Key): string {
  return `${key[0]}${key.at(-1)}`;
}

/** After every ID. */
const LAST_ID = 'g';

/** Searches with an index where lookups run, and other searches by `searchWhole`. */
export function openSearchRealms(
  { byHash }: Pick<RealmSearches, 'byHash'>,
  read: <T>(work: () => Work<T>) => MaybePromise<T>,
  searchWhole: Store['searchRealms'],
): Store['searchRealms'] {
  return async (resource, search) => {
    const work = byHash(resource, search);
    return (work && (await read(() => work))) ?? searchWhole(resource, search);
  };
}
