import type { Act } from '../../domain/act.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Entry } from '../entry.ts';
import type { Log } from '../log.ts';
import type { Scene } from '../transactions.ts';
import type { Outcome, Work } from '../work.ts';
import { claim } from './claims.ts';
import { asFault, type Connection, isRetryable } from './connection.ts';
import { inTime, type Waiting } from './in_time.ts';
import { BEGIN_WRITING } from './openings.ts';
import type { Ended, Pool } from './pool.ts';
import type { Perform } from './session.ts';

/** A piece of work that waits to be written. */
export interface Job extends Waiting {
  readonly work: () => Work<Outcome<unknown>>;
  readonly resolve: (value: never) => void;
}

/** Tells somebody what became of a piece. */
type Tell = () => void;

/** How often a transaction is begun where others are in the way of it, and how much longer it pauses each time. */
const ATTEMPTS_MAX = 10;
const PAUSE_MS = 20;

const SAVEPOINT = 'savepoint piece';
/** Both leave a savepoint for the next piece. */
const KEEP = `release savepoint piece; ${SAVEPOINT}`;
const UNDO = 'rollback to savepoint piece';

/**
 * Makes what runs pieces of one scene, in their order, in as few transactions as there may be. Each piece has a savepoint
 * of its own where it is not alone. Settles when all of them have heard.
 */
export function openGroups(
  pool: Pool,
  perform: Perform,
  log: Pick<Log, 'write'>,
): (scene: Scene, jobs: readonly Job[]) => Promise<void> {
  /** Answers how many pieces have heard what became of them; none where another transaction was in the way. */
  async function attempt(scene: Scene, jobs: readonly Job[], isLast: boolean): Promise<number> {
    const taken: Job[] = [];
    try {
      const told = await pool.transaction(BEGIN_WRITING, (connection) => run(scene, jobs, connection, taken));
      for (const tell of told) tell();
      return told.length;
    } catch (error) {
      if (isRetryable(error) && !isLast) return 0;
      // It says nothing about pieces that were not begun, unless none was.
      const concerned = taken.length > 0 ? taken : jobs;
      for (const { reject } of concerned) reject(asFault(error));
      return concerned.length;
    }
  }

  /**
   * Runs pieces until they come to LIMITS.cascadeRecordsMax rows, or to half of the time that is left to the first one:
   * all of them wait for the commit. The others stay for the next transaction. `taken`: those that were begun.
   */
  async function run(
    scene: Scene,
    jobs: readonly Job[],
    connection: Connection,
    taken: Job[],
  ): Promise<Ended<readonly Tell[]>> {
    await claim(scene, connection);
    const runOne = await runnerOf(jobs, connection);
    const end = halfwayTo(jobs[0]?.deadline ?? 0);
    const told: Tell[] = [];
    const load = { entries: [] as Entry[], acts: [] as Act[], rows: 0 };
    let isKept = false;
    for (const job of jobs) {
      if (taken.length > 0 && isEnough(load.entries.length + load.acts.length + load.rows, end)) break;
      taken.push(job);
      const { outcome, tell } = await runOne(job, connection);
      told.push(tell);
      load.rows += outcome?.rows ?? 0;
      if (!outcome?.keep) continue;
      isKept = true;
      load.entries.push(...(outcome.entries ?? []));
      load.acts.push(...(outcome.acts ?? []));
    }
    await perform(connection, log.write(load.entries, load.acts));
    return { value: told, isKept };
  }

  /** How each of these is run. */
  async function runnerOf({ length }: readonly Job[], connection: Connection) {
    if (length > 1) await connection.ask(SAVEPOINT, []);
    return length > 1 ? runApart : runAlone;
  }

  async function runAlone({ work, resolve }: Job, connection: Connection) {
    const outcome = await perform(connection, work());
    return { outcome, tell: () => resolve(outcome.value as never) };
  }

  async function runApart(
    job: Job,
    connection: Connection,
  ): Promise<{ outcome?: Outcome<unknown>; tell: Tell }> {
    try {
      const ran = await runAlone(job, connection);
      await connection.ask(ran.outcome.keep ? KEEP : UNDO, []);
      return ran;
    } catch (error) {
      if (isRetryable(error)) throw error;
      await connection.ask(UNDO, []);
      return { tell: () => job.reject(asFault(error)) };
    }
  }

  return async (scene, jobs) => {
    let left = inTime(jobs);
    let attempts = 0;
    while (left.length > 0) {
      attempts += 1;
      const heard = await attempt(scene, left, attempts === ATTEMPTS_MAX);
      if (heard > 0) attempts = 0;
      // Those who met must not meet again.
      else await Bun.sleep(Math.random() * attempts * PAUSE_MS);
      left = inTime(left.slice(heard));
    }
  };
}

function isEnough(rows: number, end: number): boolean {
  return rows >= LIMITS.cascadeRecordsMax || performance.now() > end;
}

function halfwayTo(deadline: number): number {
  return (performance.now() + deadline) / 2;
}
