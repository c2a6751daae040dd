import type { SQL } from 'bun';
import { Refusal } from '../../model/fault.ts';
import type { PostgresAddress } from './address.ts';
import { openClient } from './client.ts';
import { sqlState } from './errors.ts';
import type { Primary } from './primary.ts';
import { clientWithTimeout } from './sql_client.ts';

/** The error and the advice for such a pooler; the name of the setting follows. */
export const POOLER_ADVICE =
  'the pooler does not separate the prepared statements of its clients, so that a request could run the wrong statement: ' +
  'add prepare=off to the parameters of';

/** Throws Refusal where a pooler could mix up prepared statements. `setting` is the flag that holds the address. */
export async function assertNoSharedStatementNames(
  address: PostgresAddress,
  setting: string,
  primary: Primary,
): Promise<void> {
  if (!address.isPrepared) return;
  const { sharesStatementNames } = await detectPooler(address, primary);
  if (sharesStatementNames) throw new Refusal(`${POOLER_ADVICE} ${setting}`);
}

/** Detects a pooler. Until then it prepares no statements, because those of other clients could run in their place. */
export async function detectPooler(address: PostgresAddress, primary: Primary) {
  const open = (isPrepared: boolean) => openClient({ ...address, isPrepared }, 1, primary.current());
  const clients = [open(false), open(false), open(true)] as const;
  const [first, second, preparing] = clients;
  try {
    await Promise.all([first.connect(), second.connect()]);
    const isPresent = await isTransactionPooling(first, second);
    return {
      /** There is a pooler that assigns a server connection for one transaction. */
      isPresent,
      /** Prepared statements of several clients share one namespace there: a client could run the statement of another. */
      sharesStatementNames: isPresent && address.isPrepared && (await hasSharedStatementNames(preparing)),
    };
  } finally {
    for (const client of clients) client.close({ timeout: 0 }).catch(() => undefined);
  }
}

const SELECT_PID = 'select pg_backend_pid() as pid';
/** Which connection a pooler assigns is often random. */
const ROUNDS = 4;

/**
 * Two clients read the process ID of their server connection repeatedly. Without a pooler, or with one that pools
 * sessions, each client always reads its own.
 */
async function isTransactionPooling(first: SQL, second: SQL): Promise<boolean> {
  const pidOf = async (client: SQL) => {
    const [row] = await clientWithTimeout(client).unsafe<[{ readonly pid: number }]>(SELECT_PID);
    return row.pid;
  };
  const [firstPid, secondPid] = [await pidOf(first), await pidOf(second)];
  if (firstPid === secondPid) return true;
  for (let round = 0; round < ROUNDS; round += 1) {
    // Twice each: a pooler that assigns connections in turn would otherwise give each client the same one every time.
    if ((await pidOf(second)) !== secondPid || (await pidOf(second)) !== secondPid) return true;
    if ((await pidOf(first)) !== firstPid || (await pidOf(first)) !== firstPid) return true;
  }
  return false;
}

/** Every client of this driver uses such names. A pooler that separates clients renames them on the server. */
const SELECT_SHARED_NAMES = `select exists (select 1 from pg_prepared_statements where name ~ '^P[0-9]+$') as shares
  where $1::text = ''`;
const DUPLICATE_PREPARED_STATEMENT = '42P05';

/** Within a transaction, so that the pooler assigns one server connection, and no other client uses it meanwhile. */
export async function hasSharedStatementNames(client: SQL): Promise<boolean> {
  const own = clientWithTimeout(client);
  try {
    await own.unsafe('begin');
    const [row] = await own.unsafe<[{ readonly shares: boolean }]>(SELECT_SHARED_NAMES, ['']);
    return row.shares;
  } catch (error) {
    if (sqlState(error) === DUPLICATE_PREPARED_STATEMENT) return true;
    throw error;
  }
}
