import type { SQL } from 'bun';
import type { Constraint, StatementRequest, StatementResult, Work } from '../transaction_work.ts';
import { ConstraintViolation } from '../transaction_work.ts';
import type { Connection, QueryResult } from './connection.ts';
import { sqlState, UNIQUE_VIOLATION } from './errors.ts';
import { numberParameters, parameterValues } from './parameters.ts';

/** Names the columns of a unique index. */
export type IndexColumns = (index: string) => readonly string[] | undefined;

/** Runs a piece of work inside the transaction of a connection, with a wait at each statement. */
export type Perform = <T>(connection: Connection, work: Work<T>) => Promise<T>;

export interface PostgresSession {
  readonly perform: Perform;
  /** Drops what is kept of texts that nobody asks for any more. */
  forget(texts: Iterable<string>): void;
}

/** Every text is kept: those that follow from the descriptions have an end, others are to be forgotten. */
export function openPostgresSession(columnsOf: IndexColumns): PostgresSession {
  const known = new Map<string, ReturnType<typeof numberParameters>>();

  function numberedOnce(text: string) {
    let found = known.get(text);
    if (!found) {
      found = numberParameters(text);
      known.set(text, found);
    }
    return found;
  }

  async function tell(connection: Connection, asked: StatementRequest): Promise<StatementResult> {
    const statements = 'statements' in asked ? asked.statements : [asked];
    const send = () =>
      statements.map(({ text, values }) => {
        const { text: said, order } = numberedOnce(text);
        return connection.query(said, parameterValues(values, order));
      });
    if (!asked.mayViolate) return lastOf(await Promise.all(send()));
    try {
      return lastOf(await sendInSavepoint(connection, send));
    } catch (error) {
      const rule = ruleOf(error, columnsOf);
      throw rule ? new ConstraintViolation(rule, error) : error;
    }
  }

  return {
    forget(texts) {
      for (const text of texts) known.delete(text);
    },
    async perform(connection, work) {
      let step = work.next();
      while (!step.done) {
        let told: StatementResult;
        try {
          told = await tell(connection, step.value);
        } catch (error) {
          step = work.throw(error);
          continue;
        }
        step = work.next(told);
      }
      return step.value;
    },
  };
}

function lastOf(answers: readonly QueryResult[]): QueryResult {
  return answers.at(-1) as QueryResult;
}

/** Statements that a rule may refuse, alone undone then. */
async function sendInSavepoint(
  connection: Connection,
  send: () => readonly Promise<QueryResult>[],
): Promise<readonly QueryResult[]> {
  const begun = connection.query('savepoint attempt', []);
  const asked = send();
  const released = connection.query('release savepoint attempt', []);
  const [, , ...settled] = await Promise.allSettled([begun, released, ...asked]);
  // Those behind the one that was refused were not even tried, and say so.
  const refused = settled.find((each) => each.status === 'rejected');
  if (!refused) return Promise.all(asked);
  // A savepoint outlives its undoing: the next one would stand inside it.
  await connection.query('rollback to savepoint attempt; release savepoint attempt', []);
  throw refused.reason;
}

const FOREIGN_KEY_VIOLATION = '23503';

/** Which rule of the schema an error tells of; undefined for other trouble. */
function ruleOf(error: unknown, columnsOf: IndexColumns): Constraint | undefined {
  const state = sqlState(error);
  if (state === FOREIGN_KEY_VIOLATION) return { kind: 'foreign_key' };
  if (state !== UNIQUE_VIOLATION) return undefined;
  const columns = columnsOf(String((error as SQL.PostgresError).constraint));
  return columns && { kind: 'unique', columns };
}
