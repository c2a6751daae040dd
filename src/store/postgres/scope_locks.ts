import type { WriteScope } from '../transactions.ts';
import { BEGIN_CITUS_WRITE, BEGIN_WRITE } from './begin_statements.ts';
import type { Connection } from './connection.ts';

/** How a transaction that writes begins. */
export interface WriteBeginning {
  readonly begin: string;
  /** Locks the clock of a realm, which is created where it is missing. */
  lockClock(realm: string, connection: Connection): Promise<unknown>;
}

const LOCK_INSTANCE = 'select 1 from instance for update';
const LOCK_CLOCK = 'select 1 from realm_clock where realm_id = $1 for update';
const INSERT_CLOCK = 'insert into realm_clock (realm_id, seq) values ($1, 0) on conflict do nothing';
const WRITE_CLOCK = `insert into realm_clock (realm_id, seq) values ($1, 0)
  on conflict (realm_id) do update set seq = realm_clock.seq`;

export const POSTGRES_WRITE: WriteBeginning = {
  begin: BEGIN_WRITE,
  async lockClock(realm, connection) {
    const { rows } = await connection.query(LOCK_CLOCK, [realm]);
    if (rows.length > 0) return;
    await Promise.all([INSERT_CLOCK, LOCK_CLOCK].map((text) => connection.query(text, [realm])));
  },
};

/**
 * A write keeps Citus from moving the shard of the realm until the end of the transaction, which a row lock does not: the
 * transaction would write on both nodes, each some of its tables. The move waits for this table first, because it is the first
 * one of the shard (citus.ts), so that neither waits for the other.
 */
export const CITUS_WRITE: WriteBeginning = {
  begin: BEGIN_CITUS_WRITE,
  lockClock: (realm, connection) => connection.query(WRITE_CLOCK, [realm]),
};

/**
 * Locks a scope until the end of the transaction. It must come before any read, so that the transaction sees what the
 * previous writer of the scope committed, and sequence numbers of a realm follow the order of commits. Each realm has a
 * statement of its own, which one node of a cluster runs; all writers lock realms in the same order.
 */
export async function lockScope(
  scope: WriteScope,
  connection: Connection,
  { lockClock }: WriteBeginning,
): Promise<void> {
  if (scope === 'instance') await connection.query(LOCK_INSTANCE, []);
  else await Promise.all([...scope].sort().map((realm) => lockClock(realm, connection)));
}

/** Every statement that takes a scope lock. */
export const SCOPE_LOCK_TEXTS: readonly string[] = [LOCK_INSTANCE, LOCK_CLOCK, INSERT_CLOCK, WRITE_CLOCK];
