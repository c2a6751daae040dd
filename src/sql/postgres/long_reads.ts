import { overloaded } from '../../model/fault.ts';
import { LIMITS } from '../../model/limits.ts';
import { withTimeout } from '../../model/timeout.ts';
import type { Work } from '../transaction_work.ts';
import { BEGIN_READ, type BeginStatements, setLocal } from './begin_statements.ts';
import { isCancelled, postgresFault } from './connection.ts';
import type { ConnectionPool } from './pool.ts';
import { openPostgresReading } from './reading.ts';
import type { Perform } from './session.ts';

/** The server cancels longer reads. */
const BEGIN_LONG_READ: BeginStatements = [...BEGIN_READ, setLocal({ statement_timeout: LIMITS.listMsMax })];

/**
 * Runs reads that may take long, LIMITS.readersMax at a time. At most LIMITS.listsWaitingMax others wait, each for at
 * most LIMITS.listMsMax. Beyond that it rejects with Fault `overloaded`.
 */
export function openLongReads(pool: ConnectionPool, perform: Perform) {
  const readNow = openPostgresReading(pool, perform, BEGIN_LONG_READ, (error) =>
    isCancelled(error) ? overloaded('DEADLINE_EXCEEDED') : postgresFault(error),
  );
  const waiting: (() => void)[] = [];
  let running = 0;

  /** Resolves when the read may run. */
  async function enter(): Promise<void> {
    if (running < LIMITS.readersMax) {
      running += 1;
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

  /** Lets the next read run. */
  function leave(): void {
    const next = waiting.shift();
    if (next) next();
    else running -= 1;
  }

  async function read<T>(work: () => Work<T>): Promise<T> {
    await enter();
    try {
      return await readNow(work);
    } finally {
      leave();
    }
  }

  return { read, figures: () => ({ waiting: waiting.length, working: running }) };
}
