import type { AuditEntry } from '../../domain/audit_entry.ts';
import { Fault } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { ChangeEntry } from '../audit/entry.ts';
import type { AuditLog } from '../audit/log.ts';
import type { Work, WorkResult } from '../transaction_work.ts';
import type { WriteScope } from '../transactions.ts';
import { type Connection, isRetryableConflict, postgresFault } from './connection.ts';
import { databaseError, isBug } from './errors.ts';
import { type Expectations, openExpectations, UnexpectedResult } from './expectations.ts';
import type { TransactionResult } from './pool.ts';
import { type QueuedWork, rejectExpired } from './queued_work.ts';
import { isViolation, type Perform } from './session.ts';

/** Work that waits for a transaction. */
export interface Job extends QueuedWork {
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

/** One attempt to run jobs in a transaction; without expectations each result is awaited. */
interface Attempt {
  readonly connection: Connection;
  /** Collects the jobs that were started. */
  readonly taken: Job[];
  readonly expectations: Expectations | undefined;
}

/** The jobs of one transaction. */
export interface Group {
  readonly settles: readonly Settle[];
  readonly isKept: boolean;
}

/** Attempts of a transaction that conflicts with others, and by how much the pause before each grows. */
const ATTEMPTS_MAX = 10;
const CONFLICT_PAUSE_MS = 20;

const SAVEPOINT = 'savepoint job';
/** Each of these two leaves a savepoint for the next job. */
const KEEP = ['release savepoint job', SAVEPOINT];
const UNDO = ['rollback to savepoint job'];

/** Transactions that were committed, and those that were retried or failed because of a conflict. */
export interface CommitCounts {
  commits: number;
  retries: number;
}

/** Runs work in a transaction that has locked the scope; with expectations, that it has done so is one of them. */
export type Transact = (
  scope: WriteScope,
  expectations: Expectations | undefined,
  work: (connection: Connection) => Promise<TransactionResult<Group>>,
) => Promise<Group>;

/** Runs jobs in a transaction. */
type RunJobs = (jobs: readonly Job[], attempt: Attempt) => Promise<TransactionResult<Group>>;

/**
 * Runs jobs until they have written LIMITS.cascadeRecordsMax rows, or taken half of the time that is left to the
 * first one: all of them wait for the commit. The others stay for the next transaction.
 */
export function openJobRunner(perform: Perform, log: Pick<AuditLog, 'write'>): RunJobs {
  async function runPlain(
    { work, resolve }: Job,
    connection: Connection,
    expectations?: Expectations,
  ): Promise<JobResult> {
    expectations?.takeHasWritten();
    const outcome = await perform(connection, work(), expectations);
    return { outcome, settle: () => resolve(outcome.value as never) };
  }

  async function runInSavepoint(job: Job, connection: Connection): Promise<JobResult> {
    try {
      const ran = await runPlain(job, connection);
      await runAll(connection, ran.outcome?.keep ? KEEP : UNDO);
      return ran;
    } catch (error) {
      if (isRetryableConflict(error)) throw error;
      await runAll(connection, UNDO);
      return { settle: () => job.reject(postgresFault(error)) };
    }
  }

  /** Runs one job after those of the load. */
  async function runNext(
    job: Job,
    { connection, expectations }: Attempt,
    isAlone: boolean,
  ): Promise<JobResult> {
    if (isAlone) return runPlain(job, connection, expectations);
    if (!expectations) return runInSavepoint(job, connection);
    const result = await runPlain(job, connection, expectations);
    // Without a savepoint, what this job wrote cannot be undone alone.
    if (result.outcome?.keep === false && expectations.takeHasWritten()) throw new UnexpectedResult();
    return result;
  }

  return async (jobs, attempt) => {
    const { connection, taken, expectations } = attempt;
    const isAlone = jobs.length === 1;
    if (!isAlone && !expectations) await connection.query(SAVEPOINT, []);
    const end = halfwayUntil(jobs[0]?.deadline ?? 0);
    const settles: Settle[] = [];
    const load: TransactionLoad = { entries: [], auditEntries: [], rows: 0 };
    let isKept = false;
    for (const job of jobs) {
      if (taken.length > 0 && isFull(load.entries.length + load.auditEntries.length + load.rows, end)) break;
      taken.push(job);
      const { outcome, settle } = await runNext(job, attempt, isAlone);
      settles.push(settle);
      isKept = (outcome !== undefined && add(load, outcome)) || isKept;
    }
    await perform(connection, log.write(load.entries, load.auditEntries), expectations);
    // The commit does not wait for statements that only have to succeed: where one fails, the server rolls back.
    await (isKept ? expectations?.checkExpected() : expectations?.check());
    return { value: { settles, isKept }, shouldCommit: isKept };
  };
}

/**
 * Runs jobs of one scope, in their order, in as few transactions as possible, and counts these. A transaction first assumes
 * expected results. Where one differs or a job fails, it is rolled back, and runs again with each result awaited and a
 * savepoint for each job unless it is alone. Resolves when all jobs are settled.
 */
export function openGroupCommit(
  transact: Transact,
  run: RunJobs,
  counts: CommitCounts,
): (scope: WriteScope, jobs: readonly Job[]) => Promise<void> {
  /** Runs a transaction, and settles its jobs. Returns how many they are. `taken` collects those that were started. */
  async function commitJobs(scope: WriteScope, jobs: readonly Job[], taken: Job[], isStepwise: boolean) {
    taken.length = 0;
    const expectations = isStepwise ? undefined : openExpectations();
    const { settles, isKept } = await transact(scope, expectations, (connection) =>
      run(jobs, { connection, taken, expectations }),
    ).catch(async (error) => {
      throw expectations ? await causeOf(error, expectations) : error;
    });
    counts.commits += Number(isKept);
    for (const settle of settles) settle();
    return settles.length;
  }

  /** Returns how many jobs are settled; 0 where the transaction has to be retried. */
  async function attempt(scope: WriteScope, jobs: readonly Job[], isLast: boolean): Promise<number> {
    const taken: Job[] = [];
    try {
      return await commitJobs(scope, jobs, taken, false).catch((error) => {
        if (error instanceof UnexpectedResult) return commitJobs(scope, jobs, taken, true);
        throw error;
      });
    } catch (error) {
      counts.retries += Number(isRetryableConflict(error));
      if (isRetryableConflict(error) && !isLast) return 0;
      // Jobs that were not started are tried again, unless none was started.
      const concerned = taken.length > 0 ? taken : jobs;
      for (const { reject } of concerned) reject(postgresFault(error));
      return concerned.length;
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

/**
 * Why jobs failed that assumed results: the first error of the engine, or UnexpectedResult where they have to run step by step
 * to find the one that fails.
 */
async function causeOf(error: unknown, expectations: Expectations): Promise<unknown> {
  if (error instanceof Fault && error.code === 'unknown_outcome') return error;
  const first = await expectations.check().then(
    () => error,
    (earlier) => earlier,
  );
  const failure = databaseError(first);
  return failure && !isViolation(first) && !isBug(failure) ? first : new UnexpectedResult();
}

async function runAll(connection: Connection, texts: readonly string[]): Promise<void> {
  await Promise.all(texts.map((text) => connection.query(text, [])));
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
