import type { LogStore } from '../audit/port.ts';
import { createAuditEntry } from '../domain/audit_entry.ts';
import { daysBefore } from '../domain/days.ts';
import { Fault } from '../domain/fault.ts';
import { type Clock, NIL_UUID, type Uuid } from '../domain/id.ts';
import { LIMITS } from '../domain/limits.ts';
import type { WebhookStore } from '../events/webhooks/port.ts';
import type { Leases } from './leases.ts';

const LEASE = 'retention';

interface RetentionRooms {
  readonly log: Pick<LogStore, 'heads' | 'trim' | 'append'>;
  readonly webhooks: Pick<WebhookStore, 'trim'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly days: number;
  /** Whether to go on. */
  readonly mayGoOn: () => boolean;
  /** Called between two commits, and between two looks at many logs. */
  readonly pause: () => Promise<void>;
  /** What stands in the way of one log alone. */
  readonly onSpoilt: (log: Uuid, error: unknown) => void;
}

/**
 * Removes changes, log entries, deliveries and dead letters that are older than so many days, a bounded number in each commit.
 * The newest entry of every log stays. What was removed of a log is told by that of the installation. A log that was spoilt is
 * left as it is, and holds up no other one.
 */
export async function removeOld(rooms: RetentionRooms): Promise<void> {
  const { log, webhooks, clock, days, mayGoOn, pause, onSpoilt } = rooms;
  const before = daysBefore(clock.now(), days);

  async function removeAll(some: () => Promise<number>): Promise<number> {
    let removed = 0;
    while (mayGoOn()) {
      const count = await some();
      removed += count;
      if (count < LIMITS.cascadeRecordsMax) break;
      await pause();
    }
    return removed;
  }

  async function trimLog(which: Uuid): Promise<void> {
    const entries = await removeAll(() => log.trim(which, before));
    if (entries === 0) return;
    const realm = which === NIL_UUID ? {} : { realm: which };
    const detail = { entries, before: new Date(before).toISOString() };
    const caller = { actor: LEASE, address: undefined, requestId: undefined };
    await log.append([createAuditEntry('log.trimmed', { ...realm, detail }, { now: clock.now, caller })]);
    await pause();
  }

  async function trimLogs(): Promise<void> {
    let after: Uuid | undefined;
    while (mayGoOn()) {
      const heads = await log.heads(after, LIMITS.pageRecordsMax);
      for (const head of heads) {
        if (!mayGoOn()) return;
        await trimLog(head.log).catch((error) => {
          // A database in trouble is so for every log.
          if (error instanceof Fault) throw error;
          onSpoilt(head.log, error);
        });
      }
      after = heads.at(-1)?.log;
      if (heads.length < LIMITS.pageRecordsMax) return;
      await pause();
    }
  }

  try {
    await trimLogs();
  } finally {
    await removeAll(() => webhooks.trim(before));
  }
}

interface Schedule extends Omit<RetentionRooms, 'mayGoOn' | 'pause'> {
  readonly leases: Leases;
  readonly onTrouble: (error: unknown) => void;
}

/** Does so every hour, one process at a time, until it is stopped. It keeps no process alive. */
export function startRetention(
  { leases, onTrouble, ...rooms }: Schedule,
  everyMs: number = LIMITS.retentionEveryMs,
): { stop(): Promise<void> } {
  const stopping = Promise.withResolvers<void>();
  let isStopped = false;
  let removing: Promise<void> = Promise.resolve();

  const keep = () => leases.keep([LEASE]);

  /** Takes the lease. One that a process left behind when it was killed is to be had a term later. */
  async function begin(): Promise<void> {
    await keep();
    if (leases.holds(LEASE)) return;
    const term = Promise.withResolvers<void>();
    setTimeout(term.resolve, leases.termMs + LIMITS.retentionPauseMs).unref();
    await Promise.race([term.promise, stopping.promise]);
    if (!isStopped) await keep();
  }

  async function removeOnce(): Promise<void> {
    try {
      await begin();
      const mayGoOn = () => !isStopped && leases.holds(LEASE);
      const pause = async () => {
        await Bun.sleep(LIMITS.retentionPauseMs);
        await keep();
      };
      if (mayGoOn()) await removeOld({ ...rooms, mayGoOn, pause });
    } catch (error) {
      // What is left goes next time.
      onTrouble(error);
    } finally {
      await leases.release().catch(onTrouble);
    }
  }

  const timer = setInterval(() => {
    removing = removing.then(removeOnce);
  }, everyMs);
  timer.unref();
  return {
    async stop() {
      isStopped = true;
      stopping.resolve();
      clearInterval(timer);
      await removing;
    },
  };
}
