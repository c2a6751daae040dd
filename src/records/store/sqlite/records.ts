import type { Database } from 'bun:sqlite';
import type { Eraser } from '../../../log/store/erase.ts';
import type { RowMacs } from '../../../log/store/row_macs.ts';
import { UUID_BYTES, type Uuid, writeUuid } from '../../../model/id.ts';
import type { AnyRecord, Key, RecordOf, Resource } from '../../../model/resource.ts';
import { keyColumns } from '../../../model/resource.ts';
import { RESOURCES } from '../../../model/resources.ts';
import type { IncludedRecords, Loader, RecordWithIncluded, Scanner, Store } from '../../../model/store.ts';
import { readRetrying, type SharedReadTransaction } from '../../../sql/sqlite/shared_read_transaction.ts';
import { parametersOf } from '../../../sql/tables/records.ts';
import { first, type SqlValue } from '../../../sql/transaction_work.ts';
import type { Transactions } from '../../../sql/transactions.ts';
import { openCountBelow } from '../lists/count_below.ts';
import { newestBelowText, newestOf } from '../lists/newest_below.ts';
import { openRecords, PROBE } from '../records.ts';
import { SQLITE, sqliteStatements } from './dialect.ts';
import { openSqliteLists, openSqliteSearches } from './lists.ts';
import { openRealmNumbers, type RealmNumbers } from './realm_numbers.ts';
import { openSqliteReverseLookups } from './reverse_lookups.ts';
import { atRowId, rowIdOf } from './row_id.ts';
import { takeSqliteSnapshot } from './snapshot.ts';

/**
 * The page cache of a process that imports. One commit changes pages all over the indexes of large tables; those that did not
 * fit would be written before the commit, and read and written again.
 */
const LOAD_CACHE_KIB = 131_072;

/** Records and their changes in one SQLite file. */
export function openSqliteRecords(
  db: Database,
  sharedReads: SharedReadTransaction,
  transactions: Transactions,
  macs: RowMacs,
): Store & Loader & Scanner & Eraser {
  const records = openRecords(sqliteStatements, SQLITE, transactions, macs);
  const numbers = openRealmNumbers(db);
  let hasLoaded = false;
  return {
    ...records,
    load(loads, stopAtFirst) {
      if (!hasLoaded) db.run(`pragma cache_size = -${LOAD_CACHE_KIB}`);
      hasLoaded = true;
      return records.load(loads, stopAtFirst);
    },
    ...openLookups(db, sharedReads, numbers),
    find: openSqliteReverseLookups(db, sharedReads, numbers),
    list: openSqliteLists(db, sharedReads).local,
    searchRealms: openSqliteSearches(transactions),
    countBelow: openCountBelow(transactions, SQLITE),
    overloaded: { write: transactions.isOverloaded },
    ready: () =>
      transactions.read(function* () {
        yield* first(PROBE);
        return undefined;
      }),
    openSnapshot: () => takeSqliteSnapshot(db),
  };
}

/** Reads the record of a key. */
type Find = (key: Key) => AnyRecord | undefined;

/** Lookups by ID, alone or with records below. */
function openLookups(
  db: Database,
  sharedReads: SharedReadTransaction,
  numbers: RealmNumbers,
): Pick<Store, 'get' | 'getIncluding'> {
  const finds = new Map(
    RESOURCES.map((resource) => [
      resource,
      resource.parent ? openFind(db, resource, numbers) : openFindRealm(db, resource, numbers),
    ]),
  );
  const findNewest = openNewestBelow(db, numbers);

  function findOf(resource: Resource): Find {
    const find = finds.get(resource);
    if (!find) throw new Error(`${resource.name} has no table`);
    return find;
  }

  function findIncluding(
    find: Find,
    key: Key,
    children: readonly Resource[],
  ): RecordWithIncluded | undefined {
    const record = find(key);
    return record && { record, included: children.map((child) => findNewest(child, key)) };
  }

  /** One snapshot for all statements, also where no transaction is shared. */
  const findInTransaction = db.transaction(findIncluding);

  return {
    get: <R extends Resource>(resource: R, key: Key) => {
      const find = findOf(resource) as (key: Key) => unknown as (key: Key) => RecordOf<R> | undefined;
      return readRetrying(sharedReads, find, key);
    },
    getIncluding: (resource, key, children) => {
      const find = findOf(resource);
      return readRetrying(sharedReads, () =>
        (db.inTransaction ? findIncluding : findInTransaction)(find, key, children),
      );
    },
  };
}

