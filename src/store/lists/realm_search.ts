import type { MaybePromise, RealmSearch, RealmSearchPage, Store } from '../../directory/store.ts';
import type { ParsedFilter } from '../../domain/filter/filter.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { keyColumns, membersOf, type Resource } from '../../domain/resource.ts';
import type { Dialect } from '../dialect.ts';
import { hashColumn } from '../records/derived_columns.ts';
import type { Statements } from '../records/statements.ts';
import { textHash } from '../records/text_hash.ts';
import { all, type SqlValue, type Work } from '../transaction_work.ts';
import { clauseOf, columnsOf } from './filters.ts';

/** A request to a reader process for a search of all realms. Plain data. */
export interface ReaderSearchRequest {
  /** The name of the resource. */
  readonly resource: string;
  readonly search: RealmSearch;
}

/** Searches of records of all realms. */
export interface RealmSearches {
  /** By an index without the realm. Undefined if the filter has none, or too many rows have its hash. */
  byHash(resource: Resource, search: RealmSearch): Work<RealmSearchPage | undefined> | undefined;
  /** By any filter: by such an index, or by the indexes of at most LIMITS.searchRealmsMax realms. */
  whole(resource: Resource, search: RealmSearch): Work<RealmSearchPage>;
}

type Row = Record<string, unknown>;

export function openRealmSearches(
  of: (resource: Resource) => Statements,
  dialect: Pick<Dialect, 'lists' | 'position' | 'hasHashColumns'>,
): RealmSearches {
  const { isAmong, among, indexHint } = dialect.lists;

  function partsOf(resource: Resource, filter: ParsedFilter) {
    const { visible, decodeKeyed, unlessPurged } = of(resource);
    const columns = [...keyColumns(resource).slice(0, -1), ...visible].join(', ');
    const { text: matches, values } = clauseOf(filter, columnsOf(resource), dialect);
    return { columns, matches, values, decodeKeyed, unlessPurged };
  }

  /** Rows in the order of their realms. `condition` precedes the filter. */
  function* ordered(
    resource: Resource,
    { filter, limit }: Pick<RealmSearch, 'filter' | 'limit'>,
    condition: { readonly text: string; readonly values: readonly SqlValue[] },
  ): Work<RealmSearchPage['items']> {
    const { columns, matches, values, decodeKeyed, unlessPurged } = partsOf(resource, filter);
    const text = `select ${columns} from ${resource.table} where ${condition.text}${matches}${unlessPurged}
      order by realm_id, ${keyColumns(resource).at(-1)} limit ?`;
    return (yield* all<Row>(text, ...condition.values, ...values, limit)).map(decodeKeyed);
  }

  function* byHashColumn(
    resource: Resource,
    { filter, only, after, limit }: RealmSearch,
    { column, hash }: HashedValue,
  ): Work<RealmSearchPage | undefined> {
    const { table } = resource;
    const { columns, matches, values, decodeKeyed, unlessPurged } = partsOf(resource, filter);
    // Sorted here: SQLite compiles a statement with ORDER BY again for other values.
    const text = `select ${columns}, ${matches} as is_match from ${table}${indexHint(`${table}_${column}`)}
      where ${column} = ?${unlessPurged} limit ?`;
    const rows = yield* all<Row>(text, ...values, hash, LIMITS.listRecordsInlineMax + 1);
    if (rows.length > LIMITS.listRecordsInlineMax) return undefined;
    const items = rows
      .filter(({ is_match }) => is_match === 1)
      .map(({ is_match: _, ...row }) => decodeKeyed(row));
    const wanted = items.filter(
      ({ key: [realm] }) => realm > (after ?? '') && (!only || only.includes(realm)),
    );
    return { items: wanted.sort(byKey).slice(0, limit), through: undefined };
  }

  function* byIndex(resource: Resource, search: RealmSearch, hashed: HashedValue): Work<RealmSearchPage> {
    const { only, after } = search;
    const conditions = [
      ...(dialect.hasHashColumns ? [{ text: `${hashed.column} = ? and `, value: hashed.hash }] : []),
      ...(after === undefined ? [] : [{ text: 'realm_id > ? and ', value: after }]),
      ...(only === undefined ? [] : [{ text: `${isAmong('realm_id')} and `, value: among(only) }]),
    ];
    const condition = {
      text: conditions.map(({ text }) => text).join(''),
      values: conditions.map(({ value }) => value),
    };
    return { items: yield* ordered(resource, search, condition), through: undefined };
  }

  function* byRealms(resource: Resource, search: RealmSearch): Work<RealmSearchPage> {
    const realms = yield* nextRealms(search);
    const searched = realms.slice(0, LIMITS.searchRealmsMax);
    const condition = { text: `${isAmong('realm_id')} and `, values: [among(searched)] };
    const items = yield* ordered(resource, search, condition);
    return { items, through: realms.length > searched.length ? searched.at(-1) : undefined };
  }

  return {
    byHash(resource, search) {
      const hashed = hashedValue(resource, search.filter);
      if (!hashed) return undefined;
      return dialect.hasHashColumns
        ? byHashColumn(resource, search, hashed)
        : byIndex(resource, search, hashed);
    },
    whole(resource, search) {
      const hashed = hashedValue(resource, search.filter);
      return hashed ? byIndex(resource, search, hashed) : byRealms(resource, search);
    },
  };
}

/** The next realms in the order of their IDs, and one more than are searched. */
function* nextRealms({ only, after = '' as Uuid }: RealmSearch): Work<readonly Uuid[]> {
  const count = LIMITS.searchRealmsMax + 1;
  if (only)
    return [...only]
      .sort()
      .filter((realm) => realm > after)
      .slice(0, count);
  const condition = after === '' ? '' : 'where realm_id > ? ';
  const text = `select realm_id from realm ${condition}order by realm_id limit ?`;
  const rows = yield* all<{ realm_id: Uuid }>(text, ...(after === '' ? [] : [after]), count);
  return rows.map(({ realm_id }) => realm_id);
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
  return { column: hashColumn(hashed.name), hash: textHash(String(condition.values[0])) };
}

function byKey(
  { key: left }: RealmSearchPage['items'][number],
  { key: right }: RealmSearchPage['items'][number],
) {
  const [one, other] = [`${left[0]}${left.at(-1)}`, `${right[0]}${right.at(-1)}`];
  return one < other ? -1 : 1;
}

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
