import type { SQL } from 'bun';
import type { SqlValue } from '../records/statements.ts';
import { databaseError, sqlState } from './errors.ts';
import { numberParameters, type ParameterValue, parameterValues } from './parameters.ts';
import { clientWithTimeout } from './sql_client.ts';

const BATCH_ROWS = 1_000;

/** Rows of one connection that nobody shares, for whoever has time. */
export interface RowStream {
  /**
   * The rows of a statement with the places `?`, some at a time, in a transaction of their own that `opening` begins.
   * The one before must be at its end.
   */
  rows<T>(opening: string, text: string, values: readonly SqlValue[]): AsyncGenerator<T>;
  close(): Promise<void>;
}

/** `waitMsMax`: how long a batch of rows is waited for. */
export function openRowStream(sql: SQL, waitMsMax: number): RowStream {
  const asked = clientWithTimeout(sql, waitMsMax);

  async function ask(text: string, values: readonly ParameterValue[] = []): Promise<readonly unknown[]> {
    try {
      return await asked.unsafe(text, [...values]);
    } catch (error) {
      throw withoutValues(error);
    }
  }

  return {
    async *rows<T>(opening: string, text: string, values: readonly SqlValue[]) {
      for (const statement of opening.split('; ')) await ask(statement);
      try {
        const { text: said, order } = numberParameters(text);
        await ask(`declare told no scroll cursor for ${said}`, parameterValues(values, order));
        for (;;) {
          const rows = (await ask(`fetch ${BATCH_ROWS} from told`)) as readonly T[];
          yield* rows;
          if (rows.length < BATCH_ROWS) return;
        }
      } finally {
        await ask('rollback').catch(() => undefined);
      }
    },
    close: () => sql.close({ timeout: 0 }),
  };
}

/** What is not there or not granted: the engine names tables and columns then, and no values. */
const ABOUT_SCHEMA = /^42/;

function withoutValues(error: unknown): unknown {
  if (ABOUT_SCHEMA.test(sqlState(error) ?? '')) return new Error((error as Error).message);
  return databaseError(error) ?? error;
}
