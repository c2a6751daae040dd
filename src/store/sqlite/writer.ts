import type { Database } from 'bun:sqlite';
import type { IsOverloaded } from '../../directory/store.ts';
import type { AuditEntry } from '../../domain/audit_entry.ts';
import { Fault } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import { openAdmission } from '../admission.ts';
import type { ChangeEntry } from '../audit/entry.ts';
import type { AuditLog } from '../audit/log.ts';
import type { WriterFigures } from '../engine.ts';
import type { Work, WorkResult } from '../transaction_work.ts';
import { isBusy, pauseForLock, rollbackQuietly, sqliteFault } from './connection.ts';
import type { DatabaseFiles } from './database_files.ts';
import { openSqliteSession } from './session.ts';
import type { SharedReadTransaction } from './shared_read_transaction.ts';

export interface SqliteWriter {
  /** Runs `work` in a transaction shared with other waiting work; resolves after the commit is on disk. */
  write<T>(work: () => Work<WorkResult<T>>): Promise<T>;
  figures(): WriterFigures;
  readonly isCrowded: IsOverloaded;
}

interface Job {
  readonly work: () => Work<WorkResult<unknown>>;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
  readonly deadline: number;
}

/**
 * The one writer of a connection. Work that arrives while the lock is awaited, or while a commit gives way to lookups,
 * joins the same commit, and so shares its sync; each job has a savepoint of its own. Only what is in the file that
 * the next start will find is acknowledged.
 */
export function openSqliteWriter(
  db: Database,
  sharedReads: SharedReadTransaction,
  place: Pick<DatabaseFiles, 'assertInPlace'>,
  log: Pick<AuditLog, 'write'>,
): SqliteWriter {
  const begin = db.prepare('begin immediate');
  const commitGroup = openGroupCommit(db, place, log);
  const pauses = openPauses(sharedReads);
  const gate = openAdmission();
  let queue: Job[] = [];
  let commits = 0;
  let retries = 0;
  let isDraining = false;

  async function drain(): Promise<void> {
    try {
      while (queue.length > 0) {
        await (queue.length < LIMITS.writesGroupedMax ? pauses.next() : nextTurn());
        // Nothing may run between taking the lock and the work: a read would find itself inside the transaction.
        if (!takeLock()) {
          await pauseForLock();
          continue;
        }
        const { jobs, isCommitted } = commitGroup(queue);
        queue.splice(0, jobs);
        if (isCommitted) {
          commits += 1;
          gate.leave(jobs);
        } else gate.giveUp(jobs);
        pauses.begin();
      }
    } finally {
      isDraining = false;
    }
  }

  /** Answers false where another process has the lock, or the database cannot be written; the latter ends every wait. */
  function takeLock(): boolean {
    try {
      sharedReads.end();
      begin.run();
      return true;
    } catch (error) {
      if (isBusy(error)) {
        retries += 1;
        dismissLate(error);
      } else dismiss(queue.splice(0), sqliteFault(error));
      return false;
    }
  }

  function dismissLate(cause: unknown): void {
    const now = performance.now();
    const late = queue.filter((job) => job.deadline <= now);
    if (late.length === 0) return;
    queue = queue.filter((job) => job.deadline > now);
    dismiss(late, new Fault('unavailable', [], cause));
  }

  function dismiss(jobs: readonly Job[], error: unknown): void {
    gate.giveUp(jobs.length);
    for (const { reject } of jobs) reject(error);
  }

  return {
    write<T>(work: () => Work<WorkResult<T>>): Promise<T> {
      if (queue.length >= LIMITS.writesQueuedMax) return Promise.reject(new Fault('unavailable'));
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      gate.enter();
      queue.push({ work, resolve, reject, deadline: performance.now() + LIMITS.storeWaitMsMax });
      if (!isDraining) {
        isDraining = true;
        drain();
      }
      return promise;
    },
    figures: () => ({ writesWaiting: queue.length, commits, retries }),
    isCrowded: gate.isOverloaded,
  };
}

