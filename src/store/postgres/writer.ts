import type { IsOverloaded } from '../../directory/store.ts';
import type { AuditEntry } from '../../domain/audit_entry.ts';
import { Fault } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import { openAdmission } from '../admission.ts';
import type { ChangeEntry } from '../audit/entry.ts';
import type { AuditLog } from '../audit/log.ts';
import type { WriterFigures } from '../engine.ts';
import type { Work, WorkResult } from '../transaction_work.ts';
import type { WriteScope } from '../transactions.ts';
import { type Connection, isRetryableConflict, postgresFault } from './connection.ts';
import type { ConnectionPool, TransactionResult } from './pool.ts';
import { type QueuedWork, rejectExpired } from './queued_work.ts';
import { lockScope, type WriteBeginning } from './scope_locks.ts';
import type { Perform } from './session.ts';

export interface PostgresWriter {
  /** Runs `work` in a transaction that it may share with other waiting work; resolves after the commit is on disk. */
  write<T>(scope: WriteScope, work: () => Work<WorkResult<T>>): Promise<T>;
  figures(): WriterFigures;
  readonly isOverloaded: IsOverloaded;
}

/** Writes of one scope wait for the commit before theirs and share the next one. Scopes do not wait for each other. */
export function openPostgresWriter(
  pool: ConnectionPool,
  beginning: WriteBeginning,
  perform: Perform,
  log: Pick<AuditLog, 'write'>,
): PostgresWriter {
  const counts = { commits: 0, retries: 0 };
  const transact: Transact = (scope, work) =>
    pool.transaction(beginning.begin, async (connection) => {
      await lockScope(scope, connection, beginning);
      return work(connection);
    });
  const commit = openGroupCommit(transact, perform, log, counts);
  const queues = new Map<string, ScopeQueue>();
  const admission = openAdmission();
  /** Jobs in all queues, including those being committed. Queues run concurrently, and share the connections. */
  let queued = 0;

  async function drain(name: string, scope: WriteScope, queue: ScopeQueue): Promise<void> {
    while (queue.jobs.length > 0) {
      const group = queue.jobs.splice(0, LIMITS.writesGroupedMax);
      await commit(scope, group);
      queued -= group.length;
      queue.queued -= group.length;
    }
    queues.delete(name);
  }

  function isOverloaded(realm: string | undefined): boolean {
    if (!admission.isOverloaded()) return false;
    const own = queues.get(realm?.toLowerCase() ?? '')?.queued ?? 0;
    return realm === undefined || own * queues.size >= queued;
  }

  return {
    write<T>(scope: WriteScope, work: () => Work<WorkResult<T>>): Promise<T> {
      if (queued >= LIMITS.writesQueuedMax) return Promise.reject(new Fault('unavailable'));
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      queued += 1;
      admission.enter();
      // Registered before the caller can await: admission control learns of the end first.
      promise.then(
        () => admission.leave(1),
        () => admission.giveUp(1),
      );
      const job: Job = { work, resolve, reject, deadline: performance.now() + LIMITS.storeWaitMsMax };
      const name = scopeName(scope);
      const waiting = queues.get(name);
      if (waiting) {
        waiting.jobs.push(job);
        waiting.queued += 1;
      } else {
        const queue = { jobs: [job], queued: 1 };
        queues.set(name, queue);
        drain(name, scope, queue);
      }
      return promise;
    },
    figures: () => ({ writesWaiting: queued, ...counts }),
    isOverloaded,
  };
}

/** The jobs of one scope. */
interface ScopeQueue {
  /** Jobs that wait for the next commit. */
  readonly jobs: Job[];
  /** Waiting jobs and those being committed. */
  queued: number;
}

function scopeName(scope: WriteScope): string {
  return scope === 'instance' ? scope : [...scope].sort().join();
}

/** Work that waits for a transaction. */
interface Job extends QueuedWork {
  readonly work: () => Work<WorkResult<unknown>>;
  readonly resolve: (value: never) => void;
}

/** Settles the promise of a job. */
type Settle = () => void;

/** The result of a job: no outcome where it failed. */
interface JobResult {
  readonly outcome?: WorkResult<unknown>;
  readonly settle: Settle;
}

/** The rows and log entries of the jobs of one transaction. */
interface TransactionLoad {
  readonly entries: ChangeEntry[];
  readonly auditEntries: AuditEntry[];
  rows: number;
}

/** The jobs of one transaction. */
interface Group {
  readonly settles: readonly Settle[];
  readonly isKept: boolean;
}

/** Runs work in a transaction that has locked the scope. */
type Transact = (
  scope: WriteScope,
  work: (connection: Connection) => Promise<TransactionResult<Group>>,
) => Promise<Group>;

