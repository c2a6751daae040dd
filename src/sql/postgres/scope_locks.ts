import type { WriteScope } from '../transactions.ts';
import { BEGIN_CITUS_WRITE, BEGIN_WRITE, type BeginStatements } from './begin_statements.ts';
import type { Connection } from './connection.ts';
import type { Expectations } from './expectations.ts';

/** How a transaction that writes begins. */
export interface WriteBeginning {
  readonly begin: BeginStatements;
  /** Locks the clock of the realm `$1`. Finds none where it does not exist yet. */
  readonly lockClock: string;
}

const LOCK_INSTANCE = 'select 1 from instance for update';
const LOCK_CLOCK = 'select 1 from realm_clock where realm_id = $1 for update';
/** Locks it as well, and creates it where there is none. */
const WRITE_CLOCK = `insert into realm_clock (realm_id, seq) values ($1, 0)
  on conflict (realm_id) do update set seq = realm_clock.seq`;

export const POSTGRES_WRITE: WriteBeginning = { begin: BEGIN_WRITE, lockClock: LOCK_CLOCK };

/**
 * Unlike a row lock, a write keeps Citus from moving the shard of the realm until the end of the transaction, which otherwise
 * would write some tables on the old node and some on the new one. The move waits for this table first, because it is the
 * first one of the shard (citus.ts), so there is no deadlock.
 */
export const CITUS_WRITE: WriteBeginning = { begin: BEGIN_CITUS_WRITE, lockClock: WRITE_CLOCK };

/**
 * Locks a scope until the end of the transaction. It comes before any read, so that the transaction sees what the previous
 * writer of the scope committed, and sequence numbers of a realm follow the order of commits. Each realm has a statement of its
 * own, which one node of a cluster runs; all writers lock realms in the same order. With expectations it does not wait, and a
 * clock that is missing is an unexpected result; otherwise it creates the clock.
 */
export async function lockScope(
  connection: Connection,
  scope: WriteScope,
  { lockClock }: WriteBeginning,
  expectations: Expectations | undefined,
): Promise<void> {
  const realms = scope === 'instance' ? [] : [...scope].sort();
  const locks =
    scope === 'instance'
      ? [connection.query(LOCK_INSTANCE, [])]
      : realms.map((realm) => connection.query(lockClock, [realm]));
  if (expectations) {
    for (const lock of locks) expectations.add(lock, 'one_row');
    return;
  }
  const locked = await Promise.all(locks);
  const missing = realms.filter((_, at) => locked[at]?.count === 0);
  await Promise.all(missing.map((realm) => connection.query(WRITE_CLOCK, [realm])));
}
