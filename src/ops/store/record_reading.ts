import { NIL_UUID } from '../../model/id.ts';
import type { Resource } from '../../model/resource.ts';
import type { Statements } from '../../records/store/statements.ts';
import { all } from '../../sql/transaction_work.ts';
import type { Transactions } from '../../sql/transactions.ts';
import type { ReadRecords } from '../doctor/verify_records.ts';

type Row = Record<string, unknown>;

/** Reads records in the order of their IDs, with all members as they are stored. */
export function openRecordReading(
  { read }: Pick<Transactions, 'read'>,
  of: (resource: Resource) => Statements,
): ReadRecords {
  return (resource, realm, after, limit) =>
    read(function* () {
      const { scan, scanComputed, decodeKeyed, wrongColumns } = of(resource);
      const values = [realm ?? NIL_UUID, after, limit];
      if (!realm)
        return (yield* all<Row>(scan, ...values)).map((row) => ({ ...decodeKeyed(row), wrongColumns: [] }));
      const rows = yield* all<Row>(scanComputed, ...values);
      return rows.map((row) => ({ wrongColumns: wrongColumns(row), ...decodeKeyed(row) }));
    });
}
