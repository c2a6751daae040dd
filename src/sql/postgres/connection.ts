import { Fault } from '../../model/fault.ts';
import { ConstraintViolation } from '../transaction_work.ts';
import { databaseError, isBug, sqlState } from './errors.ts';
import type { ParameterValue } from './parameters.ts';

type Row = Record<string, unknown>;

/** The result of a statement. */
export interface QueryResult {
  readonly rows: readonly Row[];
  /** The number of rows that it wrote or found. */
  readonly count: number;
}

/**
 * One connection, in the transaction that is open on it. Statements run in the order of the calls, awaited or not. If the
 * connection prepares statements, those that are not awaited share a round trip.
 */
export interface Connection {
  /** Runs one statement. */
  query(text: string, values: readonly ParameterValue[]): Promise<QueryResult>;
}

/** Turns an error of the server or the connection into Fault `unavailable`, with its code as the cause for the log. */
export function postgresFault(error: unknown): unknown {
  if (error instanceof Fault) return error;
  const failure = databaseError(error instanceof ConstraintViolation ? error.cause : error);
  if (!failure) return error;
  return isBug(failure) ? failure : new Fault('unavailable', [], failure);
}

/** For `catch` of a promise. */
export function throwPostgresFault(error: unknown): never {
  throw postgresFault(error);
}

const SERIALIZATION_FAILURE = '40001';
const DEADLOCK_DETECTED = '40P01';

/** Whether the server rolled a transaction back because of a conflict with another one. */
export function isRetryableConflict(error: unknown): boolean {
  const state = sqlState(error);
  return state === SERIALIZATION_FAILURE || state === DEADLOCK_DETECTED;
}

/** How often a change of the schema is repeated after a conflict with writers. */
export const SCHEMA_CONFLICTS_MAX = 20;

const QUERY_CANCELED = '57014';

/** Whether the server cancelled a statement because it took too long. */
export function isCancelled(error: unknown): boolean {
  return sqlState(error) === QUERY_CANCELED;
}
