import type { SQL } from 'bun';
import type { Constraint, StatementRequest, StatementResult, Work } from '../transaction_work.ts';
import { ConstraintViolation } from '../transaction_work.ts';
import type { Connection, QueryResult } from './connection.ts';
import { sqlState, UNIQUE_VIOLATION } from './errors.ts';
import { numberParameters, parameterValues } from './parameters.ts';

/** Returns the columns of a unique index. */
export type IndexColumns = (index: string) => readonly string[] | undefined;

/** Runs work in the transaction of a connection. It waits for each statement. */
export type Perform = <T>(connection: Connection, work: Work<T>) => Promise<T>;

export interface PostgresSession {
  readonly perform: Perform;
  /** Drops cached statements that are no longer used. */
  forget(texts: Iterable<string>): void;
}

/**
 * Caches every statement. The number of those that follow from the descriptions is limited; callers must forget all
 * others.
 */
export function openPostgresSession(columnsOf: IndexColumns): PostgresSession {
  const numberedTexts = new Map<string, ReturnType<typeof numberParameters>>();

  function numberedOnce(text: string) {
    let found = numberedTexts.get(text);
    if (!found) {
      found = numberParameters(text);
      numberedTexts.set(text, found);
    }
    return found;
  }

  async function execute(connection: Connection, request: StatementRequest): Promise<StatementResult> {
    const statements = 'statements' in request ? request.statements : [request];
    const send = () =>
      statements.map(({ text, values }) => {
        const { text: numbered, order } = numberedOnce(text);
        return connection.query(numbered, parameterValues(values, order));
      });
    if (!request.mayViolate) return lastOf(await Promise.all(send()));
    try {
      return lastOf(await sendInSavepoint(connection, send));
    } catch (error) {
      const constraint = violatedConstraint(error, columnsOf);
      throw constraint ? new ConstraintViolation(constraint, error) : error;
    }
  }

  return {
    forget(texts) {
      for (const text of texts) numberedTexts.delete(text);
    },
    async perform(connection, work) {
      let step = work.next();
      while (!step.done) {
        let result: StatementResult;
        try {
          result = await execute(connection, step.value);
        } catch (error) {
          step = work.throw(error);
          continue;
        }
        step = work.next(result);
      }
      return step.value;
    },
  };
}

function lastOf(results: readonly QueryResult[]): QueryResult {
  return results.at(-1) as QueryResult;
}

/** Sends statements that may violate a constraint. Only these are rolled back then. */
async function sendInSavepoint(
  connection: Connection,
  send: () => readonly Promise<QueryResult>[],
): Promise<readonly QueryResult[]> {
  const begun = connection.query('savepoint attempt', []);
  const sent = send();
  const released = connection.query('release savepoint attempt', []);
  const [, , ...settled] = await Promise.allSettled([begun, released, ...sent]);
  // Later statements fail because the transaction is aborted: the first error is the cause.
  const failed = settled.find((each) => each.status === 'rejected');
  if (!failed) return Promise.all(sent);
  // A savepoint outlives its rollback: without the release, the next one would be nested in it.
  await connection.query('rollback to savepoint attempt; release savepoint attempt', []);
  throw failed.reason;
}

const FOREIGN_KEY_VIOLATION = '23503';

/** The constraint that an error reports as violated; undefined for other errors. */
function violatedConstraint(error: unknown, columnsOf: IndexColumns): Constraint | undefined {
  const state = sqlState(error);
  if (state === FOREIGN_KEY_VIOLATION) return { kind: 'foreign_key' };
  if (state !== UNIQUE_VIOLATION) return undefined;
  const index = violatedIndex(error as SQL.PostgresError);
  const columns = columnsOf(index) ?? columnsOf(index.replace(SHARD_NUMBER, ''));
  return columns && { kind: 'unique', columns };
}

/** Citus appends it to the names of the indexes of a shard: `password_profile_info_username_102034`. */
const SHARD_NUMBER = /_\d+$/;

/** A node of Citus sends no constraint for a shard on another node; the name is in its message alone. */
function violatedIndex({ constraint, message }: SQL.PostgresError): string {
  return constraint ?? /"(\w+)"/.exec(message)?.[1] ?? '';
}
