import { Fault } from '../../domain/fault.ts';
import { ConstraintViolation } from '../transaction_work.ts';
import { databaseError, isBug, sqlState } from './errors.ts';
import type { ParameterValue } from './parameters.ts';

type Row = Record<string, unknown>;

/** What a statement came to. */
export interface QueryResult {
  readonly rows: readonly Row[];
  /** How many rows it wrote. */
  readonly count: number;
}

/**
 * One connection, in whatever transaction is open on it. Statements are run in their order, awaited or not; those with
 * values travel together, each of the others by itself.
 */
export interface Connection {
  query(text: string, values: readonly ParameterValue[]): Promise<QueryResult>;
}

/** Trouble of the engine or of the way there becomes `unavailable`, its code kept for the log. */
export function postgresFault(error: unknown): unknown {
  if (error instanceof Fault) return error;
  const trouble = databaseError(error instanceof ConstraintViolation ? error.cause : error);
  if (!trouble) return error;
  return isBug(trouble) ? trouble : new Fault('unavailable', [], trouble);
}

const SERIALIZATION_FAILURE = '40001';
const DEADLOCK_DETECTED = '40P01';

/** Whether the engine undid a transaction only because of another one. */
export function isRetryableConflict(error: unknown): boolean {
  const state = sqlState(error);
  return state === SERIALIZATION_FAILURE || state === DEADLOCK_DETECTED;
}

const QUERY_CANCELED = '57014';

/** Whether the engine ended a statement because it took too long. */
export function isCancelled(error: unknown): boolean {
  return sqlState(error) === QUERY_CANCELED;
}
