import { type Database, SQLiteError, type Statement } from 'bun:sqlite';
import type { SqlValue } from '../records/statements.ts';
import {
  ConstraintViolation,
  type StatementBatch,
  type StatementRequest,
  type StatementResult,
  type Work,
} from '../transaction_work.ts';

type Row = Record<string, unknown>;

const NO_ROWS: readonly Row[] = Object.freeze([]);
const NOTHING: StatementResult = Object.freeze({ rows: NO_ROWS, count: 0 });

/** Runs pieces of work on one connection, inside whatever transaction is open there. */
export interface SqliteSession {
  /** Runs a piece to its end, in one go. */
  perform<T>(work: Work<T>): T;
  /** Drops what is prepared for texts that nobody asks for any more. */
  forget(texts: Iterable<string>): void;
}

/** Every text is kept prepared: those that follow from the descriptions have an end, others are to be forgotten. */
export function openSqliteSession(db: Database): SqliteSession {
  const kept = new Map<string, Statement<Row, SqlValue[]>>();

  function prepared(text: string): Statement<Row, SqlValue[]> {
    const known = kept.get(text);
    if (known) return known;
    const statement = db.prepare<Row, SqlValue[]>(text);
    kept.set(text, statement);
    return statement;
  }

  function runAsked(asked: StatementRequest): StatementResult {
    if ('statements' in asked) return runBatch(asked);
    const { text, values, returns: wants } = asked;
    const statement = prepared(text);
    if (wants === 'count') return { rows: NO_ROWS, count: statement.run(...values).changes };
    if (wants === 'rows') return { rows: statement.all(...values), count: 0 };
    const row = statement.get(...values);
    return { rows: row === null ? NO_ROWS : [row], count: 0 };
  }

  function runBatch({ statements, mayViolate: mayBreak }: StatementBatch): StatementResult {
    if (mayBreak) prepared('savepoint attempt').run();
    try {
      for (const { text, values } of statements) prepared(text).run(...values);
    } catch (error) {
      // Some errors (a full disk) have already ended the transaction.
      if (mayBreak && db.inTransaction) prepared('rollback to attempt').run();
      throw error;
    }
    if (mayBreak) prepared('release attempt').run();
    return NOTHING;
  }

  return {
    forget(texts) {
      for (const text of texts) {
        kept.get(text)?.finalize();
        kept.delete(text);
      }
    },
    perform<T>(work: Work<T>): T {
      let step = work.next();
      while (!step.done) {
        let told: StatementResult;
        try {
          told = runAsked(step.value);
        } catch (error) {
          step = work.throw(step.value.mayViolate ? ruleOf(error) : error);
          continue;
        }
        step = work.next(told);
      }
      return step.value;
    },
  };
}

/** `UNIQUE constraint failed: t.realm_id, t.issuer, t.subject` names the columns; nothing names a reference. */
function ruleOf(error: unknown): unknown {
  if (!(error instanceof SQLiteError)) return error;
  switch (error.code) {
    case 'SQLITE_CONSTRAINT_UNIQUE': {
      const names = (error.message.split(': ')[1] ?? '').split(', ');
      return new ConstraintViolation(
        { kind: 'unique', columns: names.map((name) => name.split('.')[1] ?? '') },
        error,
      );
    }
    case 'SQLITE_CONSTRAINT_FOREIGNKEY':
      return new ConstraintViolation({ kind: 'foreign_key' }, error);
    default:
      return error;
  }
}
