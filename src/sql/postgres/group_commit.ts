import { Fault } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import type { AuditEntry } from '../../model/log/audit_entry.ts';
import type { ChangeEntry } from '../../model/log/change.ts';
import { type Job, rejectExpired } from '../queued_work.ts';
import type { EntryWriter, WorkResult } from '../transaction_work.ts';
import type { WriteScope } from '../transactions.ts';
import { type Connection, isRetryableConflict, postgresFault } from './connection.ts';
import { CONNECTIONS_BUSY, databaseError, isBug } from './errors.ts';
import { type Expectations, openExpectations, UnexpectedResult } from './expectations.ts';
import { type ConnectionPool, firstError } from './pool.ts';
import { lockScope, type WriteBeginning } from './scope_locks.ts';
import { isViolation, type Perform } from './session.ts';

const FAILED: WorkResult<undefined> = Object.freeze({ value: undefined, keep: false });

/** One attempt to run jobs in a transaction. Without expectations each result is awaited. */
function openGroup(expectations: Expectations | undefined) {
  return {
    expectations,
    /** The jobs that were started. */
    taken: [] as Job[],
    /** Settles the promise of each of them. */
    settles: [] as (() => void)[],
    entries: [] as ChangeEntry[],
    auditEntries: [] as AuditEntry[],
    rows: 0,
    isKept: false,
  };
}

type Group = ReturnType<typeof openGroup>;

/** Attempts of a transaction that conflicts with others, and by how much the pause before each grows. */
const ATTEMPTS_MAX = 10;
const CONFLICT_PAUSE_MS = 20;

const SAVEPOINT = 'savepoint job';
/** Each of these two leaves a savepoint for the next job. */
const KEEP = ['release savepoint job', SAVEPOINT];
const UNDO = ['rollback to savepoint job'];

export type GroupCommit = ReturnType<typeof openGroupCommit>;

/**
 * Runs jobs in transactions that first assume expected results. Where one differs or a job fails, the transaction is rolled back, and
 * runs again with each result awaited and a savepoint for each job unless it is alone.
 */
export function openGroupCommit(
  pool: ConnectionPool,
  beginning: WriteBeginning,
  perform: Perform,
  log: EntryWriter,
) {
  /** Transactions that were committed, and those that were retried or failed because of a conflict. */
  const counts = { commits: 0, retries: 0 };

  /** Runs one job. With a savepoint, a job that fails or whose writes are not kept is undone alone. */
  async function runJob(
    job: Job,
    connection: Connection,
    { expectations, settles }: Group,
    isAlone: boolean,
  ): Promise<WorkResult<unknown>> {
    const hasSavepoint = !isAlone && !expectations;
    const writesBefore = expectations?.writes;
    try {
      const outcome = await perform(connection, job.work(), expectations);
      if (hasSavepoint) await runAll(connection, outcome.keep ? KEEP : UNDO);
      // Without a savepoint, what this job wrote cannot be undone alone: the error ends the transaction.
      else if (!isAlone && !outcome.keep && expectations?.writes !== writesBefore)
        throw new UnexpectedResult();
      settles.push(() => job.resolve(outcome.value as never));
      return outcome;
    } catch (error) {
      if (!hasSavepoint || isRetryableConflict(error)) throw error;
      await runAll(connection, UNDO);
      settles.push(() => job.reject(postgresFault(error)));
      return FAILED;
    }
  }

  /**
   * Runs jobs until they have written LIMITS.cascadeRecordsMax rows, or taken half of the time that is left to the
   * first one: all of them wait for the commit. The others stay for the next transaction.
   */
  async function runJobs(jobs: readonly Job[], connection: Connection, group: Group): Promise<void> {
    const { expectations, taken } = group;
    const isAlone = jobs.length === 1;
    if (!isAlone && !expectations) await connection.query(SAVEPOINT, []);
    const end = (performance.now() + (jobs[0] as Job).deadline) / 2;
    for (const job of jobs) {
      const written = group.rows + group.entries.length + group.auditEntries.length;
      if (taken.length > 0 && (written >= LIMITS.cascadeRecordsMax || performance.now() > end)) break;
      taken.push(job);
      const outcome = await runJob(job, connection, group, isAlone);
      const { keep, entries = [], auditEntries = [], rows = 0 } = outcome;
      group.rows += rows;
      if (!keep) continue;
      group.isKept = true;
      group.entries.push(...entries);
      group.auditEntries.push(...auditEntries);
    }
    await perform(connection, log.write(group.entries, group.auditEntries), expectations);
    // The commit does not wait for statements that only have to succeed: where one fails, the server rolls back.
    await (group.isKept ? expectations?.checkExpected() : expectations?.check());
  }

  /** Runs a transaction, and settles its jobs. */
  async function runTransaction(scope: WriteScope, jobs: readonly Job[], group: Group): Promise<void> {
    const { expectations } = group;
    const work = async (connection: Connection) => {
      await lockScope(connection, scope, beginning, expectations);
      await runJobs(jobs, connection, group);
      return group.isKept;
    };
    await pool.transaction(beginning.begin, work, true).catch(async (error) => {
      throw expectations ? await causeOf(error, expectations) : error;
    });
    counts.commits += Number(group.isKept);
    // No later: callers that write again at once would miss the next group, and groups would be half as large.
    for (const settle of group.settles) settle();
  }

  /** Commits jobs in one transaction. Returns how many are settled; 0 where it has to be retried. */
  async function attempt(scope: WriteScope, jobs: readonly Job[], isLast: boolean): Promise<number> {
    let group = openGroup(openExpectations());
    try {
      await runTransaction(scope, jobs, group).catch((error) => {
        if (!(error instanceof UnexpectedResult)) throw error;
        group = openGroup(undefined);
        return runTransaction(scope, jobs, group);
      });
    } catch (error) {
      counts.retries += Number(isRetryableConflict(error));
      if (isRetryableConflict(error) && !isLast) return 0;
      // Jobs that were not started are tried again, unless none was started.
      const concerned = group.taken.length > 0 ? group.taken : jobs;
      for (const { reject } of concerned) reject(postgresFault(error));
      return concerned.length;
    }
    return group.taken.length;
  }

  return {
    counts,
    /** Runs jobs of one scope, in their order, in as few transactions as possible. Resolves when all are settled. */
    async commit(scope: WriteScope, jobs: readonly Job[]): Promise<void> {
      let left = rejectExpired(jobs, CONNECTIONS_BUSY);
      let attempts = 0;
      while (left.length > 0) {
        attempts += 1;
        const settled = await attempt(scope, left, attempts === ATTEMPTS_MAX);
        if (settled > 0) attempts = 0;
        // A random pause keeps transactions that conflicted from conflicting again.
        else await Bun.sleep(Math.random() * attempts * CONFLICT_PAUSE_MS);
        left = rejectExpired(left.slice(settled), CONNECTIONS_BUSY);
      }
    },
  };
}

/**
 * Why jobs failed that assumed results: the first error of the engine, or UnexpectedResult where they have to run step by step
 * to find the one that fails.
 */
async function causeOf(error: unknown, expectations: Expectations): Promise<unknown> {
  if (error instanceof Fault && error.code === 'unknown_outcome') return error;
  const first = await firstError(expectations.check(), error);
  const failure = databaseError(first);
  return failure && !isViolation(first) && !isBug(failure) ? first : new UnexpectedResult();
}

async function runAll(connection: Connection, texts: readonly string[]): Promise<void> {
  await Promise.all(texts.map((text) => connection.query(text, [])));
}
