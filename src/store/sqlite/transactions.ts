import type { Database } from 'bun:sqlite';
import type { Work } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';
import { yieldLock } from './connection.ts';
import { openSqliteSession, type SqliteSession } from './session.ts';
import { readRetrying, type SharedReadTransaction } from './shared_read_transaction.ts';
import type { SqliteWriter } from './writer.ts';

/** Runs reads on one connection, with prepared statements of their own. */
export function openSqliteReading(
  db: Database,
  sharedReads: SharedReadTransaction,
): Pick<Transactions, 'read'> & Pick<SqliteSession, 'forget'> {
  const { perform, forget } = openSqliteSession(db);
  const performInTransaction = db.transaction(<T>(work: Work<T>): T => perform(work)) as typeof perform;
  // One snapshot for all statements, also where no transaction is shared.
  return {
    forget,
    read: (work) =>
      readRetrying(sharedReads, () => (db.inTransaction ? perform(work()) : performInTransaction(work()))),
  };
}

/** The transactions of one connection. */
export function openSqliteTransactions(
  db: Database,
  sharedReads: SharedReadTransaction,
  { write, isOverloaded }: SqliteWriter,
): Transactions {
  return {
    ...openSqliteReading(db, sharedReads),
    write,
    isOverloaded,
    yieldToWriters: yieldLock,
  };
}
