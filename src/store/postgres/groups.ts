import type { AuditEntry } from '../../domain/audit_entry.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { ChangeEntry } from '../audit/entry.ts';
import type { AuditLog } from '../audit/log.ts';
import type { WriteScope } from '../transactions.ts';
import type { Work, WorkResult } from '../work.ts';
import { claim } from './claims.ts';
import { asFault, type Connection, isRetryable } from './connection.ts';
import { inTime, type Waiting } from './in_time.ts';
import { BEGIN_WRITING } from './openings.ts';
import type { Ended, Pool } from './pool.ts';
import type { Perform } from './session.ts';

/** Work that waits to be written. */
export interface Job extends Waiting {
  readonly work: () => Work<WorkResult<unknown>>;
  readonly resolve: (value: never) => void;
}

/** Settles the promise of a job. */
type Settle = () => void;

/** What became of a job: no outcome where it failed. */
interface Ran {
  readonly outcome?: WorkResult<unknown>;
  readonly settle: Settle;
}

/** What the jobs of one transaction amount to. */
interface Load {
  readonly entries: ChangeEntry[];
  readonly auditEntries: AuditEntry[];
  rows: number;
}

/** The jobs of one transaction. */
interface Group {
  readonly settles: readonly Settle[];
  readonly isKept: boolean;
}

/** How often a transaction is begun where others are in the way of it, and how much longer it pauses each time. */
const ATTEMPTS_MAX = 10;
const PAUSE_MS = 20;

const SAVEPOINT = 'savepoint job';
/** Both leave a savepoint for the next job. */
const KEEP = `release savepoint job; ${SAVEPOINT}`;
const UNDO = 'rollback to savepoint job';

/** Transactions that were committed, and those that another one was in the way of. */
interface Counts {
  commits: number;
  busy: number;
}

/**
 * Makes what runs jobs of one scene, in their order, in as few transactions as possible, and counts these. Each job has a
 * savepoint of its own unless it is alone. Settles when all of them are settled.
 */
export function openGroups(
  pool: Pool,
  perform: Perform,
  log: Pick<AuditLog, 'write'>,
  counts: Counts,
): (scene: WriteScope, jobs: readonly Job[]) => Promise<void> {
  /** Answers how many jobs are settled; none where another transaction was in the way. */
  async function attempt(scene: WriteScope, jobs: readonly Job[], isLast: boolean): Promise<number> {
    const taken: Job[] = [];
    try {
      const { settles, isKept } = await pool.transaction(BEGIN_WRITING, (connection) =>
        run(scene, jobs, connection, taken),
      );
      counts.commits += Number(isKept);
      for (const settle of settles) settle();
      return settles.length;
    } catch (error) {
      counts.busy += Number(isRetryable(error));
      if (isRetryable(error) && !isLast) return 0;
      // The error is not about jobs that were not begun, unless none was.
      const concerned = taken.length > 0 ? taken : jobs;
      for (const { reject } of concerned) reject(asFault(error));
      return concerned.length;
    }
  }

  /**
   * Runs jobs until they amount to LIMITS.cascadeRecordsMax rows, or take half of the time that is left to the first one:
   * all of them wait for the commit. The others stay for the next transaction. `taken`: those that were begun.
   */
  async function run(
    scene: WriteScope,
    jobs: readonly Job[],
    connection: Connection,
    taken: Job[],
  ): Promise<Ended<Group>> {
    await claim(scene, connection);
    const isAlone = jobs.length === 1;
    if (!isAlone) await connection.ask(SAVEPOINT, []);
    const end = halfwayTo(jobs[0]?.deadline ?? 0);
    const settles: Settle[] = [];
    const load: Load = { entries: [], auditEntries: [], rows: 0 };
    let isKept = false;
    for (const job of jobs) {
      if (taken.length > 0 && isEnough(load.entries.length + load.auditEntries.length + load.rows, end))
        break;
      taken.push(job);
      const { outcome, settle } = await (isAlone ? runAlone(job, connection) : runApart(job, connection));
      settles.push(settle);
      isKept = (outcome !== undefined && add(load, outcome)) || isKept;
    }
    await perform(connection, log.write(load.entries, load.auditEntries));
    return { value: { settles, isKept }, isKept };
  }

  async function runAlone({ work, resolve }: Job, connection: Connection): Promise<Ran> {
    const outcome = await perform(connection, work());
    return { outcome, settle: () => resolve(outcome.value as never) };
  }

  async function runApart(job: Job, connection: Connection): Promise<Ran> {
    try {
      const ran = await runAlone(job, connection);
      await connection.ask(ran.outcome?.keep ? KEEP : UNDO, []);
      return ran;
    } catch (error) {
      if (isRetryable(error)) throw error;
      await connection.ask(UNDO, []);
      return { settle: () => job.reject(asFault(error)) };
    }
  }

  return async (scene, jobs) => {
    let left = inTime(jobs);
    let attempts = 0;
    while (left.length > 0) {
      attempts += 1;
      const settled = await attempt(scene, left, attempts === ATTEMPTS_MAX);
      if (settled > 0) attempts = 0;
      // Transactions that met must not meet again.
      else await Bun.sleep(Math.random() * attempts * PAUSE_MS);
      left = inTime(left.slice(settled));
    }
  };
}

/** Adds what a job amounts to; answers whether its writes are kept. */
function add(load: Load, { keep, entries = [], auditEntries = [], rows = 0 }: WorkResult<unknown>): boolean {
  load.rows += rows;
  if (keep) {
    load.entries.push(...entries);
    load.auditEntries.push(...auditEntries);
  }
  return keep;
}

function isEnough(rows: number, end: number): boolean {
  return rows >= LIMITS.cascadeRecordsMax || performance.now() > end;
}

function halfwayTo(deadline: number): number {
  return (performance.now() + deadline) / 2;
}
