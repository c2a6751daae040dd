import type { SQL } from 'bun';
import type { SqlValue } from '../transaction_work.ts';
import type { BeginStatements } from './begin_statements.ts';
import { databaseError, sqlState } from './errors.ts';
import { numberParameters, type ParameterValue, parameterValues } from './parameters.ts';
import { clientWithTimeout } from './sql_client.ts';

const BATCH_ROWS = 1_000;

export type RowStream = ReturnType<typeof openRowStream>;

/** Runs one query of an inspection. */
export type InspectionQuery = <T>(text: string, ...values: readonly SqlValue[]) => AsyncGenerator<T>;

/** Streams rows over its own connection, for work that may take long. `waitMsMax` is the timeout for a batch of rows. */
export function openRowStream(sql: SQL, waitMsMax: number) {
  const client = clientWithTimeout(sql, waitMsMax);

  async function runStatement(
    text: string,
    values: readonly ParameterValue[] = [],
  ): Promise<readonly unknown[]> {
    try {
      return await client.unsafe(text, [...values]);
    } catch (error) {
      throw withoutValues(error);
    }
  }

  return {
    /**
     * Yields the rows of a statement with the placeholders `?`, read by a cursor in a transaction that the statements of
     * `begin` start. The previous stream must have ended.
     */
    async *rows<T>(
      begin: BeginStatements,
      text: string,
      values: readonly SqlValue[],
    ): AsyncGenerator<T, void, undefined> {
      for (const statement of begin) await runStatement(statement);
      try {
        const { text: numbered, order } = numberParameters(text);
        await runStatement(`declare batch no scroll cursor for ${numbered}`, parameterValues(values, order));
        for (;;) {
          const rows = (await runStatement(`fetch ${BATCH_ROWS} from batch`)) as readonly T[];
          yield* rows;
          if (rows.length < BATCH_ROWS) return;
        }
      } finally {
        await runStatement('rollback').catch(() => undefined);
      }
    },
    close: () => sql.close({ timeout: 0 }),
  };
}

/** Missing objects and privileges: these messages of the server name tables and columns, and quote no values. */
const SCHEMA_ERROR = /^42/;

function withoutValues(error: unknown): unknown {
  if (SCHEMA_ERROR.test(sqlState(error) ?? '')) return new Error((error as Error).message);
  return databaseError(error) ?? error;
}
