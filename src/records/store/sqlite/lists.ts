import type { Database } from 'bun:sqlite';
import type { Store } from '../../../model/store.ts';
import type { SharedReadTransaction } from '../../../sql/sqlite/shared_read_transaction.ts';
import { openSqliteReading } from '../../../sql/sqlite/transactions.ts';
import type { Transactions } from '../../../sql/transactions.ts';
import type { Index } from '../lists/list_plans.ts';
import { type Lists, openListReading, openLists } from '../lists/lists.ts';
import { openRealmSearches, openSearchRealms } from '../lists/realm_search.ts';
import { SQLITE, sqliteStatements } from './dialect.ts';

/** Lists over one connection. */
export function openSqliteLists(db: Database, sharedReads: SharedReadTransaction): Lists {
  const { read, forget } = openSqliteReading(db, sharedReads);
  const reading = openListReading({
    of: sqliteStatements,
    dialect: SQLITE,
    indexesOf: (table) => indexesOf(db, table),
    forget,
  });
  return openLists(reading, read);
}

/** Searches of all realms over one connection; `searchWhole`: where those without an index run, by default here. */
export function openSqliteSearches(
  transactions: Pick<Transactions, 'read'>,
  searchWhole?: Store['searchRealms'],
): Store['searchRealms'] {
  const searches = openRealmSearches(sqliteStatements, SQLITE);
  const { read } = transactions;
  return openSearchRealms(
    searches,
    read,
    searchWhole ?? ((resource, search) => read(() => searches.whole(resource, search))),
  );
}

/** The indexes of a table that cover all of its rows. */
export function indexesOf(db: Database, table: string): readonly Index[] {
  const list = db.prepare<{ name: string; unique: number }, [string]>(
    'select name, "unique" from pragma_index_list(?) where partial = 0',
  );
  const info = db.prepare<{ name: string | null }, [string]>(
    'select name from pragma_index_info(?) order by seqno',
  );
  return list.all(table).map(({ name, unique }) => ({
    name,
    columns: info.all(name).map((column) => column.name ?? ''),
    isUnique: unique === 1,
  }));
}
