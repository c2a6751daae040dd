import type { Database } from 'bun:sqlite';
import { Fault } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import type { AuditEntry } from '../../model/log/audit_entry.ts';
import type { ChangeEntry } from '../../model/log/change.ts';
import { openAdmission } from '../admission.ts';
import { type Job, rejectExpired } from '../queued_work.ts';
import type { EntryWriter, Work, WorkResult } from '../transaction_work.ts';
import type { WriterFigures, WriteScope } from '../transactions.ts';
import { isBusy, pauseForLock, rollbackQuietly, sqliteFault } from './connection.ts';
import type { DatabaseFiles } from './database_files.ts';
import { openSqliteSession } from './session.ts';
import type { SharedReadTransaction } from './shared_read_transaction.ts';

/**
 * The writer of a connection. Work that arrives during a wait for the lock, or during a pause for lookups, joins the
 * same commit and shares its sync. Each of several jobs has its own savepoint. A commit is acknowledged only if its file is still
 * the one at the path of the database.
 */
export function openSqliteWriter(
  db: Database,
  sharedReads: SharedReadTransaction,
  files: Pick<DatabaseFiles, 'assertInPlace'>,
  log: EntryWriter,
) {
  const begin = db.prepare('begin immediate');
  const commitGroup = openGroupCommit(db, files, log);
  const pause = openPauses(sharedReads);
  const admission = openAdmission();
  let queue: Job[] = [];
  let commits = 0;
  let retries = 0;
  let workMs = 0;
  let isDraining = false;
  let committedAt = Number.NEGATIVE_INFINITY;

  async function drain(): Promise<void> {
    try {
      while (queue.length > 0) {
        await (queue.length < LIMITS.writesGroupedMax ? pause(committedAt) : nextTurn());
        // Nothing may be awaited between taking the lock and the commit: a read would run inside the transaction.
        if (!takeLock()) {
          await pauseForLock();
          continue;
        }
        const startedAt = performance.now();
        const { jobs, isCommitted } = commitGroup(queue);
        workMs += performance.now() - startedAt;
        queue.splice(0, jobs);
        if (isCommitted) {
          commits += 1;
          admission.leave(jobs);
        } else admission.giveUp(jobs);
        committedAt = performance.now();
      }
    } finally {
      isDraining = false;
    }
  }

  /** Returns false where another process holds the lock, or the engine failed; the latter rejects all waiting jobs. */
  function takeLock(): boolean {
    try {
      sharedReads.end();
      begin.run();
      return true;
    } catch (error) {
      if (isBusy(error)) {
        retries += 1;
        const left = rejectExpired(queue, error);
        if (left.length < queue.length) admission.giveUp(queue.length - left.length);
        queue = [...left];
      } else {
        admission.giveUp(queue.length);
        for (const { reject } of queue.splice(0)) reject(sqliteFault(error));
      }
      return false;
    }
  }

  return {
    /**
     * Runs `work` in a transaction that it shares with other waiting work, of any scope: SQLite has one writer. Resolves after the
     * commit is on disk.
     */
    write<T>(_: WriteScope, work: () => Work<WorkResult<T>>): Promise<T> {
      if (queue.length >= LIMITS.writesQueuedMax) return Promise.reject(new Fault('unavailable'));
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      admission.enter();
      queue.push({ work, resolve, reject, deadline: performance.now() + LIMITS.storeWaitMsMax });
      if (!isDraining) {
        isDraining = true;
        drain();
      }
      return promise;
    },
    figures: (): WriterFigures => ({ writesWaiting: queue.length, commits, retries }),
    workMs: () => workMs,
    isOverloaded: admission.isOverloaded,
  };
}

/** The jobs of one commit, with their rows and log entries. */
interface Group {
  readonly jobs: Job[];
  /** Settles the promise of each job, once the commit is on disk. */
  readonly settle: (() => void)[];
  readonly entries: ChangeEntry[];
  readonly auditEntries: AuditEntry[];
  rows: number;
}

