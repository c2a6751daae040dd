import { openAuthStore } from '../../access/store/access.ts';
import { openSealedStore } from '../../access/store/sealed.ts';
import { openAuditLog } from '../../log/store/log.ts';
import { openLogStore } from '../../log/store/reading.ts';
import type { Resource } from '../../model/resource.ts';
import type { Statements } from '../../records/store/statements.ts';
import type { Dialect } from '../../sql/dialect.ts';
import type { Transactions } from '../../sql/transactions.ts';
import { openForgedRows } from './forged_rows.ts';
import { openRecordReading } from './record_reading.ts';

/** The stores of an inspected database. They reject if a table does not exist, and write nothing. */
export function openInspectedStores(
  read: Transactions['read'],
  dialect: Dialect,
  statementsOf: (resource: Resource) => Statements,
) {
  const transactions: Transactions = {
    read,
    write: () => Promise.reject(new Error('an inspection cannot write')),
    isOverloaded: () => false,
    yieldToWriters: async () => undefined,
  };
  const log = openAuditLog(dialect);
  const access = openAuthStore(transactions, log.rowMacs);
  return {
    access,
    sealed: openSealedStore(transactions, dialect),
    log: openLogStore(transactions, log, dialect),
    /** The keys of the log, which authenticate rows as well. Without them every row counts as authentic. */
    useKeys: log.useKeys,
    forgedRows: openForgedRows(transactions, dialect, log.rowMacs, access),
    records: openRecordReading(transactions, statementsOf),
  };
}
