import type { Change } from '../../domain/change.ts';
import { Fault } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import { sequence } from '../sequence.ts';
import type { Scene } from '../transactions.ts';
import type { Outcome, Work } from '../work.ts';
import { claim } from './claims.ts';
import { asFault, type Connection, isRetryable } from './connection.ts';
import { BEGIN_WRITING } from './openings.ts';
import type { Ended, Pool } from './pool.ts';
import type { Perform } from './session.ts';
import { OWN, Trouble } from './trouble.ts';

/** A piece of work that waits to be written. */
export interface Job {
  readonly work: () => Work<Outcome<unknown>>;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
  readonly deadline: number;
}

/** Tells somebody what became of a piece. */
type Tell = () => void;

/** How often a transaction is begun where others are in the way of it, and how much longer it pauses each time. */
const ATTEMPTS_MAX = 10;
const PAUSE_MS = 20;

/**
 * Makes what runs pieces of one scene, in their order, in as few transactions as there may be. Each piece has a savepoint
 * of its own where it is not alone. Settles when all of them have heard.
 */
export function openGroups(
  pool: Pool,
  perform: Perform,
): (scene: Scene, jobs: readonly Job[]) => Promise<void> {
  /** Answers how many pieces have heard what became of them; none where another transaction was in the way. */
  async function attempt(scene: Scene, jobs: readonly Job[], isLast: boolean): Promise<number> {
    try {
      const told = await pool.transaction(BEGIN_WRITING, (connection) => run(scene, jobs, connection));
      for (const tell of told) tell();
      return told.length;
    } catch (error) {
      if (isRetryable(error) && !isLast) return 0;
      for (const { reject } of jobs) reject(asFault(error));
      return jobs.length;
    }
  }

  /** Runs pieces until they come to LIMITS.cascadeRecordsMax rows: the others stay for the next transaction. */
  async function run(
    scene: Scene,
    jobs: readonly Job[],
    connection: Connection,
  ): Promise<Ended<readonly Tell[]>> {
    await claim(scene, connection);
    const told: Tell[] = [];
    const changes: Change[] = [];
    let rows = 0;
    let isKept = false;
    for (const job of jobs) {
      if (changes.length + rows >= LIMITS.cascadeRecordsMax) break;
      const { outcome, tell } = await (jobs.length > 1 ? runApart : runAlone)(job, connection);
      told.push(tell);
      rows += outcome?.rows ?? 0;
      if (!outcome?.keep) continue;
      isKept = true;
      changes.push(...(outcome.changes ?? []));
    }
    await perform(connection, sequence(changes));
    return { value: told, isKept };
  }

  async function runAlone({ work, resolve }: Job, connection: Connection) {
    const outcome = await perform(connection, work());
    return { outcome, tell: () => resolve(outcome.value as never) };
  }

  async function runApart(
    job: Job,
    connection: Connection,
  ): Promise<{ outcome?: Outcome<unknown>; tell: Tell }> {
    // It travels with the first statement of the work.
    connection.ask('savepoint piece', []).catch(() => undefined);
    try {
      const ran = await runAlone(job, connection);
      const end = ran.outcome.keep ? 'release savepoint piece' : 'rollback to savepoint piece';
      await connection.ask(end, []);
      return ran;
    } catch (error) {
      if (isRetryable(error)) throw error;
      await connection.ask('rollback to savepoint piece', []);
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

/** Those for which somebody still waits; the others hear that it is too late. */
function inTime(jobs: readonly Job[]): readonly Job[] {
  const now = performance.now();
  const late = jobs.filter(({ deadline }) => deadline < now);
  for (const { reject } of late) reject(new Fault('unavailable', [], new Trouble(OWN.crowded)));
  return late.length === 0 ? jobs : jobs.filter((job) => !late.includes(job));
}
