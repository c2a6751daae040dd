import type { SQL } from 'bun';
import { Fault } from '../../domain/fault.ts';
import type { Answer, Connection } from './connection.ts';
import type { Sent } from './places.ts';

/** What a transaction came to: whether it is to be committed. */
export interface Ended<T> {
  readonly value: T;
  readonly isKept: boolean;
}

/** Connections to one database. Whatever is late rejects with Fault `unavailable`. */
export interface Pool {
  /** Runs one statement by itself. */
  ask(text: string, values: readonly Sent[]): Promise<Answer>;
  /** Runs `work` in a transaction that `opening` begins, and ends it. */
  transaction<T>(opening: string, work: (connection: Connection) => Promise<Ended<T>>): Promise<T>;
  close(): Promise<void>;
}

/** `waitMsMax`: how long one statement may take, its wait for a connection included. */
export function openPool(open: () => SQL, waitMsMax: number): Pool {
  let current = open();

  /** A statement on a connection that stalls never ends, nor do those behind it: all of them are given up. */
  function renew(stalled: SQL): void {
    if (current !== stalled) return;
    current = open();
    stalled.close({ timeout: 0 }).catch(() => undefined);
  }

  async function inTime<T>(sql: SQL, asked: Promise<T>): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      reject(new Fault('unavailable', [], new Error('the database did not answer in time')));
      renew(sql);
    }, waitMsMax);
    try {
      return await Promise.race([asked, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async function askOn(sql: SQL, text: string, values: readonly Sent[], via: Pick<SQL, 'unsafe'> = sql) {
    const rows = await inTime(sql, via.unsafe(text, [...values]));
    return { rows, count: (rows as { count?: number }).count ?? 0 };
  }

  return {
    ask: (text, values) => askOn(current, text, values),
    async transaction(opening, work) {
      const sql = current;
      const reserved = await inTime(sql, sql.reserve());
      const connection: Connection = { ask: (text, values) => askOn(sql, text, values, reserved) };
      try {
        // It travels with the first statement of the work.
        const begun = inTime(sql, reserved.unsafe(opening).simple());
        begun.catch(() => undefined);
        const { value, isKept } = await work(connection);
        await begun;
        await connection.ask(isKept ? 'commit' : 'rollback', []);
        return value;
      } catch (error) {
        await connection.ask('rollback', []).catch(() => undefined);
        throw error;
      } finally {
        reserved.release();
      }
    },
    close: () => current.close(),
  };
}
