import type { Change } from '../../domain/change.ts';
import { LIMITS } from '../../domain/limits.ts';
import { sequence } from '../sequence.ts';
import type { Scene } from '../transactions.ts';
import type { Outcome, Work } from '../work.ts';
import { claim } from './claims.ts';
import { asFault, type Connection, isRetryable } from './connection.ts';
import type { Ended, Pool } from './pool.ts';
import type { Perform } from './session.ts';

/** A piece of work that waits to be written. */
export interface Job {
  readonly work: () => Work<Outcome<unknown>>;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
  readonly deadline: number;
}

/** Tells somebody what became of a piece. */
type Tell = () => void;

const BEGIN = 'begin';

/**
 * Makes what runs pieces of one scene, in their order, in as few transactions as there may be. Each piece has a savepoint
 * of its own where it is not alone. Settles when all of them have heard.
 */
export function openGroups(
  pool: Pool,
  perform: Perform,
): (scene: Scene, jobs: readonly Job[]) => Promise<void> {
  /** Answers how many pieces have heard what became of them; none where another transaction was in the way. */
  async function attempt(scene: Scene, jobs: readonly Job[]): Promise<number> {
    try {
      const told = await pool.transaction(BEGIN, (connection) => run(scene, jobs, connection));
      for (const tell of told) tell();
      return told.length;
    } catch (error) {
      const isLate = performance.now() > (jobs[0]?.deadline ?? 0);
      if (isRetryable(error) && !isLate) return 0;
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
    let left = jobs;
    while (left.length > 0) {
      const heard = await attempt(scene, left);
      left = left.slice(heard);
    }
  };
}
