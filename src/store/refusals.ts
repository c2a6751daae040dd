import { Fault, Refusal } from '../domain/fault.ts';
import { postgresAdvice } from './postgres/advice.ts';
import { type Advice, BUSY_ADVICE, sqliteAdvice } from './sqlite/advice.ts';

/**
 * Trouble of an engine, of its files or of the way to it as a Refusal that says what to do; anything else stays what it
 * is. `name` is what the database is called, a path where it is a file: given where it could not even be opened.
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

const UNKNOWN =
  'the database did not say whether it did it: the connection ended at the commit; look whether it is done, and ' +
  'try again where it is not';

/** Undefined for what is no trouble of the database. */
function knownRefusal(error: unknown, name: string | undefined): Refusal | undefined {
  const advice = sqliteAdvice(error, name) ?? postgresAdvice(error);
  return advice && refusal(advice, name, error);
}

function refusal({ why, advice }: Advice, name: string | undefined, cause?: unknown): Refusal {
  const what = name === undefined ? 'the database did not do it' : `the database ${name} cannot be opened`;
  return new Refusal(`${what}: ${why}${advice === undefined ? '' : `; ${advice}`}`, { cause });
}
