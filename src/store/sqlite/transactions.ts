import type { Database } from 'bun:sqlite';
import type { Work } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';
import { readRetrying, yieldLock } from './connection.ts';
import { openSqliteSession } from './session.ts';
import type { SharedReadTransaction } from './shared_read_transaction.ts';
import type { SqliteWriter } from './writer.ts';

/** Reading on one connection. */
export function openSqliteReading(
  db: Database,
  sharedReads: SharedReadTransaction,
): Pick<Transactions, 'read'> {
  const { perform } = openSqliteSession(db);
  const together = db.transaction(<T>(work: Work<T>): T => perform(work)) as typeof perform;
  // One moment for all statements, also where `sharedReads` shares no transaction.
  return {
    read: (work) => readRetrying(sharedReads, () => (db.inTransaction ? perform(work()) : together(work()))),
  };
}

/** The transactions of one connection. All that is written has one order here, wherever it belongs. */
export function openSqliteTransactions(
  db: Database,
  sharedReads: SharedReadTransaction,
  writer: SqliteWriter,
): Transactions {
  return {
    ...openSqliteReading(db, sharedReads),
    write: (_, work) => writer.write(work),
    isOverloaded: writer.isCrowded,
    yieldToWriters: yieldLock,
  };
}
