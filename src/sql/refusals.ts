import { Fault, Refusal } from '../model/fault.ts';
import { postgresAdvice } from './postgres/advice.ts';
import { type Advice, BUSY_ADVICE, sqliteAdvice } from './sqlite/advice.ts';

/**
 * Turns an error of the engine, its files or the connection into a Refusal with advice. Other errors are returned as
 * they are. `name`, a path or a display name, is given where the database could not be opened.
 */
export function toRefusal(error: unknown, name?: string): unknown {
  if (!(error instanceof Fault)) return knownRefusal(error, name) ?? error;
  const { code, cause } = error;
  if (code === 'unknown_outcome') return new Refusal(UNKNOWN, { cause: error });
  if (code !== 'unavailable') return error;
  if (cause === undefined) return refusal(BUSY_ADVICE, name);
  const why = cause instanceof Error ? cause.message : 'it is not available';
  return knownRefusal(cause, name) ?? refusal({ why, advice: undefined }, name, error);
}

/** Runs work on a database. Its errors are those of `toRefusal`. */
export async function withAdvice<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toRefusal(error, name);
  }
}

const UNKNOWN =
  'the outcome of the operation is unknown, because the connection ended during the commit: check whether it was ' +
  'done, and try again if it was not';

/** Undefined for errors that have no advice. */
function knownRefusal(error: unknown, name: string | undefined): Refusal | undefined {
  const advice = sqliteAdvice(error, name) ?? postgresAdvice(error);
  return advice && refusal(advice, name, error);
}

function refusal({ why, advice }: Advice, name: string | undefined, cause?: unknown): Refusal {
  const what = name === undefined ? 'the database operation failed' : `the database ${name} cannot be opened`;
  return new Refusal(`${what}: ${why}${advice === undefined ? '' : `; ${advice}`}`, { cause });
}
