import type { Database } from 'bun:sqlite';
import type { Work } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';
import { openSqliteSession } from './session.ts';
import { readRetrying, type SharedReadTransaction } from './shared_read_transaction.ts';

/** Runs reads on one connection, with prepared statements of their own. */
export function openSqliteReading(db: Database, sharedReads: SharedReadTransaction) {
  const { perform, forget } = openSqliteSession(db);
  const performInTransaction = db.transaction(<T>(work: Work<T>): T => perform(work)) as typeof perform;
  // One snapshot for all statements, also where no transaction is shared.
  const read: Transactions['read'] = (work) =>
    readRetrying(sharedReads, () => (db.inTransaction ? perform(work()) : performInTransaction(work())));
  return { read, forget };
}