/**
 * Returns a function that runs the first jobs of a queue in their order, and commits or rolls back the open
 * transaction. It blocks the event loop: after LIMITS.cascadeRecordsMax rows or LIMITS.commitWorkMsMax, the remaining
 * jobs wait for the next commit. The function returns how many jobs it ran and settled, and whether they were
 * committed.
 */
function openGroupCommit(db: Database, files: Pick<DatabaseFiles, 'assertInPlace'>, log: EntryWriter) {
  const commit = db.prepare('commit');
  const rollback = db.prepare('rollback');
  const savepoint = db.prepare('savepoint job');
  const undo = db.prepare('rollback to job');
  const release = db.prepare('release job');
  const { perform } = openSqliteSession(db);

  /**
   * Runs a job. If it fails or its writes are not kept, undoes them. A job that is alone has no savepoint, in which the engine would
   * journal every page that changes.
   */
  function runJob(job: Job, group: Group, isAlone: boolean): void {
    const undoing = isAlone ? rollback : undo;
    if (!isAlone) savepoint.run();
    try {
      const { value, keep, entries = [], auditEntries = [], rows = 0 } = perform(job.work());
      group.rows += rows;
      if (keep) {
        group.entries.push(...entries);
        group.auditEntries.push(...auditEntries);
      } else undoing.run();
      group.settle.push(() => job.resolve(value as never));
    } catch (error) {
      // Some errors (a full disk) have already ended the transaction; then every job in it fails.
      if (!db.inTransaction) throw error;
      undoing.run();
      group.settle.push(() => job.reject(sqliteFault(error)));
    }
    if (!isAlone) release.run();
  }

  return (queue: readonly Job[]): { readonly jobs: number; readonly isCommitted: boolean } => {
    const group: Group = { jobs: [], settle: [], entries: [], auditEntries: [], rows: 0 };
    const { jobs, settle } = group;
    const end = performance.now() + LIMITS.commitWorkMsMax;
    try {
      for (const job of queue) {
        if (isFull(group, end)) break;
        jobs.push(job);
        runJob(job, group, queue.length === 1);
      }
      // The only job may have undone the transaction.
      if (db.inTransaction) {
        perform(log.write(group.entries, group.auditEntries));
        commit.run();
      }
      files.assertInPlace();
    } catch (error) {
      for (const { reject } of jobs) reject(sqliteFault(error));
      rollbackQuietly(db);
      return { jobs: jobs.length, isCommitted: false };
    }
    for (const settleJob of settle) settleJob();
    return { jobs: jobs.length, isCommitted: true };
  };
}

function isFull({ jobs, entries, auditEntries, rows }: Group, end: number): boolean {
  if (entries.length + auditEntries.length + rows >= LIMITS.cascadeRecordsMax) return true;
  return jobs.length >= LIMITS.writesGroupedMax || (jobs.length > 0 && performance.now() > end);
}

/**
 * Returns the pause between commits, because lookups wait while a commit is written and synced (decision 0005). It resolves
 * LIMITS.commitPauseMs after the last commit while the rate of lookups is high, otherwise in the next turn.
 */
function openPauses({ reads }: Pick<SharedReadTransaction, 'reads'>): (committedAt: number) => Promise<void> {
  let hasManyReads = false;
  let measuredAt = Number.NEGATIVE_INFINITY;
  let measuredReads = 0;

  return (committedAt) => {
    const now = performance.now();
    const elapsed = now - measuredAt;
    // A rate over less time than a pause would be meaningless.
    if (elapsed >= LIMITS.commitPauseMs) {
      hasManyReads = reads() - measuredReads >= elapsed * LIMITS.commitPauseReadsMin;
      measuredAt = now;
      measuredReads = reads();
    }
    const left = committedAt + LIMITS.commitPauseMs - now;
    return hasManyReads && left > 0 ? Bun.sleep(left) : nextTurn();
  };
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
