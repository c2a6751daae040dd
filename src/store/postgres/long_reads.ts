import { Fault, overloaded } from '../../domain/fault.ts';
import { LIMITS } from '../../domain/limits.ts';
import { withTimeout } from '../../platform/timeout.ts';
import type { QueueFigures } from '../engine.ts';
import type { Work } from '../transaction_work.ts';
import { BEGIN_READING } from './begin_statements.ts';
import { isCancelled, postgresFault } from './connection.ts';
import type { ConnectionPool } from './pool.ts';
import type { Perform } from './session.ts';

/** The engine ends what takes longer. */
const BEGIN_LONG_READING = `${BEGIN_READING}; set local statement_timeout = ${LIMITS.listMsMax}`;

export interface LongReading {
  read<T>(work: () => Work<T>): Promise<T>;
  figures(): QueueFigures;
}

/**
 * Reads what may take long: LIMITS.readersMax at once, LIMITS.listsWaitingMax wait, each for LIMITS.listMsMax. Rejects
 * with Fault `overloaded` beyond that.
 */
export function openLongReading(pool: ConnectionPool, perform: Perform): LongReading {
  const waiting: (() => void)[] = [];
  let atOnce = 0;

  /** Resolves when there is a place. */
  async function enter(): Promise<void> {
    if (atOnce < LIMITS.readersMax) {
      atOnce += 1;
      return;
    }
    if (waiting.length >= LIMITS.listsWaitingMax) throw overloaded('QUEUE_FULL');
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.push(resolve);
    await withTimeout(promise, LIMITS.listMsMax, () => {
      waiting.splice(waiting.indexOf(resolve), 1);
      throw overloaded('DEADLINE_EXCEEDED');
    });
  }

  /** Hands the place on. */
  function leave(): void {
    const next = waiting.shift();
    if (next) next();
    else atOnce -= 1;
  }

  async function read<T>(work: () => Work<T>): Promise<T> {
    await enter();
    try {
      return await pool.transaction(BEGIN_LONG_READING, async (connection) => ({
        value: await perform(connection, work()),
        isKept: false,
      }));
    } catch (error) {
      if (isCancelled(error)) throw overloaded('DEADLINE_EXCEEDED');
      throw error instanceof Fault ? error : postgresFault(error);
    } finally {
      leave();
    }
  }

  return { read, figures: () => ({ waiting: waiting.length, working: atOnce }) };
}