/** What the jobs of one commit amount to. */
interface Group {
  readonly jobs: Job[];
  /** Tells each job its result, once the commit is on disk. */
  readonly settle: (() => void)[];
  readonly entries: ChangeEntry[];
  readonly auditEntries: AuditEntry[];
  rows: number;
}

/**
 * Makes the function that runs the first jobs of a queue, in their order, and ends the open transaction. Nothing else runs
 * meanwhile: once the jobs amount to LIMITS.cascadeRecordsMax rows or have taken LIMITS.commitWorkMsMax, the others stay
 * for the next commit. Answers how many jobs it ran and settled, and whether they were committed.
 */
function openGroupCommit(
  db: Database,
  place: Pick<DatabaseFiles, 'assertInPlace'>,
  log: Pick<AuditLog, 'write'>,
) {
  const commit = db.prepare('commit');
  const savepoint = db.prepare('savepoint job');
  const undo = db.prepare('rollback to job');
  const release = db.prepare('release job');
  const { perform } = openSqliteSession(db);

  /** Runs one job in its savepoint. */
  function run(job: Job, group: Group): void {
    savepoint.run();
    try {
      const { value, keep, entries = [], auditEntries = [], rows = 0 } = perform(job.work());
      group.rows += rows;
      if (keep) {
        group.entries.push(...entries);
        group.auditEntries.push(...auditEntries);
      } else undo.run();
      group.settle.push(() => job.resolve(value as never));
    } catch (error) {
      // Some errors (a full disk) have already ended the transaction; then every job in it must be told.
      if (!db.inTransaction) throw error;
      undo.run();
      group.settle.push(() => job.reject(sqliteFault(error)));
    }
    release.run();
  }

  return (queue: readonly Job[]): { readonly jobs: number; readonly isCommitted: boolean } => {
    const group: Group = { jobs: [], settle: [], entries: [], auditEntries: [], rows: 0 };
    const { jobs, settle, entries, auditEntries } = group;
    const end = performance.now() + LIMITS.commitWorkMsMax;
    try {
      for (const job of queue) {
        if (isFull(group, end)) break;
        jobs.push(job);
        run(job, group);
      }
      perform(log.write(entries, auditEntries));
      commit.run();
      place.assertInPlace();
    } catch (error) {
      for (const { reject } of jobs) reject(sqliteFault(error));
      rollbackQuietly(db);
      return { jobs: jobs.length, isCommitted: false };
    }
    for (const answer of settle) answer();
    return { jobs: jobs.length, isCommitted: true };
  };
}

function isFull({ jobs, entries, auditEntries, rows }: Group, end: number): boolean {
  if (entries.length + auditEntries.length + rows >= LIMITS.cascadeRecordsMax) return true;
  return jobs.length >= LIMITS.writesGroupedMax || (jobs.length > 0 && performance.now() > end);
}

/** The pauses between commits: every lookup that has arrived waits while one is made and synced (decision 0005). */
interface Pauses {
  /** Ends with the pause after the last commit while very many lookups are answered, else with the turn. */
  next(): Promise<void>;
  /** Must be called after each commit. */
  begin(): void;
}

function openPauses({ reads }: Pick<SharedReadTransaction, 'reads'>): Pauses {
  let begun = Number.NEGATIVE_INFINITY;
  let isReadFrom = false;
  let seenAt = Number.NEGATIVE_INFINITY;
  let seenReads = 0;

  return {
    next() {
      const now = performance.now();
      const passed = now - seenAt;
      // The rate of a shorter time than a pause would say nothing.
      if (passed >= LIMITS.commitPauseMs) {
        isReadFrom = reads() - seenReads >= passed * LIMITS.commitPauseReadsMin;
        seenAt = now;
        seenReads = reads();
      }
      const left = begun + LIMITS.commitPauseMs - now;
      return isReadFrom && left > 0 ? Bun.sleep(left) : nextTurn();
    },
    begin() {
      begun = performance.now();
    },
  };
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
