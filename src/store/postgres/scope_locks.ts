import type { WriteScope } from '../transactions.ts';
import type { Connection } from './connection.ts';

const LOCK_INSTANCE = 'select 1 from instance for update';
const LOCK_CLOCKS =
  'select realm_id from realm_clock where realm_id = any($1::uuid[]) order by realm_id for update';
const INSERT_CLOCKS = `insert into realm_clock (realm_id, seq)
  select id, 0 from unnest($1::uuid[]) as id order by id on conflict do nothing`;

/**
 * Locks a scope until the end of the transaction. It must come before any read, so that the transaction sees what the
 * previous writer of the scope committed, and sequence numbers of a realm follow the order of commits.
 */
export async function lockScope(scope: WriteScope, connection: Connection): Promise<void> {
  if (scope === 'instance') {
    await connection.query(LOCK_INSTANCE, []);
    return;
  }
  if (scope.length === 0) return;
  const realms = [`{${scope.join()}}`];
  const { rows } = await connection.query(LOCK_CLOCKS, realms);
  if (rows.length === scope.length) return;
  await connection.query(INSERT_CLOCKS, realms);
  await connection.query(LOCK_CLOCKS, realms);
}

/** Every statement that takes a scope lock. */
export const SCOPE_LOCK_TEXTS: readonly string[] = [LOCK_INSTANCE, LOCK_CLOCKS, INSERT_CLOCKS];
