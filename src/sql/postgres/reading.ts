import type { SqlValue, Work } from '../transaction_work.ts';
import { BEGIN_SHORT_READ } from './begin_statements.ts';
import { postgresFault } from './connection.ts';
import type { ConnectionPool } from './pool.ts';
import type { Perform } from './session.ts';

/** Runs each read in a transaction that `begin` starts. An error becomes the one that `faultOf` returns. */
export function openPostgresReading(
  pool: ConnectionPool,
  perform: Perform,
  begin = BEGIN_SHORT_READ,
  faultOf = postgresFault,
) {
  return async <T>(work: () => Work<T>): Promise<T> => {
    try {
      return await pool.transaction(begin, (connection) => perform(connection, work()));
    } catch (error) {
      throw faultOf(error);
    }
  };
}

/** Runs one query of an inspection. */
export type InspectionQuery = <T>(text: string, ...values: readonly SqlValue[]) => Promise<readonly T[]>;
