import type { AuditEntry } from '../domain/audit_entry.ts';
import type { ChangeEntry } from './audit/entry.ts';
import type { SqlValue } from './records/statements.ts';

type Row = Record<string, unknown>;

/** What a piece of work wants run. */
export type StatementRequest = SingleStatement | StatementBatch;

export interface SingleStatement extends Statement {
  /** What the session returns: all rows, the first row, or the number of rows written. */
  readonly returns: 'rows' | 'row' | 'count';
  /** A rule of the schema may refuse it, and the work goes on then: the statement alone is undone. */
  readonly mayViolate: boolean;
}

/** Writes that are run in their order, with one wait for all of them. Nobody wants to know what they came to. */
export interface StatementBatch {
  readonly statements: readonly Statement[];
  /** A rule may refuse one, and the work goes on then: all of them are undone. */
  readonly mayViolate: boolean;
}

export interface Statement {
  /** Its places are `?`, or `?1` where one value stands in several. */
  readonly text: string;
  readonly values: readonly SqlValue[];
}

/** A long number in a row: some engines answer it as text. */
export type Long = number | string;

/** What a statement came to, as far as that was wanted. */
export interface StatementResult {
  readonly rows: readonly Row[];
  readonly count: number;
}

/**
 * What is done inside one transaction, whichever engine runs it: one that answers at once runs it through in one go,
 * a distant one waits at each statement.
 */
export type Work<T> = Generator<StatementRequest, T, StatementResult>;

/** The rows that a statement answers. */
export function* all<R = Row>(text: string, ...values: readonly SqlValue[]): Work<readonly R[]> {
  const { rows } = yield { text, values, returns: 'rows', mayViolate: false };
  return rows as readonly R[];
}

/** The first row that a statement answers. */
export function* first<R = Row>(text: string, ...values: readonly SqlValue[]): Work<R | undefined> {
  const { rows } = yield { text, values, returns: 'row', mayViolate: false };
  return rows[0] as R | undefined;
}

/** How many rows a statement wrote. */
export function* execute(text: string, ...values: readonly SqlValue[]): Work<number> {
  const { count } = yield { text, values, returns: 'count', mayViolate: false };
  return count;
}

/** How many rows a write wrote that a rule of the schema may refuse. Throws RuleBroken then. */
export function* tryExecute(text: string, values: readonly SqlValue[]): Work<number> {
  const { count } = yield { text, values, returns: 'count', mayViolate: true };
  return count;
}

/** The rows that such a write answers: it runs to its end for them, because some rules are looked at last. */
export function* tryQuery(text: string, values: readonly SqlValue[]): Work<readonly Row[]> {
  const { rows } = yield { text, values, returns: 'rows', mayViolate: true };
  return rows;
}

/** Runs writes in their order. */
export function* executeAll(statements: readonly Statement[]): Work<void> {
  if (statements.length > 0) yield { statements, mayViolate: false };
}

/** Runs writes in their order, all or none of them. Throws RuleBroken where a rule of the schema refuses one. */
export function* tryExecuteAll(statements: readonly Statement[]): Work<void> {
  if (statements.length > 0) yield { statements, mayViolate: true };
}

/** Which rule of the schema refused a statement: these columns are taken, or what it refers to is not there. */
export type Constraint =
  | { readonly kind: 'unique'; readonly columns: readonly string[] }
  | { readonly kind: 'foreign_key' };

/** Thrown into a piece of work at the statement that broke a rule; never leaves the store. */
export class ConstraintViolation extends Error {
  readonly rule: Constraint;

  constructor(rule: Constraint, cause: unknown) {
    super(rule.kind, { cause });
    this.name = 'RuleBroken';
    this.rule = rule;
  }
}

/** What a piece of work wants done with its writes. */
export interface WorkResult<T> {
  readonly value: T;
  /** False undoes the work's own writes; its neighbours in the commit are not touched. */
  readonly keep: boolean;
  /** Take their places in the realm's order when the commit does. */
  readonly entries?: readonly ChangeEntry[];
  /** The same in the order of the installation. */
  readonly auditEntries?: readonly AuditEntry[];
  /** Rows that it looked at or wrote beyond those of its entries, where they may be many. */
  readonly rows?: number;
}
