import type { ReservedSQL, SQL } from 'bun';
import { Fault } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import { withTimeout } from '../../model/timeout.ts';
import type { PostgresAddress } from './address.ts';
import type { BeginStatements } from './begin_statements.ts';
import { openClient } from './client.ts';
import type { Connection, QueryResult } from './connection.ts';
import { DatabaseError, databaseError, driverError, ERROR_CODES, isRefusedCommit } from './errors.ts';
import type { ParameterValue } from './parameters.ts';
import type { Primary } from './primary.ts';

type ParameterValues = readonly ParameterValue[];

const ignore = () => undefined;

export type ConnectionPool = ReturnType<typeof openConnectionPool>;

/** Connections to the current primary. A statement that times out, with its wait for a connection, rejects. */
export function openConnectionPool(
  address: PostgresAddress,
  connectionsMax: number,
  primary: Primary,
  waitMsMax: number = LIMITS.storeWaitMsMax,
) {
  let current: SQL | undefined;
  // Statements on the previous host may never be answered.
  primary.onMoved(() => current && giveUp(current));

  function currentClient(): SQL {
    const host = primary.current();
    current ??= openClient(address, connectionsMax, host);
    return current;
  }

  /**
   * A statement on a stalled connection never ends, nor do those queued behind it: closing the client rejects all of
   * them.
   */
  function giveUp(client: SQL): void {
    if (current === client) current = undefined;
    client.close({ timeout: 0 }).catch(ignore);
  }

  /** The response of the driver, or the error that `onTimeout` throws. Reports errors of the host. */
  async function reportingErrors<T>(response: Promise<T>, onTimeout: () => never): Promise<T> {
    const { delayMs } = primary;
    const delay = delayMs === undefined ? undefined : setTimeout(primary.reportDelay, delayMs);
    try {
      return await withTimeout(response, waitMsMax, onTimeout);
    } catch (error) {
      const known = driverError(error);
      if (known) primary.reportError(known);
      throw databaseError(error) ? error : (known ?? error);
    } finally {
      clearTimeout(delay);
    }
  }

  function responseInTime<T>(client: SQL, response: Promise<T>): Promise<T> {
    return reportingErrors(response, () => {
      giveUp(client);
      throw new DatabaseError(ERROR_CODES.timeout);
    });
  }

  async function queryOn(client: SQL, via: SQL | ReservedSQL, text: string, values: ParameterValues) {
    // The driver prepares a template even if it has no values, and pipelines what it prepares.
    const response = values.length === 0 ? via(templateOf(text)) : via.unsafe(text, [...values]);
    const rows = await responseInTime(client, response);
    return { rows, count: (rows as { count?: number }).count ?? 0 };
  }

  /** Reserves a connection for one transaction. A timeout means that all are busy, not that the host is down. */
  async function reserve(client: SQL): Promise<ReservedSQL> {
    const wait = new AbortController();
    const reserving = client.reserve({ signal: wait.signal });
    return reportingErrors(reserving, () => {
      reserving.then((reserved) => reserved.release(), ignore);
      wait.abort();
      throw new DatabaseError(ERROR_CODES.connectionsBusy);
    });
  }

  /** Resolves once the server has confirmed the commit. */
  async function commit(client: SQL, reserved: ReservedSQL): Promise<void> {
    try {
      const { command } = await responseInTime(client, reserved`commit`);
      // After a failed statement the server answers COMMIT with ROLLBACK, and reports no error.
      if (command !== 'COMMIT') throw new Fault('unavailable', [], new DatabaseError(ERROR_CODES.rolledBack));
    } catch (error) {
      const known = databaseError(error);
      if (!known || isRefusedCommit(known)) throw error;
      throw new Fault('unknown_outcome', [], known);
    }
  }

  return {
    /** Runs one statement outside of a transaction. */
    async query(text: string, values: ParameterValues): Promise<QueryResult> {
      const client = currentClient();
      return queryOn(client, client, text, values);
    },
    /**
     * Runs `work` in a transaction that the statements of `begin` start, and rolls it back; with `mayCommit`, which only the writer
     * passes, commits it where the work returns true. Nothing is committed where the work returns without having awaited a statement
     * that fails. Rejects with Fault `unknown_outcome` where the outcome of the commit is unknown.
     */
    async transaction<T>(
      begin: BeginStatements,
      work: (connection: Connection) => Promise<T>,
      mayCommit = false,
    ): Promise<T> {
      const client = currentClient();
      const reserved = await reserve(client);
      const connection: Connection = { query: (text, values) => queryOn(client, reserved, text, values) };
      // Not awaited: statements that need no result of it are sent behind it.
      const begun = Promise.all(begin.map((text) => connection.query(text, [])));
      begun.catch(ignore);
      try {
        const value = await work(connection);
        await begun;
        if (mayCommit && value === true) await commit(client, reserved);
        else await connection.query('rollback', []);
        return value;
      } catch (error) {
        await connection.query('rollback', []).catch(ignore);
        throw await firstError(begun, error);
      } finally {
        reserved.release();
      }
    },
    /** Waits for running statements. */
    close: async (): Promise<void> => current?.close({ timeout: LIMITS.storeWaitMsMax / 1_000 }),
  };
}

/** The strings of a template literal without expressions, as the driver recognizes them. */
function templateOf(text: string): TemplateStringsArray {
  const strings = [text];
  return Object.defineProperty(strings, 'raw', { value: strings }) as unknown as TemplateStringsArray;
}

/** The error of an earlier response if it failed: later statements fail because the transaction is aborted. */
export function firstError(earlier: Promise<unknown>, error: unknown): Promise<unknown> {
  return earlier.then(
    () => error,
    (first) => first,
  );
}
