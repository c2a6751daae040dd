import type { WriteScope } from '../transactions.ts';
import type { Connection } from './connection.ts';

const LOCK_INSTANCE = 'select 1 from instance for update';
const LOCK_CLOCKS =
  'select realm_id from realm_clock where realm_id = any($1::uuid[]) order by realm_id for update';
const INSERT_CLOCKS = `insert into realm_clock (realm_id, seq)
  select id, 0 from unnest($1::uuid[]) as id order by id on conflict do nothing`;

/**
 * Claims a scene until the transaction ends, before anything in it is read: so what is read is what the last one left,
 * and order of place in a realm is order of commit.
 */
export async function lockScope(scene: WriteScope, connection: Connection): Promise<void> {
  if (scene === 'instance') {
    await connection.query(LOCK_INSTANCE, []);
    return;
  }
  if (scene.length === 0) return;
  const realms = [`{${scene.join()}}`];
  const { rows } = await connection.query(LOCK_CLOCKS, realms);
  if (rows.length === scene.length) return;
  await connection.query(INSERT_CLOCKS, realms);
  await connection.query(LOCK_CLOCKS, realms);
}

/** Every text about claims. */
export const SCOPE_LOCK_TEXTS: readonly string[] = [LOCK_INSTANCE, LOCK_CLOCKS, INSERT_CLOCKS];
