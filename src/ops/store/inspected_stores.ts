import { openAuthStore } from '../../access/store/access.ts';
import { openSealedStore } from '../../access/store/sealed.ts';
import { openAuditLog } from '../../log/store/log.ts';
import { openLogStore } from '../../log/store/reading.ts';
import { NIL_UUID } from '../../model/id.ts';
import type { Resource } from '../../model/resource.ts';
import type { Statements } from '../../records/store/statements.ts';
import type { Dialect } from '../../sql/dialect.ts';
import { all } from '../../sql/transaction_work.ts';
import type { Transactions } from '../../sql/transactions.ts';
import type { ReadRecords } from '../doctor/verify_records.ts';
import { openForgedRows } from './forged_rows.ts';

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
  /** In the order of their IDs, with all members as they are stored. */
  const records: ReadRecords = (resource, realm, after, limit) =>
    read(function* () {
      const { scan, scanComputed, decodeKeyed, wrongColumns } = statementsOf(resource);
      const values = [realm ?? NIL_UUID, after, limit];
      const rows = yield* all<Record<string, unknown>>(realm ? scanComputed : scan, ...values);
      return rows.map((row) => ({ ...decodeKeyed(row), wrongColumns: realm ? wrongColumns(row) : [] }));
    });
  const log = openAuditLog(dialect);
  const access = openAuthStore(transactions, log.rowMacs);
  return {
    access,
    sealed: openSealedStore(transactions, dialect),
    log: openLogStore(transactions, log, dialect),
    /** The keys of the log, which authenticate rows as well. Without them every row counts as authentic. */
    useKeys: log.useKeys,
    forgedRows: openForgedRows(transactions, dialect, log.rowMacs, access),
    records,
  };
}
