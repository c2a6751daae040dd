import type { Database } from 'bun:sqlite';
import type { IsCrowded } from '../../directory/store.ts';
import type { Act } from '../../domain/act.ts';
import { Fault } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { WriterFigures } from '../engine.ts';
import type { Entry } from '../entry.ts';
import { openGate } from '../gate.ts';
import type { Log } from '../log.ts';
import type { Outcome } from '../work.ts';
import { abandon, asFault, isBusy, pause } from './connection.ts';
import type { Place } from './place.ts';
import { openSession } from './session.ts';
import type { Snapshot } from './snapshot.ts';

export interface Writer {
  /** Runs `work` in a transaction shared with what else waits; resolves after the commit is on disk. */
  write<T>(work: () => Outcome<T>): Promise<T>;
  figures(): WriterFigures;
  readonly isCrowded: IsCrowded;
}

interface Job {
  readonly work: () => Outcome<unknown>;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
  readonly deadline: number;
}

/**
 * The one writer of a connection. Work that arrives while the lock is awaited, or while a commit gives way to lookups,
 * joins the same commit, and so shares its sync; each piece has a savepoint of its own. Only what is in the file that
 * the next start will find is acknowledged.
 */
export function openWriter(
  db: Database,
  snapshot: Snapshot,
  place: Pick<Place, 'prove'>,
  log: Pick<Log, 'write'>,
): Writer {
  const begin = db.prepare('begin immediate');
  const perform = openGroups(db, place, log);
  const pauses = openPauses(snapshot);
  const gate = openGate();
  let queue: Job[] = [];
  let commits = 0;
  let busy = 0;
  let isDraining = false;

  async function drain(): Promise<void> {
    try {
      while (queue.length > 0) {
        await (queue.length < LIMITS.writesGroupedMax ? pauses.next() : nextTurn());
        // Nothing may run between taking the lock and the work: a read would find itself inside the transaction.
        if (takeLock()) commitNext();
        else await pause();
      }
    } finally {
      isDraining = false;
    }
  }

  function commitNext(): void {
    const before = queue.length;
    const isCommitted = perform(queue);
    const ended = before - queue.length;
    if (isCommitted) {
      commits += 1;
      gate.leave(ended);
    } else gate.giveUp(ended);
    pauses.begin();
  }

  /** Answers false where somebody else has the lock, or the database cannot be written; the latter ends every wait. */
  function takeLock(): boolean {
    try {
      place.prove();
      snapshot.end();
      begin.run();
      return true;
    } catch (error) {
      if (isBusy(error)) {
        busy += 1;
        dismissLate(error);
      } else dismiss(queue.splice(0), asFault(error));
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
    rejectAll(jobs, error);
  }

  return {
    write<T>(work: () => Outcome<T>): Promise<T> {
      return new Promise<T>((resolve, reject) => {
        if (queue.length >= LIMITS.writesQueuedMax) return reject(new Fault('unavailable'));
        gate.enter();
        queue.push({ work, resolve, reject, deadline: performance.now() + LIMITS.storeWaitMsMax });
        if (isDraining) return;
        isDraining = true;
        drain();
      });
    },
    figures: () => ({ writesWaiting: queue.length, commits, busy }),
    isCrowded: gate.isFull,
  };
}

/**
 * Makes what runs the first pieces of a queue, in their order, ends the transaction that is open, and takes them off the
 * queue. Nothing else runs meanwhile: once they come to LIMITS.cascadeRecordsMax rows or have taken
 * LIMITS.commitWorkMsMax, the others stay for the next one.
 * Answers whether they were committed.
 */
function openGroups(
  db: Database,
  place: Pick<Place, 'prove'>,
  log: Pick<Log, 'write'>,
): (queue: Job[]) => boolean {
  const commit = db.prepare('commit');
  const savepoint = db.prepare('savepoint piece');
  const undo = db.prepare('rollback to piece');
  const release = db.prepare('release piece');
  const { perform } = openSession(db);

  /** Runs one piece. Its answer is handed out only after the commit. */
  function attempt(job: Job, load: Load): () => void {
    savepoint.run();
    try {
      const outcome = job.work();
      load.rows += outcome.rows ?? 0;
      if (!outcome.keep) undo.run();
      else {
        load.entries.push(...(outcome.entries ?? []));
        load.acts.push(...(outcome.acts ?? []));
      }
      return () => job.resolve(outcome.value as never);
    } catch (error) {
      // Some errors (a full disk) have already ended the transaction; then everybody in it must hear.
      if (!db.inTransaction) throw error;
      undo.run();
      return () => job.reject(asFault(error));
    } finally {
      if (db.inTransaction) release.run();
    }
  }

  return (queue) => {
    const taken: Job[] = [];
    const settle: (() => void)[] = [];
    const load: Load = { entries: [], acts: [], rows: 0 };
    try {
      const end = performance.now() + LIMITS.commitWorkMsMax;
      for (const job of queue) {
        if (taken.length >= LIMITS.writesGroupedMax || weight(load) >= LIMITS.cascadeRecordsMax) break;
        if (taken.length > 0 && performance.now() > end) break;
        taken.push(job);
        settle.push(attempt(job, load));
      }
      perform(log.write(load.entries, load.acts));
      commit.run();
      place.prove();
    } catch (error) {
      rejectAll(taken, asFault(error));
      abandon(db);
      return false;
    } finally {
      queue.splice(0, taken.length);
    }
    for (const tell of settle) tell();
    return true;
  };
}

/** What the pieces of one commit come to. */
interface Load {
  readonly entries: Entry[];
  readonly acts: Act[];
  rows: number;
}

function weight({ entries, acts, rows }: Load): number {
  return entries.length + acts.length + rows;
}

/** The pauses between commits: every lookup that has arrived waits while one is made and synced (decision 0025). */
interface Pauses {
  /** Ends with the pause after the last commit while very many lookups are answered, else with the turn. */
  next(): Promise<void>;
  /** Must be called after each commit. */
  begin(): void;
}

function openPauses({ reads }: Pick<Snapshot, 'reads'>): Pauses {
  let begun = Number.NEGATIVE_INFINITY;
  let isReadFrom = false;
  let seenAt = Number.NEGATIVE_INFINITY;
  let seenReads = 0;

  /** The rate of a shorter time than a pause would say nothing. */
  function look(now: number): void {
    const passed = now - seenAt;
    if (passed < LIMITS.commitPauseMs) return;
    isReadFrom = reads() - seenReads >= passed * LIMITS.commitPauseReadsMin;
    seenAt = now;
    seenReads = reads();
  }

  return {
    next() {
      const now = performance.now();
      look(now);
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

function rejectAll(jobs: readonly Job[], error: unknown): void {
  for (const job of jobs) job.reject(error);
}
