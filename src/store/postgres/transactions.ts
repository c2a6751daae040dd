import type { Transactions } from '../transactions.ts';
import { BEGIN_SHORT_READ } from './begin_statements.ts';
import { postgresFault } from './connection.ts';
import type { ConnectionPool } from './pool.ts';
import type { Perform } from './session.ts';
import type { PostgresWriter } from './writer.ts';

/** Runs reads over a pool. */
export function openPostgresReading(pool: ConnectionPool, perform: Perform): Transactions['read'] {
  return async (work) => {
    try {
      return await pool.transaction(BEGIN_SHORT_READ, async (connection) => ({
        value: await perform(connection, work()),
        shouldCommit: false,
      }));
    } catch (error) {
      throw postgresFault(error);
    }
  };
}

/** The transactions of a database with concurrent writers. */
export function openPostgresTransactions(
  pool: ConnectionPool,
  perform: Perform,
  { write, isOverloaded }: PostgresWriter,
): Transactions {
  return {
    read: openPostgresReading(pool, perform),
    write,
    isOverloaded,
    // Writers queue for row locks in the server, so the end of a transaction already lets the next one run.
    yieldToWriters: () => new Promise((resolve) => setImmediate(resolve)),
  };
}
