import type { Database } from 'bun:sqlite';
import type { Eraser } from '../../audit/port.ts';
import type { Loader, Scanner, Store } from '../../directory/store.ts';
import type { Uuid } from '../../domain/id.ts';
import type { Key, RecordOf, Resource } from '../../domain/resource.ts';
import { RESOURCES } from '../../domain/resources.ts';
import { openCountBelow } from '../lists/count_below.ts';
import { openProbe, openRecords } from '../records/records.ts';
import type { SqlValue } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';
import { SQLITE, sqliteStatements } from './dialect.ts';
import { openSqliteLists } from './lists.ts';
import { openSqliteReverseLookups } from './reverse_lookups.ts';
import { atRowId, rowIdOf } from './row_id.ts';
import { readRetrying, type SharedReadTransaction } from './shared_read_transaction.ts';
import { takeSqliteSnapshot } from './snapshot.ts';

/** Records and their changes in one SQLite file. */
export function openSqliteRecords(
  db: Database,
  sharedReads: SharedReadTransaction,
  transactions: Transactions,
): Store & Loader & Scanner & Eraser {
  return {
    ...openRecords(sqliteStatements, SQLITE, transactions),
    get: openLookup(db, sharedReads),
    find: openSqliteReverseLookups(db, sharedReads),
    list: openSqliteLists(db, sharedReads).local,
    countBelow: openCountBelow(transactions),
    overloaded: { write: transactions.isOverloaded },
    ready: openProbe(transactions),
    openSnapshot: () => takeSqliteSnapshot(db),
  };
}

/**
 * Lookups by ID. The first statement searches at the usual row ID of the record; a second one, by the key alone, rarely
 * runs.
 */
function openLookup(db: Database, sharedReads: SharedReadTransaction): Store['get'] {
  const prepared = new Map(
    RESOURCES.map((resource) => {
      const { select, decode } = sqliteStatements(resource);
      return [resource, { select: prepare(db, select), selectAt: prepare(db, atRowId(select)), decode }];
    }),
  );
  return <R extends Resource>(resource: R, key: Key) => {
    const found = prepared.get(resource);
    if (!found) throw new Error(`${resource.name} has no table`);
    const { select, selectAt, decode } = found;
    const rowId = rowIdOf(key.at(-1) as Uuid);
    return readRetrying(sharedReads, () => {
      const row = selectAt.get(...key, rowId) ?? select.get(...key);
      return row ? (decode(row) as unknown as RecordOf<R>) : undefined;
    });
  };
}

function prepare(db: Database, text: string) {
  return db.prepare<Record<string, unknown>, SqlValue[]>(text);
}
