import type { SQL } from 'bun';
import { OWN, Trouble } from './trouble.ts';

/** What runs one statement after the other. */
export interface Asked {
  unsafe<T = unknown>(text: string, values?: unknown[]): Promise<T>;
}

/**
 * The statements of a client, each in time: one that is late rejects with Trouble. What stalls never ends, and nothing
 * behind it is answered, so the connections of the client are ended then.
 */
export function asking(sql: SQL, waitMsMax: number): Asked {
  return {
    async unsafe(text, values) {
      const { promise: late, reject } = Promise.withResolvers<never>();
      const timer = setTimeout(() => {
        reject(new Trouble(OWN.late));
        sql.close({ timeout: 0 }).catch(() => undefined);
      }, waitMsMax);
      try {
        return await Promise.race([sql.unsafe(text, values), late]);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}
