import type { SQL } from 'bun';
import { Fault } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import { withTimeout } from '../../model/timeout.ts';
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

export type Primary = ReturnType<typeof trackPrimary>;

/**
 * A standby is in recovery. A read-only host is accepted where it is the only one. A server without the Citus extension, or that
 * was not added to the cluster, does not have the table.
 */
const SELECT_STATE = `select pg_is_in_recovery() as is_standby, current_setting('transaction_read_only') = 'on' as is_read_only,
  to_regclass('pg_dist_partition') is not null and to_regclass('realm_clock') is not null as is_cluster_node`;

/**
 * Finds the primary. Any node of a cluster is one, and no server that is not in the cluster. Rejects with DatabaseError where no
 * host is one.
 */
export async function openPrimary(address: PostgresAddress): Promise<Primary> {
  const found = await Promise.allSettled(address.hosts.map((host) => checkHost(address, host)));
  const areNodes = found.map((each) => (each.status === 'fulfilled' ? each.value : undefined));
  const isCluster = areNodes.includes(true);
  const first = address.hosts.find((_, at) => areNodes[at] === isCluster);
  if (first) return trackPrimary(address, first, isCluster);
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

/** Tracks which host of a database is the primary, also through a failover. */
function trackPrimary(address: PostgresAddress, first: Host, isCluster: boolean) {
  let host = first;
  /** Why the primary is unavailable now. */
  let outage: DatabaseError | undefined;
  let search: Timer | undefined;
  let isClosed = false;
  let checkedAt = 0;
  const movedListeners: (() => void)[] = [];

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
    const failure = await checkHost(address, candidate).then(
      (isNode) => (isCluster && !isNode ? new DatabaseError(ERROR_CODES.noClusterNode) : undefined),
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
    checkedAt = performance.now();
    if (candidate === host) return;
    host = candidate;
    for (const listener of movedListeners) listener();
  }

  return {
    /** The current primary. Throws Fault `unavailable` while none is reachable. */
    current(): Host {
      if (outage) throw new Fault('unavailable', [], outage);
      return host;
    },
    /** Takes every error of a connection. Where it may concern the host, searches for the primary again. */
    reportError(failure: DatabaseError): void {
      const state = hostStateAfter(failure);
      // In a cluster, another node may have stalled: this one is used until its check fails.
      if (state === 'stalled' && !isCluster) outage ??= failure;
      // A single host that closes or refuses connections fails at once, and accepts new ones as soon as it can.
      if (state === 'reachable' || (state === 'lost' && address.hosts.length === 1)) return;
      startSearch();
    },
    /** After this time without a response, the host may be down; undefined where only a timeout shows that. */
    delayMs: isCluster && address.isBalanced ? LIMITS.routerDelayMs : undefined,
    /** Checks the host after that time. */
    reportDelay(): void {
      // A slow node of a cluster delays many statements although the node that routes works.
      if (performance.now() - checkedAt > LIMITS.primarySearchMs) startSearch();
    },
    /** Calls the listener whenever another host has become the primary. */
    onMoved: (listener: () => void) => void movedListeners.push(listener),
    close(): void {
      isClosed = true;
      clearInterval(search);
      search = undefined;
    },
  };
}

/**
 * Returns whether a host that accepts writes is a node of a cluster. Rejects with DatabaseError where it does not accept them, at
 * the latest after a timeout.
 */
async function checkHost(address: PostgresAddress, host: Host): Promise<boolean> {
  const client = openClient({ ...address, isPrepared: false }, 1, host);
  try {
    return await withTimeout(readState(client, address), LIMITS.answerMsMax, () => {
      throw new DatabaseError(ERROR_CODES.timeout);
    });
  } finally {
    client.close({ timeout: 0 }).catch(() => undefined);
  }
}

async function readState(client: SQL, address: PostgresAddress): Promise<boolean> {
  try {
    const [found] = await client.unsafe(SELECT_STATE);
    const isWritable = !found.is_standby && (!found.is_read_only || address.hosts.length === 1);
    if (!isWritable) throw new DatabaseError(ERROR_CODES.noPrimary);
    return found.is_cluster_node;
  } catch (error) {
    throw driverError(error) ?? error;
  }
}
