import type { Transactions } from '../transactions.ts';
import { asFault } from './connection.ts';
import { BEGIN_SHORT_READING } from './openings.ts';
import type { Pool } from './pool.ts';
import type { Perform } from './session.ts';
import type { Writer } from './writer.ts';

/** Reading over a pool. */
export function openReading(pool: Pool, perform: Perform): Transactions['read'] {
  return async (work) => {
    try {
      return await pool.transaction(BEGIN_SHORT_READING, async (connection) => ({
        value: await perform(connection, work()),
        isKept: false,
      }));
    } catch (error) {
      throw asFault(error);
    }
  };
}

/** The transactions of a database with many writers. */
export function openTransactions(pool: Pool, perform: Perform, { write, isCrowded }: Writer): Transactions {
  return {
    read: openReading(pool, perform),
    write,
    isOverloaded: isCrowded,
    // Nobody here waits for a lock longer than for the transaction that has it.
    yieldToWriters: () => new Promise((resolve) => setImmediate(resolve)),
  };
}
