import type { Transactions } from '../transactions.ts';
import { BEGIN_SHORT_READING } from './begin_statements.ts';
import { postgresFault } from './connection.ts';
import type { ConnectionPool } from './pool.ts';
import type { Perform } from './session.ts';
import type { PostgresWriter } from './writer.ts';

/** Reading over a pool. */
export function openPostgresReading(pool: ConnectionPool, perform: Perform): Transactions['read'] {
  return async (work) => {
    try {
      return await pool.transaction(BEGIN_SHORT_READING, async (connection) => ({
        value: await perform(connection, work()),
        isKept: false,
      }));
    } catch (error) {
      throw postgresFault(error);
    }
  };
}

/** The transactions of a database with many writers. */
export function openPostgresTransactions(
  pool: ConnectionPool,
  perform: Perform,
  { write, isCrowded }: PostgresWriter,
): Transactions {
  return {
    read: openPostgresReading(pool, perform),
    write,
    isOverloaded: isCrowded,
    // Nobody here waits for a lock longer than for the transaction that has it.
    yieldToWriters: () => new Promise((resolve) => setImmediate(resolve)),
  };
}
