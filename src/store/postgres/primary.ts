import { dns, type SQL } from 'bun';
import { Fault } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import { withTimeout } from '../../platform/timeout.ts';
import type { Host, PostgresAddress } from './address.ts';
import { openClient } from './client.ts';
import {
  DatabaseError,
  databaseError,
  driverError,
  ERROR_CODES,
  hostStateAfter,
  TOO_MANY_CONNECTIONS,
} from './errors.ts';

/** Tracks which host of a database is the primary, also through a failover. */
export interface Primary {
  /** The current primary. Throws Fault `unavailable` while none is reachable. */
  current(): Host;
  /** Takes every error of a connection. Where it may concern the host, searches for the primary again. */
  reportError(failure: DatabaseError): void;
  close(): void;
}

/** A standby is in recovery. A read-only host is accepted where it is the only one. */
const SELECT_STATE = `select pg_is_in_recovery() as is_standby, current_setting('transaction_read_only') = 'on' as is_read_only`;

/** Finds the primary. Rejects with DatabaseError where no host is one. */
export async function openPrimary(address: PostgresAddress): Promise<Primary> {
  const found = await Promise.allSettled(address.hosts.map((host) => assertHostWritable(address, host)));
  const first = address.hosts.find((_, at) => found[at]?.status === 'fulfilled');
  if (first) return trackPrimary(address, first);
  // The error of a host that answers is more helpful than that of an unreachable one.
  const failures = found.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  throw (
    failures.find((failure) => failure instanceof DatabaseError && hostStateAfter(failure) === 'reachable') ??
    failures[0]
  );
}

/** Opens one connection to the primary. */
export async function connectToPrimary(address: PostgresAddress): Promise<SQL> {
  const primary = await openPrimary(address);
  primary.close();
  return openClient(address, 1, primary.current());
}

function trackPrimary(address: PostgresAddress, first: Host): Primary {
  let host = first;
  /** Why the primary is unavailable now. */
  let outage: DatabaseError | undefined;
  let search: Timer | undefined;
  let isClosed = false;

  function startSearch(): void {
    if (search !== undefined || isClosed) return;
    let hosts: readonly Host[] = [host];
    const checkHosts = () => {
      for (const each of hosts) check(each, own);
      // The current host is checked alone first, so that it stays where several accept writes.
      hosts = address.hosts;
    };
    const own = setInterval(checkHosts, LIMITS.primarySearchMs);
    search = own;
    checkHosts();
  }

  async function check(candidate: Host, own: Timer): Promise<void> {
    const failure = await assertHostWritable(address, candidate).then(
      () => undefined,
      (error) => databaseError(error) ?? new DatabaseError(ERROR_CODES.timeout),
    );
    if (search !== own) return;
    // Where the current host has no connection left, this service may hold some of them.
    const isCurrentBusy = failure?.code === TOO_MANY_CONNECTIONS && candidate === host;
    if (failure && !isCurrentBusy) {
      if (candidate === host) outage = failure;
      return;
    }
    clearInterval(own);
    search = outage = undefined;
    host = candidate;
  }

  return {
    current() {
      if (outage) throw new Fault('unavailable', [], outage);
      return host;
    },
    reportError(failure) {
      const state = hostStateAfter(failure);
      if (state === 'stalled') outage ??= failure;
      // A single host that closes or refuses connections fails at once, and accepts new ones as soon as it can.
      if (state === 'reachable' || (state === 'lost' && address.hosts.length === 1)) return;
      startSearch();
    },
    close() {
      isClosed = true;
      clearInterval(search);
      search = undefined;
    },
  };
}

/** Resolves where a host accepts writes. Rejects with DatabaseError otherwise, at the latest after a timeout. */
async function assertHostWritable(address: PostgresAddress, host: Host): Promise<void> {
  const client = openClient({ ...address, isPrepared: false }, 1, host);
  try {
    await withTimeout(checkState(client, address, host), LIMITS.answerMsMax, () => {
      throw new DatabaseError(ERROR_CODES.timeout);
    });
  } finally {
    client.close({ timeout: 0 }).catch(() => undefined);
  }
}

async function checkState(client: SQL, address: PostgresAddress, host: Host): Promise<void> {
  try {
    const [found] = await client.unsafe(SELECT_STATE);
    const isWritable = !found.is_standby && (!found.is_read_only || address.hosts.length === 1);
    if (!isWritable) throw new DatabaseError(ERROR_CODES.noPrimary);
  } catch (error) {
    const failure = driverError(error);
    throw failure?.code === REFUSED ? await refusalCause(failure, host) : (failure ?? error);
  }
}

const REFUSED = 'ERR_POSTGRES_CONNECTION_REFUSED';

/** The driver reports an unknown host name and a closed port with the same code. */
function refusalCause(refused: DatabaseError, { host }: Host): Promise<DatabaseError> {
  return dns.lookup(host).then(
    () => refused,
    () => new DatabaseError(ERROR_CODES.unknownHost),
  );
}
