import { Fault } from '../model/fault.ts';
import type { Clock } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';
import type { AuditEntry } from '../model/log/audit_entry.ts';
import { isClientId } from '../model/principal.ts';

interface CounterStore {
  append(auditEntries: readonly AuditEntry[]): Promise<void>;
  recordClientUsage(clientIds: readonly string[], at: number): Promise<void>;
}

interface CounterLogOptions {
  readonly intervalMs?: number;
  /** Called with entries that cannot be written, with 0 when they were written, and with the number of lost ones at a stop. */
  readonly onPending?: (entries: { readonly pending: number; readonly dropped: number }) => void;
  /** Called with an unexpected error of a write that no request waits for. The entries are written later. */
  readonly onError?: (error: unknown) => void;
}

/** The events of a key that have no entry yet. */
interface Counter {
  readonly since: number;
  readonly count: number;
  readonly addresses: readonly string[];
  readonly last: AuditEntry;
}

/** The counters of an action by key; undefined where its only event so far has an entry. */
type Counters = Map<string, Counter | undefined>;

export type CounterLog = ReturnType<typeof openCounterLog>;

/** Counts events by key and writes them to the log of the installation, and when clients were last used. Keeps no process alive. */
export function openCounterLog(
  store: CounterStore,
  { now, mintId }: Pick<Clock, 'now' | 'mintId'>,
  { intervalMs = LIMITS.counterLogMs, onPending, onError }: CounterLogOptions = {},
) {
  let counters = new Map<string, Counters>();
  /** Entries whose write failed or has an unknown outcome: their IDs make a repetition write them once. */
  let unwritten: readonly AuditEntry[] = [];
  let isFailing = false;
  let used = new Set<string>();
  let lastUsed: string | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let writing: Promise<void> = Promise.resolve();

  function schedule(): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      writing = write();
    }, intervalMs).unref();
  }

  function setFailing(value: boolean): void {
    if (value !== isFailing) onPending?.({ pending: value ? unwritten.length : 0, dropped: 0 });
    isFailing = value;
  }

  async function writeFirst(auditEntry: AuditEntry, forget: () => void): Promise<void> {
    try {
      await store.append([auditEntry]);
    } catch (error) {
      if (!(error instanceof Fault)) {
        forget();
        throw error;
      }
      unwritten = [...unwritten, auditEntry];
      setFailing(true);
      // An interval may have ended during the write.
      schedule();
    }
  }

  async function write(): Promise<void> {
    try {
      await writeUnwritten();
      unwritten = [...unwritten, ...takeCounted()];
      await writeUnwritten();
      setFailing(false);
      await writeUses();
    } catch (error) {
      if (error instanceof Fault) setFailing(unwritten.length > 0);
      else onError?.(error);
    }
    if (counters.size > 0 || unwritten.length > 0 || used.size > 0) schedule();
  }

  async function writeUnwritten(): Promise<void> {
    const written = unwritten;
    if (written.length > 0) await store.append(written);
    unwritten = unwritten.slice(written.length);
  }

  /** Counted keys stay for another interval, so that a caller in a loop has one entry a minute. */
  function takeCounted(): readonly AuditEntry[] {
    const entries: AuditEntry[] = [];
    const kept: typeof counters = new Map();
    for (const [action, ofAction] of counters) {
      const counted = [...ofAction].filter((each): each is [string, Counter] => each[1] !== undefined);
      entries.push(...counted.map(([, counter]) => ({ ...countedEntry(counter), id: mintId() })));
      if (counted.length > 0) kept.set(action, new Map(counted.map(([key]) => [key, undefined])));
    }
    counters = kept;
    return entries;
  }

  async function writeUses(): Promise<void> {
    const seen = used;
    if (seen.size === 0) return;
    used = new Set();
    lastUsed = undefined;
    await store.recordClientUsage([...seen], now()).catch((error: unknown) => {
      for (const clientId of seen) used.add(clientId);
      throw error;
    });
  }

  return {
    /**
     * The first event of a key is an entry of its own: resolves when that is on disk, or waits because the database accepts no writes.
     * Further ones, for which it returns undefined, share an entry a minute: that of the last of them with their number. Beyond
     * `keysMax` keys of an action, events are counted together as those of `others`. Rejects only with an unexpected error.
     */
    add(key: string, auditEntry: AuditEntry, keysMax: number = LIMITS.eventsCountedMax) {
      schedule();
      const ofAction = counters.getOrInsertComputed(auditEntry.action, (): Counters => new Map());
      const isRoom = ofAction.has(key) || ofAction.size < keysMax;
      const own = isRoom ? key : `${OTHERS} ${auditEntry.detail.reason}`;
      const counted = isRoom ? auditEntry : entryOfOthers(auditEntry);
      if (ofAction.has(own) || isFailing) {
        ofAction.set(own, countEvent(ofAction.get(own), counted));
        return undefined;
      }
      ofAction.set(own, undefined);
      return writeFirst({ ...counted, id: mintId() }, () => ofAction.delete(own));
    },
    /** Counts a caller that is a client. It runs on every lookup: a comparison for the same caller as before. */
    use(callerId: string): void {
      if (callerId === lastUsed) return;
      lastUsed = callerId;
      if (!isClientId(callerId)) return;
      used.add(callerId);
      schedule();
    },
    /** Writes everything for the last time, and reports what is lost. */
    async stop(): Promise<void> {
      await writing;
      await write();
      clearTimeout(timer);
      unwritten = [...unwritten, ...takeCounted()];
      if (unwritten.length > 0) onPending?.({ pending: 0, dropped: unwritten.length });
    },
  };
}

function countEvent(earlier: Counter | undefined, last: AuditEntry): Counter {
  const addresses = earlier?.addresses ?? [];
  const isNew = last.address !== undefined && !addresses.includes(last.address);
  return {
    since: earlier?.since ?? last.at,
    count: (earlier?.count ?? 0) + 1,
    addresses:
      isNew && addresses.length < LIMITS.addressesLoggedMax ? [...addresses, last.address] : addresses,
    last,
  };
}

/** The entry of the last event, with the number of all and their addresses if there are several. */
function countedEntry({ since, count, addresses, last }: Counter): AuditEntry {
  if (count === 1) return last;
  const several = addresses.length > 1 ? { addresses } : {};
  return { ...last, detail: { ...last.detail, count, since: new Date(since).toISOString(), ...several } };
}

/** The actor of events beyond the number of keys. */
const OTHERS = 'others';

function entryOfOthers({ action, detail: { reason }, at }: AuditEntry): AuditEntry {
  const detail = reason === undefined ? {} : { reason };
  return { action, actor: OTHERS, address: undefined, requestId: undefined, detail, at };
}
