import type { WriteScope } from '../transactions.ts';
import type { Connection } from './connection.ts';

const CLAIM_INSTANCE = 'select 1 from instance for update';
const CLAIM_CLOCKS =
  'select realm_id from realm_clock where realm_id = any($1::uuid[]) order by realm_id for update';
const START_CLOCKS = `insert into realm_clock (realm_id, seq)
  select id, 0 from unnest($1::uuid[]) as id order by id on conflict do nothing`;

/**
 * Claims a scene until the transaction ends, before anything in it is read: so what is read is what the last one left,
 * and order of place in a realm is order of commit.
 */
export async function claim(scene: WriteScope, connection: Connection): Promise<void> {
  if (scene === 'instance') {
    await connection.ask(CLAIM_INSTANCE, []);
    return;
  }
  if (scene.length === 0) return;
  const realms = [`{${scene.join()}}`];
  const { rows } = await connection.ask(CLAIM_CLOCKS, realms);
  if (rows.length === scene.length) return;
  await connection.ask(START_CLOCKS, realms);
  await connection.ask(CLAIM_CLOCKS, realms);
}

/** Every text about claims. */
export const CLAIM_TEXTS: readonly string[] = [CLAIM_INSTANCE, CLAIM_CLOCKS, START_CLOCKS];
