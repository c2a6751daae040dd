import { LIMITS } from '../../domain/limits.ts';

/**
 * The server itself ends what the service has given up, even where it cannot be notified. Set for each transaction: a
 * pooler shares its connections, and does not accept these settings as startup parameters.
 */
const TIMEOUTS = [
  `set local statement_timeout = ${LIMITS.statementMsMax}`,
  `set local lock_timeout = ${LIMITS.statementMsMax}`,
  `set local idle_in_transaction_session_timeout = ${LIMITS.storeWaitMsMax}`,
].join('; ');

/**
 * The isolation level is explicit because a database or role may have another default: after waiting for a lock, a
 * writer must see what the previous holder committed.
 */
export const BEGIN_WRITE = `begin isolation level read committed; ${TIMEOUTS}`;

/**
 * Citus refuses to write a table that every node has if the transaction has read several shards concurrently before. Here,
 * statements read one shard after the other.
 */
export const BEGIN_CITUS_WRITE = `${BEGIN_WRITE}; set local citus.multi_shard_modify_mode = 'sequential'`;

/** One snapshot for all statements of a read. */
export const BEGIN_READ = 'begin isolation level repeatable read, read only';

export const BEGIN_SHORT_READ = `${BEGIN_READ}; ${TIMEOUTS}`;
