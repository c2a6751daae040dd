import type { SQL } from 'bun';
import {
  type Constraint,
  ConstraintViolation,
  type ExpectedResult,
  type StatementRequest,
  type StatementResult,
  type Work,
} from '../transaction_work.ts';
import type { Connection, QueryResult } from './connection.ts';
import { sqlState, UNIQUE_VIOLATION } from './errors.ts';
import type { Expectations } from './expectations.ts';
import { columnsOfIndex } from './indexes.ts';
import { uniteInserts } from './multi_row_inserts.ts';
import { numberParameters, parameterValues } from './parameters.ts';

/**
 * Runs work in the transaction of a connection. It waits for each statement; with expectations only for those whose result it
 * does not know in advance.
 */
export type Perform = <T>(connection: Connection, work: Work<T>, expectations?: Expectations) => Promise<T>;

export type PostgresSession = ReturnType<typeof openPostgresSession>;

/**
 * Caches every statement. The number of those that follow from the descriptions is limited; callers must forget all
 * others.
 */
export function openPostgresSession() {
  let workMs = 0;
  const numberedTexts = new Map<string, ReturnType<typeof numberParameters>>();

  function timed<T>(run: () => T): T {
    const startedAt = performance.now();
    try {
      return run();
    } finally {
      workMs += performance.now() - startedAt;
    }
  }

  function send(connection: Connection, request: StatementRequest): readonly Promise<QueryResult>[] {
    return timed(() => {
      const statements = 'statements' in request ? uniteInserts(request) : [request];
      return statements.map(({ text, values }) => {
        const { text: numbered, order } = numberedTexts.getOrInsertComputed(text, numberParameters);
        return connection.query(numbered, parameterValues(values, order));
      });
    });
  }

  async function execute(connection: Connection, request: StatementRequest): Promise<StatementResult> {
    if (!request.mayViolate) return lastOf(await Promise.all(send(connection, request)));
    try {
      return lastOf(await sendInSavepoint(connection, () => send(connection, request)));
    } catch (error) {
      const constraint = violatedConstraint(error);
      throw constraint ? new ConstraintViolation(constraint, error) : error;
    }
  }

  /** Sends a request without waiting, and returns its expected result; undefined where the work needs the real one. */
  async function sendExpected(
    connection: Connection,
    request: StatementRequest,
    expectations: Expectations,
  ): Promise<StatementResult | undefined> {
    const expected = 'statements' in request ? undefined : request.expected;
    await expectations.makeRoom();
    if (expected === undefined && !isExpectedBatch(request)) return undefined;
    const rows = 'statements' in request ? request.statements.length : 1;
    expectations.add(Promise.all(send(connection, request)).then(lastOf), expected, rows);
    return resultOf(expected);
  }

  return {
    /** Drops cached statements that are no longer used. */
    forget(texts: Iterable<string>): void {
      for (const text of texts) numberedTexts.delete(text);
    },
    /** Milliseconds of the event loop that work has taken. */
    workMs: () => workMs,
    async perform<T>(connection: Connection, work: Work<T>, expectations?: Expectations): Promise<T> {
      let step = timed(() => work.next());
      while (!step.done) {
        let result: StatementResult;
        try {
          const expected = expectations && (await sendExpected(connection, step.value, expectations));
          result = expected ?? (await execute(connection, step.value));
          if (expectations && hasWritten(step.value, result)) expectations.writes += 1;
        } catch (error) {
          step = timed(() => work.throw(error));
          continue;
        }
        step = timed(() => work.next(result));
      }
      return step.value;
    },
  };
}

/** Whether a request wrote rows. The server counts the rows of a select, too. */
function hasWritten(request: StatementRequest, { count }: StatementResult): boolean {
  return 'statements' in request || (count > 0 && !request.text.startsWith('select'));
}

/** A batch returns nothing, and only has to succeed. */
function isExpectedBatch(request: StatementRequest): boolean {
  return 'statements' in request && (!request.mayViolate || request.isSuccessExpected === true);
}

function resultOf(expected: ExpectedResult | undefined): StatementResult {
  return { rows: [], count: expected === 'one_row' ? 1 : 0 };
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
  const undone = connection.query('rollback to savepoint attempt', []);
  await Promise.all([undone, connection.query('release savepoint attempt', [])]);
  throw failed.reason;
}

const FOREIGN_KEY_VIOLATION = '23503';

/** Whether an error reports a violated constraint. */
export function isViolation(error: unknown): boolean {
  return [FOREIGN_KEY_VIOLATION, UNIQUE_VIOLATION].includes(sqlState(error) ?? '');
}

/** The constraint that an error reports as violated; undefined for other errors. */
function violatedConstraint(error: unknown): Constraint | undefined {
  const state = sqlState(error);
  if (state === FOREIGN_KEY_VIOLATION) return { kind: 'foreign_key' };
  if (state !== UNIQUE_VIOLATION) return undefined;
  const index = violatedIndex(error as SQL.PostgresError);
  const columns = columnsOfIndex(index) ?? columnsOfIndex(index.replace(SHARD_NUMBER, ''));
  return columns && { kind: 'unique', columns };
}

/** Citus appends this to the index names of a shard: `password_profile_info_username_102034`. */
const SHARD_NUMBER = /_\d+$/;

/** For a shard on another node, a node of Citus sends no constraint: only its message contains the name. */
function violatedIndex({ constraint, message }: SQL.PostgresError): string {
  return constraint ?? /"(\w+)"/.exec(message)?.[1] ?? '';
}
