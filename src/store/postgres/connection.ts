import { SQL } from 'bun';
import { Fault } from '../../domain/fault.ts';
import { RuleBroken } from '../work.ts';
import type { Sent } from './places.ts';

type Row = Record<string, unknown>;

/** What a statement came to. */
export interface Answer {
  readonly rows: readonly Row[];
  /** How many rows it wrote. */
  readonly count: number;
}

/** One connection, in whatever transaction is open on it. Statements that are not awaited travel together, in order. */
export interface Connection {
  ask(text: string, values: readonly Sent[]): Promise<Answer>;
}

/** Trouble of the engine or of the way there becomes `unavailable`, its cause kept for the log. */
export function asFault(error: unknown): unknown {
  const cause = error instanceof RuleBroken ? error.cause : error;
  return cause instanceof SQL.SQLError ? new Fault('unavailable', [], cause) : cause;
}

const SERIALIZATION_FAILURE = '40001';
const DEADLOCK_DETECTED = '40P01';

/** Whether the engine undid a transaction only because of another one. */
export function isRetryable(error: unknown): boolean {
  if (!(error instanceof SQL.PostgresError)) return false;
  return error.errno === SERIALIZATION_FAILURE || error.errno === DEADLOCK_DETECTED;
}

const QUERY_CANCELED = '57014';

/** Whether the engine ended a statement because it took too long. */
export function isCancelled(error: unknown): boolean {
  return error instanceof SQL.PostgresError && error.errno === QUERY_CANCELED;
}
