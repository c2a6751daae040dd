import type { ReadRecords } from '../../audit/verify_records.ts';
import type { Resource } from '../../domain/resource.ts';
import { all } from '../transaction_work.ts';
import type { Transactions } from '../transactions.ts';
import type { Statements } from './statements.ts';

/** Reads records in the order of their IDs, with all members as they are stored. */
export function openRecordReading(
  { read }: Pick<Transactions, 'read'>,
  of: (resource: Resource) => Statements,
): ReadRecords {
  return (resource, realm, after, limit) =>
    read(function* () {
      const { scanRealm, decodeKeyed } = of(resource);
      return (yield* all<Record<string, unknown>>(scanRealm, realm, after, limit)).map(decodeKeyed);
    });
}
