import type { SQL } from 'bun';
import { LIMITS } from '../../model/limits.ts';
import { withTimeout } from '../../model/timeout.ts';
import { DatabaseError, ERROR_CODES } from './errors.ts';

/** Runs one statement after the other. */
export interface SqlClient {
  unsafe<T = unknown>(text: string, values?: unknown[]): Promise<T>;
}

/**
 * A client whose statements reject with DatabaseError after a timeout. A stalled statement blocks those behind it, so
 * the timeout also closes the connections of the client.
 */
export function clientWithTimeout(sql: SQL, waitMsMax: number = LIMITS.storeWaitMsMax): SqlClient {
  return {
    unsafe: (text, values) =>
      withTimeout(sql.unsafe(text, values), waitMsMax, () => {
        sql.close({ timeout: 0 }).catch(() => undefined);
        throw new DatabaseError(ERROR_CODES.timeout);
      }),
  };
}
