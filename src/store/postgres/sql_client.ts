import type { SQL } from 'bun';
import { withTimeout } from '../../platform/timeout.ts';
import { DatabaseError, ERROR_CODES } from './errors.ts';

/** What runs one statement after the other. */
export interface SqlClient {
  unsafe<T = unknown>(text: string, values?: unknown[]): Promise<T>;
}

/**
 * The statements of a client, each in time: one that is late rejects with Trouble. What stalls never ends, and nothing
 * behind it is answered, so the connections of the client are ended then.
 */
export function clientWithTimeout(sql: SQL, waitMsMax: number): SqlClient {
  return {
    unsafe: (text, values) =>
      withTimeout(sql.unsafe(text, values), waitMsMax, () => {
        sql.close({ timeout: 0 }).catch(() => undefined);
        throw new DatabaseError(ERROR_CODES.late);
      }),
  };
}