/** Attempts of a transaction that conflicts with others, and how much longer it pauses before each. */
const ATTEMPTS_MAX = 10;
const CONFLICT_PAUSE_MS = 20;

const SAVEPOINT = 'savepoint job';
/** Each of these two leaves a savepoint for the next job. */
const KEEP = `release savepoint job; ${SAVEPOINT}`;
const UNDO = 'rollback to savepoint job';

/** Transactions that were committed, and those that were retried or failed because of a conflict. */
interface Counts {
  commits: number;
  retries: number;
}

/**
 * Runs jobs of one scope, in their order, in as few transactions as possible, and counts these. Each job has a
 * savepoint of its own unless it is alone. Resolves when all of them are settled.
 */
function openGroupCommit(
  transact: Transact,
  perform: Perform,
  log: Pick<AuditLog, 'write'>,
  counts: Counts,
): (scope: WriteScope, jobs: readonly Job[]) => Promise<void> {
  /** Returns how many jobs are settled; 0 where the transaction has to be retried. */
  async function attempt(scope: WriteScope, jobs: readonly Job[], isLast: boolean): Promise<number> {
    const taken: Job[] = [];
    try {
      const { settles, isKept } = await transact(scope, (connection) => run(jobs, connection, taken));
      counts.commits += Number(isKept);
      for (const settle of settles) settle();
      return settles.length;
    } catch (error) {
      counts.retries += Number(isRetryableConflict(error));
      if (isRetryableConflict(error) && !isLast) return 0;
      // Jobs that were not started are tried again, unless none was started.
      const concerned = taken.length > 0 ? taken : jobs;
      for (const { reject } of concerned) reject(postgresFault(error));
      return concerned.length;
    }
  }

  /**
   * Runs jobs until they have written LIMITS.cascadeRecordsMax rows, or taken half of the time that is left to the
   * first one: all of them wait for the commit. The others stay for the next transaction. `taken` collects those that
   * were started.
   */
  async function run(
    jobs: readonly Job[],
    connection: Connection,
    taken: Job[],
  ): Promise<TransactionResult<Group>> {
    const isAlone = jobs.length === 1;
    if (!isAlone) await connection.query(SAVEPOINT, []);
    const end = halfwayUntil(jobs[0]?.deadline ?? 0);
    const settles: Settle[] = [];
    const load: TransactionLoad = { entries: [], auditEntries: [], rows: 0 };
    let isKept = false;
    for (const job of jobs) {
      if (taken.length > 0 && isFull(load.entries.length + load.auditEntries.length + load.rows, end)) break;
      taken.push(job);
      const { outcome, settle } = await (isAlone
        ? runAlone(job, connection)
        : runInSavepoint(job, connection));
      settles.push(settle);
      isKept = (outcome !== undefined && add(load, outcome)) || isKept;
    }
    await perform(connection, log.write(load.entries, load.auditEntries));
    return { value: { settles, isKept }, shouldCommit: isKept };
  }

  async function runAlone({ work, resolve }: Job, connection: Connection): Promise<JobResult> {
    const outcome = await perform(connection, work());
    return { outcome, settle: () => resolve(outcome.value as never) };
  }

  async function runInSavepoint(job: Job, connection: Connection): Promise<JobResult> {
    try {
      const ran = await runAlone(job, connection);
      await connection.query(ran.outcome?.keep ? KEEP : UNDO, []);
      return ran;
    } catch (error) {
      if (isRetryableConflict(error)) throw error;
      await connection.query(UNDO, []);
      return { settle: () => job.reject(postgresFault(error)) };
    }
  }

  return async (scope, jobs) => {
    let left = rejectExpired(jobs);
    let attempts = 0;
    while (left.length > 0) {
      attempts += 1;
      const settled = await attempt(scope, left, attempts === ATTEMPTS_MAX);
      if (settled > 0) attempts = 0;
      // A random pause keeps transactions that conflicted from conflicting again.
      else await Bun.sleep(Math.random() * attempts * CONFLICT_PAUSE_MS);
      left = rejectExpired(left.slice(settled));
    }
  };
}

/** Adds the rows and entries of a job. Returns whether its writes are kept. */
function add(
  load: TransactionLoad,
  { keep, entries = [], auditEntries = [], rows = 0 }: WorkResult<unknown>,
): boolean {
  load.rows += rows;
  if (keep) {
    load.entries.push(...entries);
    load.auditEntries.push(...auditEntries);
  }
  return keep;
}

function isFull(rows: number, end: number): boolean {
  return rows >= LIMITS.cascadeRecordsMax || performance.now() > end;
}

function halfwayUntil(deadline: number): number {
  return (performance.now() + deadline) / 2;
}
