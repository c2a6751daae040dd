import type { Database } from 'bun:sqlite';
import type { Transactions } from '../transactions.ts';
import type { Work } from '../work.ts';
import { giveWay, readFrom } from './connection.ts';
import { openSession } from './session.ts';
import type { Snapshot } from './snapshot.ts';
import type { Writer } from './writer.ts';

/** Reading on one connection. */
export function openReading(db: Database, snapshot: Snapshot): Pick<Transactions, 'read'> {
  const { perform } = openSession(db);
  const together = db.transaction(<T>(work: Work<T>): T => perform(work)) as typeof perform;
  // One moment for all statements, also where the snapshot shares no transaction.
  return {
    read: (work) => readFrom(snapshot, () => (db.inTransaction ? perform(work()) : together(work()))),
  };
}

/** The transactions of one connection. All that is written has one order here, wherever it belongs. */
export function openTransactions(db: Database, snapshot: Snapshot, writer: Writer): Transactions {
  return {
    ...openReading(db, snapshot),
    write: (_, work) => writer.write(work),
    isOverloaded: writer.isCrowded,
    yieldToWriters: giveWay,
  };
}
