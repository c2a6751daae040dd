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

/** Which host of a database takes writes. */
export interface Primary {
  /** The host to ask. Throws Fault `unavailable` at once while none is known to answer. */
  current(): Host;
  /** Is told of all trouble; where that says something about the host, looks whether it is still the one to ask. */
  reportError(trouble: DatabaseError): void;
  close(): void;
}

/** One that is in recovery follows another one; one that is read-only may still be the only one there is. */
const LOOK = `select pg_is_in_recovery() as is_standby, current_setting('transaction_read_only') = 'on' as is_read_only`;

/** Looks for the host once. Rejects with Trouble where no host is the one to ask. */
export async function openPrimary(address: PostgresAddress): Promise<Primary> {
  const found = await Promise.allSettled(address.hosts.map((host) => assertWritable(address, host)));
  const first = address.hosts.find((_, at) => found[at]?.status === 'fulfilled');
  if (first) return trackPrimary(address, first);
  // The trouble of a host that is there says more than that another one is not.
  const troubles = found.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  throw (
    troubles.find((trouble) => trouble instanceof DatabaseError && hostStateAfter(trouble) === 'none') ??
    troubles[0]
  );
}

/** One connection, to the host that takes writes. */
export async function connectToPrimary(address: PostgresAddress): Promise<SQL> {
  const primary = await openPrimary(address);
  primary.close();
  return openClient(address, 1, primary.current());
}

function trackPrimary(address: PostgresAddress, first: Host): Primary {
  let host = first;
  /** Why nobody is to be asked now. */
  let away: DatabaseError | undefined;
  let search: Timer | undefined;
  let isClosed = false;

  function start(): void {
    if (search !== undefined || isClosed) return;
    let hosts: readonly Host[] = [host];
    const look = () => {
      for (const each of hosts) lookAt(each, own);
      // The one in force is asked alone first: where several take writes, it stays.
      hosts = address.hosts;
    };
    const own = setInterval(look, LIMITS.primarySearchMs);
    search = own;
    look();
  }

  async function lookAt(candidate: Host, own: Timer): Promise<void> {
    const trouble = await assertWritable(address, candidate).then(
      () => undefined,
      (error) => databaseError(error) ?? new DatabaseError(ERROR_CODES.late),
    );
    if (search !== own) return;
    // Full of connections, the host in force may have some of ours among them.
    const isThere = trouble?.code === TOO_MANY_CONNECTIONS && candidate === host;
    if (trouble && !isThere) {
      if (candidate === host) away = trouble;
      return;
    }
    clearInterval(own);
    search = away = undefined;
    host = candidate;
  }

  return {
    current() {
      if (away) throw new Fault('unavailable', [], away);
      return host;
    },
    reportError(trouble) {
      const omen = hostStateAfter(trouble);
      if (omen === 'stalled') away ??= trouble;
      // A host alone that ends or refuses connections says so at once, and takes new ones as soon as it can.
      if (omen === 'none' || (omen === 'lost' && address.hosts.length === 1)) return;
      start();
    },
    close() {
      isClosed = true;
      clearInterval(search);
      search = undefined;
    },
  };
}

/** Resolves where a host may be asked. Rejects with Trouble, in time. */
async function assertWritable(address: PostgresAddress, host: Host): Promise<void> {
  const client = openClient({ ...address, isPrepared: false }, 1, host);
  try {
    await withTimeout(look(client, address, host), LIMITS.answerMsMax, () => {
      throw new DatabaseError(ERROR_CODES.late);
    });
  } finally {
    client.close({ timeout: 0 }).catch(() => undefined);
  }
}

async function look(client: SQL, address: PostgresAddress, host: Host): Promise<void> {
  try {
    const [found] = await client.unsafe(LOOK);
    const isFit = !found.is_standby && (!found.is_read_only || address.hosts.length === 1);
    if (!isFit) throw new DatabaseError(ERROR_CODES.standby);
  } catch (error) {
    const trouble = driverError(error);
    throw trouble?.code === REFUSED ? await refusalCause(trouble, host) : (trouble ?? error);
  }
}

const REFUSED = 'ERR_POSTGRES_CONNECTION_REFUSED';

/** The driver says the same of a name that nobody knows and of a port that nobody listens on. */
function refusalCause(refused: DatabaseError, { host }: Host): Promise<DatabaseError> {
  return dns.lookup(host).then(
    () => refused,
    () => new DatabaseError(ERROR_CODES.hostUnknown),
  );
}
