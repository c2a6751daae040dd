import type { SQL } from 'bun';
import { Refusal } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { PostgresAddress } from './address.ts';
import { openClient } from './client.ts';
import { sqlState } from './errors.ts';
import { openPrimary } from './primary.ts';
import { clientWithTimeout } from './sql_client.ts';

/** What stands between a client and the engine. */
export interface PoolerState {
  /** A connection of the engine is a client's for one transaction. */
  readonly isThere: boolean;
  /** Names of prepared statements that several clients give meet there, so that one could run as another. */
  readonly sharesStatementNames: boolean;
}

/** What is wrong with one that mixes them, and what helps. */
export const POOLER_ADVICE =
  'the pooler does not keep prepared statements of its clients apart, and one could be taken for another: add ' +
  'prepare=off to the parameters of';

/** Throws Refusal where statements of an address could be mixed up with those of others. `setting` is where it stands. */
export async function assertNoSharedStatementNames(address: PostgresAddress, setting: string): Promise<void> {
  if (!address.isPrepared) return;
  const { sharesStatementNames: mixesStatements } = await detectPooler(address);
  if (mixesStatements) throw new Refusal(`${POOLER_ADVICE} ${setting}`);
}

/** Looks without a prepared statement until it is known that there is a pooler: another one could run instead. */
export async function detectPooler(address: PostgresAddress): Promise<PoolerState> {
  const primary = await openPrimary(address);
  primary.close();
  const open = (isPrepared: boolean) => openClient({ ...address, isPrepared }, 1, primary.current());
  const clients = [open(false), open(false), open(true)] as const;
  const [mine, other, preparing] = clients;
  try {
    const isThere = await isTransactionPooling(mine, other);
    return {
      isThere,
      sharesStatementNames: isThere && address.isPrepared && (await hasSharedStatementNames(preparing)),
    };
  } finally {
    for (const client of clients) client.close({ timeout: 0 }).catch(() => undefined);
  }
}

const PID = 'select pg_backend_pid() as pid';
/** Which connection a pooler hands out is often chance. */
const ROUNDS = 4;

/**
 * Two clients ask again and again who answers. The engine itself gives each an answer of its own, and so does a pooler
 * that leaves a client its connection.
 */
async function isTransactionPooling(mine: SQL, other: SQL): Promise<boolean> {
  const pidOf = async (client: SQL) => {
    const [row] = await clientWithTimeout(client, LIMITS.storeWaitMsMax).unsafe<[{ readonly pid: number }]>(
      PID,
    );
    return row.pid;
  };
  const [first, second] = [await pidOf(mine), await pidOf(other)];
  if (first === second) return true;
  for (let round = 0; round < ROUNDS; round += 1) {
    // Each twice, so that none has the same place every time where connections are handed out in turn.
    if ((await pidOf(other)) !== second || (await pidOf(other)) !== second) return true;
    if ((await pidOf(mine)) !== first || (await pidOf(mine)) !== first) return true;
  }
  return false;
}

/** Every client of this driver gives such names. A pooler that keeps them apart has given the engine others. */
const NAMES = `select exists (select 1 from pg_prepared_statements where name ~ '^P[0-9]+$') as meet
  where $1::text = ''`;
const DUPLICATE_PREPARED_STATEMENT = '42P05';

/** Within a transaction, so that no other connection of the engine, and no statement of another client, answers. */
export async function hasSharedStatementNames(client: SQL): Promise<boolean> {
  const asked = clientWithTimeout(client, LIMITS.storeWaitMsMax);
  try {
    await asked.unsafe('begin');
    const [row] = await asked.unsafe<[{ readonly meet: boolean }]>(NAMES, ['']);
    return row.meet;
  } catch (error) {
    if (sqlState(error) === DUPLICATE_PREPARED_STATEMENT) return true;
    throw error;
  }
}
