import { parseUuid, type Uuid } from '../../domain/id.ts';
import type { WriteScope } from '../transactions.ts';
import type { Connection, QueryResult } from './connection.ts';

const LOCK_INSTANCE = 'select 1 from instance for update';
const LOCK_CLOCK = 'select 1 from realm_clock where realm_id = $1 for update';
const INSERT_CLOCK = 'insert into realm_clock (realm_id, seq) values ($1, 0) on conflict do nothing';

/**
 * The statements that begin a transaction and lock a scope until its end. The lock must come before any read, so that the
 * transaction sees what the previous writer of the scope committed, and sequence numbers of a realm follow the order of
 * commits. Each realm has a statement of its own, which one node of a cluster runs; all writers lock realms in the same order.
 * The realms stand in the text: statements with parameters would need a round trip of their own.
 */
export function beginLocked(begin: string, scope: WriteScope): string {
  const locks =
    scope === 'instance'
      ? [LOCK_INSTANCE]
      : sorted(scope).map((realm) => LOCK_CLOCK.replace('$1', literal(realm)));
  return [begin, ...locks].join('; ');
}

/** Creates the clocks that `beginLocked` did not find, and locks them. `begun` has the rows of its statements. */
export async function lockMissingClocks(
  scope: WriteScope,
  connection: Connection,
  begun: readonly QueryResult['rows'][],
): Promise<void> {
  if (scope === 'instance') return;
  const realms = sorted(scope);
  const locked = begun.slice(-realms.length);
  const missing = realms.filter((_, at) => locked[at]?.length === 0);
  await Promise.all(
    missing.flatMap((realm) => [INSERT_CLOCK, LOCK_CLOCK].map((text) => connection.query(text, [realm]))),
  );
}

function sorted(realms: readonly Uuid[]): readonly Uuid[] {
  return [...realms].sort();
}

/** A literal of SQL. Throws for anything but a UUID. */
function literal(id: Uuid): string {
  if (parseUuid(id) === undefined) throw new Error('not a UUID');
  return `'${id}'`;
}

/** Every statement that takes a scope lock. */
export const SCOPE_LOCK_TEXTS: readonly string[] = [LOCK_INSTANCE, LOCK_CLOCK, INSERT_CLOCK];
