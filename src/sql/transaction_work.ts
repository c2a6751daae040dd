import type { AuditEntry } from '../model/log/audit_entry.ts';
import type { ChangeEntry } from '../model/log/change.ts';

/** A row as an engine returns it. */
export type Row = Readonly<Record<string, unknown>>;

/** A parameter value of a statement. */
export type SqlValue = string | number | Uint8Array | null;

/** A statement, or several, that work yields to the session. */
export type StatementRequest = SingleStatement | StatementBatch;

export interface SingleStatement extends Statement {
  /** What the session returns: all rows, the first row, or the number of rows written. */
  readonly returns: 'rows' | 'row' | 'count';
  /** It may violate a constraint: then only this statement is rolled back, and the work continues. */
  readonly mayViolate: boolean;
  /**
   * The result that it nearly always has. A remote engine may continue as if it had received this result, and check it before
   * the commit (docs/decisions/0008-postgresql.md).
   */
  readonly expected?: ExpectedResult;
}

/** One row was written or found; or none was. */
export type ExpectedResult = 'one_row' | 'no_row';

/** Writes that run in their order, in one round trip and without results. */
export interface StatementBatch {
  readonly statements: readonly Statement[];
  /**
   * One of them may violate a constraint: then it and those after it are rolled back, on some engines also those before it, and
   * the work continues.
   */
  readonly mayViolate: boolean;
  /** It probably does not: a remote engine may continue before it knows, and check that before the commit. */
  readonly isSuccessExpected?: boolean;
}

export interface Statement {
  /** With `?` placeholders, or `?1` for a value that is used several times. */
  readonly text: string;
  readonly values: readonly SqlValue[];
}

/** A 64-bit number in a row: some engines return it as text. */
export type Long = number | string;

/** The requested result of a statement. */
export interface StatementResult {
  readonly rows: readonly Row[];
  readonly count: number;
}

/**
 * Work inside one transaction, for any engine: an embedded engine runs it synchronously, a remote one waits at each
 * statement.
 */
export type Work<T> = Generator<StatementRequest, T, StatementResult>;

/** The rows of a statement. */
export function* all<R = Row>(text: string, ...values: readonly SqlValue[]): Work<readonly R[]> {
  const { rows } = yield { text, values, returns: 'rows', mayViolate: false };
  return rows as readonly R[];
}

/** The first row of a statement. */
export function* first<R = Row>(text: string, ...values: readonly SqlValue[]): Work<R | undefined> {
  const { rows } = yield { text, values, returns: 'row', mayViolate: false };
  return rows[0] as R | undefined;
}

/** The first row of a statement that nearly always finds none. */
export function* firstUnexpected<R = Row>(text: string, ...values: readonly SqlValue[]): Work<R | undefined> {
  const { rows } = yield { text, values, returns: 'row', mayViolate: false, expected: 'no_row' };
  return rows[0] as R | undefined;
}

/** The rows of a statement that nearly always finds none. */
export function* allUnexpected<R = Row>(text: string, ...values: readonly SqlValue[]): Work<readonly R[]> {
  const { rows } = yield { text, values, returns: 'rows', mayViolate: false, expected: 'no_row' };
  return rows as readonly R[];
}

/** The number of rows that a statement wrote. */
export function* execute(text: string, ...values: readonly SqlValue[]): Work<number> {
  const { count } = yield { text, values, returns: 'count', mayViolate: false };
  return count;
}

/** The number of rows that a write wrote. Throws ConstraintViolation. */
export function* tryExecute(text: string, values: readonly SqlValue[]): Work<number> {
  const { count } = yield { text, values, returns: 'count', mayViolate: true };
  return count;
}

/** The same for a write that nearly always writes one row. */
export function* tryExecuteExpected(text: string, values: readonly SqlValue[]): Work<number> {
  const { count } = yield { text, values, returns: 'count', mayViolate: true, expected: 'one_row' };
  return count;
}

/** The rows that a write returns. It runs to its end, because some constraints are checked last. Throws ConstraintViolation. */
export function* tryQuery(text: string, values: readonly SqlValue[]): Work<readonly Row[]> {
  const { rows } = yield { text, values, returns: 'rows', mayViolate: true };
  return rows;
}

/** Runs writes in their order. */
export function* executeAll(statements: readonly Statement[]): Work<void> {
  if (statements.length > 0) yield { statements, mayViolate: false };
}

/** Runs writes in their order. Throws ConstraintViolation, which says how many of them remain. */
export function* tryExecuteAll(statements: readonly Statement[], isSuccessExpected: boolean): Work<void> {
  if (statements.length > 0) yield { statements, mayViolate: true, isSuccessExpected };
}

/** The violated constraint: a unique index on these columns, or a foreign key. */
export type Constraint =
  | { readonly kind: 'unique'; readonly columns: readonly string[] }
  | { readonly kind: 'foreign_key' };

/** Thrown into work at the statement that violated a constraint; never leaves the store. */
export class ConstraintViolation extends Error {
  readonly rule: Constraint;
  /** How many writes of a batch came before it and remain. */
  readonly writesKept: number;

  constructor(rule: Constraint, cause: unknown, writesKept = 0) {
    super(rule.kind, { cause });
    this.name = 'ConstraintViolation';
    this.rule = rule;
    this.writesKept = writesKept;
  }
}

/** The result of work, and what to do with its writes. */
export interface WorkResult<T> {
  readonly value: T;
  /** False rolls back the writes of this work; other work in the commit is not affected. */
  readonly keep: boolean;
  /** Get their sequence numbers in their realm at the commit. */
  readonly entries?: readonly ChangeEntry[];
  /** Get their sequence numbers in the log of the installation. */
  readonly auditEntries?: readonly AuditEntry[];
  /** Rows that it read or wrote besides those of its entries, if they may be many. */
  readonly rows?: number;
}

/** Writes log entries: advances each clock once, then inserts the rows with their sequence numbers. */
export interface EntryWriter {
  write(entries: readonly ChangeEntry[], auditEntries?: readonly AuditEntry[]): Work<void>;
}
