import type { ReservedSQL, SQL } from 'bun';
import { Fault } from '../../domain/fault.ts';
import { withTimeout } from '../../platform/timeout.ts';
import type { Host } from './address.ts';
import type { Connection, QueryResult } from './connection.ts';
import { DatabaseError, databaseError, driverError, ERROR_CODES, isRefusedCommit } from './errors.ts';
import type { ParameterValue } from './parameters.ts';
import type { Primary } from './primary.ts';

/** What a transaction came to: whether it is to be committed. */
export interface TransactionResult<T> {
  readonly value: T;
  readonly isKept: boolean;
}

/** Connections to one database. Whatever is late rejects. */
export interface ConnectionPool {
  /** Runs one statement by itself. */
  query(text: string, values: readonly ParameterValue[]): Promise<QueryResult>;
  /**
   * Runs `work` in a transaction that `opening` begins, and ends it. Rejects with Fault `unknown_outcome` where nobody
   * knows whether it was committed.
   */
  transaction<T>(
    opening: string,
    work: (connection: Connection) => Promise<TransactionResult<T>>,
  ): Promise<T>;
  /** Waits for what is under way. */
  close(): Promise<void>;
}

/** The driver, and the host it is connected to. */
interface Client {
  readonly host: Host | undefined;
  readonly sql: SQL;
}

type Values = readonly ParameterValue[];
type OpenClient = (host: Host | undefined) => SQL;

/** The hosts to connect to; by default one host, whose availability is not watched. */
type Hosts = Pick<Primary, 'reportError'> & { current(): Host | undefined };

const ignore = () => undefined;
const ONE: Hosts = { current: ignore, reportError: ignore };

/**
 * Connections to whichever host takes writes; `open` makes those to one. `waitMsMax`: how long one statement may take,
 * its wait for a connection included.
 */
export function openConnectionPool(open: OpenClient, waitMsMax: number, hosts: Hosts = ONE): ConnectionPool {
  let current: Client | undefined;

  function clientNow(): Client {
    const host = hosts.current();
    if (current && current.host === host) return current;
    if (current) giveUp(current);
    current = { host, sql: open(host) };
    return current;
  }

  /** A statement on a connection that stalls never ends, nor do those behind it: all of them reject. */
  function giveUp(client: Client): void {
    if (current === client) current = undefined;
    client.sql.close({ timeout: 0 }).catch(ignore);
  }

  /** What the driver answers, or what `onTimeout` throws. */
  async function inTime<T>(asked: Promise<T>, onTimeout: () => never): Promise<T> {
    try {
      return await withTimeout(asked, waitMsMax, onTimeout);
    } catch (error) {
      const trouble = driverError(error);
      if (trouble) hosts.reportError(trouble);
      throw databaseError(error) ? error : (trouble ?? error);
    }
  }

  function answered<T>(client: Client, asked: Promise<T>): Promise<T> {
    return inTime(asked, () => {
      giveUp(client);
      throw new DatabaseError(ERROR_CODES.late);
    });
  }

  async function queryOn(client: Client, via: SQL | ReservedSQL, text: string, values: Values) {
    const rows = await answered(client, via.unsafe(text, [...values]));
    return { rows, count: (rows as { count?: number }).count ?? 0 };
  }

  /** A connection for one transaction. All of them may be busy, which says nothing about any of them. */
  async function reserve({ sql }: Client): Promise<ReservedSQL> {
    const wait = new AbortController();
    const reserving = sql.reserve({ signal: wait.signal });
    return inTime(reserving, () => {
      reserving.then((reserved) => reserved.release(), ignore);
      wait.abort();
      throw new DatabaseError(ERROR_CODES.crowded);
    });
  }

  /** Resolves once the engine says that it has committed. */
  async function commit(client: Client, reserved: ReservedSQL): Promise<void> {
    try {
      const { command } = await answered(client, reserved.unsafe('commit', []));
      // Where a statement before it has failed, the engine rolls back and calls that an answer.
      if (command !== 'COMMIT') throw new Fault('unavailable', [], new DatabaseError(ERROR_CODES.rolledBack));
    } catch (error) {
      const trouble = databaseError(error);
      if (!trouble || isRefusedCommit(trouble)) throw error;
      throw new Fault('unknown_outcome', [], trouble);
    }
  }

  return {
    async query(text, values) {
      const client = clientNow();
      return queryOn(client, client.sql, text, values);
    },
    async transaction(opening, work) {
      const client = clientNow();
      const reserved = await reserve(client);
      const connection: Connection = { query: (text, values) => queryOn(client, reserved, text, values) };
      try {
        // It travels with the first statement of the work.
        const begun = answered(client, reserved.unsafe(opening).simple());
        begun.catch(ignore);
        const { value, isKept } = await work(connection);
        await begun;
        if (isKept) await commit(client, reserved);
        else await connection.query('rollback', []);
        return value;
      } catch (error) {
        await connection.query('rollback', []).catch(ignore);
        throw error;
      } finally {
        reserved.release();
      }
    },
    close: async () => current?.sql.close({ timeout: waitMsMax / 1_000 }),
  };
}
