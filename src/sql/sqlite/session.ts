import { type Database, SQLiteError, type Statement } from 'bun:sqlite';
import {
  ConstraintViolation,
  type SqlValue,
  type StatementBatch,
  type StatementRequest,
  type StatementResult,
  type Work,
} from '../transaction_work.ts';

type Row = Record<string, unknown>;

const NO_ROWS: readonly Row[] = Object.freeze([]);
const NO_RESULT: StatementResult = Object.freeze({ rows: NO_ROWS, count: 0 });

/**
 * Runs work on one connection, in the transaction that is open on it. Caches every prepared statement. The number of those that follow
 * from the descriptions is limited; callers must forget all others.
 */
export function openSqliteSession(db: Database) {
  const cached = new Map<string, Statement<Row, SqlValue[]>>();

  const prepare = (text: string) => db.prepare<Row, SqlValue[]>(text);

  function execute(request: StatementRequest): StatementResult {
    if ('statements' in request) return runBatch(request);
    const { text, values, returns } = request;
    const statement = cached.getOrInsertComputed(text, prepare);
    if (returns === 'count') return { rows: NO_ROWS, count: statement.run(...values).changes };
    if (returns === 'rows') return { rows: statement.all(...values), count: 0 };
    const row = statement.get(...values);
    return { rows: row === null ? NO_ROWS : [row], count: 0 };
  }

  /** Without a savepoint, in which the engine would journal every page that changes: a failed statement undoes itself. */
  function runBatch({ statements, mayViolate }: StatementBatch): StatementResult {
    let done = 0;
    try {
      for (const { text, values } of statements) {
        cached.getOrInsertComputed(text, prepare).run(...values);
        done += 1;
      }
    } catch (error) {
      throw mayViolate ? toConstraintViolation(error, done) : error;
    }
    return NO_RESULT;
  }

  return {
    /** Finalizes cached statements that are no longer used. */
    forget(texts: Iterable<string>): void {
      for (const text of texts) {
        cached.get(text)?.finalize();
        cached.delete(text);
      }
    },
    /** Runs work synchronously to its end. */
    perform<T>(work: Work<T>): T {
      let step = work.next();
      while (!step.done) {
        let result: StatementResult;
        try {
          result = execute(step.value);
        } catch (error) {
          step = work.throw(step.value.mayViolate ? toConstraintViolation(error) : error);
          continue;
        }
        step = work.next(result);
      }
      return step.value;
    },
  };
}

/** `UNIQUE constraint failed: t.realm_id, t.issuer, t.subject` names the columns; a foreign key error names nothing. */
function toConstraintViolation(error: unknown, writesKept = 0): unknown {
  if (!(error instanceof SQLiteError)) return error;
  switch (error.code) {
    case 'SQLITE_CONSTRAINT_UNIQUE': {
      const names = (error.message.split(': ')[1] ?? '').split(', ');
      return new ConstraintViolation(
        { kind: 'unique', columns: names.map((name) => name.split('.')[1] ?? '') },
        error,
        writesKept,
      );
    }
    case 'SQLITE_CONSTRAINT_FOREIGNKEY':
      return new ConstraintViolation({ kind: 'foreign_key' }, error, writesKept);
    default:
      return error;
  }
}
