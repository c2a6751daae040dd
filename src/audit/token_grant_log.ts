import { type AuditEntry, createAuditEntry } from '../domain/audit_entry.ts';
import { Fault } from '../domain/fault.ts';
import type { Clock } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { LogStore } from './port.ts';

/** The number of entries waiting in memory, and of those dropped because the queue was full. */
export interface PendingGrants {
  readonly waiting: number;
  readonly dropped: number;
}

export interface TokenGrantLog {
  /** Resolves when the entry of a grant is on disk, or is queued because the database accepts no writes. */
  append(auditEntry: AuditEntry): Promise<void>;
  /** Writes what is queued for the last time, and reports what is lost. */
  stop(): Promise<void>;
}

/**
 * Logs token grants. A grant waits for its entry; if the database accepts no writes, the token is
 * issued, because lookups must work, and the entry is written later. `onPending` is called when the first
 * entry is queued, when the queue is empty again, and with what is lost at stop.
 */
export function openTokenGrantLog(
  store: Pick<LogStore, 'append'>,
  clock: Pick<Clock, 'now' | 'mintId'>,
  onPending: (waiting: PendingGrants) => void,
): TokenGrantLog {
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
      if (!(error instanceof Fault)) throw error;
      if (error.code === 'unknown_outcome') unconfirmed = droppedEntry;
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
    async append(auditEntry) {
      if (waiting.length > 0) return enqueue(auditEntry);
      try {
        await store.append([auditEntry]);
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        enqueue(auditEntry);
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
