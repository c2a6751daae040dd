import type { WebhookStore } from '../deliver/store/webhooks.ts';
import type { LogHead, LogStore } from '../log/store/reading.ts';
import { Fault } from '../model/fault.ts';
import { type Clock, NIL_UUID, type Uuid } from '../model/id.ts';
import { LIMITS } from '../model/limits.ts';
import { createAuditEntry } from '../model/log/audit_entry.ts';
import { daysBefore } from '../model/log/days.ts';
import { pagesOf } from '../model/pages.ts';
import type { JobLease } from '../sql/job_leases.ts';

/** The name of the lease, and the actor of what it logs. */
export const RETENTION = 'retention';

interface RetentionDeps {
  readonly log: Pick<LogStore, 'heads' | 'trim' | 'append'>;
  readonly webhooks: Pick<WebhookStore, 'trim'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly days: number;
  readonly mayContinue: () => boolean;
  /** Called between commits, and between pages of logs. */
  readonly pause: () => Promise<void>;
  /** Called with the error of a log that was modified. */
  readonly onTampered: (log: Uuid, error: unknown) => void;
}

/**
 * Deletes changes, log entries, deliveries and dead letters that are older than `days`, a bounded number in each commit. The
 * newest entry of every log stays. The log of the installation gets an entry for each log that was trimmed. A log that was
 * modified is skipped.
 */
export async function removeOld(deps: RetentionDeps): Promise<void> {
  const { log, webhooks, clock, days, mayContinue, pause, onTampered } = deps;
  const before = daysBefore(clock.now(), days);

  async function removeAll(some: () => Promise<number>): Promise<number> {
    let removed = 0;
    while (mayContinue()) {
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
    const caller = { actor: RETENTION, address: undefined, requestId: undefined };
    await log.append([createAuditEntry('log.trimmed', { ...realm, detail }, { now: clock.now, caller })]);
    await pause();
  }

  async function trimLogs(): Promise<void> {
    const read = (last: LogHead | undefined) =>
      mayContinue() ? log.heads(last?.log, LIMITS.pageRecordsMax) : [];
    for await (const heads of pagesOf(read)) {
      for (const head of heads) {
        if (!mayContinue()) return;
        await trimLog(head.log).catch((error) => {
          // A failure of the database affects every log.
          if (error instanceof Fault) throw error;
          onTampered(head.log, error);
        });
      }
      await pause();
    }
  }

  try {
    await trimLogs();
  } finally {
    await removeAll(() => webhooks.trim(before));
  }
}

interface RetentionSchedule extends Omit<RetentionDeps, 'mayContinue' | 'pause'> {
  readonly lease: JobLease;
  readonly onError: (error: unknown) => void;
}

/** Runs `removeOld` every hour, one process at a time, until it is stopped. Does not keep the process alive. */
export function startRetention(
  { lease, onError, ...deps }: RetentionSchedule,
  everyMs: number = LIMITS.retentionIntervalMs,
): { stop(): Promise<void> } {
  let isStopped = false;
  let removing: Promise<void> = Promise.resolve();

  async function removeOnce(): Promise<void> {
    try {
      // The lease of a process that was killed is acquired at the second run that finds it.
      await lease.keep();
      const mayContinue = () => !isStopped && lease.isHeld();
      const pause = async () => {
        await Bun.sleep(LIMITS.retentionPauseMs);
        await lease.keep();
      };
      if (mayContinue()) await removeOld({ ...deps, mayContinue, pause });
    } catch (error) {
      // The rest is deleted at the next run.
      onError(error);
    } finally {
      await lease.release().catch(onError);
    }
  }

  const timer = setInterval(() => {
    removing = removing.then(removeOnce);
  }, everyMs);
  timer.unref();
  return {
    async stop() {
      isStopped = true;
      clearInterval(timer);
      await removing;
    },
  };
}
