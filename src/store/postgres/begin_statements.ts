import { LIMITS } from '../../domain/limits.ts';

/**
 * What the engine ends by itself, so that nothing goes on there which was given up here, even where it never hears of
 * that. Said for one transaction: a pooler hands its connections on, and takes no such thing at their start.
 */
const TIMEOUTS = [
  `set local statement_timeout = ${LIMITS.statementMsMax}`,
  `set local lock_timeout = ${LIMITS.statementMsMax}`,
  `set local idle_in_transaction_session_timeout = ${LIMITS.storeWaitMsMax}`,
].join('; ');

/** Said, because a database or a role may begin otherwise by default: who has waited for a claim must see what it left. */
export const BEGIN_WRITING = `begin isolation level read committed; ${TIMEOUTS}`;

/** One moment for all statements of a piece of work that only reads. */
export const BEGIN_READING = 'begin isolation level repeatable read, read only';

export const BEGIN_SHORT_READING = `${BEGIN_READING}; ${TIMEOUTS}`;
