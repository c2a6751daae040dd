import { type AuditEntry, createAuditEntry } from '../domain/audit_entry.ts';
import { Fault } from '../domain/fault.ts';
import type { Clock } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { LogStore } from './port.ts';

/** Entries that wait in memory, and those that found no room there. */
export interface Waiting {
  readonly waiting: number;
  readonly dropped: number;
}

export interface GrantNotes {
  /** Resolves once the entry of a grant is on disk; or once it waits in memory, because nothing can be written. */
  note(auditEntry: AuditEntry): Promise<void>;
  /** Tries for the last time, and tells what is lost. */
  stop(): Promise<void>;
}

/**
 * Logs grants of tokens. Each waits for its entry. Where the database takes no writes the token is given all the same,
 * because lookups must go on: the entry follows as soon as there is room. `told`: when the first one begins to wait, when
 * the last one is written, and what is lost where the process ends first.
 */
export function openGrantNotes(
  store: Pick<LogStore, 'note'>,
  clock: Pick<Clock, 'now' | 'mintId'>,
  told: (waiting: Waiting) => void,
): GrantNotes {
  const waiting: AuditEntry[] = [];
  let dropped = 0;
  /** The entry of those that were dropped, as long as nobody knows whether it was written. */
  let doubtful: Uncounted | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let writing: Promise<void> = Promise.resolve();

  const isAnyLeft = () => waiting.length > 0 || dropped > 0;

  function keep(auditEntry: AuditEntry): void {
    if (waiting.length < LIMITS.grantsWaitingMax) waiting.push(auditEntry);
    else dropped += 1;
    if (waiting.length === 1 && dropped === 0) told({ waiting: 1, dropped });
    begin();
  }

  function begin(): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      writing = write();
    }, LIMITS.grantsRetriedEachMs).unref();
  }

  /** Nobody is asked to wait behind an entry that waits: those that come meanwhile go along. */
  async function write(): Promise<void> {
    if (!isAnyLeft()) return;
    const without = doubtful ?? uncounted(dropped, clock);
    try {
      await writeAll(without);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      if (error.code === 'unknown_outcome') doubtful = without;
    }
    if (isAnyLeft()) begin();
    else told({ waiting: 0, dropped: 0 });
  }

  async function writeAll(without: Uncounted): Promise<void> {
    const count = waiting.length;
    await store.note([...waiting, ...(without.count > 0 ? [without.auditEntry] : [])]);
    waiting.splice(0, count);
    dropped -= without.count;
    doubtful = undefined;
  }

  return {
    async note(auditEntry) {
      if (waiting.length > 0) return keep(auditEntry);
      try {
        await store.note([auditEntry]);
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        keep(auditEntry);
      }
    },
    async stop() {
      await writing;
      clearTimeout(timer);
      await write();
      clearTimeout(timer);
      if (isAnyLeft()) told({ waiting: 0, dropped: waiting.length + dropped });
    },
  };
}

/** The entry of grants whose own found no room: that there were so many. */
interface Uncounted {
  readonly auditEntry: AuditEntry;
  readonly count: number;
}

function uncounted(count: number, { now, mintId }: Pick<Clock, 'now' | 'mintId'>): Uncounted {
  const caller = { actor: 'authrealm', address: undefined, requestId: undefined };
  const auditEntry = createAuditEntry(
    'token.granted',
    { id: mintId(), detail: { without_entry: count } },
    { now, caller },
  );
  return { auditEntry, count };
}
