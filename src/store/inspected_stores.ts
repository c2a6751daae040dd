import type { Resource } from '../domain/resource.ts';
import { openAuditLog } from './audit/log.ts';
import { openLogStore } from './audit/log_reading.ts';
import { openAuthStore } from './auth/access.ts';
import { openForgedRows } from './auth/forged_rows.ts';
import { openSealedStore } from './auth/sealed_store.ts';
import type { Dialect } from './dialect.ts';
import { openRecordReading } from './records/record_reading.ts';
import type { Statements } from './records/statements.ts';
import type { Transactions } from './transactions.ts';

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
