import { type AuditEntry, createAuditEntry } from '../domain/audit_entry.ts';
import { Fault } from '../domain/fault.ts';
import type { Clock } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { LogStore } from './port.ts';

/** Entries that wait in memory, and those that found no room there. */
export interface PendingGrants {
  readonly waiting: number;
  readonly dropped: number;
}

export interface TokenGrantLog {
  /**
   * Resolves once the entry of a grant is on disk; or once it waits in memory, because nothing can be
   * written.
   */
  append(auditEntry: AuditEntry): Promise<void>;
  /** Tries for the last time, and tells what is lost. */
  stop(): Promise<void>;
}

/**
 * Logs grants of tokens. Each waits for its entry. Where the database takes no writes the token is given all
 * the same, because lookups must go on: the entry follows as soon as there is room. `told`: when the first
 * one begins to wait, when the last one is written, and what is lost where the process ends first.
 */
export function openTokenGrantLog(
  store: Pick<LogStore, 'append'>,
  clock: Pick<Clock, 'now' | 'mintId'>,
  onPending: (waiting: PendingGrants) => void,
): TokenGrantLog {
  const waiting: AuditEntry[] = [];
  let dropped = 0;
  /** The entry of those that were dropped, as long as nobody knows whether it was written. */
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
    }, LIMITS.grantsRetriedEachMs).unref();
  }

  /** Nobody is asked to wait behind an entry that waits: those that come meanwhile go along. */
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

/** The entry of grants whose own found no room: that there were so many. */
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