/**
 * The first statement searches at the usual row ID of the record; a second one, by the key alone, rarely runs. The key
 * of a link is passed value by value, without an array to spread. Its bytes are written here, which is faster than `Dialect.id`, and
 * its ID is not read, because the key has it.
 */
function openFind(db: Database, resource: Resource, numbers: RealmNumbers): Find {
  const { visible, decode } = sqliteStatements(resource);
  const columns = keyColumns(resource);
  const select = `select ${['null as id', ...visible.slice(1)].join(', ')} from ${resource.table}
    where ${columns.map((column) => `${column} = ?`).join(' and ')}`;
  const selectByKey = prepare(db, select);
  const selectAt = prepare(db, atRowId(select));
  const ids = columns.slice(1).map(() => new Uint8Array(UUID_BYTES));
  const [user, link] = ids as [Uint8Array, Uint8Array];
  const own = ids.at(-1) as Uint8Array;
  return (key) => {
    const realm = numbers.known.get(key[0]) ?? numbers.find(key[0]);
    if (realm === undefined) return undefined;
    for (let at = 0; at < ids.length; at += 1) writeUuid(key[at + 1] as Uuid, ids[at] as Uint8Array);
    const rowId = rowIdOf(own);
    const row =
      (key.length === 3 ? selectAt.get(realm, user, link, rowId) : selectAt.get(realm, ...ids, rowId)) ??
      selectByKey.get(realm, ...ids);
    if (!row) return undefined;
    row.id = key.at(-1);
    return decode(row);
  };
}

/** The slot of a realm is its number. */
function openFindRealm(db: Database, resource: Resource, numbers: RealmNumbers): Find {
  const { select, decode } = sqliteStatements(resource);
  const selectAt = prepare(db, atRowId(select));
  return ([id]) => {
    const row = selectAt.get(id, numbers.known.get(id) ?? numbers.find(id) ?? null);
    return row ? decode(row) : undefined;
  };
}

/**
 * Reads the newest records of a resource below a record that was found, whose realm is known by its number. SQLite compiles a statement
 * with ORDER BY again whenever a bound value changes that its planner has looked at. It does not look at the operand of a function or
 * a unary plus, and compiling takes twice the time of the select.
 */
function openNewestBelow(db: Database, { known }: RealmNumbers) {
  const selects = new Map(
    RESOURCES.filter(({ includedAs }) => includedAs !== undefined).map((resource) => {
      const parent = keyColumns(resource).slice(0, -1);
      const { visible } = sqliteStatements(resource);
      const parameter = parametersOf(resource, SQLITE);
      const values = parent.map((column) => (column === 'realm_id' ? '+?' : parameter(column)));
      return [resource, prepare(db, newestBelowText(resource, visible, values))];
    }),
  );
  return (resource: Resource, key: Key): IncludedRecords => {
    const select = selects.get(resource);
    if (!select) throw new Error(`${resource.name} cannot be included`);
    const [realm, ...ids] = key;
    const rows = select.all(known.get(realm) ?? null, ...ids);
    return newestOf(resource, rows.map(sqliteStatements(resource).decode));
  };
}

function prepare(db: Database, text: string) {
  return db.prepare<Record<string, unknown>, SqlValue[]>(text);
}
