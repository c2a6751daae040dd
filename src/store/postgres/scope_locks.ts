import type { WriteScope } from '../transactions.ts';
import type { Connection } from './connection.ts';

const LOCK_INSTANCE = 'select 1 from instance for update';
const LOCK_CLOCK = 'select 1 from realm_clock where realm_id = $1 for update';
const INSERT_CLOCK = 'insert into realm_clock (realm_id, seq) values ($1, 0) on conflict do nothing';

/**
 * Locks a scope until the end of the transaction. It must come before any read, so that the transaction sees what the
 * previous writer of the scope committed, and sequence numbers of a realm follow the order of commits. Each realm has a
 * statement of its own, which one node of a cluster runs; all writers lock realms in the same order.
 */
export async function lockScope(scope: WriteScope, connection: Connection): Promise<void> {
  if (scope === 'instance') {
    await connection.query(LOCK_INSTANCE, []);
    return;
  }
  const realms = [...scope].sort();
  const locked = await Promise.all(realms.map((realm) => connection.query(LOCK_CLOCK, [realm])));
  const missing = realms.filter((_, at) => locked[at]?.rows.length === 0);
  await Promise.all(
    missing.flatMap((realm) => [INSERT_CLOCK, LOCK_CLOCK].map((text) => connection.query(text, [realm]))),
  );
}

/** Every statement that takes a scope lock. */
export const SCOPE_LOCK_TEXTS: readonly string[] = [LOCK_INSTANCE, LOCK_CLOCK, INSERT_CLOCK];
