import { LIMITS } from '../../model/limits.ts';

/** The statements that begin a transaction. They are sent one behind the other, without waiting. */
export type BeginStatements = readonly [string, ...string[]];

/**
 * The server itself ends what the service has given up, even where it cannot be notified. Set for each transaction: a
 * pooler shares its connections, and does not accept these settings as startup parameters.
 */
const TIMEOUTS = {
  statement_timeout: LIMITS.statementMsMax,
  lock_timeout: LIMITS.statementMsMax,
  idle_in_transaction_session_timeout: LIMITS.storeWaitMsMax,
};
const SET_TIMEOUTS = setLocal(TIMEOUTS);

/** Sets these until the end of the transaction, by one statement. */
export function setLocal(settings: Readonly<Record<string, string | number>>): string {
  const calls = Object.entries(settings).map(([name, value]) => `set_config('${name}', '${value}', true)`);
  return `select ${calls.join(', ')}`;
}

/**
 * The isolation level is explicit because a database or role may have another default: after waiting for a lock, a
 * writer must see what the previous holder committed.
 */
const BEGIN_READ_COMMITTED = 'begin isolation level read committed';

export const BEGIN_WRITE: BeginStatements = [BEGIN_READ_COMMITTED, SET_TIMEOUTS];

/**
 * Citus refuses to write a table that every node has if the transaction has read several shards concurrently before. Here,
 * statements read one shard after the other.
 */
export const BEGIN_CITUS_WRITE: BeginStatements = [
  BEGIN_READ_COMMITTED,
  setLocal({ ...TIMEOUTS, 'citus.multi_shard_modify_mode': 'sequential' }),
];

const BEGIN_REPEATABLE_READ = 'begin isolation level repeatable read, read only';

/** One snapshot for all statements of a read. */
export const BEGIN_READ: BeginStatements = [BEGIN_REPEATABLE_READ];

export const BEGIN_SHORT_READ: BeginStatements = [BEGIN_REPEATABLE_READ, SET_TIMEOUTS];
