import { type AuditEntry, createAuditEntry } from '../domain/audit_entry.ts';
import { Fault } from '../domain/fault.ts';
import type { Clock } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { LogStore } from './port.ts';
import { mergeAddresses } from './refused_access_log.ts';

/** The number of entries waiting in memory, and of those dropped because the queue was full. */
export interface PendingGrants {
  readonly waiting: number;
  readonly dropped: number;
}

export interface TokenGrantLog {
  /**
   * Resolves when the entry of a grant is on disk, or is queued because the database accepts no writes. A further grant of
   * the same client and grant type within the interval is counted, and resolves immediately.
   */
  append(auditEntry: AuditEntry): Promise<void>;
  /** Writes what is queued for the last time, and reports what is lost. */
  stop(): Promise<void>;
}

interface GrantReports {
  /** Called when the first entry is queued, when the queue is empty again, and with what is lost at stop. */
  readonly onPending?: (waiting: PendingGrants) => void;
  /** Called with an unexpected error of a write that no request waits for. Its grants are written later. */
  readonly onError?: (error: unknown) => void;
}

interface TokenGrantLogOptions extends GrantReports {
  readonly intervalMs?: number;
}

/** Grants of a client that have no entry yet. */
interface CountedGrants {
  readonly since: number;
  readonly count: number;
  readonly addresses: readonly string[];
  readonly last: AuditEntry;
}

/**
 * Logs token grants, once per client, grant type and minute: a client that requests tokens in a loop would fill the disk. The first
 * grant waits for its entry; those of the next minute are counted, and share the entry at its end. If the database accepts no
 * writes, the token is issued, because lookups must work, and the entry is written later.
 */
export function openTokenGrantLog(
  store: Pick<LogStore, 'append'>,
  clock: Pick<Clock, 'now' | 'mintId'>,
  { intervalMs = LIMITS.grantLogMs, ...reports }: TokenGrantLogOptions = {},
): TokenGrantLog {
  const { onError = () => undefined } = reports;
  const queue = openGrantQueue(store, clock, reports);
  /** The clients with an entry in this interval; undefined: no further grant. */
  let recent = new Map<string, CountedGrants | undefined>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let writing: Promise<void> = Promise.resolve();

  function scheduleWrite(): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      writing = write();
    }, intervalMs).unref();
  }

  /** A client with further grants keeps its place, so the next interval writes one entry. */
  async function write(): Promise<void> {
    const counted = [...recent].filter((each): each is [string, CountedGrants] => each[1] !== undefined);
    recent = new Map(counted.map(([client]) => [client, undefined]));
    if (counted.length === 0) return;
    scheduleWrite();
    try {
      await queue.append(counted.map(([, grants]) => countedEntry(grants)));
    } catch (error) {
      for (const [client, grants] of counted) recent.set(client, joinGrants(grants, recent.get(client)));
      onError(error);
    }
  }

  return {
    async append(auditEntry) {
      const { object, detail } = auditEntry;
      if (object === undefined) return queue.append([auditEntry]);
      const client = `${object} ${detail.grant ?? ''}`;
      if (recent.has(client)) {
        recent.set(client, addGrant(recent.get(client), auditEntry));
        return;
      }
      recent.set(client, undefined);
      scheduleWrite();
      try {
        await queue.append([auditEntry]);
      } catch (error) {
        // A bug: no token is issued, now and at the next attempt.
        recent.delete(client);
        throw error;
      }
    },
    async stop() {
      await writing;
      await write();
      clearTimeout(timer);
      await queue.stop();
    },
  };
}

interface GrantQueue {
  append(auditEntries: readonly AuditEntry[]): Promise<void>;
  stop(): Promise<void>;
}

/** Writes entries, or queues them while the database accepts no writes. */
function openGrantQueue(
  store: Pick<LogStore, 'append'>,
  clock: Pick<Clock, 'now' | 'mintId'>,
  { onPending = () => undefined, onError = () => undefined }: GrantReports,
): GrantQueue {
  const waiting: AuditEntry[] = [];
  let dropped = 0;
  /** The entry for dropped grants whose write has an unknown outcome. */
  let unconfirmed: DroppedGrants | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let writing: Promise<void> = Promise.resolve();

  const hasPending = () => waiting.length > 0 || dropped > 0;

  function enqueue(auditEntry: AuditEntry): void {
    if (waiting.length < LIMITS.grantsWaitingMax) waiting.push(auditEntry);
    else dropped += 1;
    if (waiting.length === 1 && dropped === 0) onPending({ waiting: 1, dropped });
    scheduleWrite();
  }

  function scheduleWrite(): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      writing = write();
    }, LIMITS.grantRetryMs).unref();
  }

  /** Later grants join the queue and do not wait for it. */
  async function write(): Promise<void> {
    if (!hasPending()) return;
    const droppedEntry = unconfirmed ?? droppedGrants(dropped, clock);
    try {
      await writeAll(droppedEntry);
    } catch (error) {
      if (!(error instanceof Fault)) onError(error);
      else if (error.code === 'unknown_outcome') unconfirmed = droppedEntry;
    }
    if (hasPending()) scheduleWrite();
    else onPending({ waiting: 0, dropped: 0 });
  }

  async function writeAll(droppedEntry: DroppedGrants): Promise<void> {
    const count = waiting.length;
    await store.append([...waiting, ...(droppedEntry.count > 0 ? [droppedEntry.auditEntry] : [])]);
    waiting.splice(0, count);
    dropped -= droppedEntry.count;
    unconfirmed = undefined;
  }

  return {
    async append(auditEntries) {
      if (waiting.length > 0) return auditEntries.forEach(enqueue);
      try {
        await store.append(auditEntries);
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        auditEntries.forEach(enqueue);
      }
    },
    async stop() {
      await writing;
      clearTimeout(timer);
      await write();
      clearTimeout(timer);
      if (hasPending()) onPending({ waiting: 0, dropped: waiting.length + dropped });
    },
  };
}

function joinGrants(earlier: CountedGrants, later: CountedGrants | undefined): CountedGrants {
  if (!later) return earlier;
  const { count, addresses, last } = later;
  return {
    since: earlier.since,
    count: earlier.count + count,
    addresses: mergeAddresses(earlier.addresses, addresses),
    last,
  };
}

function addGrant(earlier: CountedGrants | undefined, last: AuditEntry): CountedGrants {
  const addresses = last.address === undefined ? [] : [last.address];
  return {
    since: earlier?.since ?? last.at,
    count: (earlier?.count ?? 0) + 1,
    addresses: mergeAddresses(earlier?.addresses ?? [], addresses),
    last,
  };
}

/** The entry of the last grant, with the number of all and their addresses if there are several. */
function countedEntry({ since, count, addresses, last }: CountedGrants): AuditEntry {
  if (count === 1) return last;
  const several = addresses.length > 1 ? { addresses } : {};
  return { ...last, detail: { ...last.detail, count, since: new Date(since).toISOString(), ...several } };
}

/** The entry that counts dropped grants. */
interface DroppedGrants {
  readonly auditEntry: AuditEntry;
  readonly count: number;
}

function droppedGrants(count: number, { now, mintId }: Pick<Clock, 'now' | 'mintId'>): DroppedGrants {
  const caller = { actor: 'authrealm', address: undefined, requestId: undefined };
  const auditEntry = createAuditEntry(
    'token.granted',
    { id: mintId(), detail: { without_entry: count } },
    { now, caller },
  );
  return { auditEntry, count };
}
