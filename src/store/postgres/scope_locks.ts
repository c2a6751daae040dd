import { parseUuid, type Uuid } from '../../domain/id.ts';
import type { WriteScope } from '../transactions.ts';
import { BEGIN_CITUS_WRITE, BEGIN_WRITE } from './begin_statements.ts';
import type { Connection, QueryResult } from './connection.ts';

/** How a transaction that writes begins. */
export interface WriteBeginning {
  readonly begin: string;
  /** Locks the clock of the realm `$1`. */
  readonly lockClock: string;
  /** Creates that clock and locks it, where `lockClock` finds none. */
  readonly createClock: readonly string[];
}

const LOCK_INSTANCE = 'select 1 from instance for update';
const LOCK_CLOCK = 'select 1 from realm_clock where realm_id = $1 for update';
const INSERT_CLOCK = 'insert into realm_clock (realm_id, seq) values ($1, 0) on conflict do nothing';
const WRITE_CLOCK = `insert into realm_clock (realm_id, seq) values ($1, 0)
  on conflict (realm_id) do update set seq = realm_clock.seq`;

export const POSTGRES_WRITE: WriteBeginning = {
  begin: BEGIN_WRITE,
  lockClock: LOCK_CLOCK,
  createClock: [INSERT_CLOCK, LOCK_CLOCK],
};

/**
 * Unlike a row lock, a write keeps Citus from moving the shard of the realm until the end of the transaction, which otherwise
 * would write some tables on the old node and some on the new one. The move waits for this table first, because it is the
 * first one of the shard (citus.ts), so there is no deadlock.
 */
export const CITUS_WRITE: WriteBeginning = {
  begin: BEGIN_CITUS_WRITE,
  lockClock: WRITE_CLOCK,
  createClock: [],
};

/**
 * The statements that begin a transaction and lock a scope until its end. The lock must come before any read, so that the
 * transaction sees what the previous writer of the scope committed, and sequence numbers of a realm follow the order of
 * commits. Each realm has a statement of its own, which one node of a cluster runs; all writers lock realms in the same order.
 * The text contains the realms: statements with parameters would need a round trip of their own.
 */
export function beginLocked({ begin, lockClock }: WriteBeginning, scope: WriteScope): string {
  const locks =
    scope === 'instance'
      ? [LOCK_INSTANCE]
      : sorted(scope).map((realm) => lockClock.replace('$1', literal(realm)));
  return [begin, ...locks].join('; ');
}

/** Creates the clocks that `beginLocked` did not find, and locks them. `begun` has the rows of its statements. */
export async function lockMissingClocks(
  scope: WriteScope,
  connection: Connection,
  { createClock }: WriteBeginning,
  begun: Promise<readonly QueryResult['rows'][]>,
): Promise<void> {
  if (scope === 'instance' || createClock.length === 0) return;
  const realms = sorted(scope);
  const locked = (await begun).slice(-realms.length);
  const missing = realms.filter((_, at) => locked[at]?.length === 0);
  await Promise.all(missing.flatMap((realm) => createClock.map((text) => connection.query(text, [realm]))));
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
export const SCOPE_LOCK_TEXTS: readonly string[] = [LOCK_INSTANCE, LOCK_CLOCK, INSERT_CLOCK, WRITE_CLOCK];
