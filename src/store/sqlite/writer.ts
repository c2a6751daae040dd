import type { Database } from 'bun:sqlite';
import type { Change } from '../../domain/change.ts';
import { Fault } from '../../domain/fault.ts';
import type { Uuid } from '../../domain/id.ts';
import { LIMITS } from '../../domain/limits.ts';
import { abandon, asFault, isBusy, pause } from './connection.ts';
import type { Snapshot } from './snapshot.ts';

/** What a piece of work wants done with its writes. */
export interface Outcome<T> {
  readonly value: T;
  /** False undoes the work's own writes; its neighbours in the commit are not touched. */
  readonly keep: boolean;
  /** Take their places in the realm's order when the commit does. */
  readonly changes?: readonly Change[];
}

export interface Writer {
  /** Runs `work` in a transaction shared with the other work of this tick; resolves after the commit is on disk. */
  write<T>(work: () => Outcome<T>): Promise<T>;
}

interface Job {
  readonly work: () => Outcome<unknown>;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
  readonly deadline: number;
}

/**
 * The one writer of a connection. Work that arrives while the lock is awaited joins the same commit, and so shares
 * its sync; each piece has a savepoint of its own.
 */
export function openWriter(db: Database, snapshot: Snapshot): Writer {
  const begin = db.prepare('begin immediate');
  const commit = db.prepare('commit');
  const savepoint = db.prepare('savepoint piece');
  const undo = db.prepare('rollback to piece');
  const release = db.prepare('release piece');
  const sequence = openSequence(db);
  let queue: Job[] = [];
  let isDraining = false;

  async function drain(): Promise<void> {
    try {
      while (queue.length > 0) {
        // Nothing may run between taking the lock and the work: a read would find itself inside the transaction.
        if (takeLock()) perform(queue.splice(0, LIMITS.writesGroupedMax));
        else await pause();
        if (queue.length > 0) await nextTurn();
      }
    } finally {
      isDraining = false;
    }
  }

  /** Answers false where somebody else has the lock, or the database cannot be written; the latter ends every wait. */
  function takeLock(): boolean {
    try {
      snapshot.end();
      begin.run();
      return true;
    } catch (error) {
      if (isBusy(error)) dismissLate(error);
      else rejectAll(queue.splice(0), asFault(error));
      return false;
    }
  }

  function dismissLate(cause: unknown): void {
    const now = performance.now();
    const late = queue.filter((job) => job.deadline <= now);
    if (late.length === 0) return;
    queue = queue.filter((job) => job.deadline > now);
    rejectAll(late, new Fault('unavailable', [], cause));
  }

  function perform(jobs: readonly Job[]): void {
    const settle: (() => void)[] = [];
    const changes: Change[] = [];
    try {
      for (const job of jobs) settle.push(attempt(job, changes));
      sequence(changes);
      commit.run();
    } catch (error) {
      rejectAll(jobs, asFault(error));
      abandon(db);
      return;
    }
    for (const tell of settle) tell();
  }

  /** Runs one piece. Its answer is handed out only after the commit. */
  function attempt(job: Job, changes: Change[]): () => void {
    savepoint.run();
    try {
      const outcome = job.work();
      if (!outcome.keep) undo.run();
      else if (outcome.changes) changes.push(...outcome.changes);
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

  return {
    write<T>(work: () => Outcome<T>): Promise<T> {
      return new Promise<T>((resolve, reject) => {
        if (queue.length >= LIMITS.writesQueuedMax) return reject(new Fault('unavailable'));
        queue.push({ work, resolve, reject, deadline: performance.now() + LIMITS.storeWaitMsMax });
        if (isDraining) return;
        isDraining = true;
        setImmediate(drain);
      });
    },
  };
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function rejectAll(jobs: readonly Job[], error: unknown): void {
  for (const job of jobs) job.reject(error);
}

/** Gives changes their places: one step of each realm's clock for all of its changes, then the rows. */
function openSequence(db: Database): (changes: readonly Change[]) => void {
  const advance = db.prepare<{ seq: number }, [string, number]>(
    `insert into realm_clock (realm_id, seq) values (?, ?)
     on conflict (realm_id) do update set seq = seq + excluded.seq returning seq`,
  );
  const insert = db.prepare(
    `insert into change (realm_id, seq, event, user_id, record_id, revision, members, actor, request_id, at)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return (changes) => {
    for (const [realm, ofRealm] of Map.groupBy(changes, (change): Uuid => change.realm)) {
      const last = advance.get(realm, ofRealm.length)?.seq ?? 0;
      let seq = last - ofRealm.length;
      for (const { event, user, id, revision, members, actor, requestId, at } of ofRealm) {
        seq += 1;
        const named = members.join(' ');
        insert.run(realm, seq, event, user ?? null, id, revision, named, actor, requestId ?? null, at);
      }
    }
  };
}
